"""Switches: environment variables and flags of torch that influence determinism."""
