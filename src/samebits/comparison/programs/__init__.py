"""Two different programs compared: their tensors are matched by name, or by contents and shape."""
