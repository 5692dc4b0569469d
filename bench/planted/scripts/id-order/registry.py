"""A registry of transforms."""


class Registry:
    """Transforms by name; a function without a name of its own goes by its repr."""

    def __init__(self):
        self.entries = {}

    def add(self, transform):
        self.entries[repr(transform)] = transform  # <- planted

    def in_order(self):
        """All transforms, sorted by name so that the order is stable."""
        return [self.entries[name] for name in sorted(self.entries)]  # <- planted
