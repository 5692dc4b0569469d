"""CUDA and the GPUs that are visible."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits.doctor.threat import MAY_BREAK, NOTE, Threat

if TYPE_CHECKING:
    from collections.abc import Iterable

    from samebits.doctor.surroundings import Surroundings

_GENERATOR = (
    "Above one wave of blocks, random numbers depend on how many multiprocessors the GPU has; kernels are "
    "chosen by model. No deterministic flag says anything about it."
)
_SOURCE = "pytorch#196613, pytorch#194676"


def unusable_cuda(here: Surroundings) -> Iterable[Threat]:
    """A torch that was built for CUDA can use it."""
    if here.torch.cuda_error:
        yield Threat(
            "portable",
            "CUDA",
            f"torch is built for CUDA {here.torch.cuda}, and finds no usable GPU",
            f"A script that falls back to the CPU gives other bits than on a GPU: {here.torch.cuda_error}",
            "check nvidia-smi and CUDA_VISIBLE_DEVICES, or name the device",
            "PyTorch notes on reproducibility: not reproducible between CPU and GPU",
            NOTE,
        )


def mixed_gpus(here: Surroundings) -> Iterable[Threat]:
    """All visible GPUs are of one model."""
    names = sorted({gpu.name for gpu in here.torch.gpus})
    counts = {gpu.multiprocessors for gpu in here.torch.gpus}
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


def gpu_slices(here: Surroundings) -> Iterable[Threat]:
    """No GPU is a slice of one."""
    slices = [gpu for gpu in here.torch.gpus if "MIG" in gpu.name]
    if slices or "MIG" in here.variables.get("CUDA_VISIBLE_DEVICES", ""):
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


def gpu_model(here: Surroundings) -> Iterable[Threat]:
    """Bits on a GPU belong to its model."""
    if here.torch.gpus:
        gpu = here.torch.gpus[0]
        yield Threat(
            "portable",
            "GPU",
            f"bits belong to {gpu.name}, {gpu.multiprocessors} multiprocessors",
            _GENERATOR,
            "compare on this GPU model; draw random numbers on the CPU",
            _SOURCE,
            MAY_BREAK,
        )
