"""What each fact of an environment can change: the one specification by which differences are ranked.

"Measured" means: with everything else equal, on one machine, an op gave other bits. The figures are those of
173 outputs of torch 2.13 on a Zen 4 processor with AVX-512 (docs/reference/environment.md). What a switch
changes is said in the table of switches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits.environment.influence import (
    ANY,
    BY_ATEN,
    BY_CUBLAS,
    BY_CUDNN,
    BY_MKL,
    BY_ONEDNN,
    BY_THREADS,
    Influence,
    Results,
    Strength,
)
from samebits.environment.numeric_libraries import LibraryKind
from samebits.switches.switch import MEASURED as MEASURED_SOURCE
from samebits.switches.table import TABLE
from samebits.switches.variables import Variable

if TYPE_CHECKING:
    from samebits.switches.switch import Switch

    Path = tuple[str, ...]

_TORCH_THREADS = ("torch", "threads", ANY)
_CAPABILITY = ("torch", "capability")
_COMPILED = ("torch", "compiled", ANY)
_ATTENTION = ("torch", "attention")
_GEMMS = ("torch", "gemms", ANY)
_LIBRARIES = ("libraries", ANY)
_OF_TORCH = (
    ("torch", "git"), ("torch", "cuda"), ("torch", "cudnn"), ("torch", "mkl"), ("torch", "onednn"),
    ("torch", "openmp"), ("torch", "nccl"), ("packages", "torch"), ("distributions", "torch"), _CAPABILITY,
    _LIBRARIES, _COMPILED, _ATTENTION, _GEMMS,
)  # fmt: skip
_OF_PROCESSOR = (("machine", "processor"), ("machine", "instructions"), _CAPABILITY, _COMPILED)

_CHANGES = (("source", "commit"), ("source", "changed"))
_INPUTS = (
    Influence(("code", ANY), (Results.ALL,), Strength.INPUT, _CHANGES),
    Influence(("arguments",), (Results.ALL,), Strength.INPUT),
    Influence(("data", "files", ANY), (Results.ALL,), Strength.INPUT),
    Influence(("control", "seed"), (Results.ALL,), Strength.INPUT),
    Influence(("control", "portable"), (Results.ALL,), Strength.INPUT, (("switches", "mkldnn-enabled"),)),
    Influence(("ranks", "world_size"), (Results.ALL,), Strength.INPUT),
    Influence(("torch", "default_dtype"), (Results.ALL,), Strength.INPUT, (_ATTENTION,)),
    Influence(("source", "commit"), (Results.ALL,), Strength.POSSIBLE, effect=(("code",),)),
    Influence(("source", "changed"), (Results.ALL,), Strength.POSSIBLE, effect=(("code",),)),
)
_THREAD_COUNTS = (_TORCH_THREADS, ("switches", "threads"), _COMPILED)
_HASH_SEED = ("python", "hash_seed")
# Of variables in the table of switches: the facts that differ with them, and those through which they work.
_THROUGH: dict[str, tuple[tuple[Path, ...], tuple[Path, ...]]] = {
    "PYTHONHASHSEED": ((_HASH_SEED,), (_HASH_SEED,)),
    "OMP_NUM_THREADS": (_THREAD_COUNTS, (("torch", "threads"),)),
    "MKL_NUM_THREADS": (_THREAD_COUNTS, (("torch", "threads"),)),
    "ATEN_CPU_CAPABILITY": ((_CAPABILITY,), (_CAPABILITY,)),
}
# Switches that setting another one changes (measured, torch 2.13.0).
_WRITES = {
    "deterministic-algorithms": ("inductor-deterministic",),
    "matmul-precision": ("matmul-allow-tf32", "fp32-cuda-matmul", "fp32-mkldnn-matmul"),
}
# With it torch leaves out cuDNN's attention, or takes the efficient one for a mask (seen in torch 2.15.0 with
# compute capability 9.0).
_CHOOSE_ATTENTION = frozenset(("deterministic-algorithms",))
_OTHER_VARIABLES = (
    Influence(("variables", "DNNL_MAX_CPU_ISA"), BY_ONEDNN, Strength.DOCUMENTED),
    Influence(("variables", "NPY_DISABLE_CPU_FEATURES"), (Results.PACKAGE,), Strength.DOCUMENTED),
    Influence(("variables", "OPENBLAS_CORETYPE"), (Results.PACKAGE,), Strength.DOCUMENTED),
    Influence(("variables", "OPENBLAS_NUM_THREADS"), (Results.PACKAGE,), Strength.DOCUMENTED),
)


def _library(kind: LibraryKind) -> Path:
    return "libraries", kind


_ON_GPU = {
    # Equal bits are promised for one version of the toolkit (docs.nvidia.com/cuda/cublas, "Results
    # reproducibility").
    LibraryKind.CUBLAS: (BY_CUBLAS, Strength.DOCUMENTED),
    # "Most of cuDNN's routines from a given version generate the same bit-wise results"
    # (docs.nvidia.com/deeplearning/cudnn, "Odds and Ends").
    LibraryKind.CUDNN: (BY_CUDNN, Strength.DOCUMENTED),
    # The order of a sum follows from the algorithm and the number of channels (NVIDIA/nccl#1055), which each
    # version chooses by a table of its own.
    LibraryKind.NCCL: ((Results.COLLECTIVES,), Strength.DOCUMENTED),
    LibraryKind.RCCL: ((Results.COLLECTIVES,), Strength.DOCUMENTED),
    LibraryKind.NVSHMEM: ((Results.COLLECTIVES,), Strength.POSSIBLE),
    LibraryKind.ROCBLAS: (BY_CUBLAS, Strength.POSSIBLE),
    LibraryKind.MIOPEN: (BY_CUDNN, Strength.POSSIBLE),
    LibraryKind.CUSOLVER: ((Results.DECOMPOSITIONS,), Strength.POSSIBLE),
    LibraryKind.CUSPARSELT: ((Results.SPARSE_PRODUCTS,), Strength.POSSIBLE),
    LibraryKind.CUSPARSE: ((Results.SPARSE_PRODUCTS,), Strength.POSSIBLE),
    LibraryKind.CUFFT: ((Results.FOURIER,), Strength.POSSIBLE),
    LibraryKind.NVRTC: ((Results.COMPILED,), Strength.POSSIBLE),
    LibraryKind.CURAND: ((Results.CUDA,), Strength.POSSIBLE),
    LibraryKind.CUDA_RUNTIME: ((Results.CUDA,), Strength.POSSIBLE),
    LibraryKind.CUDA_DRIVER: ((Results.CUDA,), Strength.POSSIBLE),
    LibraryKind.ROCM: ((Results.CUDA,), Strength.POSSIBLE),
}
_ON_CPU = {
    LibraryKind.MKL: BY_MKL,
    LibraryKind.ONEDNN: BY_ONEDNN,
    LibraryKind.BLAS: (Results.PRODUCTS, Results.DECOMPOSITIONS),
    LibraryKind.OPENMP: (Results.SUMS,),
    LibraryKind.MATHS: (Results.LIBRARY_MATHS,),
}
# Facts that tell what was chosen for a GPU.
_CHOSEN = (_ATTENTION, _GEMMS)
_GPU_LIBRARIES = tuple(map(_library, _ON_GPU))
_BUILDS = (
    Influence(("torch", "version"), (Results.ALL,), Strength.DOCUMENTED, _OF_TORCH),
    Influence(("torch", "git"), (Results.ALL,), Strength.DOCUMENTED, _OF_TORCH),
    Influence(
        ("machine", "architecture"), (*BY_ATEN, *BY_ONEDNN, *BY_MKL), Strength.DOCUMENTED, _OF_PROCESSOR
    ),
    Influence(("machine", "instructions"), (*BY_ATEN, *BY_ONEDNN, *BY_MKL), Strength.MEASURED, _OF_PROCESSOR),
    Influence(_CAPABILITY, BY_ATEN, Strength.MEASURED),
    Influence(
        ("torch", "threads", "intra-op"),
        BY_THREADS,
        Strength.MEASURED,
        (("machine", "cpus"), *_THREAD_COUNTS),
    ),
    Influence(_TORCH_THREADS, BY_THREADS, Strength.MEASURED, (("switches", "threads"), _COMPILED)),
    Influence(("torch", "mkl"), BY_MKL, Strength.DOCUMENTED, (_library(LibraryKind.MKL),)),
    Influence(("torch", "onednn"), BY_ONEDNN, Strength.DOCUMENTED, (_library(LibraryKind.ONEDNN),)),
    Influence(("torch", "gpus"), (Results.CUDA, Results.NORMAL_NUMBERS), Strength.DOCUMENTED, _CHOSEN),
    Influence(("torch", "cuda"), (Results.CUDA,), Strength.DOCUMENTED, (*_GPU_LIBRARIES, *_CHOSEN)),
    Influence(("torch", "cudnn"), BY_CUDNN, Strength.DOCUMENTED, (_library(LibraryKind.CUDNN), _ATTENTION)),
    Influence(
        ("torch", "nccl"),
        (Results.COLLECTIVES,),
        Strength.DOCUMENTED,
        (_library(LibraryKind.NCCL), _library(LibraryKind.RCCL)),
        on_gpu=True,
    ),
    Influence(
        ("machine", "gpu_driver"), (Results.CUDA,), Strength.POSSIBLE, (_library(LibraryKind.CUDA_DRIVER),)
    ),
    Influence(
        ("machine", "libc"),
        (Results.LIBRARY_MATHS,),
        Strength.DOCUMENTED,
        (_library(LibraryKind.MATHS),),
    ),
    Influence(("python", "hash_seed"), (Results.SETS,), Strength.MEASURED, (("switches", "PYTHONHASHSEED"),)),
    Influence(("python", "version"), (Results.ALL,), Strength.DOCUMENTED),
    Influence(("python", "implementation"), (Results.ALL,), Strength.DOCUMENTED),
    Influence(("python", "optimize"), (Results.ALL,), Strength.POSSIBLE),
    Influence(("torch", "openmp"), (Results.SUMS,), Strength.POSSIBLE, (_library(LibraryKind.OPENMP),)),
    Influence(("machine", "processor"), (*BY_MKL, *BY_ONEDNN), Strength.DOCUMENTED),
)
_REST = (
    # "The choice of backend can be a source of nondeterminism" (PyTorch's notes on reproducibility).
    Influence(_ATTENTION, (Results.ATTENTION,), Strength.DOCUMENTED),
    Influence(_GEMMS, (Results.PRODUCTS,), Strength.DOCUMENTED),
    Influence(_COMPILED, (Results.COMPILED,), Strength.DOCUMENTED),
    Influence(("distributions", ANY), (Results.PACKAGE,), Strength.POSSIBLE, (_LIBRARIES,)),
    Influence(("packages", ANY), (Results.PACKAGE,), Strength.POSSIBLE, (_LIBRARIES,)),
    *(Influence(_library(kind), results, Strength.POSSIBLE) for kind, results in _ON_CPU.items()),
    Influence(_LIBRARIES, (Results.ALL,), Strength.POSSIBLE),
    Influence(("torch", "switches", ANY), (Results.ALL,), Strength.DOCUMENTED),
    Influence(("switches", ANY), (Results.ALL,), Strength.DOCUMENTED),
    Influence(("variables", ANY), (Results.ALL,), Strength.POSSIBLE),
)


def influences() -> tuple[Influence, ...]:
    """Return the influences, in the order in which they claim the facts that differ."""
    switches = tuple(map(_of_switch, TABLE))
    libraries = [
        Influence(
            _library(kind), results, strength, (_GEMMS,) if kind is LibraryKind.CUBLAS else (), on_gpu=True
        )
        for kind, (results, strength) in _ON_GPU.items()
    ]
    variables = [_of_variable(switch) for switch in TABLE if isinstance(switch.handle, Variable)]
    return (*_INPUTS, *variables, *_OTHER_VARIABLES, *_BUILDS, *libraries, *switches, *_REST)


def _of_variable(switch: Switch) -> Influence:
    follows, effect = _THROUGH.get(switch.name, ((), ()))
    path = ("variables", switch.name)
    follows = (*follows, *_made_by(switch), ("switches", switch.name))
    return Influence(path, switch.affects, _strength(switch), follows, effect)


def _of_switch(switch: Switch) -> Influence:
    follows: tuple[Path, ...] = tuple(("switches", name) for name in _WRITES.get(switch.name, ()))
    follows += _made_by(switch)
    return Influence(("switches", switch.name), switch.affects, _strength(switch), follows)


def _made_by(switch: Switch) -> tuple[Path, ...]:
    """Return the facts that tell what was chosen, or compiled, by the value of a switch."""
    affects, name = switch.affects, switch.name
    chooses = {
        _COMPILED: Results.COMPILED in affects,
        _ATTENTION: Results.ATTENTION in affects or "SDPA" in name or name in _CHOOSE_ATTENTION,
        _GEMMS: Results.CUDA in affects,
    }
    return tuple(path for path, applies in chooses.items() if applies)


def _strength(switch: Switch) -> Strength:
    return Strength.MEASURED if switch.source.startswith(MEASURED_SOURCE) else Strength.DOCUMENTED
