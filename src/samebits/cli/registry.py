"""The commands, by name."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from samebits.cli.command import Command

# Only the module of the given command is imported, so that a short script does not wait for the others.
COMMANDS = {
    "verify": "VerifyCommand",
    "run": "RunCommand",
    "compare": "CompareCommand",
    "lock": "LockCommand",
    "check": "CheckCommand",
    "diff": "DiffCommand",
    "rebuild": "RebuildCommand",
    "show": "ShowCommand",
    "report": "ReportCommand",
    "cost": "CostCommand",
    "doctor": "DoctorCommand",
    "spread": "SpreadCommand",
    "resume-check": "ResumeCheckCommand",
    "portable-ops": "PortableOpsCommand",
    "explain": "ExplainCommand",
    "clean": "CleanCommand",
    "completion": "CompletionCommand",
}
"""The class of each command, in a module of the command's name."""


def command_named(name: str) -> Command:
    """Return the command of that name, which is one of `COMMANDS`."""
    module = importlib.import_module(f"samebits.cli.{name.replace('-', '_')}")
    command: Command = getattr(module, COMMANDS[name])()
    return command
