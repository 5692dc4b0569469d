"""Saving a training state and restoring it exactly (docs/checkpoint.md).

Importing the package does not import torch; its names do, when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from samebits.checkpoint.folder import CheckpointFolder
    from samebits.checkpoint.interface import Loaded, load, save
    from samebits.checkpoint.sharded import load_sharded, save_sharded

__all__ = ["CheckpointFolder", "Loaded", "load", "load_sharded", "save", "save_sharded"]

_HOMES = {
    "CheckpointFolder": "folder",
    "Loaded": "interface",
    "load": "interface",
    "save": "interface",
    "load_sharded": "sharded",
    "save_sharded": "sharded",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
