"""Why two runs differ: the operation, all origins, the pins that take the difference away."""

from __future__ import annotations

import time
import traceback
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from samebits.causes import Cause, OriginKind, specification_of
from samebits.diagnosis.attribution import by_source
from samebits.diagnosis.candidates import words_of
from samebits.errors import SamebitsError
from samebits.recording.notes import Note, NoteCode
from samebits.verification.diagnose import Diagnosis, Terms
from samebits.verification.fix import LITTLE, Aim, Effort
from samebits.verification.further import Search, all_origins
from samebits.verification.interventions import Extent, Interventions, least_steps, parting_of, time_limit
from samebits.verification.kept import with_kept_values
from samebits.verification.localise import Localisation, localise, origins_of, with_origins
from samebits.verification.series import BudgetSpent
from samebits.verification.user_files import read_program

if TYPE_CHECKING:
    from collections.abc import Callable

    from samebits.comparison.results import Comparison, Origins, Source
    from samebits.diagnosis.attribution import Confirmation
    from samebits.diagnosis.search import InterventionSet
    from samebits.verification.fix_results import Fix
    from samebits.verification.series import Pair, Series
    from samebits.verification.tools import Tools

_SHORT_S = 20.0  # runs with pins go to the end of a script that takes no longer
_SPARE_STEPS = 3
_KEPT_RUNS, _KEPT_S = 6.0, 4.0  # so many first runs and seconds are kept for what the draw log suggests
_SOON_RUNS, _SOON_S = 3.0, 4.0  # after so many first runs and seconds, only pairs that are needed are made


class TryPatch(Protocol):
    """**Protocol:** runs a patch for some findings."""

    def __call__(self, aim: Aim, effort: Effort) -> Fix | None:
        """What runs with it showed; None if none could be made."""
        ...


class Without(Protocol):
    """**Protocol:** judges a pair again without memory that nothing wrote and nothing read."""

    def __call__(self, origins: Origins, pair: Pair, role: int) -> tuple[Comparison, Pair]:
        """The verdict without that memory, and the pair that it is about."""
        ...


@dataclass(frozen=True)
class Explanation:
    """What is known of a difference.

    Args:
        comparison: with origins, evidence and causes.
        confirmed: the pins that made the runs identical, if any did.
        excused: names of state tensors that are left out.
        seen_again: False where further runs with nothing changed did not differ.
        interrupted: whether Ctrl-C ended the search.
        fix: what runs with a patch showed, where one was tried.
    """

    comparison: Comparison
    confirmed: Confirmation | None = None
    excused: tuple[str, ...] = ()
    seen_again: bool = True
    interrupted: bool = False
    fix: Fix | None = None


def with_failure(comparison: Comparison) -> Comparison:
    """The comparison with the error of samebits that is being handled."""
    return replace(comparison, failure=comparison.failure or traceback.format_exc())


class Explainer:
    """Explains one difference, as far as time allows.

    Args:
        series: makes the runs.
        tools: compare them.
        role: which of the compared runs differed from the first.
        without: judges again without memory that nothing read.
        try_patch: runs a patch.
        tell: told what is known before anything is proven.
    """

    def __init__(
        self,
        series: Series,
        tools: Tools,
        role: int,
        without: Without,
        try_patch: TryPatch,
        tell: Callable[[Comparison], None],
    ) -> None:
        self._series = series
        self._tools = tools
        self._role = role
        self._without = without
        self._try_patch = try_patch
        self._tell = tell
        self._fix: Fix | None = None
        self._diagnosis: Diagnosis | None = None
        self._seen_again = True
        self._excused: tuple[str, ...] = ()
        self._drawn: tuple[Source, ...] = ()
        self._started = time.monotonic()

    def explain(self, comparison: Comparison, pair: Pair) -> Explanation:
        """What is known of a difference when its origins are found, or the time is over.

        Args:
            comparison: what the step-level pair said.
            pair: its runs.
        """
        self._comparison = comparison
        ended: Note | None = None
        interrupted = False
        try:
            with self._series.limited():
                self._explain(pair)
            if self._diagnosis is not None and self._diagnosis.out_of_time:
                ended = self._over()
        except BudgetSpent:
            ended = self._over()
        except (SamebitsError, OSError) as error:
            ended = Note.of(NoteCode.SEARCH_FAILED, str(error))
        except KeyboardInterrupt:
            ended, interrupted = Note.of(NoteCode.INTERRUPTED), True
        except Exception:  # noqa: BLE001 - a bug of ours: the verdict stands, and what is known so far
            self._comparison = with_failure(self._comparison)
        if ended is not None:
            if self._diagnosis is not None and self._diagnosis.so_far is not None:
                self._comparison = self._diagnosis.so_far
            self._comparison = replace(self._comparison, notes=(ended, *self._comparison.notes))
        diagnosis, fix = self._diagnosis, self._fix
        confirmed = diagnosis.confirmed if diagnosis is not None else None
        fix = diagnosis.fix if diagnosis is not None else fix
        return Explanation(self._comparison, confirmed, self._excused, self._seen_again, interrupted, fix)

    def _over(self) -> Note:
        return Note.of(NoteCode.OUT_OF_TIME, self._series.budget_s)

    def _explain(self, pair: Pair) -> None:
        self._take_draws(pair)
        found = self._localised(pair)
        origins = found.origins
        if origins is not None and origins.unread and not origins.findings:
            self._comparison, pair = self._without(origins, pair, self._role)
            if self._comparison.verdict != "different":
                return
            self._excused = origins.unread
            self._take_draws(pair)
            found = self._localised(pair)
        self._comparison = with_origins(self._comparison, found)
        self._measure_kept(found)
        self._name_draws()
        self._tell(self._comparison)
        if self._series.request.quick:
            return
        search, searched = Search(found, self._role, self._excused), self._is_hidden(found)
        if searched:  # one run tells what any number of pins would only suggest
            self._find_all(search)
        if self._is_patched(found, pair):
            if not searched and not self._is_split(found) and self._unmeasured(found):
                self._find_all(search)
            return
        diagnosis = self._diagnosis = self._begin_diagnosis(pair, again=found.pair is not None)
        self._settle(diagnosis, all_pins=False)
        if not searched and (diagnosis.confirmed is None or self._unmeasured(found)):
            self._find_all(search)
        if diagnosis.confirmed is None:
            self._settle(diagnosis, all_pins=True)

    def _is_split(self, found: Localisation) -> bool:
        """Whether several findings are of one place, whose value can be put in place only once."""
        return found.origins is not None and len(self._comparison.findings) > len(found.origins.findings)

    def _is_hidden(self, found: Localisation) -> bool:
        """Whether an unseeded generator was drawn from of which no origin speaks: another may hide it."""
        findings = self._comparison.findings
        wanted = self._series.request.interventions and found.pair is not None
        first_is_one = bool(findings) and bool(specification_of(findings[0].cause).seeded_by)
        return wanted and first_is_one and not self._unseeded() <= {finding.cause for finding in findings}

    def _unseeded(self) -> set[Cause]:
        causes = {source.cause for source in self._drawn}
        return {cause for cause in causes if specification_of(cause).seeded_by}

    def _is_patched(self, found: Localisation, pair: Pair) -> bool:
        """Whether runs are identical with the change that the draw log suggests: no pin is needed then."""
        wanted = self._series.request.interventions and (found.pair is not None or found.too_long)
        findings = by_source(self._comparison.findings) if wanted and self._role == 1 else ()
        if not findings:
            return False
        comparison = replace(self._comparison, findings=findings)
        one_is_fresh = any(specification_of(each.cause).seeded_by for each in findings)
        pins = tuple(
            specification_of(cause).seeded_by for cause in sorted(self._unseeded() if one_is_fresh else ())
        )
        aim = Aim(comparison, pins, self._excused, shown=True)
        fix = self._try_patch(aim, Effort(1, 1, self._last_step(pair)))
        if fix is None or not fix.confirmed:
            return False
        self._fix, line = fix, f"with the change below, {fix.shown()}"
        shown = tuple(replace(each, confirmed_by=line) for each in findings)
        self._comparison = replace(comparison, findings=shown)
        return True

    def _settle(self, diagnosis: Diagnosis, *, all_pins: bool) -> None:
        if self._series.request.interventions and self._seen_again:
            self._comparison = diagnosis.settle(self._comparison, all_pins=all_pins)

    def _localised(self, pair: Pair) -> Localisation:
        if self._series.request.level == "op":  # the pair that was compared has it all
            origins = origins_of(pair, self._tools, self._excused)
            if origins is not None:
                return Localisation(pair, origins, 0)
        try:
            with self._series.limited(self._kept_seconds()):
                return localise(self._series, self._tools, self._comparison, self._role, self._excused)
        except BudgetSpent:
            if not self._kept_seconds():
                raise
            return Localisation(None, None, 0, too_long=True)

    def _kept_seconds(self) -> float:
        """How much time is kept for a change that the draw log suggests, whatever the operations show."""
        request = self._series.request
        if not self._unseeded() or request.quick or not request.interventions:
            return 0.0
        return min(_KEPT_RUNS * self._series.first_seconds + _KEPT_S, self._series.budget_s / 2)

    def _measure_kept(self, found: Localisation) -> None:
        if found.pair is not None and found.origins is not None and found.origins.findings:
            pair, findings = found.pair, self._comparison.findings
            kept = tuple(with_kept_values(each, self._tools, pair) for each in findings)
            self._comparison = replace(self._comparison, findings=kept)

    def _take_draws(self, pair: Pair) -> None:
        """Note the draws that differ before the runs part."""
        with (
            self._tools.open_record(pair.first.record) as a,
            self._tools.open_record(pair.second.record) as b,
        ):
            self._drawn = self._tools.draws_before(a, b, self._excused)
        self._series.note_draws(self._drawn)

    def _name_draws(self) -> None:
        """Where the first origin names no source, the draws that differ before the runs part may be it."""
        findings = self._comparison.findings
        if not findings or findings[0].sources or findings[0].cause != Cause.UNKNOWN:
            return
        first = replace(findings[0], sources=self._drawn)
        self._comparison = replace(self._comparison, findings=(first, *findings[1:]))

    def _unmeasured(self, found: Localisation) -> bool:
        """Whether the values of the first origin are still to be fetched."""
        findings = found.origins.findings if found.origins is not None else ()
        first = self._comparison.findings[0] if findings else None
        if first is None or first.entry == OriginKind.CONTROL_FLOW:
            return False
        return first.difference is None and None not in first.events

    def _find_all(self, search: Search) -> None:
        """All origins, and by how much the values there differ."""
        comparison, origins = self._comparison, search.found.origins
        if search.found.pair is None or origins is None or not origins.findings:
            return
        # Where several threads make steps, another run makes the operation at a step of another number.
        if comparison.several_threads:
            return
        known = replace(search.found, origins=replace(origins, findings=comparison.findings))
        found = all_origins(self._series, self._tools, replace(search, found=known))
        # Where the runs agree in the end, what entered late is a finding by now, or followed from one.
        notes = (n for n in comparison.notes if not (found.agreed and n.code is NoteCode.LATE_VALUE))
        self._comparison = replace(comparison, findings=found.findings, notes=(*notes, *found.notes))

    def _last_step(self, pair: Pair) -> int | None:
        """After how many steps runs with a change are ended; None where they go to their ends."""
        first_step, long = self._comparison.first_step, pair.first.seconds > _SHORT_S
        bounded = long and first_step is not None and not self._comparison.several_threads
        return first_step + _SPARE_STEPS if bounded and first_step is not None else None

    def _begin_diagnosis(self, pair: Pair, *, again: bool) -> Diagnosis:
        """What tries pins; `again`: the difference was seen again with operations recorded."""
        seconds = pair.first.seconds
        extent = Extent(
            self._role,
            max_steps=self._last_step(pair),
            excused=self._excused,
            limit_s=time_limit(seconds),
            least_steps=least_steps(self._comparison),
            parting=parting_of(self._comparison),
        )
        interventions = Interventions(self._series, self._tools, extent)
        same, request = self._role - 1, self._series.request
        if not again and (request.interventions or request.fix):
            plain, self._seen_again = interventions.differs_again()
            same += plain
            notes = () if self._seen_again else (Note.of(NoteCode.DIFFERENCE_NOT_SEEN_AGAIN),)
            self._comparison = replace(self._comparison, notes=(*notes, *self._comparison.notes))
        soon = self._started + _SOON_RUNS * seconds + _SOON_S
        words = words_of(read_program(request.target, self._comparison.findings))
        effort = Effort(LITTLE, LITTLE, extent.max_steps)

        def try_patch(comparison: Comparison, pins: InterventionSet) -> Fix | None:
            return self._try_patch(Aim(comparison, pins, self._excused, shown=True), effort)

        return Diagnosis(interventions, Terms(request.pins, same, soon, self._drawn, words, try_patch))
