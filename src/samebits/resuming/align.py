"""At which step of the whole run a resumed one begins: by its parameters, not by its position."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from samebits.resuming.log import before_step, steps_before
from samebits.resuming.trained import is_optimizer_step, optimizer_steps, update

if TYPE_CHECKING:
    from pathlib import Path

    from samebits.comparison.sources import Record
    from samebits.resuming.log import Before, StateLogLines
    from samebits.resuming.trained import Digests

_SHORT = 8  # bytes of a digest in the state log


@dataclass(frozen=True)
class Start:
    """Where the resumed run begins.

    Args:
        step: number of the step of the whole run; None if its parameters are like those of none.
        missing: names of the parameters that are not as before that step.
        total: how many parameters the whole run has.
    """

    step: int | None
    missing: tuple[str, ...] = ()
    total: int = 0


@dataclass(frozen=True)
class WholeRun:
    """What is known of the run that was not killed.

    Args:
        record: path of its record.
        log: path of its state log.
        lines: of the log.
    """

    record: Path
    log: Path
    lines: StateLogLines


def find_start(whole: WholeRun, record: Record, first: Before, killed_after: int) -> Start:
    """The step of the whole run before which its parameters were those of the resumed run.

    Several steps may have the same parameters (a learning rate of 0 while warming up): then what else
    agrees decides, and last how near it is to the kill.

    Args:
        whole: the whole run.
        record: its record.
        first: the state before the first step of the resumed run.
        killed_after: steps that the killed run made.
    """
    own = (first.params, first.buffers, first.optimizer)
    keys = whole.lines.keys
    same = [step for step, key in enumerate(keys) if key[0] and key[0] == own[0]]
    names = tuple(name for role, name, _ in first.tensors if role == "param")
    if not same:
        nearest = _nearest(whole, record, first, killed_after, _by_optimizer(whole, first))
        if nearest.step is not None:
            return nearest
    if not same or max(same) == 0:
        beside = _by_the_rest(whole, first)  # perhaps all but the parameters is restored
        if beside or not same:
            return Start(beside, names, len(names))

    def rank(step: int) -> tuple[int, bool, int]:
        return (
            sum(a == b for a, b in zip(keys[step], own, strict=True)),
            step <= killed_after,
            -abs(step - killed_after),
        )

    return Start(max(same, key=rank), (), len(names))


def _by_optimizer(whole: WholeRun, first: Before) -> int | None:
    """The one step before which the optimizers' state was that; None if there is none."""
    found = [step for step, key in enumerate(whole.lines.keys) if key[2] and key[2] == first.optimizer]
    return found[0] if len(found) == 1 else None


def _by_the_rest(whole: WholeRun, first: Before) -> int | None:
    """The one step whose optimizer state, or else torch's generator, is that; None if there is none."""
    if first.optimizer:
        return _by_optimizer(whole, first)
    state = first.generators.get("torch")
    found = [before.step for before in steps_before(whole.log) if before.generators.get("torch") == state]
    return found[0] if len(found) == 1 else None


def _nearest(whole: WholeRun, record: Record, first: Before, killed_after: int, likely: int | None) -> Start:
    """The step with which the most parameters agree; none where only those agree that always do.

    Those that agree and are not as at the start come first: of a model beside another, such as the generator
    of a GAN, that was not restored, all are as at the start. At the likely step one that agrees is enough.
    """
    own = {(role, name): digest for role, name, digest in first.tensors if role == "param"}
    held = Counter(own.values())
    initial: dict[str, str] = {}
    best, least, most = Start(None), -1, (-1, -1)
    for step, digests in enumerate(_states(whole, record)):
        theirs = {name: digest[:_SHORT].hex() for (role, name), digest in digests.items() if role == "param"}
        initial = initial or theirs
        missing = [name for name, digest in theirs.items() if own.get(("param", name)) != digest]
        if missing and not Counter(theirs.values()) - held:
            missing = []  # all are there, under other names
        moved = sum(theirs[name] != initial.get(name) for name in theirs.keys() - missing)
        found = (moved, len(theirs) - len(missing))
        if step == likely and moved:
            return Start(step, tuple(missing), len(theirs))
        least = found[1] if least < 0 else min(least, found[1])
        if found > most or (found == most and step <= killed_after):
            best, most = Start(step, tuple(missing), len(theirs)), found
    if not best.missing and best.total:
        return best
    return best if most[0] > 0 or most[1] > max(least, 0) else Start(None, (), best.total)


def _states(whole: WholeRun, record: Record) -> list[Digests]:
    """The model's state before each step: as it was found before the first one, then as each step left it."""
    initial = before_step(whole.log, 0)
    digests: Digests = {}
    if initial is not None:
        digests = {(role, name): bytes.fromhex(digest) for role, name, digest in initial.tensors}
    found = [dict(digests)]
    for step in optimizer_steps(record):
        if is_optimizer_step(step):
            update(digests, step)
            found.append({key: value for key, value in digests.items() if key[0] == "param"})
    return found[:-1] or found


def state_before(whole: WholeRun, record: Record, number: int) -> dict[tuple[str, str], str]:
    """Each tensor of the whole run's state before a step: short digests by role and name."""
    initial = before_step(whole.log, 0)
    if number == 0:
        return {} if initial is None else {(role, name): digest for role, name, digest in initial.tensors}
    digests: Digests = {}
    passed = 0
    for step in optimizer_steps(record):
        if passed == number:
            break
        if is_optimizer_step(step):
            update(digests, step)
            passed += 1
    return {key: digest[:_SHORT].hex() for key, digest in digests.items()}
