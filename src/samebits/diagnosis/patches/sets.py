"""Sets that are iterated: a fixed order instead of that of hashes and addresses."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from samebits.causes import PatchRule
from samebits.diagnosis.patches.code_region import Refusal
from samebits.diagnosis.patches.edits import Change, Edit
from samebits.diagnosis.patches.set_values import is_set
from samebits.diagnosis.patches.syntax import COMPREHENSIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from samebits.diagnosis.patches.code_region import CodeRegion, Find
    from samebits.diagnosis.patches.syntax import Syntax

_ORDERED = (
    "list", "tuple", "enumerate", "zip", "map", "filter", "iter", "sum", "reversed", "next", "dict",
)  # fmt: skip
_TAKERS = {f"builtins.{name}" for name in _ORDERED} | {
    "itertools.chain", "itertools.islice", "itertools.product", "itertools.combinations",
    "itertools.permutations", "itertools.cycle", "functools.reduce", "collections.deque",
    "collections.OrderedDict", "numpy.fromiter", "torch.utils.data.Subset",
}  # fmt: skip
_ORDERLESS = {
    f"builtins.{name}" for name in ("sorted", "set", "frozenset", "any", "all", "len", "min", "max", "sum")
} - {"builtins.sum"}
_KEYED = ("builtins.sorted", "builtins.min", "builtins.max")
_WHOLE_KEYS = ("builtins.str", "builtins.repr", "builtins.int")


def iterated_sets(region: CodeRegion) -> Iterator[Change | Refusal]:
    """Each place where the order of a set is taken."""
    for node in region.nodes():
        for taken in _taken(region.syntax, node):
            if is_set(region.syntax, taken) and not _does_not_matter(region.syntax, node):
                yield from _ordered(region, taken)
        if isinstance(node, ast.Call) and _pops_set(region.syntax, node):
            yield Refusal("`pop` of a set takes any element: say which one it should be", node.lineno)


def _ordered(region: CodeRegion, taken: ast.expr) -> Iterator[Change | Refusal]:
    if region.cause != "id-order":
        yield _sorted(region, taken)
        return
    change = _insertion_order(region, taken) or _named(region, taken)
    yield change or Refusal("objects without an order of their own: keep them in a list", taken.lineno)


def _sorted(region: CodeRegion, taken: ast.expr) -> Change:
    """`sorted(...)` around a set, or in the place of the `list` around it."""
    why = "a set is taken in sorted order, not in that of the hashes"
    above = region.syntax.parent(taken)
    alone = isinstance(above, ast.Call) and above.args == [taken] and not above.keywords
    if alone and isinstance(above, ast.Call) and region.syntax.name(above.func) == "builtins.list":
        return region.replace(above.func, "sorted", why)
    return region.wrap(taken, "sorted(", ")", why)


def _insertion_order(region: CodeRegion, node: ast.expr) -> Change | None:
    """`dict.fromkeys(...)` in the place of an expression that makes a set: equal elements once, in order."""
    why = "elements once each, in the order in which they came, not in that of their addresses"
    text = _as_dict(region.syntax, node)
    return None if text is None else region.replace(node, text, why)


def _as_dict(syntax: Syntax, node: ast.expr) -> str | None:
    if isinstance(node, ast.SetComp):
        return f"dict.fromkeys({syntax.source(node)[1:-1].strip()})"
    if isinstance(node, ast.Set):
        return f"dict.fromkeys([{syntax.source(node)[1:-1].strip()}])"
    if isinstance(node, ast.Call) and syntax.name(node.func) == "builtins.set" and not node.keywords:
        inner = ", ".join(syntax.source(arg) for arg in node.args)
        return f"dict.fromkeys({inner})" if inner else "{}"
    return None


def _named(region: CodeRegion, node: ast.expr) -> Change | None:
    """A set with a name becomes a dict, where all that is done with it works with one."""
    if not isinstance(node, ast.Name):
        return None
    syntax, edits = region.syntax, []
    function = syntax.function(node)
    uses = [n for n in syntax.nodes if isinstance(n, ast.Name) and n.id == node.id]
    for use in uses:
        if syntax.function(use) is not function and not _within(syntax, use, function):
            return None
        value = _value_given(syntax, use)
        if value is not None:
            text = _as_dict(syntax, value)
            if text is None:
                return None
            edits.append(Edit(*syntax.span(value), text))
        elif not _works_with_dict(syntax, use, edits):
            return None
    why = f"{node.id} keeps its elements in the order in which they came, not in that of their addresses"
    return Change(tuple(edits), why, node.lineno) if edits else None


def _within(syntax: Syntax, node: ast.AST, function: ast.AST | None) -> bool:
    return function is not None and any(above is function for above in syntax.ancestors(node))


def _value_given(syntax: Syntax, use: ast.Name) -> ast.expr | None:
    """What is assigned to a name, or united with it in place."""
    above = syntax.parent(use)
    if isinstance(above, ast.Assign) and use in above.targets:
        return above.value
    if isinstance(above, ast.AugAssign) and above.target is use and isinstance(above.op, ast.BitOr):
        return above.value
    return None


def _works_with_dict(syntax: Syntax, use: ast.Name, edits: list[Edit]) -> bool:
    """Whether a use of a set works with a dict; `.add(x)` becomes an item that is set."""
    above = syntax.parent(use)
    if isinstance(above, ast.Compare):
        return any(isinstance(op, ast.In | ast.NotIn) for op in above.ops)
    if isinstance(above, ast.comprehension | ast.For):
        return above.iter is use
    if isinstance(above, ast.Call) and use in above.args:
        return syntax.name(above.func) in _TAKERS | _ORDERLESS
    if isinstance(above, ast.Attribute) and above.attr == "add":
        call = syntax.parent(above)
        if isinstance(call, ast.Call) and isinstance(syntax.parent(call), ast.Expr) and len(call.args) == 1:
            item = f"{use.id}[{syntax.source(call.args[0])}] = None"
            edits.append(Edit(*syntax.span(call), item))
            return True
    return isinstance(above, ast.Starred | ast.UnaryOp | ast.If | ast.While)


def _taken(syntax: Syntax, node: ast.AST) -> Iterator[ast.expr]:
    """The expressions whose order a node takes."""
    if isinstance(node, ast.For | ast.AsyncFor):
        yield node.iter
    elif isinstance(node, COMPREHENSIONS) and not isinstance(node, ast.SetComp):
        yield from (generator.iter for generator in node.generators)
    elif isinstance(node, ast.YieldFrom | ast.Starred):
        yield from () if isinstance(syntax.parent(node), ast.Set) else (node.value,)
    elif isinstance(node, ast.Call):
        joins = isinstance(node.func, ast.Attribute) and node.func.attr in ("join", "extend", "fromkeys")
        if joins or syntax.name(node.func) in _TAKERS or _breaks_ties(syntax, node):
            yield from (arg for arg in node.args if not isinstance(arg, ast.Starred))
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple | ast.List):
        yield node.value


def _breaks_ties(syntax: Syntax, call: ast.Call) -> bool:
    """Whether elements with equal keys come in the order in which they were taken: `sorted(x, key=len)`."""
    if syntax.name(call.func) not in _KEYED or len(call.args) != 1:
        return False
    keys = [keyword.value for keyword in call.keywords if keyword.arg == "key"]
    return any(not _holds_element(syntax, key) for key in keys)


def _holds_element(syntax: Syntax, key: ast.expr) -> bool:
    """Whether a key holds the whole element, so that no two are equal."""
    if not isinstance(key, ast.Lambda):
        return syntax.name(key) in _WHOLE_KEYS or (isinstance(key, ast.Constant) and key.value is None)
    names = {argument.arg for argument in key.args.args}
    parts = key.body.elts if isinstance(key.body, ast.Tuple) else [key.body]
    return any(isinstance(part, ast.Name) and part.id in names for part in parts)


def _does_not_matter(syntax: Syntax, node: ast.AST) -> bool:
    """Whether what takes the order is itself put in order, or into a set, or only counted."""
    above = syntax.parent(node)
    if isinstance(above, ast.Starred):
        above = syntax.parent(above)
    return (
        isinstance(above, ast.Call)
        and syntax.name(above.func) in _ORDERLESS
        and not _breaks_ties(syntax, above)
    )


def _pops_set(syntax: Syntax, call: ast.Call) -> bool:
    if not isinstance(call.func, ast.Attribute) or call.args:
        return False
    return call.func.attr == "pop" and is_set(syntax, call.func.value)


RULES: Mapping[PatchRule, Find] = {
    PatchRule.SORT_SETS: iterated_sets,
}
