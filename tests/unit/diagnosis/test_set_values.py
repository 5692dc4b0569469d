"""Sets shown by the text of a file: made, annotated, stored in something, passed on."""

from __future__ import annotations

import textwrap

import pytest
from patch_support import patched, project, proposal

# What is before the line, the line, and the line as it is patched.
CASES = {
    "field of a dataclass": (
        """
        from dataclasses import dataclass, field
        @dataclass
        class Vocabulary:
            names: "set[str]" = field(default_factory=set)
            def table(self):
        """,
        "        return list(self.names)",
        "        return sorted(self.names)",
    ),
    "attribute with an annotation": (
        """
        class Vocabulary:
            def __init__(self):
                self.names: set[str] = read()
            def table(self):
        """,
        "        return list(self.names)",
        "        return sorted(self.names)",
    ),
    "item of a defaultdict": (
        """
        from collections import defaultdict
        graph = defaultdict(set)
        """,
        "edges = [v for v in graph['a']]",
        "edges = [v for v in sorted(graph['a'])]",
    ),
    "values of a dict": (
        """
        graph: dict[str, set[str]] = load()
        for u, vs in graph.items():
        """,
        "    edges += [(u, v) for v in vs]",
        "    edges += [(u, v) for v in sorted(vs)]",
    ),
    "item with a default": (
        "by_user = {}\nby_user = {u: {1} for u in users}\n",
        "for item in by_user.get(u, ()): use(item)",
        "for item in sorted(by_user.get(u, ())): use(item)",
    ),
    "one of two splits": (
        "splits = [set(a), set(b)]\n",
        "for name in splits[0]: use(name)",
        "for name in sorted(splits[0]): use(name)",
    ),
    "result of a method": (
        """
        class Data:
            def labels(self):
                return {row.label for row in self.rows}
        """,
        "ids = {l: i for i, l in enumerate(data.labels())}",
        "ids = {l: i for i, l in enumerate(sorted(data.labels()))}",
    ),
    "property": (
        """
        from functools import cached_property
        class Data:
            @cached_property
            def labels(self):
                return set(self.rows)
        """,
        "ids = {l: i for i, l in enumerate(data.labels)}",
        "ids = {l: i for i, l in enumerate(sorted(data.labels))}",
    ),
    "generator that hands it on": (
        "def words(text):\n    found = set(text)\n",
        "    yield from found",
        "    yield from sorted(found)",
    ),
    "sorted by a key that several share": (
        "",
        "words = sorted(set(text), key=len)",
        "words = sorted(sorted(set(text)), key=len)",
    ),
    "best by a key that several share": (
        "",
        "best = max(set(text), key=counts.get)",
        "best = max(sorted(set(text)), key=counts.get)",
    ),
}
SAME = [
    "words = sorted(set(text), key=lambda w: (len(w), w))",
    "words = sorted(set(text), key=str)",
    "words = sorted(set(text), key=None)",
    "words = max(set(text))",
    "for x in graph['a']: use(x)",
]


@pytest.mark.parametrize("case", CASES)
def test_its_order_is_fixed(case):
    before, line, after = CASES[case]
    text = textwrap.dedent(before).lstrip("\n")
    assert f"\n{after}  # <-\n" in "\n" + patched("hash-order", f"{text}{line}  # <-\n")


@pytest.mark.parametrize("line", SAME)
def test_what_does_not_depend_on_its_order_stays(line):
    text = f"from collections import defaultdict\ngraph = defaultdict(list)\n{line}  # <-\n"
    assert patched("hash-order", text) == text


def test_references_to_objects_are_told_of():
    """There is no change that is sure, but the line is named."""
    text = "import weakref\nhooks = weakref.WeakSet()\nfor hook in hooks:  # <-\n    hook()\n"
    (refusal,) = proposal("id-order", project(main=text)).refusals
    assert "objects without an order" in str(refusal)
