"""The Python programs that commands of the script start, and the commands that cannot be recorded."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from typing import TYPE_CHECKING, Any

from samebits.recording.launch import interpreter_options
from samebits.recording.runner import Target

if TYPE_CHECKING:
    from collections.abc import Sequence

_TOOLS = frozenset({"pip", "venv", "ensurepip"})
_COMPILER = "_inductor"
_PLAIN = re.compile(r"[\w./:=,@%+ \t-]+")
_TRAINS = re.compile(
    r"(?:^|[/\s'\"=(])(?:i?python[\d.]*|pypy[\d.]*|torchrun|accelerate|deepspeed|mpirun|mpiexec|srun)(?=[\s'\"]|$)"
    r"|\.(?:py|sh|ipynb)(?=[\s'\";]|$)"
)
_LOOKS_AT_FILES = r"^(?:\S*/)?(?:file|ldd|ls|readelf|readlink|stat|which)\s[^;&|\n]*$"
_TRAINS_NOTHING = re.compile(
    rf"\s-(?:V|-version|h|-help)\b|\s-m\s*(?:pip|venv|ensurepip)\b|_inductor|{_LOOKS_AT_FILES}"
)


def split_command(command: str) -> list[str] | None:
    """Split a shell command that is one program and its arguments; return None for any other."""
    if not _PLAIN.fullmatch(command):
        return None
    argv = command.split()
    return None if not argv or "=" in argv[0] else argv


def may_train(command: str) -> bool:
    """Tell whether a command that is not recorded may train: it runs Python, a launcher or a shell script.

    Args:
        command: as one text.
    """
    if not _TRAINS.search(command) or _TRAINS_NOTHING.search(command):
        return False
    # A short program in the command itself asks the interpreter something, unless it names torch.
    return not re.search(r"python[\d.]*\s+(?:-\w+\s+)*-c\b", command) or "torch" in command


def with_variable(argv: Sequence[str], variable: str, value: str) -> str:
    """Return a shell command that runs a program with one more variable in its environment."""
    return f"{variable}={shlex.quote(value)} exec {shlex.join(argv)}"


def python_program(argv: Sequence[str], folder: Any = None) -> tuple[list[str], Target] | None:
    """Return the interpreter options and the script or module of a command that runs this interpreter.

    Args:
        argv: the command.
        folder: where it is run; None for the working folder.

    Returns:
        None for other programs, for code that is given as text, and for tools that train nothing.
    """
    program = shutil.which(argv[0]) if argv else None
    if program is None:
        return None
    if _is_interpreter(program):
        options = interpreter_options(argv)
        target = _target(list(argv[1:]))
    elif _is_interpreter(_shebang(program)):
        options, target = [], Target(program, None, tuple(argv[1:]))
    else:
        return None
    if target is None or target.module in _TOOLS or _COMPILER in (target.script or target.module or ""):
        return None
    if target.script is not None and not os.path.isfile(os.path.join(folder or "", target.script)):
        return None
    return options, target


def _target(arguments: list[str]) -> Target | None:
    """Return the script or module that follows the interpreter in a command."""
    while arguments:
        argument = arguments.pop(0)
        if argument in ("-c", "-", "-i", "-V", "-h") or argument.startswith("--"):
            return None
        if argument.startswith("-") and argument.endswith("m") and argument[1:2] not in ("W", "X"):
            return Target(None, arguments[0], tuple(arguments[1:])) if arguments else None
        if argument in ("-W", "-X"):
            del arguments[:1]
        elif not argument.startswith("-"):
            return Target(argument, None, tuple(arguments))
        elif "c" in argument[1:] and argument[1:2] not in ("W", "X"):
            return None
    return None


def _is_interpreter(path: str) -> bool:
    """Tell whether a path names the interpreter that runs here, in the same environment."""
    name = os.path.basename(path)
    same = os.path.dirname(os.path.abspath(path)) == os.path.dirname(os.path.abspath(sys.executable))
    return bool(re.fullmatch(r"python[0-9.]*", name)) and same


def _shebang(path: str) -> str:
    """Return the interpreter that a script names in its first line; empty if it names none."""
    with open(path, "rb") as file:
        line = file.readline(500)
    return os.fsdecode(line[2:].strip()) if line.startswith(b"#!") else ""
