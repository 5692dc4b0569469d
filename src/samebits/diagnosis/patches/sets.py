"""Sets in the text of one file: expressions known to be sets, and rules for their order."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from samebits.causes import Cause, PatchRule
from samebits.diagnosis.patches.code_region import Refusal
from samebits.diagnosis.patches.edits import Change, Edit
from samebits.diagnosis.patches.syntax import COMPREHENSIONS, parameters

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from samebits.diagnosis.patches.code_region import CodeRegion, Rule
    from samebits.diagnosis.patches.syntax import Syntax

_MAKERS = ("builtins.set", "builtins.frozenset", "weakref.WeakSet")
_METHODS = ("union", "intersection", "difference", "symmetric_difference", "copy")
_OPERATORS = (ast.BitOr, ast.BitAnd, ast.Sub, ast.BitXor)
_ANNOTATIONS = ("set", "frozenset", "Set", "FrozenSet", "AbstractSet", "MutableSet", "WeakSet")
_ITEM_METHODS = ("get", "setdefault", "pop")
_PROPERTIES = ("property", "cached_property")
_DEPTH = 6
# Stand for a value that is known only by its annotation, or as an item of something.
_A_SET = ast.Set(elts=[])
_SETS_INSIDE = ast.List(elts=[_A_SET])


def is_set(syntax: Syntax, node: ast.AST | None, depth: int = 0) -> bool:
    """Tell whether an expression is known to be a set."""
    if node is None or depth > _DEPTH:
        return False
    if isinstance(node, ast.Set | ast.SetComp):
        return True
    if isinstance(node, ast.BinOp) and isinstance(node.op, _OPERATORS):
        return is_set(syntax, node.left, depth + 1) or _are_keys(syntax, node.left)
    if isinstance(node, ast.Call):
        return _gives_set(syntax, node, depth)
    if isinstance(node, ast.Subscript):
        return not isinstance(node.slice, ast.Slice) and _holds_sets(syntax, node.value, depth + 1)
    return any(is_set(syntax, value, depth + 1) for value in _possible_values(syntax, node, depth))


def _holds_sets(syntax: Syntax, node: ast.AST | None, depth: int) -> bool:
    """Tell whether the items of an expression are known to be sets, such as those of `defaultdict(set)`."""
    if node is None or depth > _DEPTH:
        return False
    if isinstance(node, ast.Call):
        return _gives_sets_inside(syntax, node, depth)
    items: Iterable[ast.expr] = ()
    if isinstance(node, ast.Dict):
        items = node.values
    elif isinstance(node, ast.List | ast.Tuple):
        items = node.elts
    elif isinstance(node, ast.DictComp | ast.ListComp):
        items = (node.value if isinstance(node, ast.DictComp) else node.elt,)
    if any(is_set(syntax, item, depth + 1) for item in items):
        return True
    return any(_holds_sets(syntax, value, depth + 1) for value in _possible_values(syntax, node, depth))


def _gives_sets_inside(syntax: Syntax, call: ast.Call, depth: int) -> bool:
    made = call.args[0] if call.args else None
    if syntax.name(call.func) == "collections.defaultdict" and _makes_set(syntax, made, depth):
        return True
    lambdas = (maker for maker in _factories(syntax, call) if isinstance(maker, ast.Lambda))
    return any(_holds_sets(syntax, maker.body, depth + 1) for maker in lambdas)


def _possible_values(syntax: Syntax, node: ast.AST, depth: int) -> Iterator[ast.AST | None]:
    """Yield the possible values of an expression: sides of a choice, values of a name or an attribute."""
    if isinstance(node, ast.IfExp):
        yield from (node.body, node.orelse)
    elif isinstance(node, ast.BoolOp):
        yield from node.values
    elif isinstance(node, ast.NamedExpr):
        yield node.value
    elif isinstance(node, ast.Name):
        yield from _name_values(syntax, node, depth)
    elif isinstance(node, ast.Attribute):
        yield from _attribute_values(syntax, node.attr)


def _gives_set(syntax: Syntax, call: ast.Call, depth: int) -> bool:
    makers = [call.func, *_factories(syntax, call)]
    if any(_makes_set(syntax, maker, depth) for maker in makers):
        return True
    name = call.func
    if isinstance(name, ast.Attribute):
        if name.attr in _METHODS and is_set(syntax, name.value, depth + 1):
            return True
        if name.attr in _ITEM_METHODS and _holds_sets(syntax, name.value, depth + 1):
            return True
    called = name.attr if isinstance(name, ast.Attribute) else getattr(name, "id", "")
    return any(_returns_set(syntax, function, depth) for function in _functions(syntax, called))


def _makes_set(syntax: Syntax, maker: ast.AST | None, depth: int) -> bool:
    """Tell whether calling an expression makes a set: `set`, `lambda: {1}`."""
    if isinstance(maker, ast.Lambda):
        return is_set(syntax, maker.body, depth + 1)
    return maker is not None and syntax.name(maker) in _MAKERS


def _factories(syntax: Syntax, call: ast.Call) -> list[ast.expr]:
    """Return the `default_factory` of a dataclass's `field`."""
    if syntax.name(call.func).rpartition(".")[2] not in ("field", "Field"):
        return []
    return [keyword.value for keyword in call.keywords if keyword.arg == "default_factory"]


def _functions(syntax: Syntax, name: str) -> Iterator[ast.FunctionDef]:
    yield from (n for n in syntax.named(name) if isinstance(n, ast.FunctionDef))


def _returns_set(syntax: Syntax, function: ast.FunctionDef, depth: int) -> bool:
    if _says_set(syntax, function.returns):
        return True
    returned = (n.value for n in ast.walk(function) if isinstance(n, ast.Return))
    return any(is_set(syntax, value, depth + 1) for value in returned)


def _are_keys(syntax: Syntax, node: ast.AST) -> bool:
    """Tell whether an expression is the keys of a dict, whose union with something is a set."""
    return isinstance(node, ast.Call) and syntax.name(node.func).endswith((".keys", ".items"))


def _name_values(syntax: Syntax, name: ast.Name, depth: int) -> Iterator[ast.AST | None]:
    """Yield the values that a name gets, in the same function or outside all functions."""
    function = syntax.function(name)
    for node in syntax.nodes:
        if syntax.function(node) in (function, None):
            yield from _values_from(syntax, node, name.id, depth)
    for argument in parameters(function):
        if argument.arg == name.id:
            yield _annotated(syntax, argument.annotation)


def _values_from(syntax: Syntax, node: ast.AST, name: str, depth: int) -> Iterator[ast.AST | None]:
    """Yield the values that one statement, loop or expression gives a name."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _matched(target, node.value, name)
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == name:
        yield from (_annotated(syntax, node.annotation), node.value)
    elif isinstance(node, ast.NamedExpr) and node.target.id == name:
        yield node.value
    elif isinstance(node, ast.For | ast.comprehension) and _is_item(syntax, node, name, depth):
        yield _A_SET


def _is_item(syntax: Syntax, loop: ast.For | ast.comprehension, name: str, depth: int) -> bool:
    """Tell whether a loop gives a name the sets that `items()` or `values()` of a dict yield."""
    call, target = loop.iter, loop.target
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.args:
        return False
    if call.func.attr == "items" and isinstance(target, ast.Tuple) and len(target.elts) == 2:
        target = target.elts[1]
    elif call.func.attr != "values":
        return False
    named = isinstance(target, ast.Name) and target.id == name
    return named and _holds_sets(syntax, call.func.value, depth + 1)


def _matched(target: ast.expr, value: ast.expr, name: str) -> Iterator[ast.expr]:
    """Yield the value that a name gets in `a, b = set(), set()`."""
    if isinstance(target, ast.Name) and target.id == name:
        yield value
    elif isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List):
        for inner, given in zip(target.elts, value.elts, strict=False):
            yield from _matched(inner, given, name)


def _attribute_values(syntax: Syntax, attribute: str) -> Iterator[ast.AST | None]:
    """Yield the values of an attribute: by assignment, as the field of a class, by a property."""
    for node in syntax.nodes:
        if isinstance(node, ast.Assign):
            if any(_is_attribute(syntax, target, attribute) for target in node.targets):
                yield node.value
        elif isinstance(node, ast.AnnAssign) and _is_attribute(syntax, node.target, attribute):
            yield from (_annotated(syntax, node.annotation), node.value)
    for function in _functions(syntax, attribute):
        if any(syntax.name(d).rpartition(".")[2] in _PROPERTIES for d in function.decorator_list):
            yield _annotated(syntax, function.returns)
            yield from (n.value for n in ast.walk(function) if isinstance(n, ast.Return))


def _is_attribute(syntax: Syntax, target: ast.expr, attribute: str) -> bool:
    if isinstance(target, ast.Attribute):
        return target.attr == attribute
    in_class = isinstance(syntax.parent(syntax.parent(target) or target), ast.ClassDef)
    return isinstance(target, ast.Name) and target.id == attribute and in_class


def _annotated(syntax: Syntax, annotation: ast.expr | None) -> ast.expr | None:
    """Return a stand-in for a value whose annotation says that it is a set or holds sets; else None."""
    if _says_set(syntax, annotation):
        return _A_SET
    inner = annotation.slice if isinstance(annotation, ast.Subscript) else None
    last = inner.elts[-1] if isinstance(inner, ast.Tuple) and inner.elts else inner
    return _SETS_INSIDE if _says_set(syntax, last) else None


def _says_set(syntax: Syntax, annotation: ast.expr | None) -> bool:
    text = "" if annotation is None else syntax.source(annotation).strip("\"'")
    return text.partition("[")[0].rpartition(".")[2].strip() in _ANNOTATIONS


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
    """Propose a change wherever the order of a set is used."""
    for node in region.nodes():
        for taken in _taken(region.syntax, node):
            if is_set(region.syntax, taken) and not _does_not_matter(region.syntax, node):
                yield from _ordered(region, taken)
        if isinstance(node, ast.Call) and _pops_set(region.syntax, node):
            yield Refusal("`pop` of a set takes any element: name the one that you want", node.lineno)


def _ordered(region: CodeRegion, taken: ast.expr) -> Iterator[Change | Refusal]:
    if region.cause != Cause.ID_ORDER:
        yield _sorted(region, taken)
        return
    change = _insertion_order(region, taken) or _named(region, taken)
    yield change or Refusal("objects without an order of their own: keep them in a list", taken.lineno)


def _sorted(region: CodeRegion, taken: ast.expr) -> Change:
    """Put `sorted(...)` around a set, or replace the `list` around it."""
    why = "sort the set, whose order depends on hashes"
    above = region.syntax.parent(taken)
    alone = isinstance(above, ast.Call) and above.args == [taken] and not above.keywords
    if alone and isinstance(above, ast.Call) and region.syntax.name(above.func) == "builtins.list":
        return region.replace(above.func, "sorted", why)
    return region.wrap(taken, "sorted(", ")", why)


def _insertion_order(region: CodeRegion, node: ast.expr) -> Change | None:
    """Replace an expression that makes a set by `dict.fromkeys(...)`: each element once, in order."""
    why = "keep each element once, in the order of insertion, not of addresses"
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
    """Turn a named set into a dict, if all its uses work with a dict."""
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
    why = f"keep the elements of {node.id} in the order of insertion, not of addresses"
    return Change(tuple(edits), why, node.lineno) if edits else None


def _within(syntax: Syntax, node: ast.AST, function: ast.AST | None) -> bool:
    return function is not None and any(above is function for above in syntax.ancestors(node))


def _value_given(syntax: Syntax, use: ast.Name) -> ast.expr | None:
    """Return the value that is assigned to a name, or united with it in place."""
    above = syntax.parent(use)
    if isinstance(above, ast.Assign) and use in above.targets:
        return above.value
    if isinstance(above, ast.AugAssign) and above.target is use and isinstance(above.op, ast.BitOr):
        return above.value
    return None


def _works_with_dict(syntax: Syntax, use: ast.Name, edits: list[Edit]) -> bool:
    """Tell whether a use of a set works with a dict; `.add(x)` becomes the assignment of an item."""
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
    """Yield the expressions whose order a node uses."""
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
    """Tell whether elements with equal keys keep the order of the set, as in `sorted(x, key=len)`."""
    if syntax.name(call.func) not in _KEYED or len(call.args) != 1:
        return False
    keys = [keyword.value for keyword in call.keywords if keyword.arg == "key"]
    return any(not _holds_element(syntax, key) for key in keys)


def _holds_element(syntax: Syntax, key: ast.expr) -> bool:
    """Tell whether a key contains the whole element, so that no two keys are equal."""
    if not isinstance(key, ast.Lambda):
        return syntax.name(key) in _WHOLE_KEYS or (isinstance(key, ast.Constant) and key.value is None)
    names = {argument.arg for argument in key.args.args}
    parts = key.body.elts if isinstance(key.body, ast.Tuple) else [key.body]
    return any(isinstance(part, ast.Name) and part.id in names for part in parts)


def _does_not_matter(syntax: Syntax, node: ast.AST) -> bool:
    """Tell whether the result is itself sorted, put into a set, or only counted."""
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


RULES: Mapping[PatchRule, Rule] = {
    PatchRule.SORT_SETS: iterated_sets,
}
