"""Orders that are chance: of hashes, addresses and completion."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from samebits.diagnosis.patches.edits import Change, Edit
from samebits.diagnosis.patches.rule import Refusal, Rule, causes, keyword_of
from samebits.diagnosis.patches.set_values import is_set

if TYPE_CHECKING:
    from collections.abc import Iterator

    from samebits.diagnosis.patches.rule import Spot

_SORTING = ("builtins.sorted", "builtins.min", "builtins.max")
_COMPLETED = "concurrent.futures.as_completed"


def hashes(spot: Spot) -> Iterator[Change | Refusal]:
    """`hash(x)` becomes a checksum of the text of x."""
    for call in spot.calls():
        if spot.syntax.name(call.func) == "builtins.hash" and len(call.args) == 1:
            if spot.syntax.source(call.args[0]) == "self":
                yield Refusal("hash(self) is the address of the object: give it a number", call.lineno)
                continue
            yield _checksum(spot, call, spot.syntax.source(call.args[0]))
        elif isinstance(call.func, ast.Attribute) and call.func.attr == "__hash__" and not call.args:
            yield _checksum(spot, call, spot.syntax.source(call.func.value))
    for node in spot.nodes():  # handed on: `map(hash, names)`
        above = spot.syntax.parent(node)
        given = isinstance(above, ast.keyword) or (isinstance(above, ast.Call) and node in above.args)
        if given and isinstance(node, ast.Name) and spot.syntax.name(node) == "builtins.hash":
            yield _checksum(spot, node, "x", "lambda x: ")


def _checksum(spot: Spot, node: ast.expr, value: str, before: str = "") -> Change:
    text = f"{before}zlib.crc32(repr({value}).encode())"
    return spot.replace(node, text, "a checksum in place of `hash`, which is salted", "import:zlib")


def ids(spot: Spot) -> Iterator[Change | Refusal]:
    """Sorting by `id`, and addresses as numbers."""
    for call in spot.calls():
        name = spot.syntax.name(call.func)
        key = keyword_of(call, "key")
        sorts = name in _SORTING or (isinstance(call.func, ast.Attribute) and call.func.attr == "sort")
        if sorts and key is not None and _by_address(spot, key.value):
            yield _unsorted(spot, call, key)
        elif name == "builtins.id":
            yield Refusal("id() is an address: give each object a number of its own", call.lineno)
        elif isinstance(call.func, ast.Attribute) and call.func.attr == "data_ptr":
            yield spot.replace(call, "0", "a number in place of an address")
        elif name == "builtins.repr" and spot.cause == "id-order":
            yield Refusal("the default repr of an object holds its address: name the objects", call.lineno)


def _by_address(spot: Spot, key: ast.expr) -> bool:
    if isinstance(key, ast.Lambda):
        return any(
            isinstance(n, ast.Call) and spot.syntax.name(n.func) in ("builtins.id", "builtins.hash")
            for n in ast.walk(key.body)
        )
    return spot.syntax.name(key) in ("builtins.id", "builtins.hash", "builtins.repr", "builtins.str")


def _unsorted(spot: Spot, call: ast.Call, key: ast.keyword) -> Change | Refusal:
    """A key that is the same for all: `sorted` then leaves the order as it was."""
    function = call.func
    of_set = is_set(spot.syntax, call.args[0]) if call.args else False
    if of_set:
        return Refusal("a set sorted by address: keep the objects in a list instead", call.lineno)
    if spot.syntax.name(function) == "builtins.sorted" and len(call.args) == 1 and len(call.keywords) == 1:
        text = f"list({spot.syntax.source(call.args[0])})"
        return spot.replace(call, text, "the order in which they are held, not that of their addresses")
    why = "a key that is equal for all, so that the order in which they are held stays"
    return spot.replace(key.value, "lambda _: 0", why)


def completion(spot: Spot) -> Iterator[Change | Refusal]:
    """Results are taken in the order in which the work was given, not in which it ended."""
    why = "results in the order in which the work was given, not in which it ended"
    for call in spot.calls():
        name = spot.syntax.name(call.func)
        if isinstance(call.func, ast.Attribute) and call.func.attr == "imap_unordered":
            end = spot.syntax.span(call.func)[1]
            edit = Edit(end - len("imap_unordered"), end, "imap")
            yield Change((edit,), why, call.lineno)
        elif name == _COMPLETED and len(call.args) == 1 and not call.keywords:
            yield _as_given(spot, call, why)
        elif name == _COMPLETED:
            yield Refusal("`as_completed` with a time limit: the clock decides what comes", call.lineno)
        elif name in ("concurrent.futures.wait", "asyncio.wait", "asyncio.as_completed"):
            yield Refusal("the set of what is done has no order: go through your own list", call.lineno)


def _as_given(spot: Spot, call: ast.Call, why: str) -> Change | Refusal:
    futures = call.args[0]
    text = spot.syntax.source(futures)
    if isinstance(futures, ast.GeneratorExp):
        return spot.replace(call, f"[{text.removeprefix('(').removesuffix(')')}]", why)
    if isinstance(futures, ast.SetComp | ast.Set):
        return spot.replace(call, f"[{text[1:-1]}]", why)
    if is_set(spot.syntax, futures):
        return Refusal("the futures are in a set, which has no order: keep them in a list", call.lineno)
    return spot.replace(call, text, why)


RULES = (
    Rule(causes("hash-order"), hashes, anywhere=True),
    Rule(causes("id-order environment"), ids),
    Rule(causes("race worker-order"), completion, anywhere=True),
)
