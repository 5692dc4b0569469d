"""Faults for tests: one bit of a module's output, or of its gradient, is flipped in chosen executions."""

from __future__ import annotations

import itertools
import random
from typing import Any

import torch

_INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def flipped(tensor: torch.Tensor, element: int, bit: int) -> torch.Tensor:
    """A copy with one bit of one element changed; both count from 0 and wrap around."""
    copy = tensor.detach().clone(memory_format=torch.contiguous_format)
    bits = copy.view(-1).view(_INTEGERS[copy.element_size()])
    width = 8 * copy.element_size()
    mask = 1 << (bit % width)
    bits[element % bits.numel()] ^= mask - (1 << width) if mask >> (width - 1) else mask
    return copy


class _Flip(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: Any, fault: BitFlip) -> Any:
        ctx.fault = fault
        ctx.hit = fault.hits()
        if ctx.hit and not fault.backward:
            return flipped(tensor, fault.element(), fault.bit())
        return tensor.view_as(tensor)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        fault = ctx.fault
        if ctx.hit and fault.backward:
            return flipped(gradient, fault.element(), fault.bit()), None
        return gradient, None


class BitFlip:
    """Flips a bit of the first output of a module.

    Args:
        module: whose output.
        executions: the calls of the module, from 0, in which it does; None for every call.
        place: (element, bit); None draws them afresh each time, from no generator that is put back.
        backward: flip a bit of the gradient of the output instead.
        seed: of the places that are drawn.
    """

    def __init__(
        self,
        module: torch.nn.Module,
        executions: set[int] | None,
        place: tuple[int, int] | None = None,
        *,
        backward: bool = False,
        seed: int = 0,
    ) -> None:
        self.backward = backward
        self.made = 0
        self._executions = executions
        self._place = place
        self._calls = itertools.count()
        draw = random.Random(seed)
        # An iterator, because the guard would find a generator here and put it back.
        self._drawn = iter([(draw.randrange(1 << 30), draw.randrange(8, 30)) for _ in range(1000)])
        self._at = (0, 0)
        self._handle = module.register_forward_hook(self._after)

    def remove(self) -> None:
        """Take the hook away."""
        self._handle.remove()

    def hits(self) -> bool:
        """Whether this call is one of the chosen executions."""
        hit = self._executions is None or next(self._calls) in self._executions
        self.made += hit
        self._at = self._place or (next(self._drawn) if hit else (0, 0))
        return hit

    def element(self) -> int:
        """Which element."""
        return self._at[0]

    def bit(self) -> int:
        """Which bit."""
        return self._at[1]

    def _after(self, _module: Any, _args: Any, output: Any) -> Any:
        if isinstance(output, tuple):
            return (_Flip.apply(output[0], self), *output[1:])
        return _Flip.apply(output, self)
