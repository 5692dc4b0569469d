"""Counts of what was executed again, what was not, and what did not repeat."""

from __future__ import annotations

import dataclasses
import threading
from typing import TYPE_CHECKING, Any

from samebits.recording.replay import ReplaySummary, Skipped, Unrepeated

if TYPE_CHECKING:
    from collections.abc import Callable

    from samebits.hooks.frames import Site
    from samebits.recording.distance import Difference

_MOST_MEASURED = 16  # differing calls of one op at one line whose elements are compared


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    """An op at a line.

    Args:
        op: its name.
        module: path of the module, empty outside modules.
        site: line of user code.
        forward_site: for a backward op, the line whose forward made it.
    """

    op: str
    module: str
    site: Site | None
    forward_site: Site | None


@dataclasses.dataclass(frozen=True, slots=True)
class Deviation:
    """What differed when a call was executed again.

    Args:
        differing: how many of the repetitions did.
        inputs: descriptions of the inputs.
        outputs: of the results that differed.
        device: type of the device.
        only_generator: only the state of the generator did.
        measure: compares the elements; costly.
    """

    differing: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    device: str
    only_generator: bool
    measure: Callable[[], Difference | None]


class Tally:
    """Counts calls, in all threads.

    Args:
        times: how often each call is executed again.
    """

    def __init__(self, times: int) -> None:
        self._times = times
        self._lock = threading.Lock()
        self._calls: dict[Place, int] = {}
        self._steps: set[int] = set()
        self._skipped: dict[tuple[str, str], int] = {}
        self._found: dict[Place, dict[str, Any]] = {}

    def skip(self, reason: str, op: str) -> None:
        """Count a call that was not executed again."""
        with self._lock:
            self._skipped[reason, op] = self._skipped.get((reason, op), 0) + 1

    def count(self, place: Place, step: int) -> None:
        """Count a call that was."""
        with self._lock:
            self._calls[place] = self._calls.get(place, 0) + 1
            self._steps.add(step)

    def differs(self, place: Place, step: int, deviation: Deviation) -> None:
        """Count what differed in a call that was counted."""
        with self._lock:
            found = self._found.setdefault(
                place,
                {
                    "step": step, "differing": 0, "measured": 0, "inputs": deviation.inputs,
                    "outputs": deviation.outputs, "device": deviation.device, "difference": None,
                    "only_generator": True,
                },
            )  # fmt: skip
            found["differing"] += deviation.differing
            found["only_generator"] &= deviation.only_generator
            found["measured"] += 1
            if found["measured"] <= _MOST_MEASURED:
                found["difference"] = _larger(found["difference"], deviation.measure())

    def summary(self) -> ReplaySummary:
        """All of it."""
        with self._lock:
            unrepeated = []
            for place, found in self._found.items():
                calls, fields = self._calls.get(place, 0), {**found}
                del fields["measured"]
                unrepeated.append(
                    Unrepeated(
                        place.op, place.module, place.site, place.forward_site,
                        calls=calls, repetitions=calls * self._times, **fields,
                    )
                )  # fmt: skip
            skipped = [Skipped(reason, op, calls) for (reason, op), calls in self._skipped.items()]
            skipped.sort(key=lambda item: (-item.calls, item.reason, item.op))
            return ReplaySummary(
                times=self._times,
                calls=sum(self._calls.values()),
                ops=len({place.op for place in self._calls}),
                steps=len(self._steps),
                unrepeated=tuple(unrepeated),
                skipped=tuple(skipped),
            )


def _larger(a: Difference | None, b: Difference | None) -> Difference | None:
    if a is None or b is None:
        return a or b
    return max(a, b, key=lambda found: (found.max_ulp or 0, found.elements))
