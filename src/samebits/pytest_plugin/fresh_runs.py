"""Runs in fresh processes that make one call of the fixture again."""

from __future__ import annotations

import os
import re
import shutil
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from samebits.errors import SamebitsError, pointer
from samebits.pytest_plugin.repeated_call import CALL_VARIABLE, RepeatedCall
from samebits.recording.naming import DEFAULT_FOLDER, make_next_free
from samebits.recording.runner import Target
from samebits.report.calls import rendered
from samebits.switches.switch import Control
from samebits.switches.table import environment_for
from samebits.verification import VerifyRequest, verify
from samebits.verification.preconditions import check_writable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from samebits.pytest_plugin.repeated_call import Start

_MODULE = "samebits.pytest_plugin.run_test"
_MOST_CHARACTERS = 80


@dataclass(frozen=True)
class CallSite:
    """A call of the fixture: what fresh processes need to make it again.

    Args:
        start: how pytest was started.
        test: see `RepeatedCall`.
        nodeid: of the test, as pytest shows it.
        number: of the call in this test, from 1.
        budget: seconds for explaining a difference; 0 for no run that proves its cause; None for the default
            of `samebits verify`.
    """

    start: Start
    test: str
    nodeid: str
    number: int
    budget: float | None = None

    @property
    def target(self) -> Target:
        """The module that makes the call again."""
        return Target(script=None, module=_MODULE, arguments=(self.nodeid,))

    def variables(self, folder: Path) -> dict[str, str]:
        """Return the variables that a process needs to make it again.

        Args:
            folder: in which temporary files go.
        """
        call = RepeatedCall(
            self.test,
            self.number,
            self.start.arguments,
            self.start.search_path,
            (self.start.folder, str(folder.absolute())),
        )
        return {CALL_VARIABLE: call.to_json()}


def report_of(site: CallSite, judge: Callable[[Path], str]) -> str:
    """Judge a call in the folder that pytest was started in, with the variables that it was started with.

    Args:
        site: the call.
        judge: gets the path of a folder for records, which is there and empty, and returns a report;
            empty for a call that passes.

    Returns:
        The report; or the error of samebits that kept the call from being judged. The records stay then.
    """
    with site.start.again():
        stem = re.sub(r"[^\w.-]+", "_", site.nodeid)[-_MOST_CHARACTERS:].strip("._")
        try:
            with _own_folder(stem or "test") as folder:
                report = judge(folder)
                if not report:
                    shutil.rmtree(folder, ignore_errors=True)
        except SamebitsError as error:
            report = f"{error}\n{pointer(error.slug)}"
    return report


@contextmanager
def _own_folder(stem: str) -> Iterator[Path]:
    """Make a folder for records that no other process has; in the end it goes if it is empty.

    Raises:
        SamebitsError: it cannot be made; `record-unwritable`.
    """
    check_writable(DEFAULT_FOLDER / stem)
    try:
        folder = make_next_free(DEFAULT_FOLDER, stem).absolute()
    except OSError as error:
        message = f"cannot make a folder for records in {DEFAULT_FOLDER}: {error.strerror}"
        raise SamebitsError(message, slug="record-unwritable") from None
    try:
        yield folder
    finally:
        for temporary in folder.glob("tmp-*"):
            shutil.rmtree(temporary, ignore_errors=True)
        with suppress(OSError):
            folder.rmdir()


def check_repeating(site: CallSite, *, runs: int, seed: int | None, state_only: bool) -> str:
    """Make a call again in fresh processes, and return the report of a difference; empty without one.

    Args:
        site: the call.
        runs: how many processes are compared, at least 2.
        seed: from which control seeds all generators of each run; None leaves the function as it is.
        state_only: values that are only read out may differ.
    """

    def judge(folder: Path) -> str:
        result = verify(_request(site, folder, runs, seed, state_only=state_only))
        return rendered(result, state_only=state_only)

    return report_of(site, judge)


def control_variables(control: Control | None) -> dict[str, str]:
    """Return the variables that a run under that control starts with, beside those of this process."""
    return {} if control is None else dict(environment_for(control, os.environ).variables)


def _request(site: CallSite, folder: Path, runs: int, seed: int | None, *, state_only: bool) -> VerifyRequest:
    control = None if seed is None else Control(seed=seed)
    return VerifyRequest(
        target=site.target,
        folder=folder,
        runs=runs,
        stress=True,  # fresh processes differ in what must not matter
        output="stderr",
        control=control,
        environment={**site.variables(folder), **control_variables(control)},
        state_only=state_only,
        quick=site.budget == 0,
        budget=site.budget or None,
        keep_records=False,
    )
