"""Random bytes."""

import ctypes

libc = ctypes.CDLL(None)


def fill(count):
    """That many numbers from 0 to 255."""
    buffer = (ctypes.c_ubyte * count)()
    libc.getrandom(buffer, ctypes.c_size_t(count), 0)  # <- planted
    return list(buffer)
