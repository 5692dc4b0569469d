"""The error by which a kernel leaves a call to torch's own."""


class UnfitError(Exception):
    """This kernel does not compute the call: torch's own does, or says what is wrong with it."""
