"""A rank that makes the calls of another one: each in a process of its own, so that it can be ended."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from samebits._runtime.child_bootstrap import AS_A_SCRIPT, python_code
from samebits._runtime.package import LOCATION
from samebits._runtime.processes import descendants, end, ended_with_parent
from samebits.environment.distributed import launcher_variables
from samebits.errors import EXIT_IDENTICAL, SamebitsError
from samebits.executors.board import Board, Place, place_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from samebits.environment.distributed import RankFacts

_IN_CHILD = "from samebits.executors import rank_worker\ngetattr(rank_worker, sys.argv[2])(sys.argv[3])\n"
_POLL_S = 0.1
_GRACE_S = 10.0  # for a run that is cancelled, to close its record


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a call.

    Args:
        value: what the function returned.
        error: that it raised; None for none.
        lost: why there is neither; empty if there is.
    """

    value: Any = None
    error: SamebitsError | None = None
    lost: str = ""


def serve_launch(facts: RankFacts) -> int:
    """Make calls, as a rank that is not the first, until there are no more.

    Args:
        facts: of this process; it is no rank any more afterwards, so that its runs are none.

    Returns:
        the exit status of the process.

    Raises:
        SamebitsError: the launcher has no store; `executor-unavailable`.
    """
    place, device = place_of(facts), device_of_rank(os.environ)
    for name in launcher_variables(os.environ):
        del os.environ[name]
    os.environ.update(device)
    with suppress(KeyboardInterrupt):  # by the launcher, when the first rank ends; that rank says why
        serve(Board(place))
    return EXIT_IDENTICAL


def started(function: str, argument: str, variables: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start a process that calls a function of this module, and that ends with this one.

    Args:
        function: its name.
        argument: its only one.
        variables: of the environment, beside those of this process.
    """
    return subprocess.Popen(
        [sys.executable, "-c", python_code(AS_A_SCRIPT, _IN_CHILD), LOCATION, function, argument],
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
        preexec_fn=ended_with_parent(),  # noqa: PLW1509 - it calls the kernel and nothing else
    )


def serve_beside(place: str) -> None:
    """Make calls in a process that the first rank started.

    Args:
        place: of the store, as JSON.
    """
    serve(Board(Place(**json.loads(place))))


def serve(board: Board) -> None:
    """Make calls until there are no more, or until the launch has ended."""
    with suppress(RuntimeError):  # its store is gone
        while (number := _claimed(board)) is not None:
            board.answer(number, pickle.dumps(_answer(board, number)))


def _claimed(board: Board) -> int | None:
    """Wait for a call, and return its number; None when there are no more."""
    number = board.claim()
    while not board.is_there(number):
        if board.is_ended():
            return None
        time.sleep(_POLL_S)
    return number


def _answer(board: Board, number: int) -> Answer:
    """Make a call in a process of its own, which ends when the call is cancelled."""
    with tempfile.TemporaryDirectory(prefix="samebits-rank-") as folder:
        call_file, answer_file = (Path(folder, name) for name in ("call", "answer"))
        call_file.write_bytes(board.take(number))
        child = started("call", folder, {})
        try:
            while child.poll() is None and not board.is_cancelled(number):
                time.sleep(_POLL_S)
        finally:
            _end(child)
        if not answer_file.exists():
            return Answer(lost=f"its process ended with status {child.returncode}")
        answer: Answer = pickle.loads(answer_file.read_bytes())  # noqa: S301 - `call` wrote it
        return answer


def _end(child: subprocess.Popen[bytes]) -> None:
    """End the process of a call and what it started, where it did not end by itself."""
    below = descendants(child.pid)
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        end(below, 0)


def call(folder: str) -> None:
    """Make the call that is in a folder, and write the answer there.

    Args:
        folder: with the file `call`, of pickled function and arguments.
    """
    function, arguments = pickle.loads(Path(folder, "call").read_bytes())  # noqa: S301 - the first rank wrote it
    try:
        answer = Answer(function(*arguments))
    except SamebitsError as error:
        answer = Answer(error=error)
    whole = Path(folder, "answer.new")
    whole.write_bytes(pickle.dumps(answer))
    whole.replace(Path(folder, "answer"))


def device_of_rank(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variable that gives a rank one GPU of its own, as one rank of several on a machine has.

    Args:
        variables: that the launcher set.

    Returns:
        nothing where the machine has fewer GPUs than ranks.
    """
    local, ranks = (variables.get(name, "") for name in ("LOCAL_RANK", "LOCAL_WORLD_SIZE"))
    if not local.isdecimal() or not ranks.isdecimal() or int(ranks) < 2:
        return {}
    import torch

    count = torch.cuda.device_count()
    if count < int(ranks):
        return {}
    visible = variables.get("CUDA_VISIBLE_DEVICES", "")
    devices = visible.split(",") if visible else [str(number) for number in range(count)]
    return {"CUDA_VISIBLE_DEVICES": devices[int(local)]}
