"""A mismatch in English."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits.replay_guard.mismatch import MismatchKind

if TYPE_CHECKING:
    from samebits.recording.distance import Difference
    from samebits.recording.replay_results import Unrepeated
    from samebits.replay_guard.mismatch import Mismatch

_MOST_NAMED = 3
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")


def described(mismatch: Mismatch) -> str:
    """Return what was found, what differs, and what to do."""
    parts = [
        _headline(mismatch),
        _tensors(mismatch),
        _generators(mismatch),
        _ops(mismatch),
        _history(mismatch),
    ]
    return " ".join([*filter(None, parts), _advice(mismatch)])


def rank_words(ranks: tuple[int, ...]) -> str:
    """Return `rank 3`, `ranks 0 and 1`."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    return f"ranks {', '.join(map(str, ranks[:-1]))} and {ranks[-1]}"


def _headline(mismatch: Mismatch) -> str:
    where = f" on {mismatch.device}" if mismatch.device and not mismatch.across_ranks else ""
    return f"step {mismatch.step}, {rank_words(mismatch.ranks)}{where}: {_finding(mismatch)}."


def _finding(mismatch: Mismatch) -> str:
    number = len(mismatch.executions)
    if mismatch.kind == MismatchKind.DIVERGED:
        return "the parameters differ between ranks before the step begins"
    if mismatch.across_ranks:
        return _among_ranks(mismatch, number)
    if mismatch.kind == MismatchKind.TRANSIENT and mismatch.odd is not None:
        verb = f"raised {mismatch.error}" if mismatch.error and mismatch.odd != 1 else "gave other bits"
        which = _ORDINALS[mismatch.odd - 1]
        what = f"of {number} executions of the same step, only the {which} {verb} (transient)"
        return f"{what}; {_used(mismatch.odd)}"
    if mismatch.kind == MismatchKind.PERSISTENT:
        return (
            f"{number} executions of the step did not agree, while all other ranks repeat theirs (persistent)"
        )
    return f"{number} executions of the same step gave other bits again and again (nondeterministic)"


def _used(odd: int) -> str:
    if odd == 1:
        return "it is the one whose results the training uses"
    return "the results that the training uses are those of the others"


def _among_ranks(mismatch: Mismatch, number: int) -> str:
    if mismatch.kind == MismatchKind.NONDETERMINISTIC:
        return f"the same step, executed twice on each of {number} ranks, does not repeat (nondeterministic)"
    if len(mismatch.ranks) == number:
        return (
            f"the same step gave different bits on {number} ranks, and each repeats its own (persistent); "
            "which of them is wrong cannot be told"
        )
    what = (
        "once, and the right ones the second time (transient)"
        if (mismatch.kind == MismatchKind.TRANSIENT)
        else "twice (persistent)"
    )
    return f"the same step, executed on {number} ranks, gave other bits there {what}"


def _tensors(mismatch: Mismatch) -> str:
    if not mismatch.n_tensors:
        return ""
    shown = [f"{each.name}{_distance(each.difference)}" for each in mismatch.tensors[:_MOST_NAMED]]
    more = mismatch.n_tensors - len(shown)
    return f"Different: {', '.join(shown)}{f' and {more} more' if more else ''}."


def _distance(difference: Difference | None) -> str:
    if difference is None or not difference.elements:
        return ""
    text = f" ({difference.elements} of {difference.total} elements"
    if difference.max_abs is not None:
        text += f", by up to {difference.max_abs:.3g}"
    if difference.max_ulp is not None:
        text += f", {difference.max_ulp} ULP"
    return f"{text})"


def _generators(mismatch: Mismatch) -> str:
    if not mismatch.generators:
        return ""
    return f"The executions drew differently from {', '.join(mismatch.generators[:_MOST_NAMED])}."


def _ops(mismatch: Mismatch) -> str:
    shown = [_op(each) for each in mismatch.ops[:_MOST_NAMED]]
    if not shown:
        return ""
    return f"Executed again on the same inputs, {', '.join(shown)} gave other bits."


def _op(op: Unrepeated) -> str:
    site = op.forward_site or op.site
    at = f" at {site.file}:{site.line}" if site is not None else ""
    return f"{op.op.removesuffix('.default')}{at} ({op.differing} of {op.repetitions} times)"


def _history(mismatch: Mismatch) -> str:
    if not mismatch.earlier:
        return ""
    times = "once" if mismatch.earlier == 1 else f"{mismatch.earlier} times"
    return f"This guard found mismatches there {times} before."


def _advice(mismatch: Mismatch) -> str:
    if len(set(mismatch.devices)) > 1 and mismatch.across_ranks:
        shown = ", ".join(dict.fromkeys(mismatch.devices))
        return (
            f"The ranks run on unlike devices ({shown}), whose kernels may give other bits without a fault."
        )
    if mismatch.kind == MismatchKind.DIVERGED:
        return (
            "Something went wrong in an earlier step of the optimizer, in a collective or in memory: resume "
            "from an earlier checkpoint."
        )
    if mismatch.kind == MismatchKind.NONDETERMINISTIC:
        return _advice_on_nondeterminism(mismatch)
    if mismatch.kind == MismatchKind.PERSISTENT:
        return (
            "Take that device out of the run and test it; resume from a checkpoint that is older than its "
            "first mismatch."
        )
    if mismatch.earlier:
        return (
            "Either this device fails now and then, or an op is rarely nondeterministic: that shows on all "
            "ranks, and goes away with `samebits.deterministic()`."
        )
    wrong = (
        "Compute the step again before the optimizer acts. "
        if mismatch.odd == 1 and not mismatch.across_ranks
        else ""
    )
    return f"{wrong}If it comes again on this device, test the device."


def _advice_on_nondeterminism(mismatch: Mismatch) -> str:
    if mismatch.ops:
        return "That is a property of the op, not a fault: use `samebits.deterministic()`, or another op."
    seen = (
        "No single op was seen to differ" if mismatch.ops_checked else "The ops could not be tried one by one"
    )
    return (
        f"{seen}. Usual reasons: the step takes data from an iterator, reads a clock "
        "or os.urandom, or depends on a variable that samebits cannot put back. Pass the batch as an "
        "argument; `samebits verify` finds the line."
    )
