"""GPUs: whether they can be used as they are, and ties of the bits to them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from samebits._cuda.faults import Fault, fault_of
from samebits.commands.doctor.threat import BREAKS, EVERY, MAY_BREAK, NOTE, Threat

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from samebits.commands.doctor.environment import EnvironmentSnapshot, Gpu

_GENERATOR = (
    "Beyond one wave of blocks, random numbers depend on how many multiprocessors the GPU has. Kernels are "
    "chosen by model. No deterministic flag changes that."
)
_SOURCE = "pytorch#196613, pytorch#194676"
_UNUSABLE: Mapping[Fault | None, str] = {
    None: "check nvidia-smi and CUDA_VISIBLE_DEVICES, or name the device",
    Fault.OLD_DRIVER: "update the driver, or install a torch that is built for an older CUDA",
    Fault.BUSY: "end the program that has the GPU for itself (nvidia-smi), or reset the GPU",
    Fault.NO_MEMORY: "end other programs on the GPU (nvidia-smi)",
    Fault.HARDWARE: "reset and test the GPU (nvidia-smi -q) before you trust a result of it",
}
_OWN_BYTES = 1 << 30  # more than a process that begins takes for itself
_ARCHITECTURE = re.compile(r"(sm|compute)_(\d+)(\d)([af]?)")


def unusable_cuda(snapshot: EnvironmentSnapshot) -> Iterable[Threat]:
    """A torch that was built for CUDA can use it."""
    error = snapshot.torch.cuda_error
    if error:
        yield Threat(
            "portable",
            "CUDA",
            f"torch for CUDA {snapshot.torch.cuda} finds no usable GPU: {_first_sentence(error)}",
            f"A script that falls back to the CPU gives different bits: {error}",
            _UNUSABLE.get(fault_of(error), _UNUSABLE[None]),
            "PyTorch notes on reproducibility: not reproducible between CPU and GPU",
            NOTE,
        )


def unknown_architecture(snapshot: EnvironmentSnapshot) -> Iterable[Threat]:
    """Torch has code for each GPU."""
    known = snapshot.torch.architectures
    for gpu in snapshot.torch.gpus:
        if known and gpu.capability and not any(_runs_on(architecture, gpu) for architecture in known):
            yield Threat(
                EVERY,
                "GPU architecture",
                f"torch {snapshot.torch.version} has no code for {gpu.name} (capability {gpu.capability})",
                f"It is built for {', '.join(known)}. Machine code runs on GPUs of the same major capability "
                "and an equal or higher minor one, PTX on all that are newer.",
                "install a torch that is built for this GPU: https://pytorch.org/get-started/locally/",
                "CUDA C++ Programming Guide, compute capabilities; torch.cuda.get_arch_list",
                BREAKS,
            )


def shared_gpu(snapshot: EnvironmentSnapshot) -> Iterable[Threat]:
    """No other program takes memory of a GPU."""
    for index, gpu in enumerate(snapshot.torch.gpus):
        if gpu.memory - gpu.free > _OWN_BYTES:
            free = f"{_gigabytes(gpu.free)} of {_gigabytes(gpu.memory)}"
            yield Threat(
                "repeatable",
                "shared GPU",
                f"GPU {index} has {free} free: other programs use it",
                "cuDNN passes over algorithms whose workspace does not fit, and cuBLAS asks how much is "
                "free, so the bits may depend on what else is running. A run may also end for want of it.",
                "end the other programs (nvidia-smi names them), or run on a GPU of your own",
                "aten/src/ATen/native/cudnn/Conv_v8.cpp, get_plans_from_find; cudarc#549",
                MAY_BREAK,
            )


def slow_digest(snapshot: EnvironmentSnapshot) -> Iterable[Threat]:
    """Digests on a GPU are computed by kernels of samebits."""
    reason = snapshot.digest.gpu if snapshot.digest is not None else ""
    if reason:
        yield Threat(
            "proven",
            "digest on the GPU",
            f"digests on the GPU are right, but slow: {_first_sentence(reason)}",
            "Its kernels can be neither loaded nor compiled here; torch's operations give the same values.",
            "install samebits from a wheel, or nvidia-cuda-nvrtc for torch's CUDA; update the driver",
            "docs/reference/digest.md",
            NOTE,
        )


def mixed_gpus(snapshot: EnvironmentSnapshot) -> Iterable[Threat]:
    """All visible GPUs are of one model."""
    names = sorted({gpu.name for gpu in snapshot.torch.gpus})
    counts = {gpu.multiprocessors for gpu in snapshot.torch.gpus}
    if len(names) > 1 or len(counts) > 1:
        yield Threat(
            "repeatable",
            "GPU models",
            f"GPUs of several kinds: {', '.join(names)}",
            f"Which one is cuda:0 decides the bits. {_GENERATOR}",
            "export CUDA_VISIBLE_DEVICES=GPU-... (nvidia-smi -L), always the same model",
            _SOURCE,
            MAY_BREAK,
        )


def gpu_slices(snapshot: EnvironmentSnapshot) -> Iterable[Threat]:
    """No GPU is a slice of one."""
    slices = [gpu for gpu in snapshot.torch.gpus if "MIG" in gpu.name]
    if slices or "MIG" in snapshot.variables.get("CUDA_VISIBLE_DEVICES", ""):
        size = f" with {slices[0].multiprocessors} multiprocessors" if slices else ""
        yield Threat(
            "repeatable",
            "MIG",
            f"a slice of a GPU (MIG){size}: the next one may have another size",
            _GENERATOR,
            "always ask for the same MIG profile",
            _SOURCE,
            MAY_BREAK,
        )


def gpu_model(snapshot: EnvironmentSnapshot) -> Iterable[Threat]:
    """Bits on a GPU belong to its model."""
    if snapshot.torch.gpus:
        gpu = snapshot.torch.gpus[0]
        yield Threat(
            "portable",
            "GPU",
            f"bits belong to {gpu.name}, {gpu.multiprocessors} multiprocessors",
            _GENERATOR,
            "compare on this GPU model; draw random numbers on the CPU",
            _SOURCE,
            MAY_BREAK,
        )


def _runs_on(architecture: str, gpu: Gpu) -> bool:
    """Tell whether code for an architecture, such as `sm_90a`, runs on a GPU."""
    found = _ARCHITECTURE.fullmatch(architecture)
    if found is None:
        return True  # of a kind that is not known here
    kind, wanted, here = found[1], (int(found[2]), int(found[3])), _pair(gpu.capability)
    if found[4] == "a":
        return here == wanted
    if kind == "compute" and not found[4]:
        return here >= wanted
    return here[0] == wanted[0] and here[1] >= wanted[1]


def _pair(capability: str) -> tuple[int, int]:
    major, _, minor = capability.partition(".")
    return int(major), int(minor)


def _gigabytes(n_bytes: int) -> str:
    return f"{n_bytes / (1 << 30):.1f} GiB"


def _first_sentence(error: str) -> str:
    return error.partition("\n")[0].partition(". ")[0].rstrip(".")
