"""The version of the numerics."""

from __future__ import annotations

NUMERICS_VERSION = 1
"""Of docs/portable-numerics.md. It is in every record of a portable run, because changing it changes bits."""
