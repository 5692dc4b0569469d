"""The switches that are environment variables: how one is read and written, and the table of them."""

from __future__ import annotations

import os
import re

from samebits.environment.influence import BY_ATEN, BY_MKL, BY_ONEDNN, BY_THREADS, Results
from samebits.switches.switch import (
    ANYTHING,
    BOTH,
    MEASURED,
    PORTABLE,
    TITAN,
    Handle,
    Switch,
    When,
    affecting,
)

ENVIRONMENT = "PyTorch docs, CUDA environment variables"
MEGATRON = "Megatron-LM megatron/training/determinism.py"

_BIT = (r"[01]", "`0` or `1`")
_COUNT = (r"[1-9]\d*(,[1-9]\d*)*", "a whole number from 1")
_NUMBER = (r"\d+", "a whole number")
_LOGICAL = (r"(?i)true|false", "`TRUE` or `FALSE`")
_WORKSPACE = (r"(:\d+:[1-9]\d*)+", "pairs of a size in KiB and a count, such as `:4096:8`")


class Variable(Handle):
    """An environment variable. It is written through `os.environ`, which is watched as a whole.

    Args:
        variable: its name.
        values: the kind of its values.
    """

    def __init__(self, variable: str, values: tuple[str, str] = ANYTHING) -> None:
        self.variable = variable
        self.values = values

    def read(self) -> str:
        """Return the value, empty when the variable is not set."""
        return os.environ.get(self.variable, "")

    def write(self, value: str) -> None:
        """Set it for this process and those that it starts."""
        os.environ[self.variable] = value

    def restore(self, before: str) -> None:
        """Set the earlier value, or unset the variable."""
        if before == self.read():
            return
        if before:
            os.environ[self.variable] = before
        else:
            os.environ.pop(self.variable, None)


def _sensible_workspace(value: str) -> bool:
    return re.fullmatch(_WORKSPACE[0], value) is not None and not re.search(r":0+:", value)


def _fixed_algorithm(value: str) -> bool:
    """Tell whether the value rules out NVLS, which sums inside the network switch in the order of arrival."""
    chosen = value.lower()
    return bool(chosen) and (chosen.startswith("^") == ("nvls" in chosen))


def _dynamic_off(value: str) -> bool:
    return value.lower() in {"false", "0"}


def _held(
    name: str, values: tuple[str, str], when: When, why: str, source: str,
    affects: tuple[Results, ...] = (Results.ALL,),
) -> Switch:  # fmt: skip
    return Switch(name, Variable(name, values), when, None, PORTABLE, why, source, affects=affects)


_IN_NCCL = "string in libnccl 2, torch 2.15.0"
_NCCL = "it can change the order in which NCCL adds"
_EMULATED = "products of float32 or float64 may be made of narrower ones, which round otherwise"
_KERNEL = "it can select another kernel, which rounds differently"

CUDA = (
    Switch(
        "CUBLAS_WORKSPACE_CONFIG",
        Variable("CUBLAS_WORKSPACE_CONFIG", _WORKSPACE),
        When.CUDA,
        ":4096:8",
        BOTH,
        "cuBLAS may share a workspace between streams, and then picks kernels by the space that is free",
        "cuBLAS docs; from torch 2.10 on nothing complains when it is missing (pytorch#161749)",
        _sensible_workspace,
        "24 MiB of GPU memory per stream and handle",
    ),
    Switch(
        "PYTORCH_TUNABLEOP_ENABLED",
        Variable("PYTORCH_TUNABLEOP_ENABLED", _BIT),
        When.CUDA,
        "0",
        BOTH,
        "kernels of matrix products are chosen by timing them",
        "aten/src/ATen/cuda/tunable/README.md",
    ),
    _held(
        "PYTORCH_TUNABLEOP_TUNING", _BIT, When.CUDA, "kernels are chosen by timing them", "tunable/README.md"
    ),
    _held(
        "PYTORCH_TUNABLEOP_FILENAME",
        ANYTHING,
        When.CUDA,
        "the file decides which kernels run",
        "tunable/README.md",
    ),
    _held("CUBLASLT_WORKSPACE_SIZE", _NUMBER, When.CUDA, _KERNEL, ENVIRONMENT),
    _held("TORCH_CUBLASLT_UNIFIED_WORKSPACE", _BIT, When.CUDA, _KERNEL, ENVIRONMENT),
    _held("TORCH_CUBLAS_WORKSPACE_CACHE", ANYTHING, When.CUDA, _KERNEL, "string in libtorch_cuda 2.15"),
    _held("CUBLAS_EMULATE_SINGLE_PRECISION", _BIT, When.CUDA, _EMULATED, "string in libcublas 13"),
    _held("CUBLAS_EMULATE_DOUBLE_PRECISION", _BIT, When.CUDA, _EMULATED, "string in libcublas 13"),
    _held("CUBLAS_EMULATION_STRATEGY", ANYTHING, When.CUDA, _EMULATED, "string in libcublas 13"),
    _held("TORCH_BLAS_PREFER_CUBLASLT", _BIT, When.CUDA, _KERNEL, "torch.backends.cuda docs"),
    _held("TORCH_LINALG_PREFER_CUSOLVER", _BIT, When.CUDA, _KERNEL, "torch.backends.cuda docs"),
    _held("DISABLE_ADDMM_CUDA_LT", _BIT, When.CUDA, _KERNEL, "aten/src/ATen/native/cuda/Blas.cpp"),
    _held(
        "CUDA_LAUNCH_BLOCKING",
        _BIT,
        When.CUDA,
        "with CUDA 10.1 it changes the order in which the kernels of an RNN run",
        "torch.nn.RNN docs",
    ),
    _held("NVIDIA_TF32_OVERRIDE", _BIT, When.CUDA, "`0` turns TF32 off in all libraries", ENVIRONMENT),
    _held("TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", _BIT, When.IMPORT, "it can turn TF32 on", ENVIRONMENT),
    _held(
        "TORCH_CUDNN_USE_HEURISTIC_MODE_B", _BIT, When.CUDA, _KERNEL, "aten/src/ATen/native/cudnn/Conv_v8.cpp"
    ),
    _held("TORCH_CUDNN_V8_API_DISABLED", _BIT, When.CUDA, _KERNEL, "cudnn/Conv_v8.cpp"),
    _held(
        "TORCH_CUDNN_V8_API_LRU_CACHE_LIMIT",
        ANYTHING,
        When.CUDA,
        "beyond the limit, cuDNN chooses a plan again",
        "cudnn/Conv_v8.cpp",
    ),
    _held("TORCH_CUDNN_SDPA_ENABLED", _BIT, When.CUDA, _KERNEL, "native/transformers/cuda/sdp_utils.cpp"),
    _held("TORCH_CUDNN_SDPA_DEPRIORITIZED", _BIT, When.CUDA, _KERNEL, "transformers/cuda/sdp_utils.cpp"),
    _held("TORCH_CUDNN_SDPA_NESTED_TENSOR_ENABLED", _BIT, When.CUDA, _KERNEL, "cuda/sdp_utils.cpp"),
    _held("TORCH_CUDNN_SDPA_AVOID_RECOMPILE", _BIT, When.CUDA, _KERNEL, "aten/src/ATen/native/cudnn/MHA.cpp"),
)
LIBRARIES = (
    Switch(
        "FLASH_ATTENTION_DETERMINISTIC",
        Variable("FLASH_ATTENTION_DETERMINISTIC", _BIT),
        When.ANY,
        "1",
        BOTH,
        "when transformers calls flash-attn, its backward pass adds with atomics",
        "transformers/modeling_flash_attention_utils.py:696, 5.23.0",
        cost="a slower backward pass of attention",
        affects=(Results.ATTENTION,),
    ),
    Switch(
        "NVTE_ALLOW_NONDETERMINISTIC_ALGO",
        Variable("NVTE_ALLOW_NONDETERMINISTIC_ALGO", _BIT),
        When.ANY,
        "0",
        BOTH,
        "Transformer Engine picks attention kernels that add with atomics",
        MEGATRON,
        affects=(Results.ATTENTION,),
    ),
    Switch(
        "MAMBA_DETERMINISTIC",
        Variable("MAMBA_DETERMINISTIC", _BIT),
        When.ANY,
        "1",
        BOTH,
        "the backward pass of mamba-ssm adds with atomics",
        MEGATRON,
        affects=(Results.CUDA,),
    ),
    Switch(
        "CAUSAL_CONV1D_DETERMINISTIC",
        Variable("CAUSAL_CONV1D_DETERMINISTIC", _BIT),
        When.ANY,
        "1",
        BOTH,
        "the backward pass of causal-conv1d adds with atomics (1.6.0 and later know the variable)",
        MEGATRON,
        affects=(Results.CUDA,),
    ),
    Switch(
        "TORCHINDUCTOR_DETERMINISTIC",
        Variable("TORCHINDUCTOR_DETERMINISTIC", _BIT),
        When.ANY,
        "1",
        BOTH,
        "torch.compile picks kernels by timing them, in every thread and process that compiles",
        "torch/_inductor/config.py, 2.13.0",
        cost="compiled kernels are not tuned",
        affects=(Results.COMPILED,),
    ),
    _held(
        "TORCHINDUCTOR_BATCH_INVARIANT",
        _BIT,
        When.ANY,
        _KERNEL,
        "torch/_inductor/config.py, 2.15",
        (Results.COMPILED,),
    ),
    _held(
        "TORCHINDUCTOR_NUMERICS",
        ANYTHING,
        When.ANY,
        _KERNEL,
        "torch/_inductor/config.py, 2.15",
        (Results.COMPILED,),
    ),
    _held(
        "TRITON_CACHE_AUTOTUNING",
        _BIT,
        When.ANY,
        "the first run times kernels, and later runs read its choice from a cache",
        "triton#9368",
        (Results.COMPILED,),
    ),
    _held(
        "TRITON_CACHE_DIR",
        ANYTHING,
        When.ANY,
        "the cache holds kernels that were chosen by timing",
        "triton#9368",
        (Results.COMPILED,),
    ),
    _held(
        "TORCHINDUCTOR_CACHE_DIR",
        ANYTHING,
        When.ANY,
        "the cache holds kernels that were chosen by timing",
        "torch/_inductor docs",
        (Results.COMPILED,),
    ),
    _held("TORCH_DISABLE_NATIVE_JIT", _BIT, When.IMPORT, _KERNEL, "torch/_native, 2.15"),
    _held("TORCH_DISABLE_NATIVE_AOT", _BIT, When.IMPORT, _KERNEL, "torch/_native, 2.15"),
    _held("TORCH_PYTHON_NATIVE_USER_GRAPH_ORDER_FN", ANYTHING, When.IMPORT, _KERNEL, "torch/_native, 2.15"),
    _held(
        "PYTORCH_SUM_INNER_TREE",
        ANYTHING,
        When.IMPORT,
        "it changes the order of additions",
        "torch/_native, 2.15",
    ),
)
GROUPS = (
    Switch(
        "NCCL_ALGO",
        Variable("NCCL_ALGO"),
        When.GROUP,
        "Ring",
        BOTH,
        "NCCL picks an algorithm by size and load, and each adds in a different order",
        MEGATRON + "; pytorch#154880",
        _fixed_algorithm,
        "slower collectives of small tensors on many nodes",
    ),
    Switch(
        "NCCL_NVLS_ENABLE",
        Variable("NCCL_NVLS_ENABLE", (r"[012]", "`0`, `1` or `2`")),
        When.GROUP,
        "0",
        BOTH,
        "NVLink SHARP adds in the order of arrival",
        "pytorch#154880; " + TITAN,
    ),
    Switch(
        "NCCL_COLLNET_ENABLE",
        Variable("NCCL_COLLNET_ENABLE", _BIT),
        When.GROUP,
        "0",
        BOTH,
        "the network adds in the order of arrival",
        TITAN,
    ),
    Switch(
        "HCCL_DETERMINISTIC",
        Variable("HCCL_DETERMINISTIC", (r"(?i)true|false|strict", "`true`, `false` or `strict`")),
        When.GROUP,
        "true",
        BOTH,
        "collectives on Ascend add in the order of arrival",
        "CANN docs, HCCL_DETERMINISTIC; transformers/trainer_utils.py:145",
        lambda value: value.lower() in {"true", "strict"},
    ),
    Switch(
        "HOROVOD_FUSION_THRESHOLD",
        Variable("HOROVOD_FUSION_THRESHOLD", _NUMBER),
        When.GROUP,
        "0",
        BOTH,
        "Horovod fuses and sums the tensors that happen to be ready at the same time",
        "NVIDIA framework-reproducibility, doc/d9m/pytorch.md",
        cost="more, smaller collectives",
    ),
    _held("NCCL_PROTO", ANYTHING, When.GROUP, _NCCL, TITAN),
    _held("NCCL_MIN_NCHANNELS", _COUNT, When.GROUP, _NCCL, TITAN),
    _held("NCCL_MAX_NCHANNELS", _COUNT, When.GROUP, _NCCL, TITAN),
    _held("NCCL_NTHREADS", _COUNT, When.GROUP, _NCCL, TITAN),
    _held("NCCL_SOCKET_NTHREADS", _COUNT, When.GROUP, _NCCL, TITAN),
    _held("NCCL_LAUNCH_MODE", ANYTHING, When.GROUP, _NCCL, TITAN),
    _held("NCCL_P2P_NET_DISABLE", ANYTHING, When.GROUP, _NCCL, TITAN),
    _held("NCCL_TOPO_FILE", ANYTHING, When.GROUP, _NCCL, TITAN),
    _held("NCCL_TUNER_PLUGIN", ANYTHING, When.GROUP, "it chooses algorithm and protocol", _IN_NCCL),
    _held("NCCL_CONF_FILE", ANYTHING, When.GROUP, "it sets other variables of NCCL", _IN_NCCL),
    _held("NCCL_GRAPH_FILE", ANYTHING, When.GROUP, _NCCL, _IN_NCCL),
    _held("NCCL_PAT_ENABLE", _NUMBER, When.GROUP, _NCCL, _IN_NCCL),
    _held("NCCL_SYM_KERNEL", ANYTHING, When.GROUP, _NCCL, _IN_NCCL),
    _held("NCCL_BUFFSIZE", _NUMBER, When.GROUP, _NCCL, _IN_NCCL),
    _held("NCCL_THREAD_THRESHOLDS", ANYTHING, When.GROUP, _NCCL, _IN_NCCL),
)
PROCESSOR = (
    Switch(
        "OMP_DYNAMIC",
        Variable("OMP_DYNAMIC", _LOGICAL),
        When.IMPORT,
        "FALSE",
        BOTH,
        "the number of threads, and so the order of sums, may follow the load of the machine",
        "OpenMP specification, OMP_DYNAMIC; Intel oneMKL, obtaining reproducible results",
        _dynamic_off,
    ),
    Switch(
        "MKL_DYNAMIC",
        Variable("MKL_DYNAMIC", _LOGICAL),
        When.IMPORT,
        "FALSE",
        BOTH,
        "MKL chooses the number of threads, and so the order of sums, at run time",
        "Intel oneMKL, obtaining reproducible results",
        _dynamic_off,
    ),
    _held(
        "OMP_NUM_THREADS",
        _COUNT,
        When.IMPORT,
        "sums are split among the threads; torchrun sets it to 1",
        MEASURED,
        BY_THREADS,
    ),
    _held(
        "MKL_NUM_THREADS", _COUNT, When.IMPORT, "products are split among the threads", MEASURED, BY_THREADS
    ),
    _held(
        "ATEN_CPU_CAPABILITY",
        ANYTHING,
        When.IMPORT,
        "another vector width adds in another order",
        MEASURED,
        BY_ATEN,
    ),
    _held(
        "ONEDNN_MAX_CPU_ISA",
        ANYTHING,
        When.IMPORT,
        "it changes the results of convolutions, LSTMs and bf16 products",
        MEASURED,
        BY_ONEDNN,
    ),
    _held(
        "MKL_CBWR",
        ANYTHING,
        When.IMPORT,
        "it changes the results of matrix products and SVD",
        MEASURED,
        BY_MKL,
    ),
    _held(
        "MKL_ENABLE_INSTRUCTIONS",
        ANYTHING,
        When.IMPORT,
        "it makes MKL pick other kernels",
        "Intel oneMKL docs",
        BY_MKL,
    ),
)
HARMLESS = frozenset((
    "CUBLASLT_LOG_FILE", "CUBLASLT_LOG_LEVEL", "CUBLASLT_LOG_MASK", "CUBLAS_LOGDEST_DBG",
    "CUBLAS_LOGINFO_DBG",
    "CUDA_CACHE_MAXSIZE", "CUDA_CACHE_PATH", "CUDA_DEVICE_ORDER", "CUDA_HOME", "CUDA_MODULE_LOADING",
    "CUDA_PATH", "CUDA_VERSION", "DNNL_VERBOSE", "KMP_AFFINITY", "KMP_BLOCKTIME", "MALLOC_CHECK_",
    "MKL_VERBOSE", "NCCL_DEBUG", "NCCL_DEBUG_FILE", "NCCL_DEBUG_SUBSYS", "NCCL_HOME", "NCCL_IB_HCA",
    "NCCL_SOCKET_IFNAME", "NCCL_VERSION",
    "OMP_DISPLAY_ENV", "OMP_PLACES", "OMP_PROC_BIND", "OMP_WAIT_POLICY", "ONEDNN_VERBOSE",
    "OPENBLAS_VERBOSE", "PYTORCH_KERNEL_CACHE_PATH", "TORCHINDUCTOR_CACHE_DIR", "TORCH_CPP_LOG_LEVEL",
    "TORCH_CUDA_ARCH_LIST", "TORCH_DISTRIBUTED_DEBUG", "TORCH_EXTENSIONS_DIR", "TORCH_HOME", "TORCH_LOGS",
    "TORCH_LOGS_OUT", "TORCH_NCCL_ASYNC_ERROR_HANDLING", "TORCH_NCCL_DUMP_ON_TIMEOUT",
    "TORCH_NCCL_TRACE_BUFFER_SIZE", "TORCH_SHOW_CPP_STACKTRACES", "TORCH_SHOW_DISPATCH_TRACE",
    "TORCH_TRACE", "TRITON_CACHE_DIR", "TRITON_HOME", "TRITON_PRINT_AUTOTUNING",
))  # fmt: skip
"""Variables that say where something is kept or what is printed. By themselves they change no bits."""

VARIABLES = (
    *affecting((Results.CUDA,), CUDA),
    *LIBRARIES,
    *affecting((Results.COLLECTIVES,), GROUPS),
    *PROCESSOR,
)
