"""The environment variables that samebits itself reads or sets, beside those with defaults of options."""

from __future__ import annotations

PREFIX = "SAMEBITS_"
"""Begins all of them."""
NO_DEFAULTS = "SAMEBITS_NO_DEFAULTS"
"""If it is set to anything, only the command line gives the options of a command."""
CACHE = "SAMEBITS_CACHE"
"""The folder for caches."""
DIGEST_BACKEND = "SAMEBITS_DIGEST_BACKEND"
"""What computes digests."""
READ_ALL = "SAMEBITS_READ_ALL"
"""If it is set to anything, the op level reads every tensor at each use."""
PORTABLE_BACKEND = "SAMEBITS_PORTABLE_BACKEND"
"""What computes the ops of portable mode."""
PORTABLE_DISPATCH = "SAMEBITS_PORTABLE_DISPATCH"
"""How ops come to portable mode."""
SETTINGS = "SAMEBITS_SETTINGS"
"""Holds the settings of a run, for the process that makes it."""
PADDING = "SAMEBITS_PADDING"
"""Moves the stack, which starts below the environment."""
PYTEST_CALL = "SAMEBITS_PYTEST_CALL"
"""Holds the call of a test, for the process that makes it again."""
PYTEST_BEFORE = "SAMEBITS_PYTEST_BEFORE"
"""Holds what variables were before `--samebits` started pytest again with those that control needs."""
BUILD = "SAMEBITS_BUILD"
"""Read by setup.py: what is compiled."""
OWN = frozenset({
    NO_DEFAULTS, CACHE, DIGEST_BACKEND, READ_ALL, PORTABLE_BACKEND, PORTABLE_DISPATCH, SETTINGS, PADDING,
    PYTEST_CALL, PYTEST_BEFORE, BUILD,
})  # fmt: skip
