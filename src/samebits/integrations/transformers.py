"""`SamebitsCallback` for trainers of transformers and TRL: a record, steps executed again, exact resuming."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from samebits.errors import SamebitsError
from samebits.integrations._arguments import Options, refused, warn
from samebits.integrations._libraries import library
from samebits.integrations._loader_generators import restore_held, restore_with, states_with
from samebits.integrations._loader_watch import LoaderWatch
from samebits.integrations._position import Checkpoints, Position, from_checkpoint, length_of
from samebits.integrations._recorded import TrainingRecord
from samebits.replay_guard.guard import ReplayGuard
from samebits.rng.states import restore_states

if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from pathlib import Path

    from samebits.replay_guard.mismatch import Mismatch

_KEY = "SamebitsCallback"  # in a checkpoint's trainer_state.json, under `stateful_callbacks`
_trainers: Any = library("transformers", "transformers").trainer_callback
_Callback: Any = _trainers.TrainerCallback
_Exportable: Any = _trainers.ExportableState


class SamebitsCallback(_Callback, _Exportable):  # type: ignore[misc] # classes of transformers, by name
    """Records the training of a `Trainer`, executes steps of it again, and lets it resume with the same bits.

    Example::

        trainer = Trainer(model, args, train_dataset=data, callbacks=[SamebitsCallback(record="run.sbr")])
        trainer.train()

    TRL's trainers are such trainers. What transformers 5 leaves out of its checkpoints: registered generators
    and those of other libraries, and, without a launcher, all CUDA devices but the current one. In the middle
    of an epoch it restores the states that it has after the first batches are loaded, so a dataset that draws
    gives other samples. With the callback, `trainer_state.json` holds the states of all RNG sources, now and
    before the batches that were loaded and not used yet, and the trainer goes on from them.

    Args:
        record: the record to write, from the beginning to the end of training, at the level of steps. One
            that is there is kept, and `run-2.sbr` is written instead. Not written where the script runs under
            `samebits run` or `verify`: that records it already.
        replay_every: how many calls of `training_step` make one that is executed again; see `ReplayGuard`. No
            callback is told of these calls, so it needs `attach`.
        on_mismatch: what happens then, as for `ReplayGuard`.
        exact_resume: add the RNG states to checkpoints, and resume from them. A checkpoint that cannot be
            resumed exactly is refused, or resumed with a warning that says what may differ.

    Raises:
        SamebitsError: `replay_every` is not a whole number from 1, or training starts without `attach`,
            `replay-guard`. When training starts: it cannot be resumed exactly, `exact-resume`; the record
            cannot be written.
    """

    def __init__(
        self,
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
        self._resumed: Position | None = None
        self._goes_on = False
        self._progress: tuple[int, int, Any] = (0, 0, None)  # epoch, batches that it used, loader
        self._guard_state: dict[str, Any] | None = None
        self.guard: ReplayGuard | None = None
        self._step: Callable[..., Any] | None = None

    @property
    def record(self) -> Path | None:
        """The record of the last training, whose name has a number if the one given was taken."""
        return self._record.written

    def attach(self, trainer: Any) -> SamebitsCallback:
        """Add the callback to a trainer, and execute steps of its `training_step` again.

        Args:
            trainer: a `transformers.Trainer`, or one of TRL that has no training step of its own making.

        Returns:
            The callback.
        """
        trainer.add_callback(self)
        step = trainer.training_step

        def training_step(model: Any, *args: Any, **named: Any) -> Any:
            if self._options.replay_every is None:
                return step(model, *args, **named)
            # The model is no argument of the guarded step: each rank has its own.
            return self._guard_of(model, self._options.replay_every)(partial(step, model), *args, **named)

        self._step = trainer.training_step = training_step
        return self

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint holds: the RNG states, and the counters of the guard."""
        options = self._options
        arguments = {name: getattr(options, name) for name in ("record", "replay_every", "exact_resume")}
        saved: dict[str, Any] = {"args": arguments, "attributes": {}}
        if self.guard is not None:
            saved["guard"] = self.guard.state_dict()
        if options.exact_resume and self._progress[2] is not None:  # the trainer asks before it trains, too
            saved["position"] = self._saved_position(waits=True)
        return saved

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Begin to record and to watch the loader; take what the checkpoint holds, if any."""
        del control
        if self._options.replay_every is not None and self._step is None:
            message = (
                "replay_every needs the trainer, whose training_step is executed again: "
                "call SamebitsCallback(...).attach(trainer) instead of passing it in `callbacks`"
            )
            raise SamebitsError(message, slug="replay-guard")
        if state.global_step > 0:
            # The trainer expects an entry when it saves.
            self._take(args, state.stateful_callbacks.setdefault(_KEY, {}), kwargs["train_dataloader"])
        if self._options.exact_resume:
            self._watch.install()
        self._record.begin()

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Expect the iterator of the epoch, which goes on where the training was stopped."""
        del control
        loader = kwargs["train_dataloader"]
        position, self._resumed = self._resumed, None
        used = 0
        if position is not None:
            restore_with(position.now, None)
            restore_held(position.now if position.consumed == 0 else (), loader)
            used = position.consumed
        self._goes_on = used > 0
        self._progress = (int(state.epoch or 0), used, loader)
        # The trainer leaves out the batches that were used before it loads anything.
        goes_on = position.continuation(skip=0) if position is not None and used else None
        self._watch.expect(loader.dataset, goes_on)
        del args

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Undo the trainer's own restoring, which comes after the first batches are loaded."""
        del args, state, control, kwargs
        seen = self._watch.expected
        if self._goes_on and seen is not None and seen.after is not None:
            restore_states(seen.after)
        self._goes_on = False

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Count the batches that the step used."""
        del state, control, kwargs
        epoch, used, loader = self._progress
        used += args.gradient_accumulation_steps
        self._progress = (epoch, used, loader)

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Give the rank that writes the checkpoint what it needs: it alone is asked for its `state`."""
        del state, control, kwargs
        if self._options.exact_resume and not args.should_save:
            self._saved_position(waits=False)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Close the record, and leave nothing behind."""
        del args, state, control, kwargs
        self._watch.remove()
        self._record.end()
        self._progress = (0, 0, None)

    def _saved_position(self, *, waits: bool) -> dict[str, Any]:
        epoch, used, _ = self._progress
        return self._checkpoints.saved(self._position(), f"transformers {epoch} {used}", waits=waits)

    def _position(self) -> Position:
        epoch, used, loader = self._progress
        seen, batches = self._watch.expected, length_of(loader)
        ahead = () if seen is None else tuple(seen.ahead)[-1:]  # accelerate's loader fetches one ahead
        return Position(
            epoch=epoch,
            consumed=0 if 0 <= batches <= used else used,
            batches=batches,
            workers=int(loader.num_workers),
            persistent=bool(loader.persistent_workers),
            mid_step=False,
            now=states_with(loader),
            begin=() if seen is None else seen.begin,
            ahead=ahead if loader.num_workers == 0 else (None,),
        )

    def _take(self, args: Any, saved: Any, loader: Any) -> None:
        saved = saved if isinstance(saved, dict) else {}
        self._guard_state = saved.get("guard")
        if not self._options.exact_resume:
            return
        if "position" not in saved:
            warn(
                "the checkpoint was saved without SamebitsCallback(exact_resume=True): the training resumes "
                "as transformers does it, and may go on with other bits than if it had never stopped"
            )
            return
        position = from_checkpoint(saved["position"])
        if position.is_mid_epoch:
            _check_middle(position, args, loader)
        self._resumed = position

    def _guard_of(self, model: Any, every: int) -> ReplayGuard:
        if self.guard is None:
            self.guard = ReplayGuard(model, every=every, on_mismatch=self._options.on_mismatch)
            if self._guard_state is not None:
                self.guard.load_state_dict(self._guard_state)
        return self.guard


def _check_middle(position: Position, args: Any, loader: Any) -> None:
    """Refuse what cannot go on in the middle of an epoch, and warn of what may differ there."""
    position.check_loader(loader)
    if args.ignore_data_skip:
        raise refused("ignore_data_skip=True begins the epoch again; leave it False")
    if position.batches < 0:
        raise refused("the dataset has no length; take a checkpoint from the end of an epoch")
    if loader.num_workers:
        warn(
            "the trainer leaves out the batches that were used without loading them, so random numbers that "
            "loading draws in workers differ; with dataloader_num_workers=0 they are the same"
        )
    elif not args.accelerator_config.use_seedable_sampler:
        raise refused("use_seedable_sampler=False draws the order of samples while it skips; leave it True")
