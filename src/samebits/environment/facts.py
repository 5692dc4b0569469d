"""The facts that a record keeps of where its run took place."""

from __future__ import annotations

import json
import os
import platform
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from samebits.environment.differences import TAKEN
from samebits.environment.machine import MachineFacts, collect_machine
from samebits.environment.software import SourceFacts, collect_libraries, collect_packages, collect_source
from samebits.environment.torch_facts import TorchBuild, TorchFacts, collect_build, collect_torch

if TYPE_CHECKING:
    from collections.abc import Mapping

_PREFIXES = (
    *("ATEN_", "TORCH_", "TORCHINDUCTOR_", "PYTORCH_", "TRITON_", "NVTE_"),
    *("CUBLAS", "CUDA_", "CUDNN_", "NCCL_", "NVIDIA_TF32_"),
    *("HIP_", "HSA_", "MIOPEN_", "ROCBLAS_"),
    *("DNNL_", "ONEDNN_", "MKL_", "OPENBLAS_", "BLIS_", "VECLIB_", "NUMEXPR_", "NPY_"),
    *("OMP_", "KMP_", "GOMP_"),
    *("PYTHONHASHSEED", "PYTHONMALLOC", "MALLOC_", "GLIBC_TUNABLES", "LD_PRELOAD"),
)
_SECRETS = ("TOKEN", "SECRET", "PASSW", "CREDENTIAL", "AUTH", "API_KEY", "ACCESS_KEY", "PRIVATE")
_LONGEST_VALUE = 300


@dataclass(frozen=True)
class PythonFacts:
    """The interpreter.

    Args:
        hash_seed: `PYTHONHASHSEED` as it took effect; `random` if each process hashes text differently.
        optimize: how often `-O` was given, which removes assertions.
    """

    version: str
    implementation: str
    hash_seed: str
    optimize: int


@dataclass(frozen=True)
class Environment:
    """What can be known of where a run takes place, without changing it.

    Args:
        torch: None when torch is not imported.
        variables: environment variables that numeric libraries read; no others, and no secrets.
        packages: version of each imported distribution.
        libraries: file names of the numeric libraries that are loaded.
        source: None when the script is not in a git repository.
    """

    machine: MachineFacts
    python: PythonFacts
    torch: TorchFacts | None
    variables: dict[str, str]
    packages: dict[str, str]
    libraries: tuple[str, ...]
    source: SourceFacts | None

    def to_dict(self) -> dict[str, Any]:
        """Return the facts as JSON would give them back."""
        facts: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return facts


@dataclass(frozen=True)
class StartFacts:
    """What is known when a run starts and holds until its end: what a run that is killed leaves.

    Args:
        variables: may still be changed by the script, unlike the rest.
        torch: facts of its build; None as long as torch is not imported.
    """

    machine: MachineFacts
    python: PythonFacts
    variables: dict[str, str]
    torch: TorchBuild | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the facts as JSON would give them back, in the places that `Environment` has for them."""
        facts: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return {TAKEN: "at the start of the run", **facts}


def collect_at_start() -> StartFacts:
    """Look around, without what takes long or will change: git, packages, libraries, the state of torch."""
    return StartFacts(collect_machine(), _collect_python(), numeric_variables(os.environ))


def with_torch(facts: StartFacts, torch: Any) -> StartFacts:
    """The facts of a start, with torch's build.

    Args:
        facts: of the start.
        torch: the module.
    """
    return replace(facts, torch=collect_build(torch))


def collect(directory: Path | None = None) -> Environment:
    """Look around. Torch is looked at only when it is imported already, CUDA only when it is in use.

    Args:
        directory: whose git commit is of interest; by default that of the running script.
    """
    return Environment(
        machine=collect_machine(),
        python=_collect_python(),
        torch=collect_torch(sys.modules.get("torch")),
        variables=numeric_variables(os.environ),
        packages=collect_packages(),
        libraries=collect_libraries(),
        source=collect_source(directory or _script_directory()),
    )


def _collect_python() -> PythonFacts:
    seed = "random" if sys.flags.ignore_environment else os.environ.get("PYTHONHASHSEED") or "random"
    seed = seed if sys.flags.hash_randomization else "0"
    return PythonFacts(platform.python_version(), platform.python_implementation(), seed, sys.flags.optimize)


def numeric_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables of an environment that numeric libraries read; no others, and no secrets."""
    found = {name: value for name, value in environ.items() if name.startswith(_PREFIXES)}
    return {
        name: "(hidden)" if any(word in name for word in _SECRETS) else value[:_LONGEST_VALUE]
        for name, value in sorted(found.items())
    }


def _script_directory() -> Path:
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    return Path(script).parent if isinstance(script, str) else Path()
