"""The switches that a script sets, read from its source. Nothing is run."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from samebits._torch.core import COMPILER_CONFIG
from samebits.commands.doctor.environment import Setting
from samebits.diagnosis.patches.code_region import keyword_of, literal_value
from samebits.diagnosis.patches.edits import SourceFile
from samebits.diagnosis.patches.syntax import Syntax
from samebits.switches.spellings import ENVIRON, switches_by_spelling
from samebits.switches.switch import as_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from samebits.switches.switch import Switch

    Switches = Mapping[str, Switch]
    Write = tuple[str, ast.expr | None]
    """A spelling, and what is written."""

_TUNED = "max-autotune"
_ON = ast.Constant(value=True)
_FLAGS_OF_CUDNN = "torch.backends.cudnn"


def settings_in(files: Iterable[Path], root: Path) -> tuple[Setting, ...]:
    """Return what some files set, in the order of their lines.

    Args:
        files: Python files; those that cannot be read are passed over.
        root: folder that their names are shown relative to.
    """
    switches = switches_by_spelling()
    return tuple(
        Setting(switches[spelling].name, _text(value), _shown(file, root), line)
        for file in files
        for line, spelling, value in sorted(_writes(file), key=lambda write: write[0])
        if spelling in switches
    )


def _shown(file: Path, root: Path) -> str:
    return str(file.relative_to(root)) if file.is_relative_to(root) else str(file)


def _text(value: ast.expr | None) -> str:
    """Return the value of a literal as text, empty for anything else."""
    literal = literal_value(value)
    return "" if literal is ... else as_text(literal)


def _writes(file: Path) -> Iterator[tuple[int, str, ast.expr | None]]:
    try:
        syntax = Syntax(SourceFile(str(file), file.read_bytes()))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in syntax.nodes:
        if isinstance(node, ast.Assign):
            yield from ((node.lineno, _target(syntax, target), node.value) for target in node.targets)
        elif isinstance(node, ast.Call):
            yield from ((node.lineno, *write) for write in _called(syntax, node))


def _target(syntax: Syntax, node: ast.expr) -> str:
    if isinstance(node, ast.Subscript) and syntax.name(node.value) == ENVIRON:
        return f"{ENVIRON}.{literal_value(node.slice)}"
    return syntax.name(node)


def _called(syntax: Syntax, call: ast.Call) -> Iterator[Write]:
    name = syntax.name(call.func)
    if name == f"{ENVIRON}.setdefault":
        if len(call.args) > 1:
            yield f"{ENVIRON}.{literal_value(call.args[0])}", call.args[1]
    elif name == "torch.compile" or getattr(call.func, "attr", "") == "compile":
        yield from _compiled(call)
    elif name == f"{_FLAGS_OF_CUDNN}.flags":
        yield from ((f"{_FLAGS_OF_CUDNN}.{word.arg}", word.value) for word in call.keywords)
    elif call.args or call.keywords:
        warns = keyword_of(call, "warn_only")
        only_warns = warns is not None and literal_value(warns.value) is True
        given = call.args[0] if call.args else call.keywords[0].value
        yield name, ast.Constant(value="warn") if only_warns and literal_value(given) is True else given


def _compiled(call: ast.Call) -> Iterator[Write]:
    """Yield what a call of `torch.compile`, or of the method of a module, asks of inductor."""
    mode, options = keyword_of(call, "mode"), keyword_of(call, "options")
    if mode is not None and str(literal_value(mode.value)).startswith(_TUNED):
        yield f"{COMPILER_CONFIG}.max_autotune", _ON
    if options is not None and isinstance(options.value, ast.Dict):
        for key, value in zip(options.value.keys, options.value.values, strict=True):
            yield f"{COMPILER_CONFIG}.{literal_value(key)}", value
