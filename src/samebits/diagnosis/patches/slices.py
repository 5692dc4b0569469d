"""Where a cause may sit in the user's source: the named lines, then what the values on them were made of."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from samebits.diagnosis.patches.source_file import refusal_of_contents, refusal_of_path
from samebits.diagnosis.patches.syntax import FUNCTIONS, Syntax, parameters

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from samebits.diagnosis.patches.source_file import Project
    from samebits.hooks.frames import Site

    Place = tuple[Syntax, ast.stmt]
    Lines = dict[str, set[int]]

_MOST_STATEMENTS = 600
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class Sources:
    """The parsed files of a project, each once.

    Args:
        project: the files.
    """

    def __init__(self, project: Project) -> None:
        self.project = project
        self._known: dict[str, Syntax | str] = {}

    def syntax(self, path: str) -> Syntax | None:
        """The file of that path; None where it may not be patched."""
        known = self._of(path)
        return known if isinstance(known, Syntax) else None

    def refusal(self, path: str) -> str:
        """Why the file of that path may not be patched; empty if it may."""
        known = self._of(path)
        return known if isinstance(known, str) else ""

    def all(self) -> Iterator[Syntax]:
        """Every file that may be patched."""
        for file in self.project.files:
            syntax = self.syntax(file.path)
            if syntax is not None:
                yield syntax

    def _of(self, path: str) -> Syntax | str:
        if path not in self._known:
            self._known[path] = self._parsed(path)
        return self._known[path]

    def _parsed(self, path: str) -> Syntax | str:
        refusal = refusal_of_path(path)
        if refusal:
            return refusal
        file = self.project.file(path)
        if file is None:
            return f"{path} is not a file of this project"
        return refusal_of_contents(file) or Syntax(file)


def named_lines(sources: Sources, sites: Iterable[Site]) -> Lines:
    """The lines of the statements at some sites."""
    return _lines_of(_statements_at(sources, sites))


def lines_behind(sources: Sources, sites: Iterable[Site]) -> Lines:
    """The lines of the statements at some sites, and of those that the values there may come from.

    Names are followed to where they are given a value, or have a method called that may change it; functions
    and classes of the project to their bodies; parameters to the calls; a statement to what it stands in.
    """
    reached: dict[int, Place] = {}
    waiting = _statements_at(sources, sites)
    while waiting and len(reached) < _MOST_STATEMENTS:
        syntax, statement = waiting.pop(0)
        if id(statement) not in reached:
            reached[id(statement)] = syntax, statement
            waiting += _behind(sources, syntax, statement)
    return _lines_of(reached.values())


def all_lines(sources: Sources, paths: Iterable[str]) -> Lines:
    """Every line of some files."""
    parsed = (sources.syntax(path) for path in dict.fromkeys(paths))
    return {s.file.path: set(range(1, s.raw.count(b"\n") + 2)) for s in parsed if s is not None}


def _statements_at(sources: Sources, sites: Iterable[Site]) -> list[Place]:
    statements = []
    for site in sites:
        syntax = sources.syntax(site.file)
        statement = syntax.statement_at(site.line) if syntax is not None else None
        if syntax is not None and statement is not None:
            statements.append((syntax, statement))
    return statements


def _lines_of(places: Iterable[Place]) -> Lines:
    lines: Lines = {}
    for syntax, statement in places:
        lines.setdefault(syntax.file.path, set()).update(syntax.header(statement))
    return lines


def _behind(sources: Sources, syntax: Syntax, statement: ast.stmt) -> Iterator[Place]:
    for above in syntax.ancestors(statement):
        if isinstance(above, ast.stmt) and not isinstance(above, _DEFINITIONS):
            yield syntax, above
    if isinstance(statement, _DEFINITIONS):  # reached by its name: all that it does
        for node in ast.walk(statement):
            if isinstance(node, ast.stmt) and node is not statement:
                yield syntax, node
    header = set(syntax.header(statement))
    for node in ast.walk(statement):
        if getattr(node, "lineno", 0) not in header:
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield from _behind_name(sources, syntax, node)
        elif isinstance(node, ast.Attribute):
            yield from _behind_attribute(sources, node)


def _behind_name(sources: Sources, syntax: Syntax, name: ast.Name) -> Iterator[Place]:
    imported = syntax.imports.get(name.id)
    if imported is not None:
        yield from _imported(sources, syntax, imported)
        return
    function = syntax.function(name)
    if function is not None and any(a.arg == name.id for a in parameters(function)):
        yield from _callers(sources, function)
    for node in syntax.named(name.id):
        if isinstance(node, _DEFINITIONS):
            yield syntax, node
        elif isinstance(node, ast.Name) and node is not name:
            other = syntax.statement(node)
            changes = not isinstance(node.ctx, ast.Load) or _may_change(syntax, node)
            if other is not None and changes and syntax.function(node) in (function, None):
                yield syntax, other


def _behind_attribute(sources: Sources, wanted: ast.Attribute) -> Iterator[Place]:
    for other in sources.all():
        for node in other.named(wanted.attr):
            if isinstance(node, _DEFINITIONS):
                yield other, node
            elif isinstance(node, ast.Attribute) and node is not wanted:
                stores = not isinstance(node.ctx, ast.Load) or _may_change(other, node)
                statement = other.statement(node) if stores else None
                if statement is not None:
                    yield other, statement


def _may_change(syntax: Syntax, node: ast.AST) -> bool:
    """Whether a value is changed in place: by a subscript that is set, or a method called as a statement."""
    above = syntax.parent(node)
    while isinstance(above, ast.Subscript | ast.Attribute):
        if not isinstance(above.ctx, ast.Load):
            return True
        node, above = above, syntax.parent(above)
    return isinstance(above, ast.Call) and above.func is node and isinstance(syntax.parent(above), ast.Expr)


def _imported(sources: Sources, syntax: Syntax, full: str) -> Iterator[Place]:
    module, _, name = full.rpartition(".")
    file = sources.project.module(module, syntax.file.path) if module else None
    other = sources.syntax(file.path) if file is not None else None
    for node in other.named(name) if other is not None else ():
        if isinstance(node, _DEFINITIONS) and other is not None:
            yield other, node
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and other is not None:
            statement = other.statement(node)
            if statement is not None:
                yield other, statement


def _callers(sources: Sources, function: ast.AST) -> Iterator[Place]:
    name = getattr(function, "name", "")
    if not name or not isinstance(function, FUNCTIONS):
        return
    for syntax in sources.all():
        for node in syntax.named(name):
            above = syntax.parent(node)
            is_called = isinstance(above, ast.Call) and above.func is node
            statement = syntax.statement(node) if is_called else None
            if statement is not None:
                yield syntax, statement
