"""Threats to each promise on this machine and in this environment, with remedies."""

from __future__ import annotations

from samebits.commands.doctor.collect import collect
from samebits.commands.doctor.examine import examine
from samebits.commands.doctor.threat import Threat

__all__ = ["Threat", "collect", "examine"]
