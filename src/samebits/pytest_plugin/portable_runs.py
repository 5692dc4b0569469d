"""The same call in portable mode under other numbers of threads and other instruction sets, compared."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeVar

from samebits._text.option_names import Interface
from samebits.errors import SamebitsError
from samebits.portable.backends.library import BACKEND_VARIABLE, find_library, open_library
from samebits.pytest_plugin.fresh_runs import control_variables, report_of
from samebits.recording.settings import RecordingSettings
from samebits.records.kinds import Level
from samebits.report.calls import rendered
from samebits.report.reasons import sentence_or_none
from samebits.switches.switch import ONLY_PORTABLE, Control
from samebits.verification import verify_records
from samebits.verification.preconditions import nothing_to_compare
from samebits.verification.runs import Job, Script, run_jobs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from samebits.pytest_plugin.fresh_runs import CallSite
    from samebits.verification import ScriptRun

T = TypeVar("T")

_BEST_FIRST = ("avx512", "avx2", "neon", "scalar")
# The oldest instructions that the libraries of torch can be held to, which no op may notice.
_PLAINEST = {
    "ATEN_CPU_CAPABILITY": "default",
    "MKL_CBWR": "COMPATIBLE",
    "ONEDNN_MAX_CPU_ISA": "SSE41",
    "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
}
_MOST_THREADS = 8


def in_portable_mode(function: Callable[[], T]) -> T:
    """Call a function in portable mode.

    Raises:
        SamebitsError: it needs an op that has no portable values; the message names the op and its line.
    """
    from samebits.portable.activation import portable

    with portable():
        return function()


def settings_of_runs(threads: tuple[int, ...]) -> list[dict[str, str]]:
    """Return the variables of each run: the plainest kernels in the first, the best ones in the others.

    Args:
        threads: the number of threads of each run, at least 2; empty for 1 and several.

    Raises:
        SamebitsError: one run only, or a number that is not positive; `usage`.
    """
    chosen = threads or (1, min(_MOST_THREADS, max(2, os.cpu_count() or 2)))
    if len(chosen) < 2 or not all(isinstance(number, int) and number > 0 for number in chosen):
        message = f"threads is {chosen!r}; expected at least two numbers from 1, such as (1, 4)"
        raise SamebitsError(message, slug="usage")
    kernels = _kernels()
    settings = [{"OMP_NUM_THREADS": str(number), "MKL_NUM_THREADS": str(number)} for number in chosen]
    if kernels:
        plain, best = ({BACKEND_VARIABLE: name} for name in (kernels[-1], kernels[0]))
        settings = [{**one, **(best if at else plain)} for at, one in enumerate(settings)]
    settings[0].update(_PLAINEST)
    return settings


def compare_settings(site: CallSite, seed: int | None, threads: tuple[int, ...]) -> str:
    """Make a call again under each setting, and return the report of a difference; empty without one.

    Args:
        site: the call.
        seed: from which control seeds all generators of each run; None leaves the function as it is.
        threads: see `settings_of_runs`.

    Raises:
        SamebitsError: as `settings_of_runs`.
    """
    settings = settings_of_runs(threads)
    control = ONLY_PORTABLE if seed is None else Control(seed=seed, portable=True)

    def judge(folder: Path) -> str:
        runs: list[ScriptRun] = []
        for number, setting in enumerate(settings, 1):
            runs.append(_run(site, folder / f"run-{number}.sbr", setting, control))
            report = _unfit(runs[-1], site)
            if report:
                return report
            report = _difference(runs[0], runs[-1])
            if report:
                ops = [
                    _run(site, folder / f"op-{at}.sbr", each, control, Level.OP)
                    for at, each in ((1, settings[0]), (number, setting))
                ]
                return _with_settings(_difference(*ops) or report, settings[0], setting)
        return ""

    return report_of(site, judge)


def _run(
    site: CallSite, record: Path, setting: Mapping[str, str], control: Control, level: Level = Level.STEP
) -> ScriptRun:
    environment = {**site.variables(record.parent), **control_variables(control), **setting}
    script = Script(site.target, "stderr", environment)
    (run,) = run_jobs((Job(script, RecordingSettings(str(record), level=level, control=control)),))
    return run


def _unfit(run: ScriptRun, site: CallSite) -> str:
    """Say why a run cannot be compared; empty if it can."""
    reason = sentence_or_none(nothing_to_compare(run, site.target))
    return f"not judged: {reason}" if reason else ""


def _difference(first: ScriptRun, second: ScriptRun) -> str:
    if first is second:
        return ""
    operations = verify_records(first.record, second.record, "the function")
    return rendered(operations, interface=Interface.ASSERTION)


def _with_settings(report: str, first: Mapping[str, str], second: Mapping[str, str]) -> str:
    names = [name for name in {**first, **second} if first.get(name) != second.get(name)]
    rows = [f"  {name}: {first.get(name, 'not set')} and {second.get(name, 'not set')}" for name in names]
    return "\n".join([report, "", "settings of run 1 and run 2", *rows])


def _kernels() -> list[str]:
    """Return the instruction sets that the kernels can use here, best first; none without the library."""
    if os.environ.get(BACKEND_VARIABLE):
        return []
    path = find_library()
    kernels = open_library(path) if path else None
    if kernels is None:
        return []
    before = kernels.isa
    found = [name for name in _BEST_FIRST if kernels.select(name)]
    kernels.select(before)
    return found
