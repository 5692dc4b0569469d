"""Threats from the start of Python, the import of torch, threads, and data loading."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from samebits.commands.doctor.threat import BREAKS, EVERY, MAY_BREAK, NOTE, Threat

if TYPE_CHECKING:
    from collections.abc import Iterable

    from samebits.commands.doctor.environment import EnvironmentSnapshot

OLDEST_TORCH = (2, 6)


def torch_import(snapshot: EnvironmentSnapshot) -> Iterable[Threat]:
    """Torch can be imported, is PyTorch, and is not too old."""
    torch = snapshot.torch
    if not torch.error:
        yield from _age(torch.version)
        return
    where = f" (from {torch.file})" if torch.file else ""
    remedy = 'run `python -c "import torch"`, and reinstall it'
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


def hash_seed(snapshot: EnvironmentSnapshot) -> Iterable[Threat]:
    """Text has the same hash in each process."""
    if snapshot.interpreter.hash_seed == "random":
        yield Threat(
            "repeatable",
            "PYTHONHASHSEED",
            "PYTHONHASHSEED is not set: sets of strings change their order",
            "Python hashes text differently in each process, so the order of sets changes. Setting "
            "the variable inside the script has no effect on that process.",
            "samebits run --seed N SCRIPT, or export PYTHONHASHSEED=0",
            "Python docs, PYTHONHASHSEED; measured; lightning#2156",
            MAY_BREAK,
        )


def startup_code(snapshot: EnvironmentSnapshot) -> Iterable[Threat]:
    """Nothing runs before the script."""
    modules = snapshot.interpreter.startup_modules
    if modules:
        yield Threat(
            "repeatable",
            "startup",
            f"{', '.join(modules)} imported before the script: settings may be fixed by then",
            "Something that Python runs when it starts (sitecustomize, a .pth file) "
            "imports a numeric library. The variables that it reads can no longer be set, and its "
            "generators may already be in use.",
            "python -S -c 'import sys; print(sys.modules)', and remove the hook",
            "Python docs, module site",
            MAY_BREAK,
        )
    for file in snapshot.interpreter.startup_files:
        name = os.path.basename(file)
        yield Threat(
            "repeatable",
            name.partition(".")[0],
            f"{name} runs before every script",
            f"Python imports {file} when it starts, and it can change any setting. Another machine may not "
            "have it.",
            f"read {file}",
            "Python docs, module site",
            NOTE,
        )


def device_backends(snapshot: EnvironmentSnapshot) -> Iterable[Threat]:
    """No installed package runs code inside `import torch`."""
    if snapshot.torch.backends and snapshot.variables.get("TORCH_DEVICE_BACKEND_AUTOLOAD", "1") == "1":
        yield Threat(
            "repeatable",
            "torch.backends",
            f"`import torch` also runs {', '.join(snapshot.torch.backends)}",
            "torch imports every installed package that has an entry point in the group `torch.backends`; it "
            "can change settings.",
            "export TORCH_DEVICE_BACKEND_AUTOLOAD=0 if you do not need it",
            "torch/__init__.py, _import_device_backends, 2.13.0",
            NOTE,
        )


def preloaded_libraries(snapshot: EnvironmentSnapshot) -> Iterable[Threat]:
    """No library is preloaded."""
    if snapshot.variables.get("LD_PRELOAD"):
        yield Threat(
            "repeatable",
            "LD_PRELOAD",
            "LD_PRELOAD is set: it can replace maths, memory and thread functions",
            "A preloaded library takes the place of functions that torch calls; a shell without it may give "
            "different bits.",
            "unset LD_PRELOAD, or set the same for each run",
            "ld.so(8)",
            NOTE,
        )


_THREADS_SOURCE = "measured, torch 2.13.0 CPU: 39 of 173 results change from 2 threads to 1"


def thread_count(snapshot: EnvironmentSnapshot) -> Iterable[Threat]:
    """The number of threads is fixed, not taken from the machine."""
    threads = snapshot.torch.threads
    if threads and not snapshot.variables.get("OMP_NUM_THREADS"):
        yield Threat(
            "repeatable",
            "threads",
            f"OMP_NUM_THREADS is not set: {_counted(threads, 'thread')}, as many as CPUs are usable now",
            "torch takes as many threads as there are CPUs that it may use. With a different affinity, "
            "container or machine the number changes, and so do large sums, norms and weight gradients.",
            f"export OMP_NUM_THREADS={threads}",
            _THREADS_SOURCE,
            MAY_BREAK,
        )


def torchrun_threads(snapshot: EnvironmentSnapshot) -> Iterable[Threat]:
    """`torchrun` gives the number of threads that `python` gives."""
    if snapshot.torch.threads > 1 and not snapshot.variables.get("OMP_NUM_THREADS"):
        yield Threat(
            "repeatable",
            "torchrun",
            f"torchrun with several processes would give 1 thread, not {snapshot.torch.threads}",
            "torchrun sets OMP_NUM_THREADS=1 when it starts more than one process and the variable is not "
            "set, so `python train.py` and `torchrun train.py` differ on a CPU.",
            f"export OMP_NUM_THREADS={snapshot.torch.threads}",
            "torch/distributed/run.py, 2.13.0",
            NOTE,
        )


def ineffective_thread_count(snapshot: EnvironmentSnapshot) -> Iterable[Threat]:
    """The number of threads that was asked for is in effect."""
    asked = snapshot.variables.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    threads = snapshot.torch.threads
    if asked and threads and asked != str(threads):
        yield Threat(
            "repeatable",
            "OMP_NUM_THREADS",
            f"OMP_NUM_THREADS={asked}, but torch runs {_counted(threads, 'thread')}",
            "torch takes at most as many threads as there are CPUs, and does not warn. A machine with more "
            "CPUs takes more threads.",
            f"export OMP_NUM_THREADS={min(threads, snapshot.cpus.usable) or 1}",
            "measured, torch 2.13.0 CPU: OMP_NUM_THREADS=4 on 2 CPUs gives 2 threads",
            MAY_BREAK,
        )


def cpu_quota(snapshot: EnvironmentSnapshot) -> Iterable[Threat]:
    """The container allows as many CPUs as torch has threads."""
    quota, threads = snapshot.cpus.quota, snapshot.torch.threads
    if quota is not None and threads > quota:
        yield Threat(
            "repeatable",
            "cgroup",
            f"the control group allows {quota:g} CPUs, torch runs {_counted(threads, 'thread')}",
            "torch does not see the limit of the container. The threads are stopped in turn, which brings "
            "out races. A tool that does see the limit chooses a different number of threads.",
            f"export OMP_NUM_THREADS={max(1, int(quota))}",
            "Linux, control group v2, cpu.max; os.sched_getaffinity does not include it",
            NOTE,
        )


def core_kinds(snapshot: EnvironmentSnapshot) -> Iterable[Threat]:
    """All cores are alike."""
    if snapshot.cpus.kinds:
        yield Threat(
            "repeatable",
            "hybrid CPU",
            f"cores of {len(snapshot.cpus.kinds)} kinds: {', '.join(snapshot.cpus.kinds)}",
            "Threads on slower cores end later, so their order of completion changes more often. And which "
            "cores are usable decides the number of threads.",
            "taskset -c CPUS, with cores of one kind",
            "Linux, /sys/devices; a race needs more than this to change bits",
            NOTE,
        )


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


_LOADING_SOURCE = "measured, torch 2.15.0; torch/utils/data/_utils/worker.py"


def loader_position(snapshot: EnvironmentSnapshot) -> Iterable[Threat]:
    """A DataLoader can continue from its position."""
    if snapshot.torch.version:
        yield Threat(
            "resumable",
            "DataLoader",
            "torch's DataLoader has no position that a checkpoint could hold",
            "It has no `state_dict`, and prefetching runs ahead of the optimizer. pytorch#36650 has asked "
            "for one since 2020.",
            "resume at epoch ends, with generator= given and its state saved",
            "torch 2.15.0, measured; pytorch#36650",
            NOTE,
        )


def worker_draws(snapshot: EnvironmentSnapshot) -> Iterable[Threat]:
    """Random numbers in DataLoader workers do not depend on how many there are."""
    if snapshot.torch.version:
        yield Threat(
            "resumable",
            "workers",
            "random draws in DataLoader workers change with num_workers",
            "A worker's seed is a number drawn from the main generator plus the worker's own: from 2 workers "
            "to 4, 16 of 64 draws stayed the same. Two ranks with one seed draw the same.",
            "keep num_workers as it is, or seed by the index of the sample",
            _LOADING_SOURCE,
            NOTE,
        )


def worker_threads(snapshot: EnvironmentSnapshot) -> Iterable[Threat]:
    """Computing in a worker gives the same bits as computing in the main process."""
    if snapshot.torch.threads > 1:
        yield Threat(
            "resumable",
            "worker threads",
            f"workers compute with 1 thread, the main process with {snapshot.torch.threads}",
            "So num_workers=0 and num_workers=1 give different bits even without randomness: 1 of 4 sums "
            "differed.",
            "export OMP_NUM_THREADS=1, or keep num_workers above 0",
            _LOADING_SOURCE,
            NOTE,
        )
