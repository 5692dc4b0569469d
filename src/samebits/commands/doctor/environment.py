"""The environment that a script would run in, and which switches matter there. Collected once, then read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@dataclass(frozen=True, slots=True)
class Interpreter:
    """Python, as it starts here.

    Args:
        version: such as `3.11.7`.
        hash_seed: `PYTHONHASHSEED` as it took effect; `random` if each process hashes text differently.
        startup_files: files of `sitecustomize` and `usercustomize`, which run before any script.
        startup_modules: numeric packages that were imported before the script could begin.
    """

    version: str
    hash_seed: str
    startup_files: tuple[str, ...] = ()
    startup_modules: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Cpus:
    """The processors.

    Args:
        processor: as it names itself.
        architecture: such as `x86_64`.
        usable: how many this process may use.
        quota: how many it may use on average by its control group; None without a limit.
        kinds: the kinds of cores, where there is more than one.
        instructions: vector instruction sets that it has, such as `avx2`; empty where they are not known.
    """

    processor: str
    architecture: str
    usable: int
    quota: float | None = None
    kinds: tuple[str, ...] = ()
    instructions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU that torch can use.

    Args:
        name: as it names itself; a slice of one has `MIG` in it.
        multiprocessors: how many it has.
        capability: such as `9.0`; empty if it is not known.
        memory: bytes that it has.
        free: bytes of them that a process which begins can have.
    """

    name: str
    multiprocessors: int
    capability: str = ""
    memory: int = 0
    free: int = 0


@dataclass(frozen=True, slots=True)
class Torch:
    """torch, as a script would import it.

    Args:
        error: why it cannot be imported; the rest is empty then.
        file: the file that it was, or would have been, imported from.
        version: such as `2.13.0+cpu`.
        cuda: version of CUDA or ROCm that it was built for, empty if none.
        cuda_error: why no GPU can be used although torch was built for them.
        mkl: version that torch was built with; empty if without.
        onednn: as `mkl`.
        capability: instruction set that torch's own CPU kernels use.
        threads: of the intra-op pool.
        gpus: those that are visible.
        architectures: for which torch has code, such as `sm_90` (machine code) or `compute_120` (PTX).
        backends: packages whose code torch runs when it is imported.
    """

    error: str = ""
    file: str = ""
    version: str = ""
    cuda: str = ""
    cuda_error: str = ""
    mkl: str = ""
    onednn: str = ""
    capability: str = ""
    threads: int = 0
    gpus: tuple[Gpu, ...] = ()
    architectures: tuple[str, ...] = ()
    backends: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DigestCheck:
    """The digest of samebits, tried out.

    Args:
        library: whether the C library is installed.
        backend: the one in use, such as `avx2`, or `torch`.
        error: what went wrong; empty when the digests were right.
        gpu: why the kernels for GPUs cannot be used there; empty where they can, and without a GPU.
    """

    library: bool
    backend: str
    error: str = ""
    gpu: str = ""


@dataclass(frozen=True, slots=True)
class RecordFolder:
    """The folder where records would go, and the repository there.

    Args:
        folder: its path.
        unwritable: why nothing can be written there; empty if it can.
        free_bytes: free space.
        git: `absent` (no git), `none` (git knows no commit there), `distrusted` (another user owns the
            repository, and git refuses it), `clean` or `changed`.
    """

    folder: str
    unwritable: str
    free_bytes: int
    git: str


@dataclass(frozen=True, slots=True)
class SwitchView:
    """A switch as a fresh process has it.

    Args:
        name: such as `cudnn-benchmark`.
        now: its value; empty when it is not set.
        wanted: the value that control would give it; None when control would only hold the present one.
        fits: whether control would leave it as it is.
        problem: the values that are expected instead of its own; empty when its own is possible.
        missing: why this build does not have the switch; empty when it has.
        is_variable: whether it is an environment variable.
        when: until when it can be set.
        promises: those that need it.
        why: the harm without it.
        source: of that statement.
    """

    name: str
    now: str
    wanted: str | None
    fits: bool
    problem: str
    missing: str
    is_variable: bool
    when: str
    promises: tuple[str, ...]
    why: str
    source: str


@dataclass(frozen=True, slots=True)
class Setting:
    """A switch that the script sets.

    Args:
        switch: its name.
        value: what it is set to; empty where the source does not tell.
        file: the file, relative to the folder of the script.
        line: the line.
    """

    switch: str
    value: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class EnvironmentSnapshot:
    """Everything that the checks look at.

    Args:
        interpreter: Python.
        cpus: the processors.
        torch: torch.
        digest: the digest, tried out; None where torch cannot be imported.
        record_folder: where records would go.
        variables: environment variables that numeric libraries read.
        packages: version of each installed distribution, by its normalised name.
        imports: names that the script imports (`imported_packages`); None when no script was given.
        switches: the switches, in the table's order.
        fixable_layout: whether address space randomisation can be switched off.
        settings: the switches that the script sets, as far as its source tells.
    """

    interpreter: Interpreter
    cpus: Cpus
    torch: Torch
    digest: DigestCheck | None
    record_folder: RecordFolder
    variables: Mapping[str, str] = field(default_factory=dict)
    packages: Mapping[str, str] = field(default_factory=dict)
    imports: frozenset[str] | None = None
    switches: tuple[SwitchView, ...] = ()
    fixable_layout: bool = True
    settings: tuple[Setting, ...] = ()


# Variables that only some packages read: the beginning of the name, and the distributions.
_READERS = {
    "FLASH_ATTENTION_DETERMINISTIC": ("flash-attn", "flash-attn-3"),
    "NVTE_": ("transformer-engine",),
    "MAMBA_": ("mamba-ssm",),
    "CAUSAL_CONV1D_": ("causal-conv1d",),
    "HOROVOD_": ("horovod",),
    "HCCL_": ("torch-npu",),
    "TRITON_": ("triton", "pytorch-triton", "triton-rocm"),
}
_ACCELERATOR_WORDS = ("cudnn", "cublas", "cuda", "nvidia", "tf32", "tunableop", "cusolver", "sdpa", "sdp")


def readers_of(switch: str) -> tuple[str, ...]:
    """Return the only packages that read that variable; empty when torch or a library below it does."""
    return next((packages for start, packages in _READERS.items() if switch.startswith(start)), ())


def is_relevant(view: SwitchView, snapshot: EnvironmentSnapshot) -> bool:
    """Tell whether that switch can change bits with this torch, these packages and these devices."""
    if view.missing:
        return False
    readers = readers_of(view.name)
    if readers:
        return any(package in snapshot.packages for package in readers)
    if "process group" in view.when:
        is_distributed = snapshot.variables.get("WORLD_SIZE", "1") not in {"", "0", "1"}
        return len(snapshot.torch.gpus) > 1 or is_distributed
    about_gpus = "CUDA" in view.when or any(word in view.name.lower() for word in _ACCELERATOR_WORDS)
    return bool(snapshot.torch.cuda) or not about_gpus


def relevant_switches(snapshot: EnvironmentSnapshot) -> Iterator[SwitchView]:
    """Yield the switches that can change bits in this environment."""
    return (view for view in snapshot.switches if is_relevant(view, snapshot))


def differing(snapshot: EnvironmentSnapshot) -> tuple[SwitchView, ...]:
    """Return the relevant switches that control would change, or whose value is not possible."""
    return tuple(view for view in relevant_switches(snapshot) if not view.fits or view.problem)
