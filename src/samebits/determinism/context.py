"""`samebits.deterministic`: control from inside a script, a notebook or a test."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from samebits.determinism.activation import Activation
from samebits.determinism.deterministic_ops import ErrorExplainer, explain
from samebits.errors import SamebitsError
from samebits.switches.switch import Control

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType, TracebackType

    from typing_extensions import Self

    from samebits.determinism._drift import Drift
    from samebits.determinism.activation import ActivationReport, Warn


class Determinism:
    """Control of this process, active since it was made; also a context manager.

    `with` blocks may be nested and entered again: control ends with the outermost one, or with `restore`. It
    begins again, with the same seed, when a block is entered after that. It holds for all threads, because
    switches and global generators belong to the process.

    Args:
        control: the control to apply.
        warn: see `Activation`.
    """

    def __init__(self, control: Control, warn: Warn | None = None) -> None:
        self._control = control
        self._warn = warn
        self._step_hook: Any = None
        self._depth = 0
        self._begin()

    @property
    def report(self) -> ActivationReport:
        """The switches that were set, and those that could not be."""
        return self._activation.report

    def check(self, step: int | None = None) -> tuple[Drift, ...]:
        """Look for drift now. Every optimizer step does so; a loop without an optimizer may call it.

        Raises:
            SamebitsError: something changed, and `on_drift` is `error`; `drift`.
        """
        return self._activation.check(step)

    def rebase(self) -> None:
        """Accept the present positions of the generators, after resuming from a checkpoint set them."""
        self._activation.rebase()

    def restore(self) -> None:
        """Put every switch back. Generators stay where they are. Does nothing the second time."""
        if self._activation.running:
            self._end()

    def __enter__(self) -> Self:
        if not self._activation.running:
            self._begin()
        self._depth += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._depth = max(0, self._depth - 1)
        if not self._depth:
            self.restore()
        text = None if error is None or isinstance(error, SamebitsError) else explain(error)
        if text is not None:
            raise SamebitsError(text, slug="nondeterministic-op") from error

    def _begin(self) -> None:
        self._activation = Activation(self._control, fresh_process=False, warn=self._warn)
        self._explainer = ErrorExplainer()
        self._activation.start()
        try:
            self._explainer.install()
            self._activation.add_part(self._explainer)
            self._activation.on_torch(self._follow_steps)
        except BaseException:
            self._end()
            raise

    def _end(self) -> None:
        if self._step_hook is not None:
            self._step_hook.remove()
            self._step_hook = None
        self._explainer.pause()
        self._activation.stop()

    def _follow_steps(self, _: ModuleType) -> None:
        optimizers: Any = sys.modules["torch.optim.optimizer"]
        self._step_hook = optimizers.register_optimizer_step_post_hook(self._stepped)

    def _stepped(self, *_: Any) -> None:
        self._activation.check()


def deterministic(
    seed: int | None = None,
    *,
    switches: Mapping[str, str | int | bool] | None = None,
    all_switches: bool = True,
    on_drift: str = "warn",
    workers: bool = True,
    **more: bool,
) -> Determinism:
    """Make this process repeatable from here on, or for a `with` block.

    Some switches act only before the interpreter or CUDA starts and cannot be set from inside a process; one
    warning names them. `samebits run --seed N script.py` sets all of them.

    Args:
        seed: from 0 to 2**64 - 1; None leaves all RNG sources alone.
        switches: name -> value, where it is to differ from the table's (docs/reference/switches.md). True and
            False stand for `on` and `off`, and `leave` leaves a switch alone.
        all_switches: False touches only the switches in `switches`.
        on_drift: the reaction when a switch or a generator is changed later: `warn`, `error`, `restore` or
            `ignore`.
        workers: seed DataLoader workers too.
        more: `per_rank=True`: each process of a distributed run gets its own seed. `keyed_samples=True`:
            random numbers drawn while a sample is loaded follow from the seed, the epoch and the sample, so
            the number of workers does not matter (docs/reference/data.md).

    Raises:
        SamebitsError: an invalid seed (`seed`), switch (`switch-unknown`), value (`switch-value`) or
            `on_drift`, `switches` that are not a mapping, or `keyed_samples` without a seed or without
            `workers` (`usage`).
        TypeError: an argument is unknown.
    """
    unknown = sorted(more.keys() - {"per_rank", "keyed_samples"})
    if unknown:
        raise TypeError(f"deterministic() got an unexpected keyword argument {unknown[0]!r}")
    if more.get("keyed_samples") and (seed is None or not workers):
        message = "keyed_samples=True needs a seed, and does not work with workers=False; give seed=N"
        raise SamebitsError(message, slug="usage")
    if switches is not None and not hasattr(switches, "items"):
        message = f"switches is {switches!r}; expected a mapping of names to values"
        raise SamebitsError(message, slug="usage")
    chosen = tuple((str(name), _text(value)) for name, value in (switches or {}).items())
    control = Control(
        seed=seed,
        per_rank=more.get("per_rank", False),
        keyed_samples=more.get("keyed_samples", False),
        switches=chosen,
        all_switches=all_switches,
        on_drift=on_drift,
        workers=workers,
    )
    return Determinism(control)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)
