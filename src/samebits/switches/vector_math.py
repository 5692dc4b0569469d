"""Elementwise functions of MKL, called once before threads call them together.

torch computes `sqrt`, `exp`, `log` and others of contiguous float tensors on the CPU by MKL, each thread its
part. MKL picks the kernels at the first call, and a thread that comes in meanwhile may compute its part by a
kernel of low accuracy (pytorch#188792, MKL 2024.2). Measured with torch 2.13.0 on two busy cores: 8 of 36
runs of a small GPT differed, in the first `sqrt` of AdamW.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from samebits._torch.core import enter_shelter
from samebits.switches.switch import KINDS, unfit

if TYPE_CHECKING:
    from collections.abc import Callable

# Those of aten/src/ATen/cpu/vml.h, 2.13.0.
FUNCTIONS = (
    "acos", "asin", "atan", "cos", "erf", "erfc", "erfinv", "exp",
    "log", "log10", "log2", "sin", "sqrt", "tan", "tanh", "trunc",
)  # fmt: skip


class VectorMath:
    """Whether this process has called each function of MKL once, on one element, from one thread."""

    def __init__(self) -> None:
        self._prepared = False

    @property
    def module(self) -> str:
        """Torch."""
        return "torch"

    @property
    def setters(self) -> tuple[str, ...]:
        """None: only this class sets it."""
        return ()

    def missing(self) -> str:
        """Whether this torch is built without MKL."""
        found = getattr(sys.modules.get("torch"), "_C", None)
        return "" if getattr(found, "has_mkl", False) else "this build of torch has no MKL"

    def problem(self, value: str) -> str:
        """What is expected instead."""
        return unfit(KINDS["switch"], value)

    def read(self) -> str:
        """`on` when it was done here; `off` says nothing of what the script itself has called."""
        return "on" if self._prepared else "off"

    def write(self, value: str) -> None:
        """Call them.

        Raises:
            ValueError: `off`, when it has been done.
        """
        if value == "off" and self._prepared:
            raise ValueError("expected `on`: what was prepared in this process stays so")
        if value == "on" and not self._prepared:
            _call_each()
            self._prepared = True

    def restore(self, before: str) -> None:
        """Nothing: it cannot be undone, and changes no setting."""

    def probe(self) -> Callable[[], object] | None:
        """Whether it was done."""
        return lambda: self._prepared


def _call_each() -> None:
    """One element is computed by the calling thread alone; float32 and float64 have kernels of their own."""
    torch: Any = importlib.import_module("torch")
    from samebits._torch.portable import outside_modes

    entered = enter_shelter()
    try:
        with outside_modes():  # portable mode too, whose first op of a kind imports torch's compiler
            for dtype in (torch.float32, torch.float64):
                one = torch.full((1,), 0.5, dtype=dtype, device="cpu", requires_grad=False)
                for name in FUNCTIONS:
                    getattr(torch, name)(one)
    finally:
        for context in reversed(entered):
            context.__exit__(None, None, None)
