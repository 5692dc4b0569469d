"""The switches that are flags of torch and of its compiler."""

from __future__ import annotations

from samebits.determinism.switch import Switch, When
from samebits.determinism.switch_handles import (
    CompilerFlag,
    DeterministicAlgorithms,
    Flag,
    NativeKernels,
    Precision,
)
from samebits.determinism.switch_variables import BOTH, CONTEXT, MEASURED, PORTABLE, TITAN, TORCH
from samebits.determinism.vector_math import VectorMath

_CONFIG = "torch/_inductor/config.py, 2.13.0"
_SDPA = "attention back ends round differently, and their choice follows shapes and hardware"
_SHORT = "partial sums are rounded to 16 bits"
_TUNED = "kernels are chosen by timing them"


def _held(name: str, why: str, source: str, kind: str = "switch") -> Switch:
    return Switch(name, Flag(name, kind), When.ANY, None, PORTABLE, why, source)


def _precision(name: str, backend: str, op: str) -> Switch:
    why = "TF32 and bf16 drop bits of float32 inputs, on hardware that has them"
    return Switch(name, Precision(backend, op), When.ANY, None, PORTABLE, why, CONTEXT)


def _compiler(name: str, entry: str, why: str, kind: str = "switch") -> Switch:
    return Switch(name, CompilerFlag(entry, kind), When.ANY, None, PORTABLE, why, _CONFIG)


ALGORITHMS = (
    Switch(
        "deterministic-algorithms",
        DeterministicAlgorithms(),
        When.ANY,
        "on",
        BOTH,
        "ops that add with atomics run; `warn` leaves the backward of fused attention nondeterministic",
        TORCH + "; call sites in libtorch_cuda 2.15",
        cost="slower kernels of some ops; ops that have no other kernel raise an error",
        default="off",
    ),
    Switch(
        "fill-uninitialized",
        Flag("fill-uninitialized"),
        When.ANY,
        "on",
        BOTH,
        "memory that is read before it is written holds anything; filled, it holds NaN or the largest number",
        "torch.utils.deterministic docs; pytorch#193317",
        cost="up to about 15 % of a step on a GPU (Megatron-LM#6253): torch.empty becomes torch.full",
        default="on",
    ),
    Switch(
        "cudnn-deterministic",
        Flag("cudnn-deterministic"),
        When.ANY,
        "on",
        BOTH,
        "cuDNN may pick convolutions that add with atomics; deterministic-algorithms leaves this flag alone",
        TORCH,
        cost="slower convolutions",
        default="off",
    ),
    Switch(
        "cudnn-benchmark",
        Flag("cudnn-benchmark"),
        When.ANY,
        "off",
        BOTH,
        "convolutions are chosen by timing them, and each rounds differently",
        TORCH,
        cost="convolutions of fixed shapes are not tuned",
        default="off",
    ),
    Switch(
        "mkldnn-deterministic",
        Flag("mkldnn-deterministic"),
        When.ANY,
        "on",
        BOTH,
        "oneDNN may pick primitives that add in the order of completion",
        "oneDNN docs, primitive attributes: deterministic mode",
        default="off",
    ),
    Switch(
        "prepare-vector-math",
        VectorMath(),
        When.ANY,
        "on",
        BOTH,
        "threads that first call MKL's `sqrt`, `exp` or `log` together may get a kernel of low accuracy",
        "pytorch#188792; measured, torch 2.13.0 under load",
        default="off",
    ),
)
CUDNN = (
    _held("cudnn-enabled", "without cuDNN other kernels run", CONTEXT),
    _held("cudnn-benchmark-limit", "how many kernels are timed", "torch.backends docs", "limit"),
    _held("cudnn-depthwise-kernel", "another kernel rounds differently", CONTEXT, "word"),
    _held("mkldnn-enabled", "without oneDNN other kernels run", MEASURED),
)
# The legacy settings before the new ones: setting the former changes the latter, never the reverse (measured,
# torch 2.13.0), and switches are set and restored in the order of the table.
PRECISION = (
    _held(
        "matmul-precision", "TF32 or bf16 products of float32", "torch.set_float32_matmul_precision", "matmul"
    ),
    _held("matmul-allow-tf32", "TF32 drops 13 bits of float32 inputs", CONTEXT),
    _held("cudnn-allow-tf32", "TF32 drops 13 bits of float32 inputs; on by default", CONTEXT),
    _precision("fp32-generic", "generic", "all"),
    _precision("fp32-cudnn", "cuda", "all"),
    _precision("fp32-cuda-matmul", "cuda", "matmul"),
    _precision("fp32-cudnn-conv", "cuda", "conv"),
    _precision("fp32-cudnn-rnn", "cuda", "rnn"),
    _precision("fp32-mkldnn", "mkldnn", "all"),
    _precision("fp32-mkldnn-matmul", "mkldnn", "matmul"),
    _precision("fp32-mkldnn-conv", "mkldnn", "conv"),
    _precision("fp32-mkldnn-rnn", "mkldnn", "rnn"),
    _held("matmul-fp16-reduction", _SHORT, TITAN, "reduction"),
    _held("matmul-bf16-reduction", _SHORT, TITAN, "reduction"),
    _held("matmul-fp16-accumulation", "products are summed in 16 bits", CONTEXT),
    _held("cpu-fp16-reduction", _SHORT, CONTEXT),
)
LIBRARY_CHOICE = (
    _held("blas-library", "cuBLAS and cuBLASLt round differently", "torch.backends.cuda docs", "word"),
    _held("linalg-library", "cuSOLVER and MAGMA round differently", "torch.backends.cuda docs", "word"),
    _held("cublaslt-grouped-gemm", "another kernel rounds differently", "aten/src/ATen/Context.h, 2.15"),
    _held(
        "sm-carveout",
        "kernels split their sums by the multiprocessors that they may use",
        CONTEXT,
        "optional",
    ),
    Switch(
        "native-kernels",
        NativeKernels(),
        When.ANY,
        None,
        PORTABLE,
        "kernels in Triton or CuteDSL replace torch's own where those packages are installed",
        "torch/backends/python_native, 2.13.0",
    ),
)
ATTENTION = (
    _held("sdpa-flash", _SDPA, TORCH),
    _held("sdpa-mem-efficient", _SDPA, TORCH),
    _held("sdpa-math", _SDPA, TORCH),
    _held("sdpa-cudnn", _SDPA, TORCH),
    _held("sdpa-fa3", _SDPA, CONTEXT),
    _held("sdpa-overrideable", _SDPA, CONTEXT),
    _held("sdpa-order", _SDPA, CONTEXT, "order"),
    _held("sdpa-math-reduction", _SHORT, "torch.backends.cuda docs"),
)
THREADS = (
    _held("threads", "sums are split by thread: another number gives other bits", MEASURED, "count"),
    _held("interop-threads", "scripted code runs in parallel", "PyTorch docs, CPU threading", "count"),
)
COMPILER = (
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
    _compiler("inductor-batch-invariant", "batch_invariant", "sums follow the batch size"),
    _compiler("inductor-numerics", "numerics", "compiled code rounds differently", "word"),
    _compiler("inductor-max-autotune", "max_autotune", _TUNED),
    _compiler("inductor-max-autotune-gemm", "max_autotune_gemm", _TUNED),
    _compiler("inductor-max-autotune-pointwise", "max_autotune_pointwise", _TUNED),
    _compiler("inductor-coordinate-descent", "coordinate_descent_tuning", _TUNED),
    _compiler("inductor-fallback-random", "fallback_random", "compiled code draws other random numbers"),
    _compiler("inductor-align-random", "align_random_eager", "compiled code draws other random numbers"),
    _compiler("inductor-precision-casts", "emulate_precision_casts", "compiled code skips roundings"),
    _compiler("inductor-split-reductions", "split_reductions", "sums are split by the hardware's size"),
)
FLAGS = ALGORITHMS + CUDNN + PRECISION + LIBRARY_CHOICE + ATTENTION + THREADS + COMPILER
