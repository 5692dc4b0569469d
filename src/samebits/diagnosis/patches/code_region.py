"""The regions of the user's source where a cause may sit, and the input and output of patch rules."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from samebits.diagnosis.patches.edits import Change, Edit, refusal_of_contents, refusal_of_path
from samebits.diagnosis.patches.syntax import FUNCTIONS, Syntax, parameters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from samebits._runtime.frames import Site
    from samebits.causes import Cause
    from samebits.diagnosis.patches.edits import Need, Project

    Rule = Callable[["CodeRegion"], Iterator["Change | Refusal"]]
    FileStatement = tuple[Syntax, ast.stmt]
    Lines = dict[str, set[int]]

_MOST_STATEMENTS = 600
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True)
class CodeRegion:
    """Some lines of a file on which a cause may sit.

    Args:
        syntax: the file.
        lines: the numbers of the lines.
        cause: the cause of the finding.
        seed: the number to seed with.
    """

    syntax: Syntax
    lines: frozenset[int]
    cause: Cause
    seed: int = 0

    def calls(self) -> list[ast.Call]:
        """Return the calls on these lines."""
        return self.syntax.calls(self.lines)

    def module(self, name: str) -> str:
        """Return the file's name for a module, or its full name if the file does not import it."""
        return self.syntax.local_name(name) or name

    def nodes(self) -> list[ast.AST]:
        """Return all nodes on these lines."""
        return self.syntax.at(self.lines)

    def replace(self, node: ast.expr, text: str, why: str, *needs: Need) -> Change:
        """Return a change that replaces an expression."""
        return Change((Edit(*self.syntax.span(node), text),), why, node.lineno, needs)

    def wrap(self, node: ast.expr, before: str, after: str, why: str) -> Change:
        """Return a change that puts text before and after an expression."""
        start, end = self.syntax.span(node)
        return Change((Edit(start, start, before), Edit(end, end, after)), why, node.lineno)

    def argument(self, call: ast.Call, text: str, why: str, *needs: Need) -> Change:
        """Return a change that adds a last argument to a call."""
        everything = [*call.args, *call.keywords]
        if everything:
            last = max(self.syntax.span(node)[1] for node in everything)
            parens = isinstance(everything[-1], ast.expr) and self._parenthesised_end(call, last)
            last = parens or last
            return Change((Edit(last, last, f", {text}"),), why, call.lineno, needs)
        end = self.syntax.span(call)[1] - 1
        return Change((Edit(end, end, text),), why, call.lineno, needs)

    def _parenthesised_end(self, call: ast.Call, last: int) -> int:
        """Return the end of the parentheses around a last argument such as `(a + b)`; 0 if it has none."""
        between = self.syntax.raw[last : self.syntax.span(call)[1] - 1]
        closing = between.rfind(b")")
        return last + closing + 1 if closing >= 0 and b"#" not in between else 0


@dataclass(frozen=True)
class Refusal:
    """A line that is not patched.

    Args:
        why: the reason, for the user.
        line: the user's line.
    """

    why: str
    line: int


def literal_value(node: ast.AST | None) -> object:
    """Return the value of a literal; `...` for anything else."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = literal_value(node.operand)
        return -inner if isinstance(inner, int | float) else ...
    return node.value if isinstance(node, ast.Constant) else ...


def keyword_of(call: ast.Call, name: str) -> ast.keyword | None:
    """Return a keyword argument of a call."""
    return next((keyword for keyword in call.keywords if keyword.arg == name), None)


class ProjectSyntax:
    """The files of a project, each parsed once.

    Args:
        project: the files.
    """

    def __init__(self, project: Project) -> None:
        self.project = project
        self._known: dict[str, Syntax | str] = {}

    def syntax(self, path: str) -> Syntax | None:
        """Return the file of that path; None if it may not be patched."""
        known = self._of(path)
        return known if isinstance(known, Syntax) else None

    def refusal(self, path: str) -> str:
        """Return the reason why the file of that path may not be patched; empty if it may."""
        known = self._of(path)
        return known if isinstance(known, str) else ""

    def all(self) -> Iterator[Syntax]:
        """Yield every file that may be patched."""
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


def named_lines(sources: ProjectSyntax, sites: Iterable[Site]) -> Lines:
    """Return the lines of the statements at some sites."""
    return _lines_of(_statements_at(sources, sites))


def lines_behind(sources: ProjectSyntax, sites: Iterable[Site]) -> Lines:
    """Return the lines of the statements at some sites, and of those that their values may come from.

    Names are followed to where they get a value or where a method that may change it is called; functions and
    classes of the project to their bodies; parameters to the calls; a statement to the ones around it.
    """
    reached: dict[int, FileStatement] = {}
    waiting = _statements_at(sources, sites)
    while waiting and len(reached) < _MOST_STATEMENTS:
        syntax, statement = waiting.pop(0)
        if id(statement) not in reached:
            reached[id(statement)] = syntax, statement
            waiting += _behind(sources, syntax, statement)
    return _lines_of(reached.values())


def all_lines(sources: ProjectSyntax, paths: Iterable[str]) -> Lines:
    """Return every line of some files."""
    parsed = (sources.syntax(path) for path in dict.fromkeys(paths))
    return {s.file.path: set(range(1, s.raw.count(b"\n") + 2)) for s in parsed if s is not None}


def _statements_at(sources: ProjectSyntax, sites: Iterable[Site]) -> list[FileStatement]:
    statements = []
    for site in sites:
        syntax = sources.syntax(site.file)
        statement = syntax.statement_at(site.line) if syntax is not None else None
        if syntax is not None and statement is not None:
            statements.append((syntax, statement))
    return statements


def _lines_of(statements: Iterable[FileStatement]) -> Lines:
    lines: Lines = {}
    for syntax, statement in statements:
        lines.setdefault(syntax.file.path, set()).update(syntax.header(statement))
    return lines


def _behind(sources: ProjectSyntax, syntax: Syntax, statement: ast.stmt) -> Iterator[FileStatement]:
    for above in syntax.ancestors(statement):
        if isinstance(above, ast.stmt) and not isinstance(above, _DEFINITIONS):
            yield syntax, above
    if isinstance(statement, _DEFINITIONS):  # reached by its name: its whole body
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


def _behind_name(sources: ProjectSyntax, syntax: Syntax, name: ast.Name) -> Iterator[FileStatement]:
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


def _behind_attribute(sources: ProjectSyntax, wanted: ast.Attribute) -> Iterator[FileStatement]:
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
    """Tell whether a value may change in place: an item or attribute is set, or a method is a statement."""
    above = syntax.parent(node)
    while isinstance(above, ast.Subscript | ast.Attribute):
        if not isinstance(above.ctx, ast.Load):
            return True
        node, above = above, syntax.parent(above)
    return isinstance(above, ast.Call) and above.func is node and isinstance(syntax.parent(above), ast.Expr)


def _imported(sources: ProjectSyntax, syntax: Syntax, full: str) -> Iterator[FileStatement]:
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


def _callers(sources: ProjectSyntax, function: ast.AST) -> Iterator[FileStatement]:
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
