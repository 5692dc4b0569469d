"""The reference: docs/reference/portable-numerics.md in plain torch and NumPy, slow and obvious."""
