"""Samebits inside other libraries: one module for each of them, imported by name."""
