"""Listings of directories, in sorted order in the place of that of the file system."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from samebits.diagnosis.patches.edits import Change, Edit
from samebits.diagnosis.patches.rule import Refusal, Rule, causes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from samebits.diagnosis.patches.rule import Spot
    from samebits.diagnosis.patches.syntax import Syntax

_LISTS = ("os.listdir", "glob.glob")
_WALKS = ("os.walk", "os.fwalk")
_PATH_METHODS = ("iterdir", "glob", "rglob")
_ENTRY_NAME = ", key=lambda entry: entry.name)"
_WHY = "a listing in sorted order, not in that of the file system"
_IN_WALK = "sort the names of directories and files in the loop over `os.walk`"


def listings(spot: Spot) -> Iterator[Change | Refusal]:
    """Directory listings come sorted."""
    for call in spot.calls():
        name = spot.syntax.name(call.func)
        if _is_put_in_order(spot, call):
            continue
        if name == "os.scandir" and isinstance(spot.syntax.parent(call), ast.withitem):
            yield Refusal("sort the entries where they are taken from the scan", call.lineno)
        elif name == "os.scandir":
            yield _in_order(spot, call, _ENTRY_NAME)
        elif name in _WALKS:
            yield from _walked(spot, call)
        elif name in _LISTS:
            yield spot.wrap(call, "sorted(", ")", _WHY)
        elif name == "glob.iglob" or _is_path_listing(spot, call):
            yield _in_order(spot, call, ")")


def _in_order(spot: Spot, call: ast.Call, end: str) -> Change:
    """What hands out names one after the other, sorted; `next` and a name for it want an iterator."""
    above = spot.syntax.parent(call)
    taken = isinstance(above, ast.Call) and spot.syntax.name(above.func) == "builtins.next"
    if taken or isinstance(above, ast.Assign | ast.AnnAssign | ast.Return):
        return spot.wrap(call, "iter(sorted(", end + ")", _WHY)
    return spot.wrap(call, "sorted(", end, _WHY)


def _is_put_in_order(spot: Spot, call: ast.Call) -> bool:
    """Whether a listing is sorted or only counted, also through `sorted(f(x) for x in listing)`."""
    for above in spot.syntax.ancestors(call):
        if isinstance(above, ast.Call):
            return spot.syntax.name(above.func) in ("builtins.sorted", "builtins.len", "builtins.set")
        if not isinstance(above, ast.comprehension | ast.GeneratorExp | ast.ListComp):
            return False
    return False


def _is_path_listing(spot: Spot, call: ast.Call) -> bool:
    if not (isinstance(call.func, ast.Attribute) and call.func.attr in _PATH_METHODS):
        return False
    uses_paths = any(full.startswith("pathlib") for full in spot.syntax.imports.values())
    return uses_paths and not spot.syntax.name(call.func).startswith("glob.")


def _walked(spot: Spot, call: ast.Call) -> Iterator[Change | Refusal]:
    """`dirs.sort()` and `files.sort()` in a loop; what is sorted around the walk would leave the files.

    The walk goes on in the order of the names that are left in `dirs`, so a loop may also leave some out.
    """
    above = spot.syntax.parent(call)
    target = getattr(above, "target", None)
    top_down = len(call.args) == 1 and not call.keywords
    listed = target.elts[1:3] if isinstance(target, ast.Tuple) and top_down else []
    names = [node.id for node in listed if isinstance(node, ast.Name)]
    if len(names) == 2 and isinstance(above, ast.For) and above.iter is call:
        calls = [f"{name}.sort()" for name in dict.fromkeys(names)]
        done = {spot.syntax.source(node) for node in ast.walk(above) if isinstance(node, ast.Call)}
        at = spot.syntax.span(above.body[0])[0]
        text = "".join(each + _between(spot.syntax, at) for each in calls if each not in done)
        yield from [Change((Edit(at, at, text),), _WHY, call.lineno)] if text else []
    elif len(names) == 2 and isinstance(above, ast.comprehension):
        files = _uses(spot.syntax, spot.syntax.parent(above), names[1])
        edits = [edit for node in (call, *files) for edit in spot.wrap(node, "sorted(", ")", "").edits]
        yield Change(tuple(edits), _WHY, call.lineno)
    else:
        yield Refusal(_IN_WALK, call.lineno)


def _between(syntax: Syntax, at: int) -> str:
    """What stands between two statements, the second of which begins there."""
    line = max(syntax.raw.rfind(b"\n", 0, at), syntax.raw.rfind(b"\r", 0, at)) + 1
    indentation = syntax.raw[line:at].decode()
    return "; " if indentation.strip() else f"\n{indentation}"


def _uses(syntax: Syntax, scope: ast.AST | None, name: str) -> list[ast.Name]:
    """Where the names of a listing are read in a comprehension, and not only counted or sorted."""
    found = [] if scope is None else [n for n in ast.walk(scope) if isinstance(n, ast.Name) and n.id == name]
    return [node for node in found if isinstance(node.ctx, ast.Load) and not _is_ordered(syntax, node)]


def _is_ordered(syntax: Syntax, node: ast.Name) -> bool:
    above = syntax.parent(node)
    return isinstance(above, ast.Call) and syntax.name(above.func) in ("builtins.sorted", "builtins.len")


RULES = (Rule(causes("environment"), listings, anywhere=True),)
