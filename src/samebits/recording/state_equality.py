"""Comparison of two lists of state tensors by value, and by name where names mean something.

Some names follow the order in which things appeared or live: `Linear#2`, or `Adam.0.1` for a tensor that no
module holds. They may differ in a second run that computes the same: optimizers may be stepped in the order
of a set, models may be dead but not collected yet.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from samebits.records.kinds import Role

NUMBER = re.compile(r"#\d+")
_HELD = re.compile(r"[^.]+\.\d+\.\d+(#\d+)?(\.|$)")  # class of the optimizer, group, position

Name: TypeAlias = "tuple[Role, str]"
"""Role and name of a tensor."""


class Value(NamedTuple):
    """The contents, dtype and shape of a tensor in a record.

    Args:
        digest: of its contents.
        dtype: its dtype.
        shape: its sizes.
    """

    digest: bytes
    dtype: str
    shape: tuple[int, ...]


Tensors: TypeAlias = "Mapping[Name, Value]"


@dataclass(frozen=True)
class Match:
    """The correspondence between two lists of tensors.

    Args:
        differing: the names, in the first list and in the second, of tensors that correspond and differ.
        only_first: tensors of the first list without a counterpart.
        only_second: those of the second list.
        moved: how many tensors have the same values under another name.
        unchanged: how many tensors without a counterpart are as they were a step before: they were compared
            when they got their values.
    """

    differing: tuple[tuple[Name, Name], ...] = ()
    only_first: tuple[Name, ...] = ()
    only_second: tuple[Name, ...] = ()
    moved: int = 0
    unchanged: int = 0


def plain(name: str) -> str:
    """Return a name without what follows from the order in which things appeared."""
    held = _HELD.match(name)
    rest = NUMBER.sub("", name if held is None else name[held.end() :])
    return rest if held is None else f"{name.partition('.')[0]}.{rest}"


def match(a: Tensors, b: Tensors, before: tuple[Tensors, Tensors] = ({}, {})) -> Match:
    """Find which tensors of two states correspond: by name, and by contents where the name is chance.

    Args:
        a: one state.
        b: the other.
        before: the states of both runs a step before. A model that is dead but not collected keeps its
            values, and how many of them live is chance.
    """
    ours = [name for name in a if name not in b or a[name].digest != b[name].digest]
    theirs = [name for name in b if name not in a or a[name].digest != b[name].digest]
    if not (ours or theirs):
        return Match()
    by_chance = _by_chance(a, b)
    families = (
        _families((name, a[name]) for name in ours if by_chance(name)),
        _families((name, b[name]) for name in theirs if by_chance(name)),
    )
    same: tuple[set[Name], set[Name]] = (set(), set())
    for family in families[0].keys() & families[1].keys():
        _add_same(families[0][family], families[1][family], a, b, same)
    rest = [name for name in ours if name not in same[0]], [name for name in theirs if name not in same[1]]
    changed = [
        [name for name in names if not (by_chance(name) and (name[0], *values[name]) in known)]
        for names, values, known in zip(rest, (a, b), map(_contents, before), strict=True)
    ]
    n_unchanged = sum(map(len, rest)) - sum(map(len, changed))
    differing, only_first, only_second = _paired((changed[0], changed[1]), a, b)
    return Match(differing, only_first, only_second, len(same[0]), n_unchanged)


def _contents(state: Tensors) -> set[tuple[object, ...]]:
    return {(role, *value) for (role, _), value in state.items()}


class _ByChance:
    """Tells whether the name of a tensor follows from the order in which things appeared.

    Where one state has names that the other lacks, any may: the number of living models decides each name.
    """

    def __init__(self, numbered: set[str], *, everything: bool) -> None:
        self._numbered = numbered
        self._everything = everything

    def __call__(self, name: Name) -> bool:
        plain = NUMBER.sub("", name[1])
        return self._everything or plain in self._numbered or _HELD.match(name[1]) is not None


def _by_chance(a: Tensors, b: Tensors) -> _ByChance:
    numbered = {NUMBER.sub("", name) for _, name in (*a, *b) if "#" in name}
    return _ByChance(numbered, everything=a.keys() != b.keys())


_Family: TypeAlias = "tuple[Role, str, str, tuple[int, ...]]"


def _family(name: Name, value: Value) -> _Family:
    """Return what corresponding tensors have in common: role, last part of the name, dtype, shape."""
    last = NUMBER.sub("", name[1]).rpartition(".")[2]
    return name[0], "" if last.isdigit() else last, value.dtype, value.shape


def _families(tensors: Iterable[tuple[Name, Value]]) -> dict[_Family, list[Name]]:
    families: dict[_Family, list[Name]] = defaultdict(list)
    for name, value in tensors:
        families[_family(name, value)].append(name)
    return families


def _add_same(
    ours: list[Name],
    theirs: list[Name],
    a: Tensors,
    b: Tensors,
    same: tuple[set[Name], set[Name]],
) -> None:
    """Note tensors of one family that have the same contents in both states."""
    shared = Counter(a[name].digest for name in ours) & Counter(b[name].digest for name in theirs)
    for names, values, noted in ((ours, a, same[0]), (theirs, b, same[1])):
        left = Counter(shared)
        for name in names:
            if left[values[name].digest] > 0:
                left[values[name].digest] -= 1
                noted.add(name)


def _paired(
    rest: tuple[list[Name], list[Name]], a: Tensors, b: Tensors
) -> tuple[tuple[tuple[Name, Name], ...], tuple[Name, ...], tuple[Name, ...]]:
    """Pair differing tensors by name, else by family; return the pairs and those without a counterpart."""
    common = set(rest[0]) & set(rest[1])
    differing = [(name, name) for name in rest[0] if name in common]
    lone = [[name for name in names if name not in common] for names in rest]
    families = _families((name, a[name]) for name in lone[0]), _families((name, b[name]) for name in lone[1])
    for family in families[0]:
        differing += zip(families[0][family], families[1].get(family, ()), strict=False)
    firsts, seconds = {pair[0] for pair in differing}, {pair[1] for pair in differing}
    only_first, only_second = (
        tuple(name for name in names if name not in known)
        for names, known in ((lone[0], firsts), (lone[1], seconds))
    )
    return tuple(differing), only_first, only_second
