"""Imports, seeds and switches at the head of a script or module."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from samebits.causes import specification_of
from samebits.diagnosis.patches.code_region import literal_value
from samebits.diagnosis.patches.edits import Edit, Need, NeedKind
from samebits.diagnosis.patches.seeds import SEEDERS, seed_block
from samebits.rng.sources import LIBRARIES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from samebits.causes import Cause
    from samebits.diagnosis.patches.code_region import ProjectSyntax
    from samebits.diagnosis.patches.syntax import Syntax

# Statements between imports that prepare the following ones.
_SETUP = ("os.environ", "sys.path", "warnings.", "matplotlib.", "logging.", "torch.set_", "torch.backends.")
_MODULES = {library.name: library.imported for library in LIBRARIES}
NEED_OF_INTERVENTION = {library.intervention: Need(NeedKind.SEED, library.imported) for library in LIBRARIES}
"""Intervention -> the need of a script's head that does the same."""
_CUDA = ('os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"',)
_MOST_SEED = 2**32 - 1


def library_of(cause: Cause) -> str:
    """Return the library that was not seeded according to a cause; empty for other causes."""
    return _MODULES.get(specification_of(cause).library, "")


def usual_seed(syntax: Syntax | None) -> int:
    """Return the number that a script already seeds with; 0 if it seeds nothing."""
    for node in syntax.nodes if syntax is not None else ():
        if isinstance(node, ast.Call) and node.args and syntax is not None:
            value = literal_value(node.args[0])
            if syntax.name(node.func) in SEEDERS and type(value) is int and 0 <= value <= _MOST_SEED:
                return value
    return 0


def import_edit(syntax: Syntax, module: str) -> Edit | None:
    """Return an import at the top of a file; None if the file has it already."""
    if syntax.local_name(module):
        return None
    at = _first_line(syntax)
    return Edit(at, at, f"import {module}\n")


def head_edit(
    sources: ProjectSyntax, syntax: Syntax, needs: Iterable[Need], *, early: bool
) -> Edit | str | None:
    """Return an edit that puts seeds and switches after the imports of a script.

    Args:
        sources: the project.
        syntax: the script.
        needs: the seeds and switches; imports are those that other changes make.
        early: before the first import of a module of the project, which draws while it is imported.

    Returns:
        None if the script has all of it already; a text with the reason if there is no line for it.
    """
    prefix = _prefix(syntax)
    if early:
        prefix = _before_own(sources, syntax, prefix)
    lines = sorted(_lines(syntax, set(needs), prefix), key=lambda line: not line.startswith("import "))
    if not lines:
        return None
    imports = [s for s in prefix if _imports(s) or _is_docstring(s)]
    if not imports:
        at = _first_line(syntax)
        return Edit(at, at, "\n".join(lines) + "\n\n")
    last = imports[-1].end_lineno or imports[-1].lineno
    if any(s.lineno == last and s is not imports[-1] for s in syntax.tree.body):
        return f"{syntax.file.path}:{last} holds two statements: there is no line for seeds after the imports"
    at = syntax.line_start(last + 1)
    ended = syntax.raw[:at].endswith((b"\n", b"\r"))
    followed = bool(syntax.line_text(last + 1).strip()) if at < len(syntax.raw) else False
    n_imports = sum(line.startswith("import ") for line in lines)
    new_imports, others = "".join(f"{line}\n" for line in lines[:n_imports]), "\n".join(lines[n_imports:])
    text = ("" if ended else "\n") + new_imports + "\n" + others + "\n" + ("\n" if followed else "")
    return Edit(at, at, text)


def _lines(syntax: Syntax, needs: set[Need], prefix: list[ast.stmt]) -> list[str]:
    present = {syntax.name(call.func): call for call in _calls_at_head(syntax, prefix)}
    seeded = {SEEDERS[n] for n, call in present.items() if n in SEEDERS and _is_constant(call)}
    wanted = [library for library in _MODULES.values() if Need(NeedKind.SEED, library) in needs]
    wanted = [library for library in wanted if library not in seeded]
    names = {library: name for library in wanted if (name := _known_at(prefix, library))}
    imported = [library for library in wanted if Need(NeedKind.IMPORT, library) in needs]
    names = {library: library for library in imported} | names
    lines = seed_block(wanted, names, usual_seed(syntax)) if wanted else []
    if Need(NeedKind.DETERMINISTIC) in needs and "torch.use_deterministic_algorithms" not in present:
        torch = _known_at(prefix, "torch")
        if b"cuda" in syntax.raw and b"CUBLAS_WORKSPACE_CONFIG" not in syntax.raw:
            lines += ([] if _known_at(prefix, "os") else ["import os"]) + list(_CUDA)
        if not torch and "import torch" not in lines:
            lines.append("import torch")
        lines.append(f"{torch or 'torch'}.use_deterministic_algorithms(True)")
    if Need(NeedKind.ONE_THREAD) in needs and "torch.set_num_threads" not in present:
        torch = _known_at(prefix, "torch")
        lines += [] if torch else ["import torch"]
        lines.append(f"{torch or 'torch'}.set_num_threads(1)")
    return lines


def _known_at(prefix: list[ast.stmt], module: str) -> str:
    """Return the name of a module after the prefix; empty if it is not imported by then."""
    for statement in prefix:
        for node in ast.walk(statement):
            for alias in node.names if isinstance(node, ast.Import) else ():
                if alias.name == module and alias.asname:
                    return alias.asname
                if not alias.asname and alias.name.partition(".")[0] == module:
                    return module
    return ""


def _calls_at_head(syntax: Syntax, prefix: list[ast.stmt]) -> list[ast.Call]:
    """Return the calls that are statements right after the imports."""
    calls = []
    for statement in syntax.tree.body[len(prefix) :]:
        if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)):
            break
        calls.append(statement.value)
    inner = (s.value for s in prefix if isinstance(s, ast.Expr))
    return [*(value for value in inner if isinstance(value, ast.Call)), *calls]


def _is_constant(call: ast.Call) -> bool:
    return bool(call.args) and isinstance(literal_value(call.args[0]), int)


def _prefix(syntax: Syntax) -> list[ast.stmt]:
    """Return the statements up to the last of the first imports."""
    prefix: list[ast.stmt] = []
    for statement in syntax.tree.body:
        if not (_imports(statement) or _is_docstring(statement) or _sets_up(syntax, statement)):
            break
        prefix.append(statement)
    while prefix and not (_imports(prefix[-1]) or _is_docstring(prefix[-1])):
        prefix.pop()
    return prefix


def _before_own(sources: ProjectSyntax, syntax: Syntax, prefix: list[ast.stmt]) -> list[ast.stmt]:
    for index, statement in enumerate(prefix):
        names = [alias.name for alias in getattr(statement, "names", ())]
        if isinstance(statement, ast.ImportFrom):
            names = ["." * statement.level + (statement.module or "")]
        if any(sources.project.module(name, syntax.file.path) for name in names):
            return prefix[:index]
    return prefix


def _imports(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.If | ast.Try):
        return all(_imports(inner) or _is_plain(inner) for inner in statement.body)
    return isinstance(statement, ast.Import | ast.ImportFrom)


def _is_plain(statement: ast.stmt) -> bool:
    """Tell whether a statement may stand beside an import in a `try`: a flag, `pass`."""
    return isinstance(statement, ast.Pass) or (
        isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant)
    )


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(literal_value(statement.value), str)


def _sets_up(syntax: Syntax, statement: ast.stmt) -> bool:
    target: ast.expr | None = None
    if isinstance(statement, ast.Assign):
        target = statement.targets[0]
        target = target.value if isinstance(target, ast.Subscript) else target
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        target = statement.value.func
    return target is not None and syntax.name(target).startswith((*_SETUP, *SEEDERS))


def _first_line(syntax: Syntax) -> int:
    """Return the start of the first statement after the docstring and the imports from `__future__`."""
    for statement in syntax.tree.body:
        future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        if not (future or _is_docstring(statement)):
            first = min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", ()))])
            return syntax.line_start(first)
    return len(syntax.raw)
