"""The snapshot of the environment that a record keeps: machine, packages, settings, code and data."""

from __future__ import annotations

import json
import os
import platform
import sys
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from samebits._text.secret_names import MASK
from samebits.environment.hardware import MachineFacts, collect_machine
from samebits.environment.loaded_code import local_modules
from samebits.environment.numeric_libraries import Library, collect_libraries
from samebits.environment.packages import (
    Distribution,
    collect_distributions,
    collect_packages,
)
from samebits.environment.repository import Patch, SourceFacts, collect_patch, collect_source, root_of
from samebits.environment.torch_build import (
    TorchBuild,
    TorchFacts,
    collect_build,
    collect_release,
    collect_torch,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from samebits.environment.files import DataFacts, FileDigest


_PREFIXES = (
    "ATEN_", "TORCH_", "TORCHINDUCTOR_", "PYTORCH_", "TRITON_", "NVTE_",
    "CUBLAS", "CUDA_", "CUDNN_", "NCCL_", "NVIDIA_TF32_",
    "HIP_", "HSA_", "MIOPEN_", "ROCBLAS_",
    "DNNL_", "ONEDNN_", "MKL_", "OPENBLAS_", "BLIS_", "VECLIB_", "NUMEXPR_", "NPY_",
    "OMP_", "KMP_", "GOMP_",
    "PYTHONHASHSEED", "PYTHONMALLOC", "MALLOC_", "GLIBC_TUNABLES", "LD_PRELOAD",
)  # fmt: skip
TAKEN = "taken"
"""A key in facts that are not those of the end of a run: the moment at which they were taken."""
HERE = "here"
"""The moment of facts of a machine where nothing ran."""

_SECRETS = ("TOKEN", "SECRET", "PASSW", "CREDENTIAL", "AUTH", "API_KEY", "ACCESS_KEY", "PRIVATE")
_CUT_AT = 300  # characters of a value in records of earlier versions
_HIDDEN = "(hidden)"


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
    """The facts about the environment of a run that can be read without changing it.

    Args:
        torch: None when torch is not imported.
        variables: environment variables that numeric libraries read; no others, and no secrets.
        packages: version of each imported distribution.
        libraries: the numeric libraries that are loaded.
        source: None when the script is not in a git repository.
        switches: the values of the switches, by name; without those that are among the variables.
        distributions: the installed packages, by normalised name.
        code: the script and each imported module of the user's own, by name.
        patch: what was changed since the commit of `source`.
        data: the data files that the run read; None where nobody watched.
    """

    machine: MachineFacts
    python: PythonFacts
    torch: TorchFacts | None
    variables: dict[str, str]
    packages: dict[str, str]
    libraries: tuple[Library, ...]
    source: SourceFacts | None
    switches: dict[str, str] = field(default_factory=dict)
    distributions: dict[str, Distribution] = field(default_factory=dict)
    code: dict[str, FileDigest] = field(default_factory=dict)
    patch: Patch | None = None
    data: DataFacts | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the facts as JSON would give them back."""
        facts: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return facts


@dataclass(frozen=True)
class StartFacts:
    """The facts that are known when a run starts and hold until its end: all that a killed run leaves.

    Args:
        variables: may still be changed by the script, unlike the rest.
        torch: facts of its build, of its release before the first step; None as long as it is not imported.
    """

    machine: MachineFacts
    python: PythonFacts
    variables: dict[str, str]
    torch: TorchBuild | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the facts as JSON would give them back, under the keys that `Environment` has for them."""
        facts: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return {TAKEN: "at the start of the run", **facts}


def collect_at_start() -> StartFacts:
    """Read the facts, except those that take long or will change: git, packages, libraries, torch's state."""
    return StartFacts(collect_machine(), _collect_python(), numeric_variables(os.environ))


def with_release(facts: StartFacts, torch: Any) -> StartFacts:
    """Return the facts of a start, with torch's release.

    Args:
        facts: of the start.
        torch: the module, just imported.
    """
    return replace(facts, torch=collect_release(torch))


def with_build(facts: StartFacts, torch: Any) -> StartFacts:
    """Return the facts of a start, with torch's build.

    Args:
        facts: of the start.
        torch: the module, which the script has used.
    """
    return replace(facts, torch=collect_build(torch))


def collect(directory: Path | None = None, switches: Mapping[str, str] | None = None) -> Environment:
    """Read the facts: torch's only when it is imported already, CUDA's only when it is in use.

    Args:
        directory: its git commit is read; by default the directory of the running script.
        switches: the values of the switches, from `switches.table.switch_values`.
    """
    variables = numeric_variables(os.environ)
    return Environment(
        machine=collect_machine(),
        python=_collect_python(),
        torch=collect_torch(sys.modules.get("torch")),
        variables=variables,
        packages=collect_packages(),
        libraries=collect_libraries(),
        source=collect_source(directory or _folder_of("")),
        switches={name: value for name, value in (switches or {}).items() if name not in variables},
    )


def with_attention(facts: Environment, ops: Iterable[str]) -> Environment:
    """Return the facts with the ops of attention that a recording saw, beside those in generated code.

    Args:
        facts: of this process.
        ops: their names.
    """
    if facts.torch is None:
        return facts
    return replace(facts, torch=replace(facts.torch, attention=tuple(sorted({*facts.torch.attention, *ops}))))


def with_inventory(
    facts: Environment, folder: str, script: str, mask: Callable[[str], str] | None = None
) -> Environment:
    """Return the facts with what another machine needs to repeat the run, beside the code: packages, changes.

    Args:
        facts: of this process.
        folder: the working folder when the run began.
        script: its path; empty for a module.
        mask: masks secrets in the changes; None leaves the changes out.
    """
    patch = None
    if mask is not None and facts.source is not None:
        patch = collect_patch(_folder_of(script), local_modules(script).values(), folder, mask)
    return replace(with_packages(facts, root_of(_folder_of(script))), patch=patch)


def with_packages(facts: Environment, root: str | None = None) -> Environment:
    """Return the facts with the installed packages, and those that the loaded libraries came with.

    Args:
        facts: of this process.
        root: folder of the repository that the script is in.
    """
    libraries = collect_libraries(with_packages=True)
    return replace(facts, distributions=collect_distributions(root), libraries=libraries)


def _collect_python() -> PythonFacts:
    seed = "random" if sys.flags.ignore_environment else os.environ.get("PYTHONHASHSEED") or "random"
    seed = seed if sys.flags.hash_randomization else "0"
    return PythonFacts(platform.python_version(), platform.python_implementation(), seed, sys.flags.optimize)


def numeric_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of an environment that numeric libraries read; no others, and no secrets."""
    variables = {name: value for name, value in environ.items() if name.startswith(_PREFIXES)}
    return {
        name: _HIDDEN if any(word in name for word in _SECRETS) else value
        for name, value in sorted(variables.items())
    }


def is_whole(value: str) -> bool:
    """Tell whether a value of `numeric_variables`, as a record holds it, is the one that the run had.

    Earlier versions cut values: one of just that length is taken for a cut one.
    """
    return value != _HIDDEN and MASK not in value and len(value) != _CUT_AT


def _folder_of(script: str) -> Path:
    """Return the folder of the script, by default of `__main__`, which loses its path when it has ended."""
    path = script or getattr(sys.modules.get("__main__"), "__file__", None)
    return Path(path).parent if isinstance(path, str) else Path()


def fact_at(facts: object, *path: str) -> Any:
    """Return the fact at a path of keys; None where a record, perhaps from elsewhere, has none."""
    for name in path:
        facts = facts.get(name) if isinstance(facts, dict) else None
    return facts


def table_at(facts: object, *path: str) -> dict[str, Any]:
    """Return the table of facts at a path of keys; empty where there is none."""
    table = fact_at(facts, *path)
    return table if isinstance(table, dict) else {}
