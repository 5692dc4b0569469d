"""The switches that are entries of the configuration of torch's compiler."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

from samebits._torch.compiler import config_probe, has_config_entry
from samebits._torch.core import COMPILER_CONFIG, CORE_FLAGS
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
_CANDIDATES = "kernels are chosen among others when they are tuned"
_SPLIT = "sums are split according to the size of the hardware"
_ORDER = "sums are added in another order"
_FUSED = "kernels are joined to larger ones, which add in another order"
_ROUNDS = "compiled code rounds differently"
_SKIPPED = "compiled code skips roundings that eager code makes"
_DRAWS = "compiled code draws other random numbers than eager code"


class CompilerFlag(Handle):
    """An entry of the configuration of torch's compiler.

    In torch 2.13.0 each thread has its own configuration (a `ContextVar`). Other threads that compile follow
    the environment variable.

    Args:
        entry: its name there.
        kind: the kind of its values, a key of `KINDS`.
        earlier: its name in earlier releases; empty when it had none.
    """

    module = COMPILER_CONFIG  # which only scripts that compile import

    def __init__(self, entry: str, kind: str = "switch", earlier: str = "") -> None:
        self.names = (entry, earlier) if earlier else (entry,)
        self.values = KINDS[kind]
        if entry == "deterministic":  # which `use_deterministic_algorithms` writes too
            self.setters = (CORE_FLAGS["deterministic-algorithms"][1],)

    def missing(self) -> str:
        """Return why this torch does not have the entry, empty when it does."""
        return "" if self._entry() else "the compiler of this torch does not have it"

    def read(self) -> str:
        """Return the value as text."""
        return as_text(self._value())

    def write(self, value: str) -> None:
        """Set it."""
        setattr(self._config(), self._entry(), from_text(value, self._value()))

    def probe(self) -> Callable[[], object] | None:
        """Return a function whose result changes when the entry is written."""
        return config_probe(self._config(), self._entry())

    def _value(self) -> Any:
        return getattr(self._config(), self._entry())

    def _entry(self) -> str:
        """Return the name that this torch has for it, empty when it has none."""
        return next((name for name in self.names if has_config_entry(self._config(), name)), "")

    @staticmethod
    def _config() -> Any:
        return sys.modules[COMPILER_CONFIG]


def _held(entry: str, why: str, kind: str = "switch", name: str = "") -> Switch:
    shown = "inductor-" + (name or re.sub("[._]", "-", entry))
    return Switch(shown, CompilerFlag(entry, kind), When.ANY, None, PORTABLE, why, _CONFIG)


_DETERMINISTIC = Switch(
    "inductor-deterministic",
    CompilerFlag("deterministic"),
    When.ANY,
    "on",
    BOTH,
    "torch.compile picks kernels by timing them",
    _CONFIG,
    cost="compiled kernels are not tuned",
    default="off",
)
_SUMS = (
    _held("batch_invariant", "the order of sums depends on the batch size"),
    _held("split_reductions", _SPLIT),
    _held("dynamic_scale_rblock", _SPLIT),
    _held("min_num_split", _SPLIT, "limit"),
    _held("unroll_reductions_threshold", _ORDER, "limit"),
    _held("online_softmax", _ORDER),
    _held("combo_kernels", _FUSED),
    _held("triton.persistent_reductions", _ORDER),
    _held("triton.cooperative_reductions", _SPLIT),
    _held("triton.force_cooperative_reductions", _SPLIT),
    _held("triton.tile_reductions", _ORDER),
    _held("triton.nested_reduction", _ORDER),
    _held("triton.mix_order_reduction", _FUSED),
    _held("triton.mix_order_reduction_split_size", _SPLIT, "optional"),
    _held("triton.num_decompose_k_splits", _SPLIT, "limit"),
    _held("triton.native_matmul", _ORDER),
    _held("cpp.simdlen", _ORDER, "optional"),
    _held("cpp.threads", _ORDER, "signed"),
    _held("cpp.dynamic_threads", _ORDER),
    _held("cpp.min_chunk_size", _ORDER, "limit"),
    _held("cpp.gemm_max_k_slices", _SPLIT, "limit"),
    _held("cpp.fallback_scatter_reduce_sum", "several threads may add into one place, in any order"),
)
_ROUNDINGS = (
    _held("numerics", _ROUNDS, "word"),
    _held("emulate_precision_casts", _SKIPPED, name="precision-casts"),
    _held("triton.codegen_upcast_to_fp32", _SKIPPED),
    _held("use_fast_math", _ROUNDS),
    _held("cpp.enable_unsafe_math_opt_flag", _ROUNDS),
    _held("cpp.enable_floating_point_contract_flag", _ROUNDS, "word"),
    _held("cpp.use_decompose_tanh", _ROUNDS),
    _held("freezing", "products are folded into constants beforehand, and rounded otherwise"),
)
_CHOICES = (
    _held("max_autotune", _TUNED),
    _held("max_autotune_gemm", _TUNED),
    _held("max_autotune_pointwise", _TUNED),
    _held("coordinate_descent_tuning", _TUNED, name="coordinate-descent"),
    _held("max_autotune_gemm_backends", _CANDIDATES, "backends"),
    _held("max_autotune_conv_backends", _CANDIDATES, "backends"),
    _held("max_autotune_gemm_search_space", _CANDIDATES, "capitals"),
    _held("benchmark_fusion", _TUNED),
    Switch(
        "inductor-benchmark-template-fusion",
        CompilerFlag("benchmark_template_fusion", earlier="benchmark_epilogue_fusion"),
        When.ANY,
        None,
        PORTABLE,
        _TUNED,
        "torch/_inductor/config.py, 2.15.0",
    ),
    _held("benchmark_combo_kernel", _TUNED),
    _held("shape_padding", "products are padded where that is faster when timed"),
    _held("triton.multi_kernel", _TUNED, "limit"),
    _held("triton.mix_order_reduction_autotune_split_size", _TUNED),
)
_NUMBERS = (
    _held("fallback_random", _DRAWS),
    _held("align_random_eager", _DRAWS, name="align-random"),
)
COMPILER = affecting((Results.COMPILED,), (_DETERMINISTIC, *_SUMS, *_ROUNDINGS, *_CHOICES, *_NUMBERS))
