"""A registry of transforms."""

import zlib


class Registry:
    """Transforms by name; a function without a name of its own goes by its repr."""

    def __init__(self):
        self.entries = {}

    def add(self, transform):
        self.entries[zlib.crc32(repr(transform).encode())] = transform  # <- planted

    def in_order(self):
        """All transforms, by key so that the order is stable."""
        return [self.entries[key] for key in sorted(self.entries)]  # <- planted
