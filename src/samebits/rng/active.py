"""What is under control in this process.

A process has one set of global generators and flags, so there is one place that knows who controls them: one
stack of activations, of which the innermost that says something of seeds is in force.
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

    from samebits.switches.control import Control


class Undoable(Protocol):
    """**Protocol:** what an activation has changed in this process."""

    def undo(self) -> None:
        """Put back what was found; no later activation runs."""

    def rebase(self) -> None:
        """A later activation has ended, and has left the generators where they are."""


class Active:
    """One activation of control, as the seeds see it.

    Args:
        control: what was asked for.
        seed: the run seed of this process, the rank included; None leaves RNG sources alone.
        changes: what is undone at its end, after the end of those that began later; None when it changes
            nothing in the process.

    Attributes:
        running: whether it has begun and not ended.
        governs: whether it says what the seeds and the counts are; else those around it do.
    """

    def __init__(self, control: Control, seed: int | None, changes: Undoable | None = None) -> None:
        self.control = control
        self.seed = seed
        self.changes = changes
        self.running = False
        self.governs = True
        # Before the rank was mixed in: what all ranks of a distributed run share.
        self.shared_seed = seed if seed is None or not control.per_rank else control.seed
        self.scope: tuple[int | str, ...] = control.scope
        self._counts: Counter[tuple[int | str, ...]] = Counter()

    @property
    def source_seed(self) -> int | None:
        """What the RNG sources of this process start with; None leaves them alone.

        The run seed in the run's first process. A process that it starts afresh (spawn, forkserver) has one
        of its own: without control such processes draw independent numbers, and with it they still do.
        """
        return self.seed if self.seed is None or not self.scope else derive(self.seed, *self.scope)

    def number(self, *keys: int | str) -> int:
        """How often this was asked before with these keys in this scope and thread."""
        key = (thread_name(), *keys)
        self._counts[key] += 1
        return self._counts[key] - 1

    def next_seed(self, kind: str) -> int:
        """A seed for the next thing of that kind which was created without one.

        Raises:
            SamebitsError: there is no run seed; `no-seed`.
        """
        return derive(required(self.seed), *self.scope, kind, thread_name(), self.number(kind))

    def enter_scope(self, *keys: int | str) -> None:
        """This process is a part of the run, such as worker 2 in epoch 1; counting starts anew."""
        self.scope = keys
        self._counts.clear()

    def reseed(self, seed: int, shared: int | None = None) -> None:
        """The run goes on under another seed; counting starts anew.

        Args:
            seed: of this process.
            shared: what all ranks share, where `seed` is of this rank alone.
        """
        self.seed = seed
        self.shared_seed = seed if shared is None else shared
        self._counts.clear()

    def fork(self, *scope: int | str) -> Active:
        """The same activation for a while: what is counted there is not counted here.

        Args:
            scope: a part of the run below this one's, where counting starts from 0; without it counting goes
                on from here.
        """
        forked = Active(self.control, self.seed)
        forked.shared_seed = self.shared_seed
        forked.scope = (*self.scope, *scope)
        if not scope:
            forked._counts = self._counts.copy()
        return forked


class ProcessControl:
    """The activations of this process, the innermost last; those that ended too early wait for their turn.

    Attributes:
        current: the innermost activation that governs; None without one.
        seed: what `seed_all` was given outside of any activation.
        base_seed: the same before the rank was mixed in.
        registered: name -> a function that gives the generator registered under it, None when it is gone.
        torch_generators: the `torch.Generator` objects made while an activation followed them.
        waiting: what sources get whose libraries are not imported yet.
        recorded_steps: tells how many step boundaries the record of this process has; None without one.
    """

    def __init__(self) -> None:
        self._stack: list[Active] = []
        self.current: Active | None = None
        self.seed: int | None = None
        self.base_seed: int | None = None
        self.registered: dict[str, Callable[[], Any]] = {}
        self.torch_generators: weakref.WeakSet[Any] = weakref.WeakSet()
        self.waiting = Waiting()
        self.recorded_steps: Callable[[], int] | None = None

    @property
    def innermost(self) -> Active | None:
        """The innermost activation of those that change something in the process, governing or not."""
        return next((active for active in reversed(self._stack) if active.changes is not None), None)

    @property
    def run_seed(self) -> int | None:
        """The seed of the innermost activation, else what `seed_all` was given."""
        current = self.current
        return self.seed if current is None or current.seed is None else current.seed

    @property
    def shared_seed(self) -> int | None:
        """The run seed before the rank was mixed in: the same in all ranks of a distributed run."""
        current = self.current
        return self.base_seed if current is None or current.seed is None else current.shared_seed

    def use_seed(self, seed: int, shared: int | None = None) -> None:
        """That is the run seed from now on; `shared` is the one of all ranks, where it is another."""
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
        """End an activation; others, also later ones, stay. Undone are all that no later one runs above."""
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
    """Whose seed and counts hold now: the innermost activation's, or `installed` when that has no seed."""
    current = PROCESS.current
    return installed if current is None or current.seed is None else current


def thread_name() -> str:
    """The name of this thread; empty for the main thread."""
    thread = threading.current_thread()
    return "" if thread is threading.main_thread() else thread.name


def required(seed: int | None) -> int:
    """The seed.

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
