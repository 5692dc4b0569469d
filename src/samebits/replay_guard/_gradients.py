"""What a backward pass gives to the parameters: read after it, or on its way, before ranks average it."""

from __future__ import annotations

import gc
from collections import Counter
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from samebits._torch.distributed import is_joining
from samebits.errors import SamebitsError
from samebits.replay_guard._tensor_state import copy_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import torch


class Incoming:
    """Collects the gradients that arrive at leaves, before they are accumulated or averaged.

    `DistributedDataParallel` averages gradients in the backward pass, so that a wrong one is on every rank
    afterwards. A hook on the parameter sees this rank's own.

    Args:
        leaves: names and tensors.
    """

    def __init__(self, leaves: Sequence[tuple[str, torch.Tensor]]) -> None:
        self._leaves = leaves
        self._arrived: list[tuple[str, torch.Tensor]] = []
        self._counts: Counter[str] = Counter()

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Collect in the body; forget what was collected before."""
        self._arrived, self._counts = [], Counter()
        with ExitStack() as stack:
            for name, leaf in self._leaves:
                if leaf.requires_grad:
                    register: Any = leaf.register_hook  # torch gives it no types
                    stack.callback(register(partial(self._arrive, name)).remove)
            yield

    def arrived(self) -> list[tuple[str, torch.Tensor]]:
        """Return them by name, in the order of the leaves; several of one leaf in the order of arrival."""
        places = {name: place for place, (name, _) in enumerate(self._leaves)}
        return sorted(self._arrived, key=lambda pair: places[pair[0].partition(" again ")[0]])

    def _arrive(self, name: str, gradient: torch.Tensor) -> None:
        number = self._counts[name]
        self._counts[name] += 1
        # A copy: torch may take the memory for `.grad`, which is averaged or clipped later.
        self._arrived.append((f"{name} again {number}" if number else name, copy_of(gradient)))


def averaging_modules(modules: Sequence[torch.nn.Module]) -> list[DistributedDataParallel]:
    """Return the modules that average gradients in the backward pass."""
    everything = {id(each): each for module in modules for each in module.modules()}
    return [each for each in everything.values() if isinstance(each, DistributedDataParallel)]


def with_wrappers(modules: tuple[torch.nn.Module, ...]) -> tuple[torch.nn.Module, ...]:
    """Return the modules; in place of one that a `DistributedDataParallel` holds, that wrapper.

    accelerate keeps the model inside of the wrapper, and so do users. Without the wrapper, an execution more
    would average gradients once more, and a wrong one of one rank would be on all.
    """
    if averaging_modules(modules) or not (dist.is_available() and dist.is_initialized()):
        return modules
    # A module does not know what holds it. By type, because `isinstance` asks lazy objects for their class.
    wrappers = [each for each in gc.get_objects() if issubclass(type(each), DistributedDataParallel)]
    held = {id(inner): wrapper for wrapper in wrappers for inner in wrapper.modules()}
    return tuple({id(held.get(id(each), each)): held.get(id(each), each) for each in modules}.values())


def check_wrappers(modules: Sequence[torch.nn.Module]) -> None:
    """Refuse a wrapper that keeps books which cannot be put back.

    Raises:
        SamebitsError: there is one; `replay-unused-parameters`.
    """
    for each in averaging_modules(modules):
        if each.find_unused_parameters and not each.static_graph:
            raise SamebitsError(
                "DistributedDataParallel(find_unused_parameters=True) notes which parameters a backward pass "
                "used, and nothing undoes what an execution more adds to that. Expected "
                "find_unused_parameters=False, or static_graph=True if each step uses the same parameters. "
                "In TrainingArguments of transformers that is ddp_find_unused_parameters=False.",
                slug="replay-unused-parameters",
            )


def joining(modules: Sequence[torch.nn.Module]) -> bool:
    """Tell whether ranks may have different numbers of batches, in the `join()` of a wrapper."""
    return any(map(is_joining, averaging_modules(modules)))


class Averaging:
    """Keeps `DistributedDataParallel` from averaging when a step is executed again.

    Args:
        modules: what the step works on, before it begins.
    """

    def __init__(self, modules: Sequence[torch.nn.Module]) -> None:
        # Whether the next forward pass broadcasts the buffers of rank 0.
        self._before = [(each, each.require_forward_param_sync) for each in averaging_modules(modules)]

    @contextmanager
    def off(self) -> Iterator[None]:
        """Run the body as the step began, but without averaging."""
        after = [(each, each.require_forward_param_sync) for each, _ in self._before]
        with ExitStack() as stack:
            for each, value in self._before:
                each.require_forward_param_sync = value
                stack.enter_context(each.no_sync())
            try:
                yield
            finally:
                for each, value in after:
                    each.require_forward_param_sync = value
