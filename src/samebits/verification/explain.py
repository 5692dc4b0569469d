"""Why two runs differ: the operation, all origins, the pins that take the difference away."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from samebits.comparison.results import LATE
from samebits.errors import SamebitsError
from samebits.verification.diagnose import Diagnosis, Terms
from samebits.verification.further import Search, all_origins
from samebits.verification.interventions import Extent, Interventions, least_steps, time_limit
from samebits.verification.kept import with_kept_values
from samebits.verification.localise import Localisation, localise, origins_of, with_origins
from samebits.verification.series import BudgetSpent

if TYPE_CHECKING:
    from samebits.comparison.results import Comparison, Origins
    from samebits.diagnosis.attribution import Confirmation
    from samebits.verification.series import Pair, Series
    from samebits.verification.tools import Tools

INTERRUPTED = "interrupted: this is what is known so far"
_SHORT_S = 20.0  # runs with pins go to the end of a script that takes no longer
_SPARE_STEPS = 3
_SOON_RUNS, _SOON_S = 3.0, 4.0  # after so many first runs and seconds, only pairs that are needed are made


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
        interrupted: whether Ctrl-C ended the search.
    """

    comparison: Comparison
    confirmed: Confirmation | None = None
    excused: tuple[str, ...] = ()
    interrupted: bool = False


class Explainer:
    """Explains one difference, as far as time allows.

    Args:
        series: makes the runs.
        tools: compare them.
        role: which of the compared runs differed from the first.
        without: judges again without memory that nothing read.
    """

    def __init__(self, series: Series, tools: Tools, role: int, without: Without) -> None:
        self._series = series
        self._tools = tools
        self._role = role
        self._without = without
        self._diagnosis: Diagnosis | None = None
        self._excused: tuple[str, ...] = ()
        self._started = time.monotonic()

    def explain(self, comparison: Comparison, pair: Pair) -> Explanation:
        """What is known of a difference when its origins are found, or the time is over.

        Args:
            comparison: what the step-level pair said.
            pair: its runs.
        """
        self._comparison = comparison
        ended, interrupted = "", False
        try:
            with self._series.limited():
                self._explain(pair)
            if self._diagnosis is not None and self._diagnosis.out_of_time:
                ended = self._over()
        except BudgetSpent:
            ended = self._over()
        except (SamebitsError, OSError) as error:
            ended = f"the search for the cause ended early: {error}"
        except KeyboardInterrupt:
            ended, interrupted = INTERRUPTED, True
        if ended:
            self._comparison = replace(self._comparison, notes=(ended, *self._comparison.notes))
        confirmed = self._diagnosis.confirmed if self._diagnosis else None
        return Explanation(self._comparison, confirmed, self._excused, interrupted)

    def _over(self) -> str:
        return (
            f"the time for explaining, {self._series.budget_s:.0f} s, was over before the search was: this "
            "is what is known so far; --budget SECONDS gives it more"
        )

    def _explain(self, pair: Pair) -> None:
        found = self._localised(pair)
        origins = found.origins
        if origins is not None and origins.unread and not origins.findings:
            self._comparison, pair = self._without(origins, pair, self._role)
            if self._comparison.verdict != "different":
                return
            self._excused = origins.unread
            found = self._localised(pair)
        self._comparison = with_origins(self._comparison, found)
        self._measure_kept(found)
        self._name_draws(pair)
        diagnosis = self._diagnosis = self._begin_diagnosis(pair)
        self._settle(diagnosis, all_pins=False)
        if diagnosis.confirmed is None or self._unmeasured(found):
            self._find_all(Search(found, self._role, self._excused))
        if diagnosis.confirmed is None:
            self._settle(diagnosis, all_pins=True)

    def _settle(self, diagnosis: Diagnosis, *, all_pins: bool) -> None:
        if self._series.request.interventions:
            self._comparison = diagnosis.settle(self._comparison, all_pins=all_pins)

    def _localised(self, pair: Pair) -> Localisation:
        if self._series.request.level == "op":  # the pair that was compared has it all
            origins = origins_of(pair, self._tools, self._excused)
            if origins is not None:
                return Localisation(pair, origins, 0)
        return localise(self._series, self._tools, self._comparison, self._role, self._excused)

    def _measure_kept(self, found: Localisation) -> None:
        if found.pair is not None and found.origins is not None and found.origins.findings:
            pair, findings = found.pair, self._comparison.findings
            kept = tuple(with_kept_values(each, self._tools, pair) for each in findings)
            self._comparison = replace(self._comparison, findings=kept)

    def _name_draws(self, pair: Pair) -> None:
        """Where the first origin names no source, the draws that differ before the runs part may be it."""
        findings = self._comparison.findings
        if not findings or findings[0].sources or findings[0].cause != "unknown":
            return
        with (
            self._tools.open_record(pair.first.record) as a,
            self._tools.open_record(pair.second.record) as b,
        ):
            sources = self._tools.draws_before(a, b, self._excused)
        first = replace(findings[0], sources=sources)
        self._comparison = replace(self._comparison, findings=(first, *findings[1:]))

    def _unmeasured(self, found: Localisation) -> bool:
        """Whether the values of the first origin are still to be fetched."""
        findings = found.origins.findings if found.origins is not None else ()
        first = self._comparison.findings[0] if findings else None
        return first is not None and first.difference is None and None not in first.events

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
        notes = (n for n in comparison.notes if not (found.agreed and n.startswith(LATE)))
        self._comparison = replace(comparison, findings=found.findings, notes=(*notes, *found.notes))

    def _begin_diagnosis(self, pair: Pair) -> Diagnosis:
        first_step, seconds = self._comparison.first_step, pair.first.seconds
        bounded = seconds > _SHORT_S and first_step is not None and not self._comparison.several_threads
        extent = Extent(
            self._role,
            max_steps=first_step + _SPARE_STEPS if bounded and first_step is not None else None,
            excused=self._excused,
            limit_s=time_limit(seconds),
            least_steps=least_steps(self._comparison),
        )
        interventions = Interventions(self._series, self._tools, extent)
        soon = self._started + _SOON_RUNS * seconds + _SOON_S
        return Diagnosis(interventions, Terms(self._series.request.pins, self._role - 1, soon))
