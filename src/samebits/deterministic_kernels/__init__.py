"""Deterministic kernels of ops for which torch has none, made of ops that are deterministic."""
