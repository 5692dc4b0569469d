"""The facts that differ between two runs' environments and can change bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# Paths of facts that can change bits by themselves; of the tables, each entry is a fact.
_FACTS = (
    ("source", "commit"),
    ("source", "changed"),
    ("python", "version"),
    ("python", "implementation"),
    ("python", "hash_seed"),
    ("python", "optimize"),
    ("torch", "version"),
    ("torch", "git"),
    ("torch", "cuda"),
    ("torch", "cudnn"),
    ("torch", "mkl"),
    ("torch", "onednn"),
    ("torch", "openmp"),
    ("torch", "capability"),
    ("torch", "gpus"),
    ("machine", "architecture"),
    ("machine", "processor"),
    ("machine", "instructions"),
    ("machine", "libc"),
    ("machine", "gpu_driver"),
    ("libraries",),
)
_TABLES = (("torch", "threads"), ("torch", "switches"), ("variables",), ("packages",))
# The longer a run lasts, the more it has of these.
_COME_LATER = {("libraries",), ("packages",), ("variables",)}
_LONGEST_VALUE = 80
_MISSING = object()
TAKEN = "taken"  # a key in the facts of a run that was killed, which are from its start


@dataclass(frozen=True, slots=True)
class FactDifference:
    """A fact that is not the same in two environments.

    Args:
        path: of the fact, or of its table.
        first: its value in the first environment, as text; None where a table lacks it. Of lists, what only
            the first has.
        second: the same of the second.
        entry: its name in its table; None for a fact outside the tables.
        is_list: whether the values are lists.
    """

    path: tuple[str, ...]
    first: str | None
    second: str | None
    entry: str | None = None
    is_list: bool = False


def bit_relevant_differences(
    a: dict[str, Any], b: dict[str, Any], *, one_was_stopped: bool = False
) -> list[FactDifference]:
    """Return the facts that differ between two environments and can change bits.

    Args:
        a: facts of one run, from `Environment.to_dict`; a record from elsewhere may hold anything.
        b: facts of the other run.
        one_was_stopped: one run ended before its script did. What only the other imported, loaded or set came
            later there, or may have.
    """
    pairs: list[tuple[tuple[str, ...], str | None, Any, Any]] = [
        (path, None, _get(a, path), _get(b, path))
        for path in _FACTS
        if not (one_was_stopped and path in _COME_LATER)
    ]
    pairs = [pair for pair in pairs if None not in pair[2:]]  # unknown: a run killed early has few facts
    one_was_killed = (_get(a, (TAKEN,)) is None) != (_get(b, (TAKEN,)) is None)
    for path in _TABLES:
        if one_was_killed and path == ("variables",):
            continue  # the other's are from its end: its script may have set some itself
        first, second = _get(a, path), _get(b, path)
        if isinstance(first, dict) and isinstance(second, dict):
            both = one_was_stopped and path in _COME_LATER
            keys = sorted({*first} & {*second} if both else {*first, *second})
            pairs += [(path, key, first.get(key, _MISSING), second.get(key, _MISSING)) for key in keys]
    return [_difference(*pair) for pair in pairs if pair[2] != pair[3]]


def threads_per_op(facts: dict[str, Any]) -> int | None:
    """Return how many threads an op of torch could use on the CPU when facts were taken; None when unknown.

    Args:
        facts: of one run, from `Environment.to_dict`; a record from elsewhere may hold anything.
    """
    threads = _get(facts, ("torch", "threads", "intra-op"))
    return threads if isinstance(threads, int) else None


def _get(facts: object, path: tuple[str, ...]) -> Any:
    """Return the fact at a path, None where a record has none: its run may have been killed before."""
    for name in path:
        facts = facts.get(name) if isinstance(facts, dict) else None
    return facts


def _difference(path: tuple[str, ...], entry: str | None, first: object, second: object) -> FactDifference:
    entry = None if entry is None else _shorten(entry)
    if isinstance(first, list) and isinstance(second, list):
        only_first = _describe([item for item in first if item not in second])
        only_second = _describe([item for item in second if item not in first])
        return FactDifference(path, only_first, only_second, entry, is_list=True)
    texts = [None if value is _MISSING else _describe(value) for value in (first, second)]
    return FactDifference(path, texts[0], texts[1], entry)


def _describe(value: object) -> str:
    if isinstance(value, list):
        return _shorten(", ".join(map(_describe, value)))
    if isinstance(value, dict):
        return _shorten(" ".join(f"{key}={entry}" for key, entry in value.items()))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return _shorten(str(value)) or "none"


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_VALUE else f"{line[: _LONGEST_VALUE - 3]}..."
