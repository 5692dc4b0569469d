"""Rules for orders that vary: of hashes, of addresses, of completion, of a directory."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from samebits.causes import Cause, PatchRule
from samebits.diagnosis.patches.code_region import Refusal, keyword_of
from samebits.diagnosis.patches.edits import Change, Edit, Need, NeedKind
from samebits.diagnosis.patches.sets import is_set

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from samebits.diagnosis.patches.code_region import CodeRegion, Rule
    from samebits.diagnosis.patches.syntax import Syntax

_SORTING = ("builtins.sorted", "builtins.min", "builtins.max")
_COMPLETED = "concurrent.futures.as_completed"
_LISTS = ("os.listdir", "glob.glob")
_WALKS = ("os.walk", "os.fwalk")
_PATH_METHODS = ("iterdir", "glob", "rglob")
_ENTRY_NAME = ", key=lambda entry: entry.name)"
_WHY = "sort the listing: the file system gives it in any order"
_IN_WALK = "sort the names of directories and files in the loop over `os.walk`"


def hashes(region: CodeRegion) -> Iterator[Change | Refusal]:
    """Replace `hash(x)` by a checksum of the text of x."""
    for call in region.calls():
        if region.syntax.name(call.func) == "builtins.hash" and len(call.args) == 1:
            if region.syntax.source(call.args[0]) == "self":
                yield Refusal(
                    "hash(self) is the address of the object: give each object a number instead", call.lineno
                )
                continue
            yield _checksum(region, call, region.syntax.source(call.args[0]))
        elif isinstance(call.func, ast.Attribute) and call.func.attr == "__hash__" and not call.args:
            yield _checksum(region, call, region.syntax.source(call.func.value))
    for node in region.nodes():  # passed on: `map(hash, names)`
        above = region.syntax.parent(node)
        given = isinstance(above, ast.keyword) or (isinstance(above, ast.Call) and node in above.args)
        if given and isinstance(node, ast.Name) and region.syntax.name(node) == "builtins.hash":
            yield _checksum(region, node, "x", "lambda x: ")


def _checksum(region: CodeRegion, node: ast.expr, value: str, before: str = "") -> Change:
    text = f"{before}zlib.crc32(repr({value}).encode())"
    return region.replace(
        node, text, "replace `hash`, which is salted, by a checksum", Need(NeedKind.IMPORT, "zlib")
    )


def ids(region: CodeRegion) -> Iterator[Change | Refusal]:
    """Remove sorting by `id`, and addresses used as numbers."""
    for call in region.calls():
        name = region.syntax.name(call.func)
        key = keyword_of(call, "key")
        sorts = name in _SORTING or (isinstance(call.func, ast.Attribute) and call.func.attr == "sort")
        if sorts and key is not None and _by_address(region, key.value):
            yield _unsorted(region, call, key)
        elif name == "builtins.id":
            yield Refusal("id() is an address: give each object a number of its own", call.lineno)
        elif isinstance(call.func, ast.Attribute) and call.func.attr == "data_ptr":
            yield region.replace(call, "0", "replace an address by a number")
        elif name == "builtins.repr" and region.cause == Cause.ID_ORDER:
            yield Refusal(
                "the default repr of an object contains its address: give the objects names", call.lineno
            )


def _by_address(region: CodeRegion, key: ast.expr) -> bool:
    if isinstance(key, ast.Lambda):
        return any(
            isinstance(n, ast.Call) and region.syntax.name(n.func) in ("builtins.id", "builtins.hash")
            for n in ast.walk(key.body)
        )
    return region.syntax.name(key) in ("builtins.id", "builtins.hash", "builtins.repr", "builtins.str")


def _unsorted(region: CodeRegion, call: ast.Call, key: ast.keyword) -> Change | Refusal:
    """Use a key that is the same for all elements, so that `sorted` leaves the order as it was."""
    function = call.func
    of_set = is_set(region.syntax, call.args[0]) if call.args else False
    if of_set:
        return Refusal("a set is sorted by address: keep the objects in a list instead", call.lineno)
    if region.syntax.name(function) == "builtins.sorted" and len(call.args) == 1 and len(call.keywords) == 1:
        text = f"list({region.syntax.source(call.args[0])})"
        return region.replace(
            call, text, "keep the elements in their order, instead of sorting them by address"
        )
    why = "sort by a constant key, so that the elements keep their order"
    return region.replace(key.value, "lambda _: 0", why)


def completion(region: CodeRegion) -> Iterator[Change | Refusal]:
    """Take results in the order in which the work was submitted, not in which it ended."""
    why = "take the results in the order of submission, not of completion"
    for call in region.calls():
        name = region.syntax.name(call.func)
        if isinstance(call.func, ast.Attribute) and call.func.attr == "imap_unordered":
            end = region.syntax.span(call.func)[1]
            edit = Edit(end - len("imap_unordered"), end, "imap")
            yield Change((edit,), why, call.lineno)
        elif name == _COMPLETED and len(call.args) == 1 and not call.keywords:
            yield _as_given(region, call, why)
        elif name == _COMPLETED:
            yield Refusal(
                "`as_completed` has a time limit: the clock decides which results come", call.lineno
            )
        elif name in ("concurrent.futures.wait", "asyncio.wait", "asyncio.as_completed"):
            yield Refusal("the set of finished tasks has no order: go through your own list", call.lineno)


def _as_given(region: CodeRegion, call: ast.Call, why: str) -> Change | Refusal:
    futures = call.args[0]
    text = region.syntax.source(futures)
    if isinstance(futures, ast.GeneratorExp):
        return region.replace(call, f"[{text.removeprefix('(').removesuffix(')')}]", why)
    if isinstance(futures, ast.SetComp | ast.Set):
        return region.replace(call, f"[{text[1:-1]}]", why)
    if is_set(region.syntax, futures):
        return Refusal("the futures are in a set, which has no order: keep them in a list", call.lineno)
    return region.replace(call, text, why)


def listings(region: CodeRegion) -> Iterator[Change | Refusal]:
    """Sort directory listings."""
    for call in region.calls():
        name = region.syntax.name(call.func)
        if _is_put_in_order(region, call):
            continue
        if name == "os.scandir" and isinstance(region.syntax.parent(call), ast.withitem):
            yield Refusal("sort the entries where you read them from the scan", call.lineno)
        elif name == "os.scandir":
            yield _in_order(region, call, _ENTRY_NAME)
        elif name in _WALKS:
            yield from _walked(region, call)
        elif name in _LISTS:
            yield region.wrap(call, "sorted(", ")", _WHY)
        elif name == "glob.iglob" or _is_path_listing(region, call):
            yield _in_order(region, call, ")")


def _in_order(region: CodeRegion, call: ast.Call, end: str) -> Change:
    """Sort an iterator of names; where `next` is called on it or it gets a name, it stays an iterator."""
    above = region.syntax.parent(call)
    taken = isinstance(above, ast.Call) and region.syntax.name(above.func) == "builtins.next"
    if taken or isinstance(above, ast.Assign | ast.AnnAssign | ast.Return):
        return region.wrap(call, "iter(sorted(", end + ")", _WHY)
    return region.wrap(call, "sorted(", end, _WHY)


def _is_put_in_order(region: CodeRegion, call: ast.Call) -> bool:
    """Tell whether a listing is sorted or only counted, also through `sorted(f(x) for x in listing)`."""
    for above in region.syntax.ancestors(call):
        if isinstance(above, ast.Call):
            return region.syntax.name(above.func) in ("builtins.sorted", "builtins.len", "builtins.set")
        if not isinstance(above, ast.comprehension | ast.GeneratorExp | ast.ListComp):
            return False
    return False


def _is_path_listing(region: CodeRegion, call: ast.Call) -> bool:
    if not (isinstance(call.func, ast.Attribute) and call.func.attr in _PATH_METHODS):
        return False
    uses_paths = any(full.startswith("pathlib") for full in region.syntax.imports.values())
    return uses_paths and not region.syntax.name(call.func).startswith("glob.")


def _walked(region: CodeRegion, call: ast.Call) -> Iterator[Change | Refusal]:
    """Add `dirs.sort()` and `files.sort()` to a loop; `sorted` around the walk would not sort the files.

    The walk goes on in the order of the names left in `dirs`, so a loop may also drop some of them.
    """
    above = region.syntax.parent(call)
    target = getattr(above, "target", None)
    top_down = len(call.args) == 1 and not call.keywords
    listed = target.elts[1:3] if isinstance(target, ast.Tuple) and top_down else []
    names = [node.id for node in listed if isinstance(node, ast.Name)]
    if len(names) == 2 and isinstance(above, ast.For) and above.iter is call:
        calls = [f"{name}.sort()" for name in dict.fromkeys(names)]
        done = {region.syntax.source(node) for node in ast.walk(above) if isinstance(node, ast.Call)}
        at = region.syntax.span(above.body[0])[0]
        text = "".join(each + _between(region.syntax, at) for each in calls if each not in done)
        yield from [Change((Edit(at, at, text),), _WHY, call.lineno)] if text else []
    elif len(names) == 2 and isinstance(above, ast.comprehension):
        files = _uses(region.syntax, region.syntax.parent(above), names[1])
        edits = [edit for node in (call, *files) for edit in region.wrap(node, "sorted(", ")", "").edits]
        yield Change(tuple(edits), _WHY, call.lineno)
    else:
        yield Refusal(_IN_WALK, call.lineno)


def _between(syntax: Syntax, at: int) -> str:
    """Return the separator of two statements, the second of which begins at `at`."""
    line = max(syntax.raw.rfind(b"\n", 0, at), syntax.raw.rfind(b"\r", 0, at)) + 1
    indentation = syntax.raw[line:at].decode()
    return "; " if indentation.strip() else f"\n{indentation}"


def _uses(syntax: Syntax, scope: ast.AST | None, name: str) -> list[ast.Name]:
    """Return where a comprehension reads the names of a listing, other than to count or sort them."""
    names = [] if scope is None else [n for n in ast.walk(scope) if isinstance(n, ast.Name) and n.id == name]
    return [node for node in names if isinstance(node.ctx, ast.Load) and not _is_ordered(syntax, node)]


def _is_ordered(syntax: Syntax, node: ast.Name) -> bool:
    above = syntax.parent(node)
    return isinstance(above, ast.Call) and syntax.name(above.func) in ("builtins.sorted", "builtins.len")


RULES: Mapping[PatchRule, Rule] = {
    PatchRule.CHECKSUM_FOR_HASH: hashes,
    PatchRule.NO_ADDRESSES: ids,
    PatchRule.ORDER_OF_SUBMISSION: completion,
    PatchRule.SORT_LISTINGS: listings,
}
