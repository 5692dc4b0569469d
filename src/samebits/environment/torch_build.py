"""Torch's own report of its build, its threads and its GPUs."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from typing import Any

from samebits.environment.gemm_choices import collect_gemm_choices
from samebits.environment.generated_code import collect_attention, collect_generated_code
from samebits.environment.numeric_libraries import nccl_version


@dataclass(frozen=True)
class GpuFacts:
    """A GPU. Random numbers depend on how many multiprocessors it has and how many threads each runs."""

    name: str
    capability: str
    multiprocessors: int
    threads_per_multiprocessor: int


@dataclass(frozen=True)
class TorchBuild:
    """The fields of `TorchFacts` that a script cannot change.

    Those with a default are empty in the record of a run that was killed before its first step.
    """

    version: str
    git: str
    cuda: str
    mkl: str = ""
    onednn: str = ""
    openmp: str = ""
    capability: str = ""
    nccl: str = ""


@dataclass(frozen=True)
class TorchFacts:
    """Torch, as built and as it is now.

    Args:
        version: such as `2.13.0+cpu`.
        git: commit that it was built from.
        cuda: version of CUDA or ROCm that it was built for, empty if none.
        cudnn: version that is loaded, empty while CUDA is not in use: asking would load more of it.
        nccl: version that is loaded, of RCCL with ROCm; empty if none.
        mkl: like the next two, the version that torch was built with; empty if without.
        capability: instruction set that torch's own CPU kernels use.
        threads: by which pool, as in effect now.
        default_dtype: such as `torch.float32`.
        gpus: empty while CUDA is not in use: asking would start it.
        compiled: the code that `torch.compile` generated, by graph and kernel.
        attention: ops of attention in that code, and those that a recording saw (`with_attention`).
        gemms: the algorithms of matrix products on a GPU, where a library tells them.
    """

    version: str
    git: str
    cuda: str
    cudnn: str
    nccl: str
    mkl: str
    onednn: str
    openmp: str
    capability: str
    threads: dict[str, int]
    default_dtype: str
    gpus: tuple[GpuFacts, ...]
    compiled: dict[str, str]
    attention: tuple[str, ...]
    gemms: dict[str, str]


def collect_torch(torch: Any) -> TorchFacts | None:
    """Read torch's report of itself.

    Args:
        torch: the module, None if it is not imported.
    """
    if torch is None:
        return None
    build = collect_build(torch)
    return TorchFacts(
        version=build.version,
        git=build.git,
        cuda=build.cuda,
        cudnn=_text(torch, "backends.cudnn.version") if _read(torch, "cuda.is_initialized") else "",
        nccl=build.nccl,
        mkl=build.mkl,
        onednn=build.onednn,
        openmp=build.openmp,
        capability=build.capability,
        threads=_collect_threads(torch),
        default_dtype=_text(torch, "get_default_dtype"),
        gpus=_collect_gpus(torch),
        compiled=collect_generated_code(),
        attention=collect_attention(),
        gemms=collect_gemm_choices(torch, os.environ, os.getpid()),
    )


def collect_release(torch: Any) -> TorchBuild:
    """Read which torch it is, as it is imported: nothing of torch is asked.

    The script may still choose devices and threads by `os.environ`, which is read when torch uses them first.

    Args:
        torch: the module.
    """
    return TorchBuild(
        version=_text(torch, "__version__"),
        git=_text(torch, "version.git_version"),
        cuda=_text(torch, "version.cuda") or _text(torch, "version.hip"),
    )


def collect_build(torch: Any) -> TorchBuild:
    """Read how torch was built, once the script uses it.

    `torch.__config__.show` tells it too, but looks for devices (aten/src/ATen/Version.cpp, `show_config`,
    2.15.0): after that, the script's choice of them is not read any more, a process that it forks cannot use
    them, and torch warns of an old driver.

    Args:
        torch: the module.
    """
    told = _parallel_info(torch)
    return replace(
        collect_release(torch),
        mkl=_find(r"Math Kernel Library Version (\S+)", told),
        onednn=_find(r"MKL-DNN (\S+)", told),
        openmp=_find(r"OpenMP (\d+)", told),
        capability=_text(torch, "backends.cpu.get_cpu_capability"),
        nccl=nccl_version(),
    )


def _parallel_info(torch: Any) -> str:
    return str(_read(torch, "__config__.parallel_info") or "")


def _collect_threads(torch: Any) -> dict[str, int]:
    answer = _parallel_info(torch)
    names = {
        "intra-op": "at::get_num_threads",
        "inter-op": "at::get_num_interop_threads",
        "OpenMP": "omp_get_max_threads",
        "MKL": "mkl_get_max_threads",
    }
    counts = {name: _find(rf"{function}\(\) : (\d+)", answer) for name, function in names.items()}
    return {name: int(count) for name, count in counts.items() if count}


def _collect_gpus(torch: Any) -> tuple[GpuFacts, ...]:
    if not _read(torch, "cuda.is_initialized"):
        return ()
    gpus = []
    for index in range(torch.cuda.device_count()):
        gpu = torch.cuda.get_device_properties(index)
        threads = getattr(gpu, "max_threads_per_multi_processor", 0)
        gpus.append(GpuFacts(gpu.name, f"{gpu.major}.{gpu.minor}", gpu.multi_processor_count, threads))
    return tuple(gpus)


def _read(torch: Any, path: str) -> Any:
    """Return the value at a path, calling it if it is a function; None where this torch has none."""
    value = torch
    try:
        for name in path.split("."):
            value = getattr(value, name)
        return value() if callable(value) else value
    except Exception:  # noqa: BLE001  # a fact that torch refuses to tell must not end the user's run
        return None


def _text(torch: Any, path: str) -> str:
    value = _read(torch, path)
    return "" if value is None else str(value)


def _find(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    return match.group(1) if match else ""
