"""Kernels of CUDA: their sources, a compiler that torch brings, and the driver that runs them."""
