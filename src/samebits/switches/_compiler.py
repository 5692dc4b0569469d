"""The switches that are entries of the configuration of torch's compiler."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from samebits._torch.core import COMPILER_CONFIG, CORE_FLAGS, config_probe
from samebits.environment.influence import Results
from samebits.switches.switch import (
    BOTH,
    KINDS,
    PORTABLE,
    Handle,
    Switch,
    When,
    affecting,
    as_text,
    from_text,
)

if TYPE_CHECKING:
    from collections.abc import Callable

_CONFIG = "torch/_inductor/config.py, 2.13.0"
_TUNED = "kernels are chosen by timing them"


class CompilerFlag(Handle):
    """An entry of the configuration of torch's compiler.

    In torch 2.13.0 each thread has its own configuration (a `ContextVar`). Other threads that compile follow
    the environment variable.

    Args:
        entry: its name there.
        kind: the kind of its values, a key of `KINDS`.
    """

    module = COMPILER_CONFIG  # which only scripts that compile import

    def __init__(self, entry: str, kind: str = "switch") -> None:
        self.entry = entry
        self.values = KINDS[kind]
        if entry == "deterministic":  # which `use_deterministic_algorithms` writes too
            self.setters = (CORE_FLAGS["deterministic-algorithms"][1],)

    def missing(self) -> str:
        """Return why this torch does not have the entry, empty when it does."""
        return "" if hasattr(self._config(), self.entry) else "the compiler of this torch does not have it"

    def read(self) -> str:
        """Return the value as text."""
        return as_text(getattr(self._config(), self.entry))

    def write(self, value: str) -> None:
        """Set it."""
        setattr(self._config(), self.entry, from_text(value, getattr(self._config(), self.entry)))

    def probe(self) -> Callable[[], object] | None:
        """Return a function whose result changes when the entry is written."""
        return config_probe(self._config(), self.entry)

    @staticmethod
    def _config() -> Any:
        return sys.modules[COMPILER_CONFIG]


def _compiler(name: str, entry: str, why: str, kind: str = "switch") -> Switch:
    return Switch(name, CompilerFlag(entry, kind), When.ANY, None, PORTABLE, why, _CONFIG)


_ENTRIES = (
    Switch(
        "inductor-deterministic",
        CompilerFlag("deterministic"),
        When.ANY,
        "on",
        BOTH,
        "torch.compile picks kernels by timing them",
        _CONFIG,
        cost="compiled kernels are not tuned",
        default="off",
    ),
    _compiler("inductor-batch-invariant", "batch_invariant", "the order of sums depends on the batch size"),
    _compiler("inductor-numerics", "numerics", "compiled code rounds differently", "word"),
    _compiler("inductor-max-autotune", "max_autotune", _TUNED),
    _compiler("inductor-max-autotune-gemm", "max_autotune_gemm", _TUNED),
    _compiler("inductor-max-autotune-pointwise", "max_autotune_pointwise", _TUNED),
    _compiler("inductor-coordinate-descent", "coordinate_descent_tuning", _TUNED),
    _compiler(
        "inductor-fallback-random",
        "fallback_random",
        "compiled code draws other random numbers than eager code",
    ),
    _compiler(
        "inductor-align-random",
        "align_random_eager",
        "compiled code draws other random numbers than eager code",
    ),
    _compiler(
        "inductor-precision-casts",
        "emulate_precision_casts",
        "compiled code skips roundings that eager code makes",
    ),
    _compiler(
        "inductor-split-reductions",
        "split_reductions",
        "sums are split according to the size of the hardware",
    ),
)
COMPILER = affecting((Results.COMPILED,), _ENTRIES)
