"""Collects facts in a fresh process, where torch is imported as a script would import it."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import json
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from samebits._runtime.address_layout import can_fix_layout
from samebits.commands.doctor.environment import Cpus, DigestCheck, Gpu, Interpreter, SwitchView, Torch
from samebits.environment.resources import read_kinds, read_quota
from samebits.environment.snapshot import collect
from samebits.switches.table import TABLE
from samebits.switches.variables import Variable

if TYPE_CHECKING:
    from collections.abc import Collection

    from samebits.environment.snapshot import Environment
    from samebits.switches.switch import Switch

STARTUP_PACKAGES = ("torch", "numpy", "tensorflow", "jax", "cupy")
_STARTUP_HOOKS = ("sitecustomize", "usercustomize")
# Read by libraries too, but not among `Environment.variables`, which go by the beginning of a name.
_MORE_VARIABLES = (
    *("FLASH_ATTENTION_DETERMINISTIC", "MAMBA_DETERMINISTIC", "CAUSAL_CONV1D_DETERMINISTIC"),
    *("HOROVOD_FUSION_THRESHOLD", "DISABLE_ADDMM_CUDA_LT", "LOCAL_WORLD_SIZE", "WORLD_SIZE"),
)
# From tests/unit/digest/test_golden.py: the same on every machine and with every back end.
_KNOWN_DIGESTS = {
    "ones(3)": "60920883552aaa224ce28278b7fcc50a",
    "1025 bytes": "a019e9ca7cafb856176db35b26906318",
    "a strided view": "afde54aa56e471564a099af3810a9a5c",
    "1000 blocks": "ec8700811ef67adb79bb77a3d9663217",
}


def main(arguments: list[str], startup_modules: Collection[str]) -> None:
    """Write the facts of this process as JSON.

    Args:
        arguments: number of an open file for the answer, folder of the script, and whether torch is to be
            imported (`1` or `0`).
        startup_modules: modules that were imported before samebits.
    """
    answer, folder, with_torch = int(arguments[0]), arguments[1], arguments[2] == "1"
    facts = collect_facts(folder, startup_modules, with_torch=with_torch)
    os.write(answer, json.dumps(facts).encode())


def collect_facts(folder: str, startup_modules: Collection[str], *, with_torch: bool) -> dict[str, Any]:
    """Return the facts as JSON can hold them."""
    if not getattr(sys.flags, "safe_path", sys.flags.isolated):
        sys.path.insert(0, folder)  # as for a script that lies there
    error = _import_torch() if with_torch else ""
    usable = with_torch and not error
    gpus, cuda_error = _find_gpus() if usable else ((), "")
    environment = collect(Path(folder))
    torch = _describe_torch(environment, gpus, cuda_error) if usable else Torch(error=error)
    more_variables = {name: os.environ[name] for name in _MORE_VARIABLES if name in os.environ}
    return {
        "interpreter": dataclasses.asdict(_describe_interpreter(environment, startup_modules)),
        "cpus": dataclasses.asdict(_describe_cpus(environment)),
        "torch": {**dataclasses.asdict(torch), "file": _torch_file()},
        "digest": dataclasses.asdict(_try_digest(len(gpus))) if usable else None,
        "switches": [dataclasses.asdict(_view(switch)) for switch in TABLE] if usable else [],
        "variables": {**environment.variables, **more_variables},
        "packages": installed_packages(),
        "fixable_layout": can_fix_layout(),
    }


def _import_torch() -> str:
    """Import torch, and return why that failed; empty if it did not."""
    try:
        import torch
    except BaseException as error:  # noqa: BLE001  # even a `sys.exit()` in it is worth reporting
        said = " ".join(str(error).split())
        return f"{type(error).__name__}: {said}" if said else type(error).__name__
    return "" if hasattr(torch, "Tensor") and hasattr(torch, "__version__") else "it is not PyTorch"


def _torch_file() -> str:
    from importlib.machinery import PathFinder

    try:
        spec = PathFinder.find_spec("torch")
    except Exception:  # noqa: BLE001  # a broken installation is what we are here to describe
        return ""
    return spec.origin or "" if spec else ""


def _find_gpus() -> tuple[tuple[Gpu, ...], str]:
    """Start CUDA and return the GPUs, and why that failed if torch was built for it."""
    import torch

    cuda: Any = torch.cuda
    if not (torch.version.cuda or torch.version.hip):
        return (), ""
    try:
        cuda.init()
        return tuple(map(_describe_gpu, range(torch.cuda.device_count()))), ""
    except Exception as error:  # noqa: BLE001  # drivers fail in many ways, and each is worth reporting
        return (), str(error).split("\n", maxsplit=1)[0]


def _describe_gpu(index: int) -> Gpu:
    import torch

    gpu = torch.cuda.get_device_properties(index)
    free, memory = torch.cuda.mem_get_info(index)
    return Gpu(gpu.name, gpu.multi_processor_count, f"{gpu.major}.{gpu.minor}", memory, free)


def _describe_torch(environment: Environment, gpus: tuple[Gpu, ...], cuda_error: str) -> Torch:
    facts = environment.torch
    if facts is None:
        return Torch(error="it is not PyTorch")
    return Torch(
        version=facts.version,
        cuda=facts.cuda,
        cuda_error=cuda_error,
        mkl=facts.mkl.removesuffix("-Product"),
        onednn=facts.onednn,
        capability=facts.capability,
        threads=facts.threads.get("intra-op", 0),
        gpus=gpus,
        architectures=_architectures(),
        backends=_backends(),
    )


def _architectures() -> tuple[str, ...]:
    import torch

    return tuple(torch.cuda.get_arch_list()) if torch.version.cuda else ()


def _describe_interpreter(environment: Environment, startup_modules: Collection[str]) -> Interpreter:
    hooks = (getattr(sys.modules.get(name), "__file__", None) for name in _STARTUP_HOOKS)
    return Interpreter(
        version=environment.python.version,
        hash_seed=environment.python.hash_seed,
        startup_files=tuple(str(file) for file in hooks if file),
        startup_modules=tuple(name for name in STARTUP_PACKAGES if name in startup_modules),
    )


def _describe_cpus(environment: Environment) -> Cpus:
    machine = environment.machine
    return Cpus(
        processor=machine.processor,
        architecture=machine.architecture,
        usable=machine.cpus,
        quota=read_quota(),
        kinds=read_kinds(),
        instructions=machine.instructions,
    )


def installed_packages() -> dict[str, str]:
    """Return the versions of installed distributions by normalised name; the first on the path counts."""
    from importlib import metadata

    versions: dict[str, str] = {}
    for distribution in metadata.distributions():
        try:
            fields = distribution.metadata
        except (OSError, UnicodeDecodeError):  # a damaged installation must not hide the others
            continue
        if "Name" in fields:
            name = re.sub(r"[-_.]+", "-", fields["Name"]).lower()
            versions.setdefault(name, str(distribution.version))
    return versions


def _backends() -> tuple[str, ...]:
    """Return the packages whose code torch runs when it is imported (`torch/__init__.py`, since 2.5)."""
    from importlib import metadata

    return tuple(sorted({entry.name for entry in metadata.entry_points(group="torch.backends")}))


def _try_digest(n_gpus: int) -> DigestCheck:
    """Digest known values on each device; their digests must be the same on every machine."""
    from samebits.digest.native import find_library

    library = find_library() is not None
    try:
        from samebits.digest import backend_name, without_kernels

        devices = ("cpu", *(f"cuda:{index}" for index in range(n_gpus)))
        wrong = filter(None, map(_wrong_digests, devices))
        return DigestCheck(library, backend_name(), next(wrong, ""), without_kernels(0) if n_gpus else "")
    except Exception as error:  # noqa: BLE001  # whatever breaks the digest breaks every proof
        return DigestCheck(library, "", str(error))


def _wrong_digests(device: str) -> str:
    """Name the values with a wrong digest; empty when all are right."""
    import torch

    from samebits.digest import digest

    quarters = (torch.arange(256_000) % 31 - 15) / 4
    values = {
        "ones(3)": torch.ones(3),
        "1025 bytes": torch.arange(1025).to(torch.uint8),
        "a strided view": quarters[: 33 * 65].view(33, 65).t(),
        "1000 blocks": quarters,
    }
    on_device = {name: value.to(device) for name, value in values.items()}
    wrong = [name for name, value in on_device.items() if str(digest(value)) != _KNOWN_DIGESTS[name]]
    return f"wrong digest of {', '.join(wrong)} on {device}" if wrong else ""


def _view(switch: Switch) -> SwitchView:
    """Return a switch as it is now; the module that holds it is imported."""
    handle = switch.handle
    with contextlib.suppress(Exception):  # `missing` tells what this build lacks
        if handle.module:
            importlib.import_module(handle.module)
    missing, now = _read(switch)
    return SwitchView(
        name=switch.name,
        now=now,
        wanted=switch.value,
        fits=bool(missing) or switch.value is None or switch.keeps(now),
        problem=handle.problem(now) if now else "",
        missing=missing,
        is_variable=isinstance(handle, Variable),
        when=switch.when.value,
        promises=switch.promises,
        why=switch.why,
        source=switch.source,
    )


def _read(switch: Switch) -> tuple[str, str]:
    """Return why the switch is missing, and its value."""
    try:
        missing = switch.handle.missing()
        return missing, "" if missing else switch.handle.read()
    except Exception as error:  # noqa: BLE001  # a setting that torch refuses to tell counts as missing
        return str(error) or type(error).__name__, ""
