"""The snapshot of the environment that a record keeps: machine, operating system, packages, repository."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from samebits.environment._differences import TAKEN
from samebits.environment.torch_build import TorchBuild, TorchFacts, collect_build, collect_torch

if TYPE_CHECKING:
    from collections.abc import Mapping

# Numeric libraries choose their code by these.
_RELEVANT_FLAGS = frozenset((
    "sse4_1", "sse4_2", "avx", "avx2", "fma", "f16c", "avx_vnni",
    "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx512_vnni", "avx512_bf16", "avx512_fp16",
    "amx_tile", "amx_int8", "amx_bf16", "amx_fp16",
    "asimd", "asimdhp", "asimddp", "sve", "sve2", "bf16", "i8mm", "sme",
))  # fmt: skip


@dataclass(frozen=True)
class MachineFacts:
    """The machine.

    Args:
        system: such as `Linux 6.1.0`.
        libc: the C library, whose mathematical functions Python and the C++ library use.
        architecture: such as `x86_64`.
        processor: the name by which it describes itself.
        instructions: vector instruction sets that it has and by which numeric libraries choose their code.
        cpus: the number of processors that this process may use.
        gpu_driver: the version of NVIDIA's driver, empty if there is none.
    """

    system: str
    libc: str
    architecture: str
    processor: str
    instructions: tuple[str, ...]
    cpus: int
    gpu_driver: str


def _collect_machine() -> MachineFacts:
    """Return the facts about the machine, as the system describes it."""
    described = _describe_processor()
    flags = (described.get("flags") or described.get("Features") or "").split()
    affinity = getattr(os, "sched_getaffinity", None)
    return MachineFacts(
        system=f"{platform.system()} {platform.release()}",
        libc=" ".join(platform.libc_ver()).strip(),
        architecture=platform.machine(),
        processor=described.get("model name") or platform.processor(),
        instructions=tuple(sorted(_RELEVANT_FLAGS.intersection(flags))),
        cpus=len(affinity(0)) if affinity else os.cpu_count() or 0,
        gpu_driver=_find_driver(),
    )


def _describe_processor() -> dict[str, str]:
    """Return the description of the first processor: a large machine describes hundreds alike."""
    described: dict[str, str] = {}
    with suppress(OSError), Path("/proc/cpuinfo").open(encoding="utf-8", errors="replace") as file:
        for line in file:
            name, colon, value = line.partition(":")
            if not colon:
                break
            described[name.strip()] = value.strip()
    return described


def _find_driver() -> str:
    with suppress(OSError):
        words = Path("/proc/driver/nvidia/version").read_text(encoding="utf-8", errors="replace").split()
        return next((word for word in words if word[0].isdigit() and "." in word), "")
    return ""


_NUMERIC = re.compile(
    r"^lib(mkl_|iomp|gomp|omp|openblas|scipy_openblas|blis|cblas|lapack|dnnl|cudart|cudnn|cublas|cusparse|cusolver"
    r"|cufft|curand|nccl|nvrtc|cuda\b|MIOpen|rocblas|hipblas|rccl|m-|m\.so|mvec)[^/]*\.(so|dylib)[^/]*$"
)
_GIT_SECONDS = 1.0


@dataclass(frozen=True)
class SourceFacts:
    """The repository that the script is in.

    Args:
        commit: the commit that is checked out.
        changed: whether tracked files differ from it.
    """

    commit: str
    changed: bool


def collect_packages() -> dict[str, str]:
    """Return the version of each distribution of which a module is imported, standard library aside."""
    packages = {}
    for name, module in list(sys.modules.items()):
        if "." in name or name.startswith("_") or name in sys.stdlib_module_names or name == "samebits":
            continue
        version = vars(module).get("__version__") if hasattr(module, "__dict__") else None
        if not isinstance(version, str):  # asking the module instead could run its code
            version = _installed_version(name) if getattr(module, "__spec__", None) else None
        if version:
            packages[name] = version
    return dict(sorted(packages.items()))


def _collect_libraries() -> tuple[str, ...]:
    """Return the numeric libraries that are loaded: what is installed may be another version."""
    names = set()
    with suppress(OSError), Path("/proc/self/maps").open(encoding="utf-8", errors="replace") as file:
        for line in file:
            name = line.rstrip("\n").rpartition("/")[2]
            if _NUMERIC.match(name):
                names.add(name)
    return tuple(sorted(names))


def collect_source(directory: Path) -> SourceFacts | None:
    """Ask git for the commit of a directory; None if there is no git, no repository or no commit.

    Args:
        directory: in the repository.
    """
    # Git must neither refresh its index on disk nor start a monitor of the repository's files.
    command = ["git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-C", str(directory)]
    command += ["status", "--porcelain=v2", "--branch", "--untracked-files=no"]
    try:
        answer = subprocess.run(
            command, capture_output=True, check=True, timeout=_GIT_SECONDS, stdin=subprocess.DEVNULL
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    lines = answer.stdout.decode(errors="replace").splitlines()
    commit = next((line.split()[-1] for line in lines if line.startswith("# branch.oid ")), "(initial)")
    changed = any(not line.startswith("#") for line in lines)
    return None if commit == "(initial)" else SourceFacts(commit, changed)


def _installed_version(name: str) -> str | None:
    try:
        from importlib import metadata  # late: it imports twenty modules, and most packages need no question

        return metadata.version(name)
    except Exception:  # noqa: BLE001 - it is not installed, or a module of the script's stands for a standard one
        return None


_PREFIXES = (
    "ATEN_", "TORCH_", "TORCHINDUCTOR_", "PYTORCH_", "TRITON_", "NVTE_",
    "CUBLAS", "CUDA_", "CUDNN_", "NCCL_", "NVIDIA_TF32_",
    "HIP_", "HSA_", "MIOPEN_", "ROCBLAS_",
    "DNNL_", "ONEDNN_", "MKL_", "OPENBLAS_", "BLIS_", "VECLIB_", "NUMEXPR_", "NPY_",
    "OMP_", "KMP_", "GOMP_",
    "PYTHONHASHSEED", "PYTHONMALLOC", "MALLOC_", "GLIBC_TUNABLES", "LD_PRELOAD",
)  # fmt: skip
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
    """The facts about the environment of a run that can be read without changing it.

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
    """The facts that are known when a run starts and hold until its end: all that a killed run leaves.

    Args:
        variables: may still be changed by the script, unlike the rest.
        torch: facts of its build; None as long as torch is not imported.
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
    return StartFacts(_collect_machine(), _collect_python(), numeric_variables(os.environ))


def with_torch(facts: StartFacts, torch: Any) -> StartFacts:
    """Return the facts of a start, with torch's build.

    Args:
        facts: of the start.
        torch: the module.
    """
    return replace(facts, torch=collect_build(torch))


def collect(directory: Path | None = None) -> Environment:
    """Read the facts: torch's only when it is imported already, CUDA's only when it is in use.

    Args:
        directory: its git commit is read; by default the directory of the running script.
    """
    return Environment(
        machine=_collect_machine(),
        python=_collect_python(),
        torch=collect_torch(sys.modules.get("torch")),
        variables=numeric_variables(os.environ),
        packages=collect_packages(),
        libraries=_collect_libraries(),
        source=collect_source(directory or _script_directory()),
    )


def _collect_python() -> PythonFacts:
    seed = "random" if sys.flags.ignore_environment else os.environ.get("PYTHONHASHSEED") or "random"
    seed = seed if sys.flags.hash_randomization else "0"
    return PythonFacts(platform.python_version(), platform.python_implementation(), seed, sys.flags.optimize)


def numeric_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of an environment that numeric libraries read; no others, and no secrets."""
    variables = {name: value for name, value in environ.items() if name.startswith(_PREFIXES)}
    return {
        name: "(hidden)" if any(word in name for word in _SECRETS) else value[:_LONGEST_VALUE]
        for name, value in sorted(variables.items())
    }


def _script_directory() -> Path:
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    return Path(script).parent if isinstance(script, str) else Path()
