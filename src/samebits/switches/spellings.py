"""How a script writes a switch: the attributes that it assigns, and the functions that it calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits._torch.core import COMPILER_CONFIG
from samebits.switches._compiler import CompilerFlag
from samebits.switches._torch_flags import Precision
from samebits.switches.table import TABLE
from samebits.switches.variables import Variable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from samebits.switches.switch import Switch

ENVIRON = "os.environ"
_BACKENDS = "torch.backends"
_MATMUL = f"{_BACKENDS}.cuda.matmul"
_FLAGS: Mapping[str, str] = {
    "deterministic-algorithms": "torch.use_deterministic_algorithms",
    "fill-uninitialized": "torch.utils.deterministic.fill_uninitialized_memory",
    "cudnn-deterministic": f"{_BACKENDS}.cudnn.deterministic",
    "cudnn-benchmark": f"{_BACKENDS}.cudnn.benchmark",
    "cudnn-benchmark-limit": f"{_BACKENDS}.cudnn.benchmark_limit",
    "cudnn-enabled": f"{_BACKENDS}.cudnn.enabled",
    "cudnn-allow-tf32": f"{_BACKENDS}.cudnn.allow_tf32",
    "mkldnn-enabled": f"{_BACKENDS}.mkldnn.enabled",
    "mkldnn-deterministic": f"{_BACKENDS}.mkldnn.deterministic",
    "matmul-precision": "torch.set_float32_matmul_precision",
    "matmul-allow-tf32": f"{_MATMUL}.allow_tf32",
    "matmul-fp16-reduction": f"{_MATMUL}.allow_fp16_reduced_precision_reduction",
    "matmul-bf16-reduction": f"{_MATMUL}.allow_bf16_reduced_precision_reduction",
    "matmul-fp16-accumulation": f"{_MATMUL}.allow_fp16_accumulation",
    "blas-library": f"{_BACKENDS}.cuda.preferred_blas_library",
    "linalg-library": f"{_BACKENDS}.cuda.preferred_linalg_library",
    "sdpa-flash": f"{_BACKENDS}.cuda.enable_flash_sdp",
    "sdpa-mem-efficient": f"{_BACKENDS}.cuda.enable_mem_efficient_sdp",
    "sdpa-math": f"{_BACKENDS}.cuda.enable_math_sdp",
    "sdpa-cudnn": f"{_BACKENDS}.cuda.enable_cudnn_sdp",
    "sdpa-math-reduction": f"{_BACKENDS}.cuda.allow_fp16_bf16_reduction_math_sdp",
    "threads": "torch.set_num_threads",
    "interop-threads": "torch.set_num_interop_threads",
}
_PRECISIONS: Mapping[tuple[str, str], str] = {
    ("generic", "all"): _BACKENDS,
    ("cuda", "all"): f"{_BACKENDS}.cudnn",
    ("cuda", "matmul"): _MATMUL,
    ("cuda", "conv"): f"{_BACKENDS}.cudnn.conv",
    ("cuda", "rnn"): f"{_BACKENDS}.cudnn.rnn",
    ("mkldnn", "all"): f"{_BACKENDS}.mkldnn",
    ("mkldnn", "matmul"): f"{_BACKENDS}.mkldnn.matmul",
    ("mkldnn", "conv"): f"{_BACKENDS}.mkldnn.conv",
    ("mkldnn", "rnn"): f"{_BACKENDS}.mkldnn.rnn",
}


def switches_by_spelling() -> dict[str, Switch]:
    """Return the switches by the full names that set them, such as `torch.backends.cudnn.benchmark`.

    An entry of the environment has `ENVIRON` in front of its name.
    """
    return {spelling: switch for switch in TABLE for spelling in _spellings(switch)}


def _spellings(switch: Switch) -> tuple[str, ...]:
    handle = switch.handle
    if isinstance(handle, Variable):
        return (f"{ENVIRON}.{handle.variable}",)
    if isinstance(handle, CompilerFlag):
        return tuple(f"{COMPILER_CONFIG}.{name}" for name in handle.names)
    if isinstance(handle, Precision):
        return (f"{_PRECISIONS[handle.backend, handle.op]}.fp32_precision",)
    return (_FLAGS[switch.name],) if switch.name in _FLAGS else ()
