"""The elementwise functions of MKL are called once, before threads call them together.

torch computes `sqrt`, `exp`, `log` and others of contiguous float tensors on the CPU with MKL, in several
threads. MKL picks the kernels at the first call, and a thread that calls it meanwhile may compute its part
with a kernel of low accuracy (pytorch#188792, MKL 2024.2). Measured with torch 2.13.0 on two busy cores: 8 of
36 runs of a small GPT differed, in the first `sqrt` of AdamW.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from samebits._torch.core import enter_shelter
from samebits.switches.switch import KINDS, Handle

if TYPE_CHECKING:
    from collections.abc import Callable

# Those of aten/src/ATen/cpu/vml.h, 2.13.0.
FUNCTIONS = (
    "acos", "asin", "atan", "cos", "erf", "erfc", "erfinv", "exp",
    "log", "log10", "log2", "sin", "sqrt", "tan", "tanh", "trunc",
)  # fmt: skip


class VectorMath(Handle):
    """The first call of each function of MKL, on one element, from one thread."""

    module = "torch"
    values = KINDS["switch"]

    def __init__(self) -> None:
        self._prepared = False

    def missing(self) -> str:
        """Return why MKL is missing, empty when torch is built with it."""
        core = getattr(sys.modules.get("torch"), "_C", None)
        return "" if getattr(core, "has_mkl", False) else "this build of torch has no MKL"

    def read(self) -> str:
        """Return `on` when it was done here; `off` says nothing about the script's own calls."""
        return "on" if self._prepared else "off"

    def write(self, value: str) -> None:
        """Call the functions.

        Raises:
            ValueError: the value is `off`, and they have been called.
        """
        if value == "off" and self._prepared:
            raise ValueError("expected `on`: MKL stays prepared in this process, which cannot be undone")
        if value == "on" and not self._prepared:
            _call_each()
            self._prepared = True

    def restore(self, before: str) -> None:
        """Do nothing, because the calls cannot be undone and change no setting."""

    def probe(self) -> Callable[[], object] | None:
        """Return a function that tells whether it was done."""
        return lambda: self._prepared


def _call_each() -> None:
    """Call each on one element, which one thread computes; float32 and float64 have separate kernels."""
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
