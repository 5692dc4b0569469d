"""The syntax of one file, with the places of its nodes in the text and the full names of what it calls."""

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
# Before Python 3.12 the places of nodes in an f-string were wrong (python/cpython#94869, PEP 701).
_F_STRINGS_HAVE_PLACES = sys.version_info >= (3, 12)


class Syntax:
    """One parsed file. Places are offsets into its text as UTF-8, as those of `ast` are.

    Args:
        file: the file; it must be Python.

    Raises:
        SyntaxError: it is not.
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
        """Where a line begins; the end of the text for the line behind the last."""
        return self._starts[line - 1] if line <= len(self._starts) else len(self.raw)

    def line_text(self, line: int) -> str:
        """A line, without its end."""
        return self.raw[self.line_start(line) : self.line_start(line + 1)].decode().rstrip("\r\n")

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Where a node begins and ends; parentheses around it are not part of it."""
        place: ast.expr = node  # type: ignore[assignment]  # statements and keywords have places too
        start = self.line_start(place.lineno) + place.col_offset
        return start, self.line_start(place.end_lineno or place.lineno) + (place.end_col_offset or 0)

    def source(self, node: ast.AST) -> str:
        """Its text."""
        start, end = self.span(node)
        return self.raw[start:end].decode()

    def parent(self, node: ast.AST) -> ast.AST | None:
        """The node that it is part of."""
        return self._parents.get(node)

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes that it is part of, the nearest first."""
        above = self._parents.get(node)
        while above is not None:
            yield above
            above = self._parents.get(above)

    def statement(self, node: ast.AST) -> ast.stmt | None:
        """The statement that a node is part of, or is."""
        if isinstance(node, ast.stmt):
            return node
        return next((above for above in self.ancestors(node) if isinstance(above, ast.stmt)), None)

    def function(self, node: ast.AST) -> ast.AST | None:
        """The function around a node."""
        return next((above for above in self.ancestors(node) if isinstance(above, FUNCTIONS)), None)

    def repeats(self, node: ast.AST) -> bool:
        """Tell whether a node may run more than once: in a loop, or in a function that is no `__init__`."""
        for above in self.ancestors(node):
            if isinstance(above, LOOPS):
                return True
            if isinstance(above, FUNCTIONS) and getattr(above, "name", "") != "__init__":
                return True
        return False

    def editable(self, node: ast.AST) -> bool:
        """Tell whether the place of a node can be relied on."""
        return _F_STRINGS_HAVE_PLACES or not any(isinstance(n, ast.JoinedStr) for n in self.ancestors(node))

    def at(self, lines: Iterable[int]) -> list[ast.AST]:
        """The nodes that begin on some lines, in the order of the text."""
        wanted = set(lines)
        nodes = [node for node in self.nodes if getattr(node, "lineno", 0) in wanted and self.editable(node)]
        return sorted(nodes, key=lambda node: (getattr(node, "lineno", 0), getattr(node, "col_offset", 0)))

    def calls(self, lines: Iterable[int]) -> list[ast.Call]:
        """The calls that begin on some lines."""
        return [node for node in self.at(lines) if isinstance(node, ast.Call)]

    def header(self, statement: ast.stmt) -> range:
        """The lines of a statement, without those of the statements in it."""
        last = statement.end_lineno or statement.lineno
        body = getattr(statement, "body", None)
        if isinstance(body, list) and body:
            last = max(statement.lineno, body[0].lineno - 1)
        return range(statement.lineno, last + 1)

    def statement_at(self, line: int) -> ast.stmt | None:
        """The innermost statement whose header holds a line."""
        holding = [n for n in self.nodes if isinstance(n, ast.stmt) and line in self.header(n)]
        return holding[-1] if holding else None  # `ast.walk` goes from the outside in

    def named(self, name: str) -> list[ast.AST]:
        """The names, attributes and definitions of that name."""
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
        """Local name -> full name of what was imported under it."""
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
        """Names that the file gives a value of its own anywhere."""
        names = {n.id for n in self.nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
        names |= {n.arg for n in self.nodes if isinstance(n, ast.arg)}
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        return names | {n.name for n in self.nodes if isinstance(n, kinds)}

    def name(self, node: ast.AST) -> str:
        """The full name of what an expression stands for, such as `numpy.random.rand`; empty if unknown.

        `builtins.hash` for a builtin that the file does not replace; with `?` in front where the first part
        is a value of the file's own, such as `?.pool.imap`.
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
        """How the file calls a module, such as `np` for `numpy`; empty if it does not import it by name."""
        top = {id(n): n for n in self.tree.body if isinstance(n, ast.Import)}.values()
        for node in top:
            for alias in node.names:
                if alias.name == full and alias.asname:
                    return alias.asname
                if not alias.asname and (alias.name == full or full == alias.name.partition(".")[0]):
                    return full
        return ""


def parameters(function: ast.AST | None) -> list[ast.arg]:
    """The parameters of a function."""
    arguments = getattr(function, "args", None)
    return [node for node in ast.walk(arguments) if isinstance(node, ast.arg)] if arguments else []
