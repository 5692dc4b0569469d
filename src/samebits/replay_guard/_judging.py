"""From the results of several executions to what they show: functions over plain values."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from samebits.replay_guard.mismatch import MismatchKind

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def letters(keys: Sequence[Hashable]) -> str:
    """Return a letter for each key, the same for equal ones; beyond the alphabet a question mark."""
    known: dict[Hashable, str] = {}
    for key in keys:
        known.setdefault(key, _LETTERS[len(known)] if len(known) < len(_LETTERS) else "?")
    return "".join(known[key] for key in keys)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the executions of one rank, or one execution of each rank, show.

    Args:
        kind: None where all agree.
        odd: the execution, from 1, that all others disagree with.
    """

    kind: MismatchKind | None
    odd: int | None = None


def judge_executions(keys: Sequence[Hashable]) -> Judgement:
    """Judge the executions of one step on one rank.

    One that stands alone against all others is transient if these are two or more and agree. Anything else
    does not repeat.

    Args:
        keys: what each execution gave, the first one's first.
    """
    counts = Counter(keys)
    if len(counts) == 1:
        return Judgement(None)
    (common, number), *_ = counts.most_common()
    if len(keys) > 2 and number == len(keys) - 1:
        odd = next(i for i, key in enumerate(keys, 1) if key != common)
        return Judgement(MismatchKind.TRANSIENT, odd)
    return Judgement(MismatchKind.NONDETERMINISTIC)


@dataclass(frozen=True, slots=True)
class RankJudgement:
    """What the same step shows on every rank.

    Args:
        kind: None where all agree.
        ranks: those that are wrong, or among which the wrong one is.
    """

    kind: MismatchKind | None
    ranks: tuple[int, ...] = ()


def judge_ranks(first: Sequence[Hashable], second: Sequence[Hashable]) -> RankJudgement:
    """Judge two executions of one step on every rank.

    A rank is wrong where more than half of the ranks agree on another value. Of two ranks that disagree it
    cannot be told which is wrong, unless one of them gives the other's value the second time.

    Args:
        first: what each rank gave.
        second: what each gave when it executed the step once more.
    """
    ranks = range(len(first))
    if len({*first, *second}) == 1:
        return RankJudgement(None)
    value, number = Counter((*first, *second)).most_common(1)[0]
    if number <= len(first):  # no value has more than half of the executions
        repeat = all(first[rank] == second[rank] for rank in ranks)
        unsure = tuple(rank for rank in ranks if first[rank] != second[rank]) or tuple(ranks)
        return RankJudgement(MismatchKind.PERSISTENT if repeat else MismatchKind.NONDETERMINISTIC, unsure)
    wrong = tuple(rank for rank in ranks if (first[rank], second[rank]) != (value, value))
    if len(wrong) > 1 and any(first[rank] != second[rank] for rank in wrong):
        return RankJudgement(MismatchKind.NONDETERMINISTIC, wrong)
    once = all(value in (first[rank], second[rank]) for rank in wrong)
    return RankJudgement(MismatchKind.TRANSIENT if once else MismatchKind.PERSISTENT, wrong)


def minority(values: Sequence[Hashable]) -> tuple[int, ...]:
    """Return the ranks whose value is not that of more than half of them; all where there is none."""
    value, number = Counter(values).most_common(1)[0]
    if 2 * number <= len(values):
        return tuple(range(len(values)))
    return tuple(rank for rank, own in enumerate(values) if own != value)
