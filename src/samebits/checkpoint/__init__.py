"""Checkpoints: a training state is saved, and restored exactly (docs/reference/checkpoint.md).

Importing the package does not import torch; its names do, when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits._runtime.lazy import late_dir, late_names

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

__getattr__ = late_names(__name__, _HOMES)
__dir__ = late_dir(_HOMES)
