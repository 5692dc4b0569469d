"""The activations of control in this process.

A process has one set of global generators and flags, so there is one stack of activations. The innermost one
that governs seeds is in force.
"""

from __future__ import annotations

import threading
import weakref
from collections import Counter
from typing import TYPE_CHECKING, Any, Protocol

from samebits.errors import SamebitsError
from samebits.rng._source_states import Waiting
from samebits.rng.seeds import derive

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from samebits.switches.switch import Control


class Undoable(Protocol):
    """**Protocol:** the changes that an activation has made in this process."""

    def undo(self) -> None:
        """Put back the values from before; no later activation runs."""

    def rebase(self) -> None:
        """Accept the generators' positions, after a later activation has ended."""


class Recording(Protocol):
    """**Protocol:** the recording of this process."""

    def recorded_steps(self) -> int:
        """Return the number of step boundaries in the record."""

    def paused(self) -> AbstractContextManager[None]:
        """Return a context in which nothing is recorded."""

    def note_mismatch(self, *facts: str) -> None:
        """Note that executions of one step did not give the same bits.

        Args:
            facts: the arguments of `NoteCode.STEP_NOT_REPEATED`.
        """


class Active:
    """The part of an activation of control that decides the seeds.

    Args:
        control: the control to apply.
        seed: the run seed of this process, the rank included; None leaves RNG sources alone.
        changes: undone at its end, once those that began later have ended; None when it changes nothing in
            the process.

    Attributes:
        running: it has begun and not ended.
        governs: it decides the seeds and the counts; otherwise an activation around it does.
    """

    def __init__(self, control: Control, seed: int | None, changes: Undoable | None = None) -> None:
        self.control = control
        self.seed = seed
        self.changes = changes
        self.running = False
        self.governs = True
        # The seed before the rank was mixed in, which all ranks of a distributed run share.
        self.shared_seed = seed if seed is None or not control.per_rank else control.seed
        self.scope: tuple[int | str, ...] = control.scope
        self._counts: Counter[tuple[int | str, ...]] = Counter()

    @property
    def source_seed(self) -> int | None:
        """The seed that the RNG sources of this process start with; None leaves them alone.

        In the run's first process it is the run seed. A process that is started afresh (spawn, forkserver)
        has its own: such processes draw independent numbers without control, and still do with it.
        """
        return self.seed if self.seed is None or not self.scope else derive(self.seed, *self.scope)

    def number(self, *keys: int | str) -> int:
        """Count the calls with these keys in this scope and thread, from 0."""
        key = (thread_name(), *keys)
        self._counts[key] += 1
        return self._counts[key] - 1

    def next_seed(self, kind: str) -> int:
        """Return a seed for the next generator of that kind that was made without one.

        Raises:
            SamebitsError: there is no run seed; `no-seed`.
        """
        return derive(required(self.seed), *self.scope, kind, thread_name(), self.number(kind))

    def enter_scope(self, *keys: int | str) -> None:
        """Enter a part of the run, such as worker 2 in epoch 1, and start counting from 0."""
        self.scope = keys
        self._counts.clear()

    def reseed(self, seed: int, shared: int | None = None) -> None:
        """Continue the run under another seed, and start counting from 0.

        Args:
            seed: the seed of this process.
            shared: the seed that all ranks share, where `seed` is for this rank only.
        """
        self.seed = seed
        self.shared_seed = seed if shared is None else shared
        self._counts.clear()

    def fork(self, *scope: int | str) -> Active:
        """Return a temporary copy of the activation, which counts on its own.

        Args:
            scope: a part of the run below this one's, where counting starts from 0; without it counting goes
                on from the present numbers.
        """
        forked = Active(self.control, self.seed)
        forked.shared_seed = self.shared_seed
        forked.scope = (*self.scope, *scope)
        if not scope:
            forked._counts = self._counts.copy()
        return forked


class ProcessControl:
    """The activations of this process, the innermost last; one that ended early is undone in its turn.

    Attributes:
        current: the innermost activation that governs; None without one.
        seed: the seed given to `seed_all` outside of any activation.
        base_seed: the same before the rank was mixed in.
        registered: name -> a function that gives the generator registered under it, None when it is gone.
        torch_generators: the `torch.Generator` objects made while an activation followed them.
        waiting: seeds and states for sources whose libraries are not imported yet.
        recording: the recording of this process; None without one.
    """

    def __init__(self) -> None:
        self._stack: list[Active] = []
        self.current: Active | None = None
        self.seed: int | None = None
        self.base_seed: int | None = None
        self.registered: dict[str, Callable[[], Any]] = {}
        self.torch_generators: weakref.WeakSet[Any] = weakref.WeakSet()
        self.waiting = Waiting()
        self.recording: Recording | None = None

    @property
    def innermost(self) -> Active | None:
        """The innermost activation of those that change something in the process, governing or not."""
        return next((active for active in reversed(self._stack) if active.changes is not None), None)

    @property
    def run_seed(self) -> int | None:
        """The seed of the innermost activation, else the seed that `seed_all` was given."""
        current = self.current
        return self.seed if current is None or current.seed is None else current.seed

    @property
    def shared_seed(self) -> int | None:
        """The run seed before the rank was mixed in: the same in all ranks of a distributed run."""
        current = self.current
        return self.base_seed if current is None or current.seed is None else current.shared_seed

    def use_seed(self, seed: int, shared: int | None = None) -> None:
        """Use the run seed from now on; `shared` is the seed of all ranks, where it differs."""
        if self.current is None:
            self.seed, self.base_seed = seed, seed if shared is None else shared
        else:
            self.current.reseed(seed, shared)

    def push(self, active: Active, *, governs: bool = True) -> None:
        """Begin an activation.

        Args:
            active: the activation.
            governs: see `Active`; the first one governs in any case.
        """
        active.running, active.governs = True, governs or self.current is None
        self._stack.append(active)
        self._choose()

    def drop(self, active: Active) -> None:
        """End an activation; all others stay. It is undone once no later one is running."""
        active.running = False
        if active.changes is None:
            self._stack = [other for other in self._stack if other is not active]
        self._choose()
        while (ended := self.innermost) is not None and ended.changes is not None and not ended.running:
            self._stack.remove(ended)
            ended.changes.undo()
            if self.innermost is not None and self.innermost.changes is not None:
                self.innermost.changes.rebase()

    def _choose(self) -> None:
        governing = (active for active in reversed(self._stack) if active.running and active.governs)
        self.current = next(governing, None)


PROCESS = ProcessControl()


def acting(installed: Active) -> Active:
    """Return the activation whose seed and counts hold: the innermost, or `installed` if that has no seed."""
    current = PROCESS.current
    return installed if current is None or current.seed is None else current


def thread_name() -> str:
    """Return the name of this thread; empty for the main thread."""
    thread = threading.current_thread()
    return "" if thread is threading.main_thread() else thread.name


def required(seed: int | None) -> int:
    """Return the seed.

    Raises:
        SamebitsError: there is none; `no-seed`.
    """
    if seed is None:
        message = (
            "no run seed is in force; expected one from `samebits run --seed N`, "
            "`samebits.deterministic(seed=N)` or the argument `seed`"
        )
        raise SamebitsError(message, slug="no-seed")
    return seed
