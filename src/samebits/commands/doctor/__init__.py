"""What on this machine and in this environment threatens each promise, and what to do about it."""

from __future__ import annotations

from samebits.commands.doctor.collect import collect
from samebits.commands.doctor.examine import examine
from samebits.commands.doctor.threat import Threat

__all__ = ["Threat", "collect", "examine"]
