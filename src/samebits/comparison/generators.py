"""What the states of the random number generators and the calls that seed them tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits.comparison.evidence import Evidence, EvidenceCode
from samebits.recording.events import EARLIER

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from samebits.comparison.steps import Step
    from samebits.recording.events import Event

_KEPT = 1000


def seeds_source(event: Event, source: str) -> bool:
    """Whether a `seed` event seeds an RNG source (`torch`, `cuda:0`, `numpy`, `python`)."""
    call = event.arguments
    if source == "python":
        return call.startswith("random.")
    if source == "numpy":
        return call.startswith(("numpy.", "np."))
    on_cuda = call.startswith("torch.cuda")
    return on_cuda if source.startswith("cuda") and on_cuda else call.startswith("torch.") and not on_cuda


def seeding(source: str, a: Iterable[Event], b: Iterable[Event]) -> Evidence:
    """How each run seeded a source."""
    calls = [_calls_of(source, events) for events in (a, b)]
    texts = [[event.arguments for event in events] for events in calls]
    if not any(texts):
        return Evidence.of(EvidenceCode.NEVER_SEEDED)
    if texts[0] == texts[1]:
        last = calls[0][-1]
        if _is_unknown(last):
            return Evidence.of(EvidenceCode.NOT_SEEDED_LATER)
        return Evidence.of(EvidenceCode.SEEDED_ALIKE, last.arguments, last.site)
    if not all(texts):
        only = next(events[-1] for events in calls if events)
        return Evidence.of(EvidenceCode.SEEDED_BY_ONE, only.arguments, only.site)
    first, second = next(
        ((x, y) for x, y in zip(*calls, strict=False) if x.arguments != y.arguments),
        (calls[0][-1], calls[1][-1]),
    )
    if first.arguments == second.arguments:
        return Evidence.of(EvidenceCode.SEEDED_OTHER_TIMES, len(calls[0]), len(calls[1]))
    return Evidence.of(EvidenceCode.SEEDED_DIFFERENTLY, first.arguments, second.arguments, first.site)


def _is_unknown(call: Event) -> bool:
    """Whether it only says that a generator may have been seeded before recording began."""
    return call.arguments.endswith(EARLIER) and "->" not in call.arguments


def _calls_of(source: str, events: Iterable[Event]) -> list[Event]:
    """The calls that seeded a source."""
    return [event for event in events if seeds_source(event, source)]


class GeneratorLog:
    """Follows the generators of two runs, step by step."""

    def __init__(self) -> None:
        self.first_difference: dict[str, int] = {}
        self.seeds: tuple[list[Event], list[Event]] = ([], [])
        self._seeded_then: dict[str, tuple[Evidence, bool]] = {}
        self._before: dict[str, bytes] = {}
        self._drawn: dict[str, int] = {}

    def add(self, a: Step, b: Step) -> None:
        """Take in the next step of both runs."""
        for log, step in zip(self.seeds, (a, b), strict=True):
            log.extend(step.seeds[: max(0, _KEPT - len(log))])
        for source, state in a.generators.items():
            seeded = any(seeds_source(event, source) for event in a.seeds)
            if source in a.drawn or (not seeded and self._before.get(source, state) != state):
                self._drawn.setdefault(source, a.last)
            differs = source in b.generators and state != b.generators[source]
            if differs and source not in self.first_difference:
                self.first_difference[source] = a.last
                self._seeded_then[source] = self._seeding(source)
        self._before.update(a.generators)

    def lines(self, *, used_only: bool = False, used: Collection[str] = ()) -> list[Evidence]:
        """One for each generator whose state differed.

        Args:
            used_only: leave out those that nothing is known to have used: Python and NumPy seed their own
                from the operating system in every run.
            used: sources that were used, as is known from elsewhere.
        """
        return [
            self._line(source, step)
            for source, step in sorted(self.first_difference.items())
            if not used_only or source in used or source in self._drawn or self._seeded(source)
        ]

    def _line(self, source: str, step: int) -> Evidence:
        used = self._drawn.get(source)
        return Evidence.of(EvidenceCode.GENERATOR_STATE, source, step, used, *self._seeded_then[source])

    def _seeding(self, source: str) -> tuple[Evidence, bool]:
        """How it was seeded so far, and whether, as that was the same in both runs, it moved after it."""
        first, second = (_calls_of(source, log) for log in self.seeds)
        alike = [event.arguments for event in first] == [event.arguments for event in second]
        return seeding(source, *self.seeds), bool(first) and alike and not _is_unknown(first[-1])

    def _seeded(self, source: str) -> bool:
        return any(seeds_source(event, source) for log in self.seeds for event in log)
