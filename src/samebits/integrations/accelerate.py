"""`TrainingState` for loops with accelerate: a record, steps executed again, and exact resuming."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from samebits.data.loader import DataLoader
from samebits.integrations._arguments import Options, refused
from samebits.integrations._libraries import library
from samebits.integrations._loader_generators import restore_held, restore_with, states_with
from samebits.integrations._loader_watch import LoaderWatch
from samebits.integrations._position import Checkpoints, Position, from_checkpoint, length_of
from samebits.integrations._recorded import TrainingRecord
from samebits.replay_guard.guard import ReplayGuard

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import TracebackType

    from samebits.integrations._loader_watch import Continuation, PassFacts, States
    from samebits.replay_guard.mismatch import Mismatch

_R = TypeVar("_R")
library("accelerate", "accelerate")  # said here, not where the accelerator fails


class TrainingState:
    """What accelerate leaves out of its checkpoints, and the loop over the data that goes on from them.

    Example::

        state = TrainingState(accelerator, record="run.sbr")
        if resuming:
            accelerator.load_state("checkpoint")
        with state:
            for epoch in state.epochs(3):
                for batch in state.batches(loader):
                    loss = state.step(forward_backward, batch)
                    optimizer.step()
                    optimizer.zero_grad()
                    if is_time_to_save:
                        accelerator.save_state("checkpoint")

    accelerate 1.15 saves the states of Python, NumPy and torch, and only logs it if it cannot restore them.
    After `skip_first_batches` the order of the samples differs unless the sampler is seedable, and random
    numbers drawn while loading differ in any case. This object is registered for checkpointing: it saves and
    restores all RNG sources, those before the epoch's iterator was made, and the position. `batches` loads
    the batches that were used again and leaves them out.

    Make it after `accelerator.prepare`, and before `load_state`. Save at the end of the loop's body.

    Args:
        accelerator: whose `save_state` and `load_state` are used.
        record: the record to write, of what happens in the `with` block, at the level of steps. One that is
            there is kept, and `run-2.sbr` is written instead. Not written where the script runs under
            `samebits run` or `verify`: that records it already.
        replay_every: how many calls of `step` make one that is executed again; see `ReplayGuard`.
        on_mismatch: what happens then, as for `ReplayGuard`.
        exact_resume: save RNG states and position, and go on from them. A checkpoint that cannot be resumed
            exactly is refused.

    Raises:
        SamebitsError: `replay_every` is not a whole number from 1, or `accelerator` has no model,
            `replay-guard`.
    """

    def __init__(
        self,
        accelerator: Any,
        *,
        record: str | os.PathLike[str] | None = None,
        replay_every: int | None = None,
        on_mismatch: str | Callable[[Mismatch], Any] = "raise",
        exact_resume: bool = True,
    ) -> None:
        self._options = Options.of(record, replay_every, on_mismatch, exact_resume)
        self._record = TrainingRecord(self._options.record)
        self._watch = LoaderWatch()
        self._checkpoints = Checkpoints()
        self._accelerator = accelerator
        self._epoch, self._used = 0, 0
        self._is_over = False  # the epoch
        self._loader: Any = None
        self._own: Any = None  # the position of a loader of samebits
        self._resumed: Position | None = None
        self.guard: ReplayGuard | None = None
        if replay_every is not None:
            models = tuple(accelerator._models)  # what `prepare` was given
            self.guard = ReplayGuard(*models, every=replay_every, on_mismatch=on_mismatch)
        accelerator.register_for_checkpointing(self)

    @property
    def record(self) -> Path | None:
        """The record of the last training, whose name has a number if the one given was taken."""
        return self._record.written

    def __enter__(self) -> TrainingState:  # noqa: PYI034 - Self is new in Python 3.11
        self._record.begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._watch.remove()
        self._record.end(error)

    def epochs(self, number: int) -> Iterator[int]:
        """Return the epochs that remain, from the one of the checkpoint that was loaded, up to `number - 1`.

        Args:
            number: of all epochs.
        """
        if self._resumed is not None and not self._resumed.consumed:
            restore_with(self._resumed.now, None)  # what was built since `load_state` may have drawn
        while self._epoch < number:
            yield self._epoch
            self._epoch, self._used, self._is_over = self._epoch + 1, 0, False

    def batches(self, loader: Any) -> Iterator[Any]:
        """Return the batches of an epoch that the training has not used, in their order.

        Args:
            loader: torch's own, prepared by accelerate or not; or `samebits.DataLoader`, not prepared.

        Raises:
            SamebitsError: it cannot go on in the middle of the epoch; `exact-resume`.
        """
        position, self._resumed = self._resumed, None
        self._loader, self._used = loader, 0 if position is None else position.consumed
        if hasattr(loader, "set_epoch"):
            loader.set_epoch(self._epoch)
        if self._options.exact_resume:
            _check_loader(loader)
            self._watch.install()
            if position is not None and not self._used and not isinstance(loader, DataLoader):
                restore_held(position.now, loader)
            goes_on = None if position is None or not self._used else self._continuation(position, loader)
            self._watch.expect(loader.dataset, goes_on)
        skip = 0 if isinstance(loader, DataLoader) else self._used
        for number, batch in enumerate(loader):
            if number >= skip:
                self._used += 1
                yield batch
        self._is_over = True

    def step(self, function: Callable[..., _R], /, *args: Any, **named: Any) -> _R:
        """Execute a forward and a backward pass, and every Nth one again; see `ReplayGuard`.

        Args:
            function: does forward and `accelerator.backward`.
            args: its arguments.
            named: likewise.
        """
        if self.guard is None:
            return function(*args, **named)
        return self.guard(function, *args, **named)

    def state_dict(self) -> dict[str, Any]:
        """Return what `accelerator.save_state` saves."""
        saved: dict[str, Any] = {} if self.guard is None else {"guard": self.guard.state_dict()}
        if self._options.exact_resume:
            position, waits = self._position(), bool(self._accelerator.is_local_main_process)
            moment = f"accelerate {position.epoch} {position.consumed}"
            saved["position"] = self._checkpoints.saved(position, moment, waits=waits)
            if isinstance(self._loader, DataLoader):
                saved["loader"] = self._loader.state_dict()
        return saved

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Take what `accelerator.load_state` loaded; the RNG sources are restored now and in the loop.

        Raises:
            SamebitsError: another number of ranks saved it, or it has no states; `exact-resume`.
        """
        if self.guard is not None and "guard" in saved:
            self.guard.load_state_dict(saved["guard"])
        if not self._options.exact_resume:
            return
        if "position" not in saved:
            raise refused("the checkpoint was saved with exact_resume=False")
        position = from_checkpoint(saved["position"])
        self._resumed, self._own, self._epoch = position, saved.get("loader"), position.epoch
        restore_with(position.now, None)

    def _continuation(self, position: Position, loader: Any) -> Continuation | None:
        if isinstance(loader, DataLoader):
            if self._own is None:
                raise refused("the checkpoint was saved with another loader than samebits.DataLoader")
            loader.load_state_dict(self._own)
            restore_with(position.now, None)
            return None
        position.check_loader(loader)
        return position.continuation(skip=position.consumed)

    def _position(self) -> Position:
        loader, seen = self._loader, self._watch.expected
        plain = loader is not None and not isinstance(loader, DataLoader)
        batches = -1 if loader is None else length_of(loader)
        is_over = self._is_over or self._used == batches
        begin, ahead = ((), ()) if seen is None or not plain else (seen.begin, _ahead(seen, self._used))
        return Position(
            epoch=self._epoch + is_over,
            consumed=0 if is_over else self._used,
            batches=batches,
            workers=int(loader.num_workers) if plain else 0,
            persistent=plain and bool(loader.persistent_workers),
            mid_step=False,
            now=states_with(loader if plain else None),
            begin=begin,
            ahead=ahead,
        )


def _ahead(seen: PassFacts, used: int) -> tuple[States | None, ...]:
    """Return the states before each fetch of a batch that the loop has not used."""
    count = seen.fetched - used
    return (tuple(seen.ahead) or (None,) * count)[-count:] if count else ()


def _check_loader(loader: Any) -> None:
    if getattr(loader, "use_stateful_dataloader", False) or type(loader).__name__ == "DataLoaderDispatcher":
        raise refused(
            "the loader fetches batches out of step with the loop (use_stateful_dataloader or "
            "dispatch_batches); turn both off"
        )
