"""`ReplayGuard`: every Nth step of a training is executed again, and the bits are compared."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, TypeVar

import torch

from samebits.errors import SamebitsError
from samebits.replay_guard._engine import Engine, Settings, unseen
from samebits.replay_guard._gradients import check_wrappers
from samebits.replay_guard._step import GuardedStep
from samebits.replay_guard._watching import Watch

if TYPE_CHECKING:
    from collections.abc import Callable

    from samebits.replay_guard.mismatch import Mismatch

_R = TypeVar("_R")
_POLICIES = ("raise", "warn")
_STATE = {"steps": int, "replays": int, "mismatches": dict}


@dataclasses.dataclass(frozen=True, slots=True)
class _Call:
    """A call of the user's step function."""

    function: Callable[..., Any]
    arguments: tuple[tuple[Any, ...], dict[str, Any]]

    def run(self, arguments: Any) -> Any:
        """Call it with such arguments."""
        return self.function(*arguments[0], **arguments[1])


class ReplayGuard:
    """Executes every Nth step of a training again and compares the bits, to find faulty hardware.

    Example::

        guard = samebits.ReplayGuard(model, every=100)

        def forward_backward(batch):
            loss = model(batch).mean()
            loss.backward()
            return loss

        for batch in loader:
            optimizer.zero_grad()
            loss = guard(forward_backward, batch)
            optimizer.step()

    What the step function returns, the gradients and the buffers must have the same bits each time. The
    training goes on with the results of the first execution, so that its bits are those that it has without
    the guard. Steps 0, N, 2N and so on are executed again. `watch` does without a step function.

    The step is a function because Python cannot execute the body of a `with` block twice. It does forward and
    backward with what it is given. It may draw random numbers, and change buffers and plain variables:
    counters, lists, attributes. It must not call `optimizer.step()` or fetch its own batch.

    Example of what is found: a processor that gives a wrong bit in one of a million products. Not found: what
    is wrong in the same way each time, unless ranks are compared; what goes wrong in the optimizer and in
    collectives, unless ranks are compared and it leaves their parameters different; wrong data.

    With `torch.distributed` every rank must call the guard equally often. All ranks then execute the same
    steps again, and all are told of a mismatch on any of them. With `DistributedDataParallel` each rank's own
    gradients are compared, before they are averaged. Then the step of one rank, in turn, is executed on all
    ranks too: a rank that always computes the same wrong values is found by that.

    Args:
        modules: the models whose parameters and buffers the step works on, wrapped or not.
        every: how many steps make one that is executed again; 1 for all.
        on_mismatch: `"raise"` raises `ReplayMismatchError` on all ranks; `"warn"` warns on the rank that is
            named; a function is called with the `Mismatch` on all ranks. The state of the training is then
            that of a step without the guard.
        across_ranks: execute the step of one rank on all ranks. By default where a module is a
            `DistributedDataParallel`. It needs ranks that hold the same parameters and compute alike.
        process_group: the ranks that train together; by default the default group.

    Raises:
        SamebitsError: an argument is not of that kind, `replay-guard`; a module is sharded, `replay-sharded`,
            or notes which parameters were used, `replay-unused-parameters`.
    """

    def __init__(
        self,
        *modules: torch.nn.Module,
        every: int = 100,
        on_mismatch: str | Callable[[Mismatch], Any] = "raise",
        across_ranks: bool | None = None,
        process_group: Any = None,
    ) -> None:
        _check_arguments(modules, every, on_mismatch)
        self._engine = Engine(Settings(modules, every, on_mismatch, across_ranks, process_group))

    @property
    def steps(self) -> int:
        """The number of steps that are done."""
        return self._engine.steps

    @property
    def replays(self) -> int:
        """The number of them that were executed again and compared."""
        return self._engine.replays

    @property
    def mismatches(self) -> tuple[Mismatch, ...]:
        """The last 100 mismatches that were found in this process."""
        return self._engine.found

    def __call__(self, step_function: Callable[..., _R], /, *args: Any, **kwargs: Any) -> _R:
        """Execute a step, and every Nth one again.

        Args:
            step_function: does forward and backward.
            args: its arguments.
            kwargs: likewise.

        Returns:
            What the first execution returned. What it raises is raised; that step does not count.

        Raises:
            ReplayMismatchError: executions did not agree, and `on_mismatch` is `"raise"`.
            SamebitsError: the step cannot be executed again: `replay-step-optimizes`, `replay-side-effect`,
                `replay-refused`, `replay-nested`, `replay-join`.
        """
        engine = self._engine
        if engine.busy:
            message = (
                "the guard was called within a step that it guards: expected one call for each step. "
                "Guard the outer step, or the inner ones"
            )
            raise SamebitsError(message, slug="replay-nested")
        if not engine.is_due():
            value = step_function(*args, **kwargs)
            engine.steps += 1
            return value
        call = _Call(step_function, (args, kwargs))
        scope = engine.scope(call.function, call.arguments)
        engine.busy = True
        try:
            with unseen():
                step = GuardedStep(scope)
            with step.first():
                value = step_function(*args, **kwargs)
            found = engine.inspect(scope, step, value, call)
        finally:
            engine.busy = False
        engine.steps += 1
        engine.report(found)
        return value

    def watch(self, optimizer: torch.optim.Optimizer) -> Watch:
        """Guard a loop that somebody else wrote, by hooks on the model and on an optimizer.

        In every Nth step of the optimizer, what the model was called with is kept. Before the optimizer acts,
        the model's forward pass is executed again with it, and a backward pass from the gradients of its
        outputs. Compared are the outputs and the gradients that reach the parameters. With gradient
        accumulation, the last forward pass before the step is executed again. A loss that is computed outside
        of the model is not.

        Where gradients also come from elsewhere, such as a penalty on the weights, they never agree. Then it
        warns and stops to watch; a step function is needed.

        Args:
            optimizer: whose steps count. Where another changes the model's parameters before it does, the
                passes are executed again before that. Where only others make steps, it warns and stops.

        Returns:
            A handle; `remove()` takes the hooks away.

        Raises:
            SamebitsError: the guard has several modules, or watches already; `replay-guard`.
        """
        modules = self._engine.settings.modules
        if len(modules) != 1:
            message = f"the guard has {len(modules)} modules: `watch` expects the one that the loop calls"
            raise SamebitsError(message, slug="replay-guard")
        return Watch(self._engine, modules[0], _innermost(optimizer))

    def state_dict(self) -> dict[str, Any]:
        """Return the counters, for a checkpoint."""
        engine = self._engine
        return {"steps": engine.steps, "replays": engine.replays, "mismatches": dict(engine.counts)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from the counters of `state_dict`.

        Raises:
            SamebitsError: it is something else; `replay-state`.
        """
        fits = isinstance(state, dict) and all(type(state.get(key)) is kind for key, kind in _STATE.items())
        if not fits or state["steps"] < 0 or state["replays"] < 0:
            message = f"{state!r:.80} is no state of a ReplayGuard: expected what its `state_dict()` gave"
            raise SamebitsError(message, slug="replay-state")
        engine = self._engine
        engine.steps, engine.replays = state["steps"], state["replays"]
        engine.counts = {int(rank): int(count) for rank, count in state["mismatches"].items()}


def _innermost(optimizer: Any) -> torch.optim.Optimizer:
    """Return the optimizer inside of wrappers such as those of accelerate and Lightning.

    Raises:
        SamebitsError: it is none; `replay-guard`.
    """
    while isinstance(inner := getattr(optimizer, "optimizer", None), torch.optim.Optimizer):
        optimizer = inner
    if not isinstance(optimizer, torch.optim.Optimizer):
        message = f"`watch` was given {type(optimizer).__name__}: expected a torch.optim.Optimizer"
        raise SamebitsError(message, slug="replay-guard")
    return optimizer


def _check_arguments(modules: tuple[Any, ...], every: Any, policy: Any) -> None:
    problem = ""
    if not modules or not all(isinstance(module, torch.nn.Module) for module in modules):
        kinds = ", ".join(type(module).__name__ for module in modules) or "nothing"
        problem = f"ReplayGuard was given {kinds}: expected the torch.nn.Module that the step trains"
    elif type(every) is not int or every < 1:
        problem = f"`every` is {every!r}: expected a whole number from 1"
    elif not callable(policy) and policy not in _POLICIES:
        problem = f"`on_mismatch` is {policy!r}: expected 'raise', 'warn' or a function"
    if problem:
        raise SamebitsError(problem, slug="replay-guard")
    for module in modules:
        _check_module(module)


def _check_module(module: torch.nn.Module) -> None:
    for name, parameter in module.named_parameters():
        if _is_sharded(module, parameter):
            raise SamebitsError(
                f"the parameter {name} is sharded ({type(parameter).__name__}): expected whole parameters on "
                "each rank. ReplayGuard was not made for FSDP and tensor parallelism",
                slug="replay-sharded",
            )
    check_wrappers((module,))


def _is_sharded(module: torch.nn.Module, parameter: torch.Tensor) -> bool:
    if type(parameter).__name__ == "DTensor":
        return True
    return any(type(each).__name__ == "FullyShardedDataParallel" for each in module.modules())
