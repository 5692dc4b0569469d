"""Rules for work on a GPU that goes on beside the script: streams, and copies that do not wait."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from samebits.causes import PatchRule
from samebits.diagnosis.patches.code_region import Refusal, keyword_of, literal_value
from samebits.diagnosis.patches.edits import Change, Edit, Need, NeedKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from samebits.diagnosis.patches.code_region import CodeRegion, Rule

_STREAM = "torch.cuda.stream"
_WAIT = "wait_stream"
_WHY = "let the streams wait for each other"
_LEAVING = (ast.Return, ast.Continue, ast.Break, ast.Raise)


def streams(region: CodeRegion) -> Iterator[Change | Refusal]:
    """Let a stream wait for the current one before a block that uses it, and the current one for it after."""
    blocks = [node for node in region.nodes() if isinstance(node, ast.With)]
    for block in reversed(blocks):  # of blocks that end together, the inner one is left first
        stream = _stream_of(region, block)
        if stream is not None:
            yield from _around(region, block, stream)


def _stream_of(region: CodeRegion, block: ast.With) -> ast.expr | None:
    """Return what is entered as the stream of a block: the last one counts."""
    entered = [item.context_expr for item in block.items if isinstance(item.context_expr, ast.Call)]
    calls = [call for call in entered if region.syntax.name(call.func) == _STREAM]
    given = [*calls[-1].args, *(word.value for word in calls[-1].keywords)] if calls else []
    return given[0] if given else None


def _around(region: CodeRegion, block: ast.With, stream: ast.expr) -> Iterator[Change | Refusal]:
    """Yield the change of one block; none if it waits on both sides already."""
    bound = {name for item in block.items for name, is_read in _names(item) if not is_read}
    read = {name for name, _ in _names(stream)}
    if not _is_steady(stream) or read & bound:
        yield Refusal("the stream has no name before the block: give it one, and let it wait", block.lineno)
    elif isinstance(block.body[-1], _LEAVING):
        yield Refusal(
            "the block is left in its last line: wait for its stream where the result is used", block.lineno
        )
    else:
        edits = tuple(_waits(region, block, region.syntax.source(stream)))
        if edits:
            yield Change(edits, _WHY, block.lineno, (Need(NeedKind.IMPORT, "torch"),))


def _names(part: ast.AST) -> Iterator[tuple[str, bool]]:
    """Yield the names in a part of the syntax, and whether each is read there."""
    for node in ast.walk(part):
        if isinstance(node, ast.Name):
            yield node.id, isinstance(node.ctx, ast.Load)


def _is_steady(node: ast.expr) -> bool:
    """Tell whether an expression gives the same stream each time: a name, an attribute, an element."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        if isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Constant | ast.Name):
            return False
        node = node.value
    return isinstance(node, ast.Name)


def _waits(region: CodeRegion, block: ast.With, stream: str) -> Iterator[Edit]:
    text = region.syntax.line_text(block.lineno)
    indent = text[: len(text) - len(text.lstrip())]
    current = f"{region.module('torch')}.cuda.current_stream()"
    before, after = _neighbours(region, block)
    if not _is_wait(region, before, stream):
        start = region.syntax.span(block)[0]
        yield Edit(start, start, f"{stream}.{_WAIT}({current})\n{indent}")
    if not _is_wait(region, after, "current_stream()"):
        end = region.syntax.line_start((block.end_lineno or block.lineno) + 1)
        wait = f"{indent}{current}.{_WAIT}({stream})"
        ends_line = region.syntax.raw[end - 1 : end] in (b"\n", b"\r")
        yield Edit(end, end, f"{wait}\n" if ends_line else f"\n{wait}")


def _neighbours(region: CodeRegion, block: ast.With) -> tuple[ast.stmt | None, ast.stmt | None]:
    """Return the statements before and after a block, of the same body."""
    for body in vars(region.syntax.parent(block)).values():
        if isinstance(body, list) and block in body:
            at = body.index(block)
            return (body[at - 1] if at else None), (body[at + 1] if at + 1 < len(body) else None)
    return None, None


def _is_wait(region: CodeRegion, statement: ast.stmt | None, waiting: str) -> bool:
    """Tell whether a statement lets the stream wait whose text ends in some way."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != _WAIT:
        return False
    return region.syntax.source(call.func.value).endswith(waiting)


def copies(region: CodeRegion) -> Iterator[Change | Refusal]:
    """Let a copy wait until it has ended."""
    for call in region.calls():
        word = keyword_of(call, "non_blocking")
        if word is not None and literal_value(word.value) is True:
            yield region.replace(word.value, "False", "wait until what is copied has arrived")


RULES: Mapping[PatchRule, Rule] = {
    PatchRule.STREAMS_WAIT: streams,
    PatchRule.BLOCKING_COPIES: copies,
}
