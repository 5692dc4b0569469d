"""The syntax of one file, with the positions of its nodes and the full names of the functions it calls."""

from __future__ import annotations

import ast
import builtins
import re
import sys
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from samebits.diagnosis.patches.edits import SourceFile

_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n|\Z)")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
# Before Python 3.12 the positions of nodes in an f-string were wrong (python/cpython#94869, PEP 701).
_F_STRINGS_HAVE_POSITIONS = sys.version_info >= (3, 12)


class Syntax:
    """One parsed file. Positions are offsets into its text as UTF-8, as those of `ast` are.

    Args:
        file: the file; it must be Python.

    Raises:
        SyntaxError: it is not Python.
    """

    def __init__(self, file: SourceFile) -> None:
        self.file = file
        self.raw = file.text.encode()
        self.tree = ast.parse(file.text)
        self._starts = [match.start() for match in _LINE.finditer(self.raw)]
        self._parents: dict[ast.AST, ast.AST] = {}
        self.nodes: list[ast.AST] = []
        for node in ast.walk(self.tree):
            self.nodes.append(node)
            for child in ast.iter_child_nodes(node):
                self._parents[child] = node

    def line_start(self, line: int) -> int:
        """Return the start of a line; for the line after the last, the end of the text."""
        return self._starts[line - 1] if line <= len(self._starts) else len(self.raw)

    def line_text(self, line: int) -> str:
        """Return a line without its line end."""
        return self.raw[self.line_start(line) : self.line_start(line + 1)].decode().rstrip("\r\n")

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Return the start and end of a node, without parentheses around it."""
        located: ast.expr = node  # type: ignore[assignment]  # statements and keywords have positions too
        start = self.line_start(located.lineno) + located.col_offset
        return start, self.line_start(located.end_lineno or located.lineno) + (located.end_col_offset or 0)

    def source(self, node: ast.AST) -> str:
        """Return the text of a node."""
        start, end = self.span(node)
        return self.raw[start:end].decode()

    def parent(self, node: ast.AST) -> ast.AST | None:
        """Return the node that a node is part of."""
        return self._parents.get(node)

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the nodes that a node is part of, the nearest first."""
        above = self._parents.get(node)
        while above is not None:
            yield above
            above = self._parents.get(above)

    def statement(self, node: ast.AST) -> ast.stmt | None:
        """Return the statement that a node is part of, or is."""
        if isinstance(node, ast.stmt):
            return node
        return next((above for above in self.ancestors(node) if isinstance(above, ast.stmt)), None)

    def function(self, node: ast.AST) -> ast.AST | None:
        """Return the function around a node."""
        return next((above for above in self.ancestors(node) if isinstance(above, FUNCTIONS)), None)

    def repeats(self, node: ast.AST) -> bool:
        """Tell whether a node may run more than once: in a loop, or in a function other than `__init__`."""
        for above in self.ancestors(node):
            if isinstance(above, LOOPS):
                return True
            if isinstance(above, FUNCTIONS) and getattr(above, "name", "") != "__init__":
                return True
        return False

    def editable(self, node: ast.AST) -> bool:
        """Tell whether the position of a node is reliable."""
        return _F_STRINGS_HAVE_POSITIONS or not any(
            isinstance(n, ast.JoinedStr) for n in self.ancestors(node)
        )

    def at(self, lines: Iterable[int]) -> list[ast.AST]:
        """Return the nodes that begin on some lines, in the order of the text."""
        wanted = set(lines)
        nodes = [node for node in self.nodes if getattr(node, "lineno", 0) in wanted and self.editable(node)]
        return sorted(nodes, key=lambda node: (getattr(node, "lineno", 0), getattr(node, "col_offset", 0)))

    def calls(self, lines: Iterable[int]) -> list[ast.Call]:
        """Return the calls that begin on some lines."""
        return [node for node in self.at(lines) if isinstance(node, ast.Call)]

    def header(self, statement: ast.stmt) -> range:
        """Return the lines of a statement, without those of the statements in it."""
        last = statement.end_lineno or statement.lineno
        body = getattr(statement, "body", None)
        if isinstance(body, list) and body:
            last = max(statement.lineno, body[0].lineno - 1)
        return range(statement.lineno, last + 1)

    def statement_at(self, line: int) -> ast.stmt | None:
        """Return the innermost statement whose header contains a line."""
        holding = [n for n in self.nodes if isinstance(n, ast.stmt) and line in self.header(n)]
        return holding[-1] if holding else None  # `ast.walk` goes from the outside in

    def named(self, name: str) -> list[ast.AST]:
        """Return the names, attributes and definitions with that name."""
        return self._index.get(name, [])

    @cached_property
    def _index(self) -> dict[str, list[ast.AST]]:
        by_name: dict[str, list[ast.AST]] = {}
        for node in self.nodes:
            name = getattr(node, "id", getattr(node, "attr", getattr(node, "name", None)))
            if isinstance(name, str):
                by_name.setdefault(name, []).append(node)
        return by_name

    @cached_property
    def imports(self) -> dict[str, str]:
        """Map each local name to the full name that was imported under it."""
        imports: dict[str, str] = {}
        for node in self.nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    first = alias.name.partition(".")[0]
                    imports[alias.asname or first] = alias.name if alias.asname else first
            elif isinstance(node, ast.ImportFrom):
                base = "." * node.level + (node.module or "")
                joint = "" if base.endswith(".") else "."
                imports |= {alias.asname or alias.name: f"{base}{joint}{alias.name}" for alias in node.names}
        return imports

    @cached_property
    def bound(self) -> set[str]:
        """Return the names that the file gives a value anywhere."""
        names = {n.id for n in self.nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
        names |= {n.arg for n in self.nodes if isinstance(n, ast.arg)}
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        return names | {n.name for n in self.nodes if isinstance(n, kinds)}

    def name(self, node: ast.AST) -> str:
        """Return the full name that an expression stands for, such as `numpy.random.rand`; empty if unknown.

        A builtin that the file does not replace is named `builtins.hash`; a name whose first part is a value
        of the file's own begins with `?`, such as `?.pool.imap`.
        """
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.insert(0, node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ".".join(["?", *parts]) if parts else ""
        if node.id in self.imports:
            return ".".join([self.imports[node.id], *parts])
        if node.id not in self.bound and hasattr(builtins, node.id):
            return ".".join(["builtins", node.id, *parts])
        return ".".join(["?", node.id, *parts])

    def local_name(self, full: str) -> str:
        """Return the file's name for a module, such as `np` for `numpy`; empty if not imported so."""
        top = {id(n): n for n in self.tree.body if isinstance(n, ast.Import)}.values()
        for node in top:
            for alias in node.names:
                if alias.name == full and alias.asname:
                    return alias.asname
                if not alias.asname and (alias.name == full or full == alias.name.partition(".")[0]):
                    return full
        return ""


def parameters(function: ast.AST | None) -> list[ast.arg]:
    """Return the parameters of a function."""
    arguments = getattr(function, "args", None)
    return [node for node in ast.walk(arguments) if isinstance(node, ast.arg)] if arguments else []
