"""Environment snapshots for tests: nothing is wrong unless a test changes it."""

from __future__ import annotations

import dataclasses
from typing import Any

from samebits.commands.doctor.environment import (
    Cpus,
    DigestCheck,
    EnvironmentSnapshot,
    Gpu,
    Interpreter,
    RecordFolder,
    SwitchView,
    Torch,
)

INTERPRETER = Interpreter("3.11.7", "0")
CPUS = Cpus("Intel(R) Xeon(R) Processor", "x86_64", usable=4)
TORCH = Torch(
    file="/code/env/lib/python3.11/site-packages/torch/__init__.py",
    version="2.13.0+cpu",
    capability="AVX2",
    threads=1,
)
CUDA = dataclasses.replace(TORCH, version="2.13.0+cu130", cuda="13.0", gpus=(Gpu("NVIDIA H200", 132),))
NO_TORCH = Torch(error="ModuleNotFoundError: No module named 'torch'")
RECORD_FOLDER = RecordFolder("/code/.samebits", "", 10**11, "clean")
VARIABLES = {"OMP_NUM_THREADS": "1", "ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2"}
SWITCH = SwitchView(
    name="cudnn-benchmark",
    now="off",
    wanted="off",
    fits=True,
    problem="",
    missing="",
    is_variable=False,
    when="at any time",
    promises=("repeatable", "portable"),
    why="algorithms are chosen by timing",
    source="PyTorch notes on reproducibility",
)


def healthy(**changes: Any) -> EnvironmentSnapshot:
    """A snapshot in which everything is pinned; keyword arguments replace fields."""
    fields = {
        "interpreter": INTERPRETER,
        "cpus": CPUS,
        "torch": TORCH,
        "digest": DigestCheck(library=True, backend="avx2"),
        "record_folder": RECORD_FOLDER,
        "variables": VARIABLES,
    }
    return EnvironmentSnapshot(**{**fields, **changes})


def torch(**changes: Any) -> Torch:
    """A torch on the CPU; keyword arguments replace fields."""
    return dataclasses.replace(TORCH, **changes)


def cuda(**changes: Any) -> Torch:
    """A torch with a GPU; keyword arguments replace fields."""
    return dataclasses.replace(CUDA, **changes)


def variables(**changes: str | None) -> dict[str, str]:
    """The variables of `healthy`; None takes one away."""
    merged = {**VARIABLES, **changes}
    return {name: value for name, value in merged.items() if value is not None}


def switch(**changes: Any) -> SwitchView:
    """A switch that fits; keyword arguments replace fields."""
    return dataclasses.replace(SWITCH, **changes)
