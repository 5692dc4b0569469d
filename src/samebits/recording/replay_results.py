"""The results of executing the ops of a run again: frozen values, as text in the record."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

from samebits._runtime.frames import Site
from samebits._text.str_enum import StrEnum
from samebits.recording.distance import Difference


@dataclasses.dataclass(frozen=True, slots=True)
class Unrepeated:
    """An op at a line that gave other bits for the same inputs and generator states.

    Args:
        op: `aten::index_add_.default`.
        module: path of the module, empty outside modules.
        site: line of user code.
        forward_site: for a backward op, the line whose forward made it.
        step: first step in which it did.
        calls: how often the script called it there.
        repetitions: how often it was executed again for those calls.
        differing: how many of these gave other bits.
        inputs: descriptions such as `f32[4, 3]`.
        outputs: the same of the results of that call that differed first.
        device: type of the device of the first result, such as `cuda`.
        only_generator: the results were the same, but it left its generator in another state.
        difference: how far the results of a call were apart at most; None where that cannot be told.
    """

    op: str
    module: str
    site: Site | None
    forward_site: Site | None
    step: int
    calls: int
    repetitions: int
    differing: int
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    device: str = "cpu"
    only_generator: bool = False
    difference: Difference | None = None


class SkipReason(StrEnum):
    """Why an op is not executed again. A record stores the value, so a value never changes its meaning."""

    VIEW = "view"
    UNINITIALIZED = "uninitialised memory"
    NO_RESULT = "no tensor result"
    PROFILER = "range of the profiler"
    SIDE_EFFECT = "side effect outside tensors"
    COMPILED = "operator that runs other operators"
    OBJECT = "an argument that is no plain value"
    SUBCLASS = "tensor without memory of its own"
    CAPTURING = "CUDA graph capture"
    GENERATOR = "generator that cannot be put back"
    UNDECLARED = "writes to an argument without saying so"
    UNREADABLE = "result that cannot be read"
    NEGATED = "it writes to memory that is read with its sign changed"
    FAILED = "error when executed again"


_FAILED = re.compile(rf"{SkipReason.FAILED} \((.*)\)", re.DOTALL)


@dataclasses.dataclass(frozen=True, slots=True)
class Skipped:
    """An op that was not executed again.

    Args:
        reason: why; text that no member has comes from another version of samebits.
        op: `aten::empty.memory_format`.
        calls: how often.
        error: the class of the error, if the reason is `FAILED`.
    """

    reason: SkipReason | str
    op: str
    calls: int
    error: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return a dict that JSON can hold."""
        reason = f"{self.reason} ({self.error})" if self.error else str(self.reason)
        return {"reason": reason, "op": self.op, "calls": self.calls}

    @classmethod
    def from_dict(cls, item: dict[str, Any]) -> Skipped:
        """Read what `to_dict` gave.

        Raises:
            KeyError, TypeError, ValueError: it is something else.
        """
        text, op, calls = _text(item["reason"]), _text(item["op"]), _count(item["calls"])
        failed = _FAILED.fullmatch(text)
        if failed:
            return cls(SkipReason.FAILED, op, calls, failed[1])
        return cls(SkipReason(text) if text in _SKIP_REASONS else text, op, calls)


_SKIP_REASONS = frozenset(reason.value for reason in SkipReason)


@dataclasses.dataclass(frozen=True, slots=True)
class ReplaySummary:
    """The results of executing the ops of a run again.

    Args:
        times: how often each was executed again.
        calls: how many calls of ops were executed again.
        ops: how many different ops were called.
        steps: in how many steps.
        unrepeated: those that gave other bits, in the order in which they first did.
        skipped: those that were not executed again, the most frequent first.
    """

    times: int
    calls: int
    ops: int
    steps: int
    unrepeated: tuple[Unrepeated, ...] = ()
    skipped: tuple[Skipped, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return a dict that JSON can hold."""
        return {**dataclasses.asdict(self), "skipped": [item.to_dict() for item in self.skipped]}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> ReplaySummary | None:
        """Read what `to_dict` gave; None for anything else, since a record is not trusted."""
        try:
            return cls(
                times=_count(fields["times"]),
                calls=_count(fields["calls"]),
                ops=_count(fields["ops"]),
                steps=_count(fields["steps"]),
                unrepeated=tuple(_unrepeated(item) for item in fields["unrepeated"]),
                skipped=tuple(map(Skipped.from_dict, fields["skipped"])),
            )
        except (KeyError, TypeError, ValueError, AttributeError):
            return None


def _unrepeated(item: dict[str, Any]) -> Unrepeated:
    return Unrepeated(
        op=_text(item["op"]),
        module=_text(item["module"]),
        site=_site(item["site"]),
        forward_site=_site(item["forward_site"]),
        step=_count(item["step"]),
        calls=_count(item["calls"]),
        repetitions=_count(item["repetitions"]),
        differing=_count(item["differing"]),
        inputs=tuple(_text(text) for text in item["inputs"]),
        outputs=tuple(_text(text) for text in item["outputs"]),
        device=_text(item["device"]),
        only_generator=item["only_generator"] is True,
        difference=_difference(item["difference"]),
    )


def _site(item: dict[str, Any] | None) -> Site | None:
    if item is None:
        return None
    return Site(_text(item["file"]), _count(item["line"]), _text(item["function"]))


def _difference(item: dict[str, Any] | None) -> Difference | None:
    if item is None:
        return None
    ulp, apart = item["max_ulp"], item["max_abs"]
    return Difference(
        elements=_count(item["elements"]),
        total=_count(item["total"]),
        max_ulp=None if ulp is None else _count(ulp),
        max_abs=None if apart is None else float(apart),
    )


def _count(value: object) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(value)
    return value


def _text(value: object) -> str:
    if type(value) is not str:
        raise TypeError(value)
    return value
