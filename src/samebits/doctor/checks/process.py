"""How Python starts, and whether torch can be imported at all."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from samebits.doctor.threat import BREAKS, EVERY, MAY_BREAK, NOTE, Threat

if TYPE_CHECKING:
    from collections.abc import Iterable

    from samebits.doctor.surroundings import Surroundings

OLDEST_TORCH = (2, 6)


def torch_import(here: Surroundings) -> Iterable[Threat]:
    """Torch can be imported, is PyTorch, and is not too old."""
    torch = here.torch
    if not torch.error:
        yield from _age(torch.version)
        return
    where = f" (from {torch.file})" if torch.file else ""
    remedy = 'run `python -c "import torch"`, and install it anew'
    if os.path.basename(torch.file) == "torch.py":  # PyTorch is a folder
        remedy = f"rename {torch.file}, which hides the installed package"
    yield Threat(
        EVERY,
        "torch",
        f"torch cannot be imported: {torch.error}{where}",
        "A script would fail in the same way, so no promise can be kept or checked.",
        remedy,
        "tried in a fresh process",
        BREAKS,
    )


def _age(version: str) -> Iterable[Threat]:
    numbers = re.match(r"(\d+)\.(\d+)", version)
    if numbers and (int(numbers[1]), int(numbers[2])) < OLDEST_TORCH:
        yield Threat(
            EVERY,
            "torch",
            f"torch {version} is older than samebits supports",
            "samebits is built for and tested with torch 2.6 and later.",
            'pip install "torch>=2.6"',
            "pyproject.toml of samebits",
            BREAKS,
        )


def hash_seed(here: Surroundings) -> Iterable[Threat]:
    """Text hashes alike in each process."""
    if here.interpreter.hash_seed == "random":
        yield Threat(
            "repeatable",
            "PYTHONHASHSEED",
            "PYTHONHASHSEED is not set: sets of strings change their order",
            "Python hashes text differently in each process, and with it the order of sets changes. Setting "
            "the variable inside the script has no effect on that process.",
            "samebits run --seed N SCRIPT, or export PYTHONHASHSEED=0",
            "Python docs, PYTHONHASHSEED; measured; lightning#2156",
            MAY_BREAK,
        )


def startup_code(here: Surroundings) -> Iterable[Threat]:
    """Nothing runs before the script."""
    modules = here.interpreter.startup_modules
    if modules:
        yield Threat(
            "repeatable",
            "startup",
            f"{', '.join(modules)} imported before the script: settings may be fixed",
            "Something that Python runs at its start (sitecustomize, a .pth file) "
            "imports a numeric library. Variables that it reads then can no longer be set, and its "
            "generators may be used.",
            "python -S -c 'import sys; print(sys.modules)', and remove the hook",
            "Python docs, module site",
            MAY_BREAK,
        )
    for file in here.interpreter.startup_files:
        name = os.path.basename(file)
        yield Threat(
            "repeatable",
            name.partition(".")[0],
            f"{name} runs before every script",
            f"{file} is imported by Python at its start and can change any setting; another machine may not "
            "have it.",
            f"read {file}",
            "Python docs, module site",
            NOTE,
        )


def device_backends(here: Surroundings) -> Iterable[Threat]:
    """No installed package runs code inside `import torch`."""
    if here.torch.backends and here.variables.get("TORCH_DEVICE_BACKEND_AUTOLOAD", "1") == "1":
        yield Threat(
            "repeatable",
            "torch.backends",
            f"`import torch` also runs {', '.join(here.torch.backends)}",
            "torch imports every installed package that has an entry point in the group `torch.backends`; it "
            "can change settings.",
            "export TORCH_DEVICE_BACKEND_AUTOLOAD=0 if you do not need it",
            "torch/__init__.py, _import_device_backends, 2.13.0",
            NOTE,
        )


def preloaded_libraries(here: Surroundings) -> Iterable[Threat]:
    """No library is put in front of others."""
    if here.variables.get("LD_PRELOAD"):
        yield Threat(
            "repeatable",
            "LD_PRELOAD",
            "LD_PRELOAD is set: it can replace maths, memory and thread functions",
            "A preloaded library takes the place of functions that torch calls; a shell without it may give "
            "other bits.",
            "unset LD_PRELOAD, or set the same for each run",
            "ld.so(8)",
            NOTE,
        )
