"""The switches that a script sets, read from its source. Nothing is run."""

from __future__ import annotations

import ast
from itertools import chain
from typing import TYPE_CHECKING

from samebits._torch.core import COMPILER_CONFIG
from samebits.commands.doctor.environment import Setting
from samebits.diagnosis.patches.code_region import keyword_of, literal_value
from samebits.diagnosis.patches.edits import SourceFile
from samebits.diagnosis.patches.syntax import Syntax
from samebits.switches.spellings import ENVIRON, switches_by_spelling
from samebits.switches.switch import as_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from samebits.switches.switch import Switch

    Write = tuple[str, ast.expr | None]
    """A spelling, and what is written."""

_TUNED = "max-autotune"
_ON = ast.Constant(value=True)
_CUDNN = "torch.backends.cudnn"
_FLAGS_OF_CUDNN = ("enabled", "benchmark", "benchmark_limit", "deterministic", "allow_tf32")  # in this order
_LARGEST = 1 << 63
# How a flag may be written where torch has a number, and the reverse.
_ALIKE = {"on": "1", "off": "0", "1": "on", "0": "off"}


def settings_in(files: Iterable[Path], root: Path) -> tuple[Setting, ...]:
    """Return what some files set, in the order of their lines.

    Args:
        files: Python files; those that cannot be read are passed over.
        root: folder that their names are shown relative to.
    """
    switches = switches_by_spelling()
    return tuple(
        Setting(switches[spelling].name, _text(value, switches[spelling]), _shown(file, root), line)
        for file in files
        for line, spelling, value in sorted(_writes(file), key=lambda write: write[0])
        if spelling in switches
    )


def _shown(file: Path, root: Path) -> str:
    return str(file.relative_to(root)) if file.is_relative_to(root) else str(file)


def _text(value: ast.expr | None, switch: Switch) -> str:
    """Return the value of a literal as text, empty for anything else."""
    literal = literal_value(value)
    if not isinstance(literal, str | int) or (isinstance(literal, int) and abs(literal) >= _LARGEST):
        return ""
    text = as_text(literal)
    alike = _ALIKE.get(text, "")
    return alike if alike and switch.handle.problem(text) and not switch.handle.problem(alike) else text


def _writes(file: Path) -> Iterator[tuple[int, str, ast.expr | None]]:
    try:
        syntax = Syntax(SourceFile(str(file), file.read_bytes()))
    except (OSError, SyntaxError, ValueError, LookupError, RecursionError, MemoryError):
        return
    for node in syntax.nodes:
        if isinstance(node, ast.Assign):
            pairs = chain.from_iterable(_pairs(target, node.value) for target in node.targets)
            yield from ((node.lineno, _target(syntax, target), value) for target, value in pairs)
        elif isinstance(node, ast.AnnAssign):
            yield node.lineno, _target(syntax, node.target), node.value
        elif isinstance(node, ast.Call):
            yield from ((node.lineno, *write) for write in _called(syntax, node))


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield each target with its value, of `a, b = c, d` too."""
    sequence = ast.Tuple | ast.List
    if not isinstance(target, sequence):
        yield target, value
    elif isinstance(value, sequence) and len(target.elts) == len(value.elts):
        yield from zip(target.elts, value.elts, strict=True)
    else:
        yield from ((each, value) for each in target.elts)


def _target(syntax: Syntax, node: ast.expr) -> str:
    if isinstance(node, ast.Subscript) and syntax.name(node.value) == ENVIRON:
        return _prefixed(ENVIRON, node.slice)
    return syntax.name(node)


def _prefixed(owner: str, key: ast.expr | None) -> str:
    """Return the spelling of an entry whose name is a literal; empty for another."""
    name = literal_value(key)
    return f"{owner}.{name}" if isinstance(name, str) else ""


def _called(syntax: Syntax, call: ast.Call) -> Iterator[Write]:
    name, first = syntax.name(call.func), (call.args[0] if call.args else None)
    if name in (f"{ENVIRON}.setdefault", "os.putenv") and len(call.args) > 1:
        yield _prefixed(ENVIRON, first), call.args[1]
    elif name == f"{ENVIRON}.update":
        yield from _entries(ENVIRON, call.args, call.keywords)
    elif name == f"{COMPILER_CONFIG}.patch":
        yield from _entries(COMPILER_CONFIG, call.args, call.keywords)
        if len(call.args) > 1:
            yield _prefixed(COMPILER_CONFIG, first), call.args[1]
    elif name == f"{_CUDNN}.flags":
        yield from (
            (f"{_CUDNN}.{flag}", value) for flag, value in zip(_FLAGS_OF_CUDNN, call.args, strict=False)
        )
        yield from ((f"{_CUDNN}.{word.arg}", word.value) for word in call.keywords)
    elif name == "builtins.setattr" and len(call.args) == 3:
        yield _prefixed(syntax.name(call.args[0]), call.args[1]), call.args[2]
    elif name == "torch.compile" or (name.startswith("?.") and name.endswith(".compile")):
        yield from _compiled(syntax, call)
    else:
        yield name, _argument(call)


def _argument(call: ast.Call) -> ast.expr | None:
    """Return what a function that sets one switch is given."""
    words = [word for word in call.keywords if word.arg != "warn_only"]
    given = call.args[0] if call.args else (words[0].value if words else None)
    warns = keyword_of(call, "warn_only")
    only_warns = warns is not None and literal_value(warns.value) is True
    return ast.Constant(value="warn") if only_warns and literal_value(given) is True else given


def _entries(owner: str, given: Iterable[ast.expr], words: Iterable[ast.keyword]) -> Iterator[Write]:
    """Yield the entries that are given by keywords, or in dictionaries."""
    unpacked = []
    for word in words:
        if word.arg:
            yield f"{owner}.{word.arg}", word.value
        else:
            unpacked.append(word.value)
    for each in (*given, *unpacked):
        if isinstance(each, ast.Dict):
            pairs = zip(each.keys, each.values, strict=True)
            yield from ((_prefixed(owner, key), value) for key, value in pairs)


def _compiled(syntax: Syntax, call: ast.Call) -> Iterator[Write]:
    """Yield what a call of `torch.compile`, or of the method of a module, asks of inductor."""
    backend, mode, options = (keyword_of(call, name) for name in ("backend", "mode", "options"))
    if backend is not None and literal_value(backend.value) != "inductor":
        return
    if mode is not None and str(literal_value(mode.value)).startswith(_TUNED):
        yield f"{COMPILER_CONFIG}.max_autotune", _ON
    given = None if options is None else options.value
    is_made = isinstance(given, ast.Call) and syntax.name(given.func) == "builtins.dict"
    words = given.keywords if isinstance(given, ast.Call) and is_made else []
    for entry, value in _entries(COMPILER_CONFIG, [] if given is None else [given], words):
        yield entry.replace("-", "_"), value
