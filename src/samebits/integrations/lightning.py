"""`SamebitsCallback` for Lightning: a record, steps executed again, and exact resuming."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from torch.utils.data import DataLoader as TorchLoader

from samebits.data.loader import DataLoader
from samebits.errors import SamebitsError
from samebits.integrations._arguments import Options, refused, warn
from samebits.integrations._libraries import library
from samebits.integrations._loader_generators import restore_with, states_with
from samebits.integrations._loader_watch import LoaderWatch
from samebits.integrations._position import Checkpoints, Position, from_checkpoint, length_of
from samebits.integrations._recorded import TrainingRecord
from samebits.replay_guard.guard import ReplayGuard

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from samebits.replay_guard.mismatch import Mismatch

_KEY = "samebits"  # in a checkpoint
_Callback: Any = library("lightning.pytorch.callbacks", "lightning").Callback


class SamebitsCallback(_Callback):  # type: ignore[misc] # Lightning's own class, imported by its name
    """Records a training of Lightning, executes steps of it again, and lets it resume with the same bits.

    Example::

        trainer = Trainer(max_epochs=3, callbacks=[SamebitsCallback(record="run.sbr", replay_every=100)])

    Checkpoints of Lightning 2.6 hold no RNG state, and a run that resumes makes its data iterator from the
    generators as they happen to be then. With the callback each checkpoint has the states of all RNG sources,
    at that moment and before the epoch's iterator was made. A resumed run goes on from them, at the end of an
    epoch and in its middle, where it loads and leaves out the batches that were used.

    Args:
        record: the record to write, of all that `fit` does, at the level of steps. One that is there is
            kept, and `run-2.sbr` is written instead. Not written where the script runs under `samebits run`
            or `verify`: that records it already.
        replay_every: how many optimizer steps make one whose forward and backward pass is executed again;
            see `ReplayGuard`. With `accumulate_grad_batches`, the last batch before the step is.
        on_mismatch: what happens then, as for `ReplayGuard`.
        exact_resume: add the RNG states to checkpoints, and resume from them. A checkpoint that cannot be
            resumed exactly is refused, and one that has no such states is resumed with a warning.

    Raises:
        SamebitsError: `replay_every` is not a whole number from 1, `replay-guard`. When training starts: it
            cannot be resumed exactly, `exact-resume`; the record cannot be written.
    """

    def __init__(
        self,
        *,
        record: str | os.PathLike[str] | None = None,
        replay_every: int | None = None,
        on_mismatch: str | Callable[[Mismatch], Any] = "raise",
        exact_resume: bool = True,
    ) -> None:
        super().__init__()
        self._options = Options.of(record, replay_every, on_mismatch, exact_resume)
        self._record = TrainingRecord(self._options.record)
        self._watch = LoaderWatch()
        self._checkpoints = Checkpoints()
        self._batch: Any = None
        self._resumed: Position | None = None
        self._guard_state: dict[str, Any] | None = None
        self._unwrap: Callable[[], None] | None = None
        self.guard: ReplayGuard | None = None

    @property
    def record(self) -> Path | None:
        """The record of the last training, whose name has a number if the one given was taken."""
        return self._record.written

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        """Begin to record and to watch the loaders; wrap the optimizer step."""
        self._record.begin()
        if self._options.exact_resume:
            self._watch.install()
        if self._options.replay_every is not None:
            self._guard_steps(trainer, pl_module, self._options.replay_every)

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Go on from the states of the checkpoint that was loaded, if any."""
        del pl_module
        position, self._resumed = self._resumed, None
        if position is not None and self._options.exact_resume:
            if position.mid_step:
                raise refused("the checkpoint was saved in the middle of a step; take one from between steps")
            _go_to(position, trainer)

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        """Note the batch of the step."""
        del trainer, pl_module, batch_idx
        self._batch = batch

    def on_save_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        """Add the RNG states of all ranks, and the counters of the guard."""
        del pl_module
        saved: dict[str, Any] = {} if self.guard is None else {"guard": self.guard.state_dict()}
        if self._options.exact_resume:
            moment = f"lightning {trainer.global_step} {trainer.current_epoch}"
            waits = bool(trainer.is_global_zero)
            saved["position"] = self._checkpoints.saved(self._position(trainer), moment, waits=waits)
            saved["before_validation"] = _is_before_validation(trainer.fit_loop)
        checkpoint[_KEY] = saved

    def on_load_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        """Take what the checkpoint holds, until training starts."""
        del pl_module
        if trainer.state.fn != "fit":
            return
        saved = checkpoint.get(_KEY, {})
        self._guard_state = saved.get("guard")
        if not self._options.exact_resume:
            return
        if "position" not in saved:
            warn(
                "the checkpoint was saved without SamebitsCallback(exact_resume=True) and has no RNG states: "
                "the training goes on with other random numbers than if it had never stopped"
            )
            return
        if saved.get("before_validation"):
            raise refused(
                "the checkpoint was saved after a training batch and before the validation that followed, "
                "which Lightning leaves out when it resumes; save at the end of an epoch or after validation"
            )
        self._resumed = from_checkpoint(saved["position"])

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
        """Close the record, and leave nothing behind."""
        del trainer, pl_module
        self._finish(None)

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """Close the record, and leave nothing behind."""
        del trainer, pl_module
        self._finish(exception)

    def _finish(self, error: BaseException | None) -> None:
        self._watch.remove()
        if self._unwrap is not None:
            self._unwrap()
        self._unwrap = self._batch = None
        self._record.end(error)

    def _position(self, trainer: Any) -> Position:
        progress = trainer.fit_loop.epoch_loop.batch_progress.current
        loaders = _loaders(trainer)
        first = loaders[0] if len(loaders) == 1 and _is_plain(loaders[0]) else None
        seen = None if first is None else self._watch.latest(first)
        return Position(
            epoch=int(trainer.current_epoch),
            consumed=0 if progress.ready >= trainer.num_training_batches else int(progress.ready),
            batches=-1 if first is None else length_of(first),
            workers=0 if first is None else int(first.num_workers),
            persistent=first is not None and bool(first.persistent_workers),
            mid_step=progress.ready != progress.processed,
            now=states_with(first),
            begin=() if seen is None else seen.begin,
        )

    def _guard_steps(self, trainer: Any, pl_module: Any, every: int) -> None:
        if not pl_module.automatic_optimization:
            message = (
                "replay_every needs Lightning's automatic optimization: with manual optimization only the "
                "training_step knows where forward and backward end. Call a samebits.ReplayGuard in it"
            )
            raise SamebitsError(message, slug="replay-guard")
        guard = ReplayGuard(trainer.model, every=every, on_mismatch=self._options.on_mismatch)
        if self._guard_state is not None:
            guard.load_state_dict(self._guard_state)
        self.guard, step = guard, pl_module.optimizer_step

        def optimizer_step(epoch: Any, batch: Any, optimizer: Any, optimizer_closure: Any = None) -> None:
            own = self._batch
            step(epoch, batch, optimizer, lambda: guard(_Passes(optimizer_closure, pl_module, own), own))

        pl_module.optimizer_step = optimizer_step
        self._unwrap = lambda: pl_module.__dict__.pop("optimizer_step", None)


class _Passes:
    """The forward and the backward pass of a step; executed again, they log nothing.

    Args:
        closure: makes them, with the batch that it holds.
        pl_module: whose training step it calls.
        batch: that it holds.
    """

    def __init__(self, closure: Callable[[], Any], pl_module: Any, batch: Any) -> None:
        self._closure, self._module, self._batch = closure, pl_module, batch
        self._calls = iter((False,))  # the guard puts counters back

    def __call__(self, batch: Any) -> Any:
        """Make them with a batch: the one of the closure, or that of another rank."""
        with contextlib.ExitStack() as stack:
            if next(self._calls, True):
                stack.enter_context(_without_logging(self._module))
            if batch is not self._batch:
                stack.enter_context(_given(self._module, batch))
            return self._closure()


@contextlib.contextmanager
def _given(pl_module: Any, batch: Any) -> Iterator[None]:
    step = pl_module.training_step

    def training_step(_own: Any, *args: Any, **named: Any) -> Any:
        return step(batch, *args, **named)

    pl_module.training_step = training_step
    try:
        yield
    finally:
        del pl_module.training_step


@contextlib.contextmanager
def _without_logging(pl_module: Any) -> Iterator[None]:
    pl_module.log = lambda *_args, **_named: None  # `log_dict` calls it
    try:
        yield
    finally:
        del pl_module.log


def _loaders(trainer: Any) -> list[Any]:
    combined = trainer.fit_loop._combined_loader
    return [] if combined is None else list(combined.flattened)


def _set_epoch(loaders: list[Any], epoch: int) -> None:
    """Have samplers shuffle for an epoch: Lightning does so too late for an iterator that is made here."""
    for loader in loaders:
        samplers = (getattr(loader, "sampler", None), getattr(loader, "batch_sampler", None))
        for sampler in (*samplers, getattr(samplers[1], "sampler", None)):
            set_epoch = getattr(sampler, "set_epoch", None)
            if set_epoch is not None:
                set_epoch(epoch)


def _is_plain(loader: Any) -> bool:
    """Tell whether it is torch's own, which keeps no position."""
    return isinstance(loader, TorchLoader) and not hasattr(loader, "state_dict")


def _is_before_validation(fit_loop: Any) -> bool:
    """Tell whether the hook that saves runs after a training batch, and validation comes next."""
    epoch_loop = fit_loop.epoch_loop
    progress = epoch_loop.batch_progress.current
    between = progress.ready == progress.processed != progress.completed
    return bool(between and epoch_loop._should_check_val_fx(fit_loop._data_fetcher))


def _go_to(position: Position, trainer: Any) -> None:
    """Put the data and the RNG sources where they were."""
    loop, loaders = trainer.fit_loop, _loaders(trainer)
    if position.is_mid_epoch:
        _go_to_batch(position, loop, loaders)
    elif loaders and all(map(_is_plain, loaders)):
        # The iterator was made before any hook. A training that never stopped makes it later, from `now`.
        if loop.epoch_loop.restarted_on_train_batch_end:  # the next epoch begins with the one that is there
            _set_epoch(loaders, position.epoch + 1)
            restore_with(position.now, loaders[0] if len(loaders) == 1 else None)
            iter(loop._data_fetcher)
            return
        # Unless it resumes, the loop makes one where a training that never stopped does
        # (lightning 2.6.6, loops/training_epoch_loop.py, `on_run_start`, and loops/loop.py, `is_resuming`).
        loop._resuming_from_checkpoint = False
    restore_with(position.now, loaders[0] if len(loaders) == 1 else None)


def _go_to_batch(position: Position, loop: Any, loaders: list[Any]) -> None:
    """Move the data to where the training was stopped, in the middle of an epoch."""
    if loaders and all(isinstance(loader, DataLoader) for loader in loaders):
        return  # Lightning has restored their positions, and they draw nothing
    if loaders and all(hasattr(loader, "state_dict") for loader in loaders):
        warn(
            f"the position of {type(loaders[0]).__name__} is restored by itself: samebits does not know what "
            "it draws, so augmentation may differ; samebits.DataLoader resumes exactly"
        )
        return
    fetcher = loop._data_fetcher
    if len(loaders) != 1 or not _is_plain(loaders[0]) or fetcher.length is None:
        raise refused(
            "the checkpoint is from the middle of an epoch, and only samebits.DataLoader, or one torch "
            "DataLoader with a length, can go on there"
        )
    position.check_loader(loaders[0])
    _set_epoch(loaders, position.epoch)
    restore_with(position.begin, loaders[0])
    iter(fetcher)
    for _ in range(position.consumed):
        next(fetcher.iterator)  # past the fetcher's count, which the loop sets
