"""What a rule of patching is given, and what it gives."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from samebits.diagnosis.patches.edits import Change, Edit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from samebits.diagnosis.patches.syntax import Syntax

    Find = Callable[["CodeRegion"], Iterator["Change | Refusal"]]


@dataclass(frozen=True)
class CodeRegion:
    """Some lines of a file on which a cause may sit.

    Args:
        syntax: the file.
        lines: which of its lines.
        cause: the cause of the finding.
        seed: the number to seed with.
    """

    syntax: Syntax
    lines: frozenset[int]
    cause: str
    seed: int = 0

    def calls(self) -> list[ast.Call]:
        """The calls there."""
        return self.syntax.calls(self.lines)

    def nodes(self) -> list[ast.AST]:
        """All nodes there."""
        return self.syntax.at(self.lines)

    def replace(self, node: ast.expr, text: str, why: str, *needs: str) -> Change:
        """A change that puts something in the place of an expression."""
        return Change((Edit(*self.syntax.span(node), text),), why, node.lineno, needs)

    def wrap(self, node: ast.expr, before: str, after: str, why: str) -> Change:
        """A change that puts something around an expression."""
        start, end = self.syntax.span(node)
        return Change((Edit(start, start, before), Edit(end, end, after)), why, node.lineno)

    def argument(self, call: ast.Call, text: str, why: str, *needs: str) -> Change:
        """A change that adds an argument to a call, as its last."""
        everything = [*call.args, *call.keywords]
        if everything:
            last = max(self.syntax.span(node)[1] for node in everything)
            parens = isinstance(everything[-1], ast.expr) and self._parenthesised_end(call, last)
            last = parens or last
            return Change((Edit(last, last, f", {text}"),), why, call.lineno, needs)
        end = self.syntax.span(call)[1] - 1
        return Change((Edit(end, end, text),), why, call.lineno, needs)

    def _parenthesised_end(self, call: ast.Call, last: int) -> int:
        """Behind the parentheses around a last argument such as `(a + b)`."""
        between = self.syntax.raw[last : self.syntax.span(call)[1] - 1]
        closing = between.rfind(b")")
        return last + closing + 1 if closing >= 0 and b"#" not in between else 0


@dataclass(frozen=True)
class Refusal:
    """Why a place is not patched.

    Args:
        why: the reason, for the user.
        line: the user's line.
    """

    why: str
    line: int


def literal_value(node: ast.AST | None) -> object:
    """The value of a literal; `...` for anything else."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = literal_value(node.operand)
        return -inner if isinstance(inner, int | float) else ...
    return node.value if isinstance(node, ast.Constant) else ...


def keyword_of(call: ast.Call, name: str) -> ast.keyword | None:
    """A keyword argument of a call."""
    return next((keyword for keyword in call.keywords if keyword.arg == name), None)
