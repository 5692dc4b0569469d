"""Facts that the program decides by are members of enumerations: none is compared to a bare string.

`EventKind.OP == "op"` is true, so that neither a type checker nor a run finds a string that was mistyped.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import samebits
from samebits.causes import OriginKind
from samebits.records.kinds import EventKind, Level, Role
from samebits.verification.results import Purpose

SOURCE = Path(samebits.__file__).parent
PACKAGES = ("cli", "commands", "comparison", "diagnosis", "recording", "records", "report", "verification")
FACTS = {
    "kind": EventKind,
    "kinds": EventKind,
    "role": Role,
    "roles": Role,
    "level": Level,
    "purpose": Purpose,
    "origin_kind": OriginKind,
}
HOLDERS = (ast.Constant, ast.Tuple, ast.List, ast.Set, ast.Dict, ast.Call, ast.pattern)
TAKERS = {"events": EventKind, "positions": Role, "descriptions": Role}
"""Functions that are given kinds or roles."""


def bare_strings(text: str) -> Iterator[tuple[int, str]]:
    """Each line that compares a fact to a string, or gives a string for one."""
    tree = ast.parse(text)
    constants = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
        elif isinstance(node, ast.Match):
            sides = [node.subject, *(case.pattern for case in node.cases)]
        elif isinstance(node, ast.Call) and _name(node.func) in TAKERS:
            members = {member.value for member in TAKERS[_name(node.func)]}
            yield from _given(node.args, members, constants)
            continue
        else:
            continue
        facts = {FACTS[_name(side)] for side in sides if _name(side) in FACTS}
        if any(isinstance(side, ast.Subscript) and ast.unparse(side.slice) == "0" for side in sides):
            facts |= {EventKind, Role}  # a key that begins with one
        yield from _given(sides, {member.value for fact in facts for member in fact} - {""}, constants)


def _given(
    sides: list[ast.AST], members: set[str], constants: dict[str, ast.expr]
) -> Iterator[tuple[int, str]]:
    for side in sides:
        held = constants.get(side.id, side) if isinstance(side, ast.Name) else side
        if not isinstance(held, HOLDERS):
            continue
        for node in ast.walk(held):
            if isinstance(node, ast.Constant) and node.value in members:
                yield getattr(side, "lineno", 0), str(node.value)


def _name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


@pytest.mark.parametrize("package", PACKAGES)
def test_no_fact_is_compared_to_a_bare_string(package):
    bare = [
        f"{path.relative_to(SOURCE)}:{line}: {text!r}"
        for path in sorted((SOURCE / package).rglob("*.py"))
        for line, text in bare_strings(path.read_text(encoding="utf-8"))
    ]
    assert bare == []


@pytest.mark.parametrize(
    "line",
    [
        'x = event.kind == "op"',
        'x = "op" != event.kind',
        'x = kind in ("op", "read")',
        'x = kind in {"op"}',
        'LISTED = ("op", "x")\ny = event.kind in LISTED',
        'LISTED = frozenset({"op", "x"})\ny = event.kind not in LISTED',
        'x = info.role == "param"',
        'x = key[0] == "read"',
        'x = run.purpose == "compare"',
        'x = request.level == "op"',
        'x = origin.origin_kind == "kernel"',
        'x = record.events(("step",))',
        'x = positions(event, "in")',
        'match event.kind:\n    case "op":\n        pass',
    ],
)
def test_each_way_to_compare_to_a_string_is_seen(line):
    assert list(bare_strings(line))


@pytest.mark.parametrize(
    "line",
    [
        "x = event.kind == EventKind.OP",
        'x = event.op == "read"',
        "x = kind in (EventKind.OP, EventKind.READ)",
        'x = token.kind == "word"',
        'x = positions(event, Role.IN), record.events((EventKind.STEP,)), words["in"]',
    ],
)
def test_what_is_no_such_comparison_is_left_alone(line):
    assert not list(bare_strings(line))
