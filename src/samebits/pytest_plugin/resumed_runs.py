"""A training that is killed and goes on, compared with one that never stopped."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from samebits._text.option_names import Interface
from samebits.commands.resume_check import ResumeRequest, resume_check
from samebits.errors import SamebitsError
from samebits.pytest_plugin.fresh_runs import control_variables, report_of
from samebits.report import resume_text
from samebits.report.style import Style
from samebits.switches.switch import Control

if TYPE_CHECKING:
    from pathlib import Path

    from samebits.pytest_plugin.fresh_runs import CallSite


def check_resuming(site: CallSite, kill_at: tuple[int, ...], seed: int | None, budget: float | None) -> str:
    """Run a call whole, then killed and once more in the same folder; return the report of a difference.

    Args:
        site: the call.
        kill_at: after how many optimizer steps it is killed; empty to choose two.
        seed: from which control seeds all generators of each run; None leaves the function as it is.
        budget: seconds after which no further kill is begun; None for no end.

    Returns:
        The report; empty where all resumed runs were identical to the whole one.

    Raises:
        SamebitsError: a number in `kill_at` is not positive; `usage`.
        KeyboardInterrupt: Ctrl-C ended it.
    """
    for after in kill_at:
        if not isinstance(after, int) or after < 1:
            raise SamebitsError(f"kill_at has {after!r}; expected whole numbers from 1", slug="usage")
    control = None if seed is None else Control(seed=seed)

    def judge(folder: Path) -> str:
        empty = folder / "empty"  # of which each run gets a copy to work in
        empty.mkdir()
        request = ResumeRequest(
            target=site.target,
            resume_args=(),
            folder=folder,
            source=empty,
            kill_after=kill_at,
            output="stderr",
            control=control,
            environment={**site.variables(folder), **control_variables(control)},
            budget=budget,
            interface=Interface.ASSERTION,
        )
        result = resume_check(request)
        if result.interrupted:
            raise KeyboardInterrupt
        if result.verdict == "identical":
            return ""
        return resume_text.render(result, Style(interface=Interface.ASSERTION), os.getcwd())

    return report_of(site, judge)
