"""This package itself: its version and its location."""

from __future__ import annotations

import os

__version__ = "0.1.0"
FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
"""The folder of the modules."""

LOCATION = os.path.dirname(FOLDER)
"""The entry of `sys.path` from which it can be imported."""
