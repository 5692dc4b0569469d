"""A cell that runs again and again from the state in which it began."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from samebits.integrations._cell_state import CellState
from samebits.recording.recorded_result import NamedValue, record_values
from samebits.rng.states import restore_states, save_states
from samebits.verification.repeated_calls import repeated_calls

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from samebits.commands.cell_facts import NotRestored
    from samebits.integrations._cell_state import Reading
    from samebits.integrations._cells import Cell, CellRun
    from samebits.rng.states import SourceState
    from samebits.verification.repeated_calls import CallsRequest
    from samebits.verification.results import Verification

_RESULT = "result"


@dataclass(frozen=True)
class Verified:
    """What the runs of a cell showed.

    Args:
        result: the verdict.
        not_restored: what the runs after the first found as the run before had left it.
        records: folder of the records, which are gone.
    """

    result: Verification
    not_restored: tuple[NotRestored, ...]
    records: str


@dataclass(frozen=True)
class _Left:
    """The state that the first run left, which is that of the notebook from then on.

    Args:
        run: how it ended.
        state: of the variables.
        generators: of the RNG sources.
    """

    run: CellRun
    state: Reading
    generators: tuple[SourceState, ...]


class RepeatedCell:
    """Runs a cell several times; its output and its effects are those of the first run.

    Args:
        variables: the notebook's.
        cell: the cell.
    """

    def __init__(self, variables: dict[str, Any], cell: Cell) -> None:
        self._variables = variables
        self._cell = cell
        self._state = CellState(variables, cell.body)
        self._before = self._state.read()
        self._left: _Left | None = None

    async def verify(self, request: CallsRequest) -> Verified | None:
        """Run the cell as often as it takes.

        Args:
            request: what is asked for.

        Returns:
            what the runs showed; None if the first one failed, which is shown already.

        Raises:
            KeyboardInterrupt: the user ended a later run.
            SamebitsError: a run cannot be recorded or controlled.
        """
        try:
            with repeated_calls(request) as calls:
                for call in calls:
                    await self._run(call)
                    if self._left is not None and self._left.run.error is not None:
                        return None
            if calls.result is None:
                return None
            return Verified(calls.result, self._state.not_restored, str(calls.folder))
        finally:
            if self._left is not None:
                self._state.restore(self._left.state)
                restore_states(self._left.generators, strict=False)

    async def _run(self, call: AbstractContextManager[None]) -> None:
        """Run the cell in the context of a call, from the state in which it began."""
        run: CellRun | None = None
        first = self._left is None
        if not first:
            self._state.restore(self._before)
        try:
            with call:
                run = await self._cell.run(shown=first)
                record_values(partial(self._values, run))
                run.raise_error()
        except BaseException as error:
            if run is None or error is not run.error or (isinstance(error, KeyboardInterrupt) and not first):
                raise

    def _values(self, run: CellRun) -> list[NamedValue]:
        """Return what a run leaves behind: variables that it bound or changed, and its last result.

        What the first run leaves is noted.
        """
        after = self._state.read(self._before)
        if self._left is None:
            self._left = _Left(run, after, save_states())
        sites, variables = self._cell.sites(), self._variables
        changed = self._state.changed(self._before, after)
        values = [NamedValue(name, variables[name], sites.get(name)) for name in changed]
        return values + [NamedValue(_RESULT, value) for value in run.values]
