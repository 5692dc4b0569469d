"""Ties of the bits to this machine and installation: processor, libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits.commands.doctor.threat import BREAKS, EVERY, MAY_BREAK, NOTE, Threat

if TYPE_CHECKING:
    from collections.abc import Iterable

    from samebits.commands.doctor.environment import EnvironmentSnapshot

_NEEDED = {"avx512": "avx512f", "avx2": "avx2"}
_MEASURED = "measured, torch 2.13.0 CPU, 173 results on one machine"


def torch_release(snapshot: EnvironmentSnapshot) -> Iterable[Threat]:
    """Bits belong to a release of torch."""
    version = snapshot.torch.version
    if version:
        yield Threat(
            "portable",
            "torch release",
            f"bits belong to torch {version}",
            "PyTorch does not promise the same results across releases, commits, platforms, or between CPU "
            "and GPU.",
            f"pin torch=={version} wherever runs are compared",
            "PyTorch notes on reproducibility",
            MAY_BREAK,
        )


def instruction_set(snapshot: EnvironmentSnapshot) -> Iterable[Threat]:
    """The kernels are pinned to instructions that other machines have too."""
    capability = snapshot.torch.capability
    pinned = snapshot.variables.get("ATEN_CPU_CAPABILITY")
    if capability in {"AVX2", "AVX512"} and not pinned:
        yield Threat(
            "portable",
            "instruction set",
            f"torch uses {capability} here: machines without it give different bits",
            "Wider vectors add in a different order. ATEN_CPU_CAPABILITY=avx2 changes 32 of 173 results, "
            "`default` 66, even torch.randn; oneDNN and MKL choose by themselves. No setting removes all "
            "differences.",
            "export ATEN_CPU_CAPABILITY=avx2 on all machines",
            f"{_MEASURED}; pytorch#155552",
            MAY_BREAK,
        )
    elif capability and not pinned:
        yield Threat(
            "portable",
            "instruction set",
            f"torch uses {capability} ({snapshot.cpus.architecture}): other machines give different bits",
            "Kernels for other instruction sets add in a different order.",
            "compare on machines of this kind only",
            _MEASURED,
            NOTE,
        )


def ineffective_instruction_set(snapshot: EnvironmentSnapshot) -> Iterable[Threat]:
    """The pinned instruction set is in effect."""
    pinned = snapshot.variables.get("ATEN_CPU_CAPABILITY", "")
    capability = snapshot.torch.capability
    # `avx2` is reported as `AVX2`; written `AVX2`, it is ignored with a warning (2.13.0, measured).
    if pinned and capability and (pinned.upper() != capability or not pinned.islower()):
        yield Threat(
            "portable",
            "ATEN_CPU_CAPABILITY",
            f"ATEN_CPU_CAPABILITY={pinned}, but torch uses {capability}",
            "torch ignores values that it does not know, and it knows them in lower case only.",
            "set it to default, avx2 or avx512, as all machines can",
            "aten/src/ATen/native/DispatchStub.cpp",
            MAY_BREAK,
        )


def missing_instruction_set(snapshot: EnvironmentSnapshot) -> Iterable[Threat]:
    """The processor has the instruction set that is asked for: torch does not look."""
    wanted, known = snapshot.variables.get("ATEN_CPU_CAPABILITY", ""), snapshot.cpus.instructions
    needed = _NEEDED.get(wanted, "")
    if needed and known and needed not in known:
        yield Threat(
            EVERY,
            "ATEN_CPU_CAPABILITY",
            f"ATEN_CPU_CAPABILITY={wanted}, and this processor has no {needed}",
            "torch uses these instructions all the same, and the first of them ends the process (SIGILL).",
            "set it to what all machines have: default or avx2",
            "aten/src/ATen/native/DispatchStub.cpp; measured, torch 2.13.0",
            BREAKS,
        )


def blas_library(snapshot: EnvironmentSnapshot) -> Iterable[Threat]:
    """Matrix products do not depend on the maker of the processor."""
    if not snapshot.torch.mkl:
        return
    pinned = snapshot.variables.get("MKL_CBWR")
    if _is_amd(snapshot.cpus.processor):
        yield Threat(
            "portable",
            "MKL",
            f"MKL {snapshot.torch.mkl} on an AMD processor uses different kernels than on Intel",
            "MKL chooses kernels by processor. MKL_CBWR=COMPATIBLE is its one setting for all makers, and it "
            "changes 30 of 173 results; it covers neither oneDNN (convolutions) nor torch's own kernels.",
            "export MKL_CBWR=COMPATIBLE on all machines (slower)",
            f"Intel oneMKL docs, conditional numerical reproducibility; {_MEASURED}",
            NOTE if pinned else MAY_BREAK,
        )
    elif not pinned:
        yield Threat(
            "portable",
            "MKL",
            f"MKL {snapshot.torch.mkl} chooses its kernels by processor",
            "A different Intel processor gets different kernels unless the branch is fixed. Even then the "
            "number of threads changes results, except in the modes AVX2 and AVX512 with STRICT.",
            "export MKL_CBWR=AVX2,STRICT on all machines",
            "Intel oneMKL docs, conditional numerical reproducibility",
            MAY_BREAK,
        )


def onednn_library(snapshot: EnvironmentSnapshot) -> Iterable[Threat]:
    """Convolutions do not depend on the processor."""
    if (
        snapshot.torch.onednn
        and not _onednn_pin(snapshot)
        and snapshot.cpus.architecture in {"x86_64", "AMD64"}
    ):
        yield Threat(
            "portable",
            "oneDNN",
            "oneDNN chooses kernels for convolution, LSTM and bf16 by processor",
            "ONEDNN_MAX_CPU_ISA=AVX2 changes 17 of 173 results; ATEN_CPU_CAPABILITY does not reach oneDNN.",
            "export ONEDNN_MAX_CPU_ISA=AVX2 on all machines",
            f"{_MEASURED}; pytorch#155423",
            MAY_BREAK,
        )


def cpu_count(snapshot: EnvironmentSnapshot) -> Iterable[Threat]:
    """The number of threads is one that other machines can have."""
    if snapshot.torch.threads > 1:
        yield Threat(
            "portable",
            "threads",
            f"{snapshot.torch.threads} threads: a machine with fewer CPUs cannot give these bits",
            "One thread instead of two changes 39 of 173 results: sums, norms, gradients of weights.",
            "export OMP_NUM_THREADS=1, which every machine can have",
            _MEASURED,
            MAY_BREAK,
        )


def tf32_override(snapshot: EnvironmentSnapshot) -> Iterable[Threat]:
    """TF32 is not switched on from outside."""
    for name in ("NVIDIA_TF32_OVERRIDE", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE"):
        if snapshot.torch.cuda and snapshot.variables.get(name) == "1":
            yield Threat(
                "portable",
                name,
                f"{name}=1: float32 products are rounded to TF32 where a GPU has it",
                "TF32 keeps 10 bits of the mantissa, on GPUs since Ampere; others compute in full float32.",
                f"unset {name}",
                "PyTorch docs, CUDA environment variables; aten/src/ATen/Context.h",
                MAY_BREAK,
            )


def _onednn_pin(snapshot: EnvironmentSnapshot) -> str:
    return snapshot.variables.get("ONEDNN_MAX_CPU_ISA") or snapshot.variables.get("DNNL_MAX_CPU_ISA") or ""


def _is_amd(processor: str) -> bool:
    return processor.startswith("AMD") or "AuthenticAMD" in processor
