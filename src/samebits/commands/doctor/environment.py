"""The environment that a script would run in: collected once, then only read."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


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
        instructions: vector instruction sets that numeric libraries choose code by.
        usable: how many this process may use.
        quota: how many it may use on average by its control group; None without a limit.
        kinds: the kinds of cores, where there is more than one.
    """

    processor: str
    architecture: str
    instructions: tuple[str, ...]
    usable: int
    quota: float | None = None
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU that torch can use.

    Args:
        name: as it names itself; a slice of one has `MIG` in it.
        multiprocessors: how many it has.
    """

    name: str
    multiprocessors: int


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
    backends: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DigestCheck:
    """The digest of samebits, tried out.

    Args:
        library: whether the C library is installed.
        backend: the one in use, such as `avx2`, or `torch`.
        error: what went wrong; empty when the digests were right.
    """

    library: bool
    backend: str
    error: str = ""


@dataclass(frozen=True, slots=True)
class RecordFolder:
    """The folder where records would go, and the repository there.

    Args:
        folder: its path.
        unwritable: why nothing can be written there; empty if it can.
        free_bytes: free space.
        git: `absent` (no git), `none` (git knows no commit there), `clean` or `changed`.
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
        imports: top-level names that the script imports; None when no script was given.
        switches: the switches, in the table's order.
        fixable_layout: whether address space randomisation can be switched off.
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


def to_facts(value: Any) -> dict[str, Any]:
    """Return a dataclass of this module as JSON can hold it."""
    return dataclasses.asdict(value)


def torch_from(facts: dict[str, Any]) -> Torch:
    """Read what `to_facts` wrote, after it went through JSON."""
    gpus = tuple(Gpu(**gpu) for gpu in facts["gpus"])
    return Torch(**{**facts, "gpus": gpus, "backends": tuple(facts["backends"])})


def interpreter_from(facts: dict[str, Any]) -> Interpreter:
    """Read what `to_facts` wrote, as `torch_from` does."""
    return Interpreter(**{key: _frozen(value) for key, value in facts.items()})


def cpus_from(facts: dict[str, Any]) -> Cpus:
    """Read what `to_facts` wrote, as `torch_from` does."""
    return Cpus(**{key: _frozen(value) for key, value in facts.items()})


def switch_from(facts: dict[str, Any]) -> SwitchView:
    """Read what `to_facts` wrote, as `torch_from` does."""
    return SwitchView(**{key: _frozen(value) for key, value in facts.items()})


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
