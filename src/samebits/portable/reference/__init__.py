"""The reference: docs/portable-numerics.md in plain torch and NumPy, slow and obvious."""
