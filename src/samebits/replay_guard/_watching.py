"""Hooks that execute the passes of a model again where the loop is not the user's own."""

from __future__ import annotations

import contextlib
import weakref
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from samebits._runtime.frames import show_warning
from samebits.errors import SamebitsError
from samebits.replay_guard._engine import unseen
from samebits.replay_guard._rank_exchange import Ranks
from samebits.replay_guard._step import GuardedStep
from samebits.replay_guard._tensor_state import copy_of, tensors_in
from samebits.replay_guard.mismatch import MismatchKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from samebits.replay_guard._engine import Engine
    from samebits.replay_guard._step import Scope
    from samebits.replay_guard.mismatch import Mismatch

_PATIENCE = 3  # steps that are due without a pass that can be executed again
_MOST_OTHERS = 10  # steps of other optimizers of the model in a row; a model may have a few


class Watch:
    """The hooks of `ReplayGuard.watch`, until `remove`.

    Args:
        engine: of the guard.
        model: whose passes are executed again.
        optimizer: before whose step that is done; or before that of another that changes the model first.

    Raises:
        SamebitsError: the guard watches already; `replay-guard`.
    """

    def __init__(self, engine: Engine, model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self._engine = engine
        self._model = model
        self._pass: _Pass | None = None
        self._replaying = False
        self._fits = False
        self._checked = False
        self._missed = self._others = 0
        self._optimizer = optimizer
        if engine.watching:
            message = "the guard watches already: call `remove()` of the handle first, or make another guard"
            raise SamebitsError(message, slug="replay-guard")
        engine.watching = True
        self._handles: list[Any] = [
            model.register_forward_pre_hook(self._before_forward, with_kwargs=True, prepend=True),
            model.register_forward_hook(self._after_forward),
            register_optimizer_step_pre_hook(_weakly(self._before_any_step)),
        ]
        weakref.finalize(self, self._handles[-1].remove)

    def remove(self) -> None:
        """Take the hooks away."""
        self._drop()
        if self._handles:
            self._engine.watching = False
        while self._handles:
            self._handles.pop().remove()

    def _drop(self) -> None:
        if self._pass is not None:
            self._pass.stop()
        self._pass = None

    def _before_forward(self, _model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self._replaying or not torch.is_grad_enabled():
            return
        self._drop()
        if self._engine.is_due():
            scope = self._engine.scope(self._model.forward, (args, kwargs), incoming=True)
            self._pass = _Pass(scope, self._model, (args, kwargs))

    def _after_forward(self, _model: Any, _args: Any, output: Any) -> None:
        if self._pass is not None and not self._replaying and torch.is_grad_enabled():
            self._pass.give(output)

    def _before_any_step(self, optimizer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self._replaying:
            return
        closure = any(map(callable, (*args[1:], *kwargs.values())))  # it makes passes of its own
        if optimizer is self._optimizer:
            self._before_step(closure=closure)
        elif self._shares_parameters(optimizer):
            self._before_other(type(optimizer).__name__, closure=closure)

    def _before_step(self, *, closure: bool) -> None:
        due = self._engine.is_due()
        found = self._inspected(closure=closure)
        self._missed = 0 if self._checked else self._missed + due
        self._checked = False
        self._others = 0
        self._engine.steps += 1
        if self._missed >= _PATIENCE:
            self._give_up(
                "the optimizer's step is given a closure, which makes passes of its own"
                if closure
                else "no forward pass of the model with a backward pass was seen before a step of the "
                "optimizer"
            )
        self._engine.report(found)

    def _before_other(self, name: str, *, closure: bool) -> None:
        """Execute the pass again before this step, too: afterwards the parameters are others."""
        self._others += 1
        if self._others > _MOST_OTHERS:
            self._give_up(
                f"in {_MOST_OTHERS} steps that another optimizer ({name}) made with the model's parameters, "
                "the one that `watch` was given made none"
            )
            return
        self._engine.report(self._inspected(closure=closure))

    def _shares_parameters(self, optimizer: Any) -> bool:
        own = {id(parameter) for parameter in self._model.parameters()}
        return any(id(each) in own for group in optimizer.param_groups for each in group["params"])

    def _inspected(self, *, closure: bool) -> tuple[Mismatch, ...]:
        now, self._pass = self._pass, None
        if now is None:
            return ()
        now.stop()
        if closure or not now.complete:
            return ()
        self._checked = True
        return self._execute(now)

    def _execute(self, now: _Pass) -> tuple[Mismatch, ...]:
        self._replaying = True
        try:
            found = self._engine.inspect(now.scope, now.step, now.output, now)
        finally:
            self._replaying = False
        # A fault is on one rank; what the loop does to gradients, on all.
        unfit = sum(map(_is_unfit, found)) == Ranks(self._engine.settings.group).size
        if self._fits or not unfit:
            self._fits = True
            return found
        self._give_up(f"executed again, the model gives other gradients ({found[0].tensors[0].name} first)")
        return ()

    def _give_up(self, why: str) -> None:
        self.remove()
        show_warning(
            f"samebits: ReplayGuard stopped to watch: {why}. The gradients must come from one call of the "
            "model and one backward pass. Guard a step function instead: `guard(step_function, batch)`"
        )


def _weakly(method: Callable[..., None]) -> Callable[..., None]:
    """Return a hook for all optimizers that keeps no model alive: that of its object, while there is one."""
    reference = weakref.WeakMethod(method)

    def hook(*args: Any) -> None:
        alive = reference()
        if alive is not None:
            alive(*args)

    return hook


def _is_unfit(mismatch: Mismatch) -> bool:
    """Tell whether only the first execution differs: gradients came from more than the model's pass."""
    return mismatch.kind == MismatchKind.TRANSIENT and mismatch.odd == 1 and not mismatch.across_ranks


class _Pass:
    """A forward pass and the backward pass through it, as they went, to be executed again.

    Args:
        scope: what it works on.
        model: the module.
        arguments: positional and keyword arguments.
    """

    def __init__(self, scope: Scope, model: torch.nn.Module, arguments: Any) -> None:
        self.scope = scope
        with unseen():
            self.step = GuardedStep(scope)
        self.output: Any = None
        self._model = model
        self._given = arguments
        self._gradients: dict[int, torch.Tensor] = {}
        self._below: dict[int, set[int]] = {}
        self._autocast = _autocast_settings(scope.modules)
        self._hooks = contextlib.ExitStack()
        self._hooks.enter_context(self.step.first())

    @property
    def complete(self) -> bool:
        """Whether there was a backward pass."""
        return bool(self._gradients)

    @property
    def arguments(self) -> Any:
        """What the model was given, and the gradients of its outputs by their positions.

        A model that returns its loss and the logits of which it is made: the gradient of the logits follows
        from that of the loss, and is left out.
        """
        implied = {number for above in self._gradients for number in self._below.get(above, ())}
        return self._given, {
            number: each for number, each in self._gradients.items() if number not in implied
        }

    def give(self, output: Any) -> None:
        """Note the output of the model, and have the gradients of its tensors noted."""
        self.output = output
        self._below = _dependencies(list(tensors_in(output)))
        for number, tensor in enumerate(tensors_in(output)):
            if tensor.requires_grad:
                register: Any = tensor.register_hook  # torch gives it no types
                self._hooks.callback(register(partial(self._arrive, number)).remove)

    def _arrive(self, number: int, gradient: torch.Tensor) -> None:
        with unseen():
            self._gradients[number] = copy_of(gradient)

    def stop(self) -> None:
        """Note nothing any more."""
        self._hooks.close()

    def run(self, arguments: Any) -> Any:
        """Make both passes with such arguments, under the autocast settings of the first time."""
        (args, kwargs), gradients = arguments
        with contextlib.ExitStack() as stack:
            for context in self._autocast:
                stack.enter_context(torch.autocast(**context))
            output = self._model(*args, **kwargs)
        tensors = list(tensors_in(output))
        roots = [tensors[number] for number in gradients]
        torch.autograd.backward(
            roots, [each.to(root.device) for each, root in zip(gradients.values(), roots, strict=True)]
        )
        return output


def _dependencies(outputs: list[torch.Tensor]) -> dict[int, set[int]]:
    """Return for each output the others of which it is made, by their positions."""
    nodes = {number: each.grad_fn for number, each in enumerate(outputs) if each.grad_fn is not None}
    below: dict[int, set[int]] = {}
    if len(nodes) < 2:
        return below
    for number, start in nodes.items():
        waiting, seen = [start], {start}
        while waiting:
            for parent, _ in waiting.pop().next_functions:
                if parent is not None and parent not in seen:
                    seen.add(parent)
                    waiting.append(parent)
        below[number] = {other for other, node in nodes.items() if node is not start and node in seen}
    return below


def _autocast_settings(modules: tuple[torch.nn.Module, ...]) -> list[dict[str, Any]]:
    kinds = {"cpu"} | {parameter.device.type for module in modules for parameter in module.parameters()}
    return [
        {
            "device_type": kind,
            "dtype": torch.get_autocast_dtype(kind),
            "enabled": torch.is_autocast_enabled(kind),
            "cache_enabled": torch.is_autocast_cache_enabled(),
        }
        for kind in sorted(kinds)
        if torch.is_autocast_enabled(kind)
    ]
