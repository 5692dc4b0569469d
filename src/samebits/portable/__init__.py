"""Portable mode: the same bits on any thread count, instruction set and torch release."""
