"""Ranks of `torchrun`: the first one is the command, and all of them make its runs."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from samebits.environment.distributed import launcher_variables, rank_facts
from samebits.errors import SamebitsError
from samebits.executors.board import Board, place_of
from samebits.executors.jobs import lost
from samebits.executors.rank_worker import device_of_rank, started

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_GRACE_S = 10.0


class TorchrunExecutor:
    """Makes each call on one of the ranks that a launcher started, this one's included.

    The command runs on rank 0. The other ranks are in `rank_worker.serve`, and so is a process that this one
    starts. This process is no rank any more: it gives up the variables of the launcher.

    Args:
        options: none; the options of a launch are those of `torchrun`.

    Raises:
        SamebitsError: there are options (`usage`), or no ranks (`executor-unavailable`).
    """

    shares_files = False
    has_folder = True

    def __init__(self, options: Mapping[str, str]) -> None:
        if options:
            name = next(iter(options))
            message = (
                f"--executor-option {name} does not go with --executor torchrun; give torchrun its options: "
                "`torchrun --nnodes 2 --nproc-per-node 1 -m samebits …`"
            )
            raise SamebitsError(message, slug="usage")
        facts = rank_facts()
        if facts is None:
            message = (
                "--executor torchrun: this process is not one of several ranks; expected "
                "`torchrun --nnodes N --nproc-per-node M -m samebits …` with at least two ranks"
            )
            raise SamebitsError(message, slug="executor-unavailable")
        place = place_of(facts)
        self._board = Board(place, is_first=True)
        self._submitted = 0
        device = device_of_rank(os.environ)
        for name in launcher_variables(os.environ):
            del os.environ[name]
        self._worker = started("serve_beside", json.dumps(asdict(place)), device)

    def submit(self, function: Callable[..., Any], *arguments: Any) -> RankJob:
        """See `Executor`."""
        job = RankJob(self._board, self._submitted)
        self._board.put(self._submitted, pickle.dumps((function, arguments)))
        self._submitted += 1
        return job

    def close(self) -> None:
        """See `Executor`."""
        with suppress(RuntimeError):
            self._board.end()
        try:
            self._worker.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            self._worker.kill()
            self._worker.wait()


class RankJob:
    """A call that some rank makes.

    Args:
        board: of the launch.
        number: of the call.
    """

    def __init__(self, board: Board, number: int) -> None:
        self._board = board
        self._number = number

    @property
    def name(self) -> str:
        """See `Job`."""
        return f"job {self._number} of the ranks"

    def is_done(self) -> bool:
        """See `Job`."""
        return self._board.is_answered(self._number)

    def result(self) -> Any:
        """See `Job`."""
        answer = pickle.loads(self._board.take_answer(self._number))  # noqa: S301 - the ranks trust each other
        if answer.error is not None:
            raise answer.error
        if answer.lost:
            raise lost(self.name, answer.lost, "What it printed says more; give the command again.")
        return answer.value

    def cancel(self) -> None:
        """See `Job`."""
        self._board.cancel(self._number)
