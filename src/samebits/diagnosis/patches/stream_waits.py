"""Rules for work on a GPU that goes on beside the script: streams, and copies that do not wait."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from samebits.causes import PatchRule
from samebits.diagnosis.patches.code_region import Refusal, keyword_of, literal_value
from samebits.diagnosis.patches.edits import Change, Edit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from samebits.diagnosis.patches.code_region import CodeRegion, Rule

_STREAM = "torch.cuda.stream"
_WAIT = "wait_stream"
_WHY = "let the streams wait for each other"


def streams(region: CodeRegion) -> Iterator[Change | Refusal]:
    """Let a stream wait for the current one before a block that uses it, and the current one for it after."""
    for node in region.nodes():
        if isinstance(node, ast.With):
            yield from _around(region, node)


def _around(region: CodeRegion, block: ast.With) -> Iterator[Change | Refusal]:
    """Yield the change of one block; none if it is not about a stream, or waits on both sides already."""
    stream = next(filter(None, (_stream_of(region, item.context_expr) for item in block.items)), None)
    if stream is None:
        return
    if not isinstance(stream, ast.Name | ast.Attribute):
        yield Refusal("the stream has no name that another one could wait for", block.lineno)
        return
    edits = tuple(_waits(region, block, region.syntax.source(stream)))
    if edits:
        yield Change(edits, _WHY, block.lineno)


def _stream_of(region: CodeRegion, entered: ast.expr) -> ast.expr | None:
    is_stream = isinstance(entered, ast.Call) and region.syntax.name(entered.func) == _STREAM
    return entered.args[0] if isinstance(entered, ast.Call) and is_stream and entered.args else None


def _waits(region: CodeRegion, block: ast.With, stream: str) -> Iterator[Edit]:
    start, end = region.syntax.span(block)
    text = region.syntax.line_text(block.lineno)
    indent = text[: len(text) - len(text.lstrip())]
    current = f"{region.module('torch')}.cuda.current_stream()"
    before, after = _neighbours(region, block)
    if not _is_wait(region, before):
        yield Edit(start, start, f"{stream}.{_WAIT}({current})\n{indent}")
    if not _is_wait(region, after):
        yield Edit(end, end, f"\n{indent}{current}.{_WAIT}({stream})")


def _neighbours(region: CodeRegion, block: ast.With) -> tuple[ast.stmt | None, ast.stmt | None]:
    """Return the statements before and after a block, of the same body."""
    for body in vars(region.syntax.parent(block)).values():
        if isinstance(body, list) and block in body:
            at = body.index(block)
            return (body[at - 1] if at else None), (body[at + 1] if at + 1 < len(body) else None)
    return None, None


def _is_wait(region: CodeRegion, statement: ast.stmt | None) -> bool:
    return statement is not None and _WAIT in region.syntax.source(statement)


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
