"""How many threads compute, and what that number follows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits.doctor.threat import MAY_BREAK, NOTE, Threat

if TYPE_CHECKING:
    from collections.abc import Iterable

    from samebits.doctor.surroundings import Surroundings

_SOURCE = "measured, torch 2.13.0 CPU: 39 of 173 results change from 2 threads to 1"


def thread_count(here: Surroundings) -> Iterable[Threat]:
    """The number of threads is fixed, not taken from the machine."""
    threads = here.torch.threads
    if threads and not here.variables.get("OMP_NUM_THREADS"):
        yield Threat(
            "repeatable",
            "threads",
            f"OMP_NUM_THREADS is not set: {_counted(threads, 'thread')}, after the CPUs usable now",
            "torch takes as many threads as there are CPUs that it may use. With another affinity, container "
            "or machine the number changes, and with it large sums, norms and weight gradients.",
            f"export OMP_NUM_THREADS={threads}",
            _SOURCE,
            MAY_BREAK,
        )


def torchrun_threads(here: Surroundings) -> Iterable[Threat]:
    """`torchrun` gives the number of threads that `python` gives."""
    if here.torch.threads > 1 and not here.variables.get("OMP_NUM_THREADS"):
        yield Threat(
            "repeatable",
            "torchrun",
            f"torchrun with several processes would give 1 thread, not {here.torch.threads}",
            "torchrun sets OMP_NUM_THREADS=1 when it starts more than one process and the variable is not "
            "set, so `python train.py` and `torchrun train.py` differ on a CPU.",
            f"export OMP_NUM_THREADS={here.torch.threads}",
            "torch/distributed/run.py, 2.13.0",
            NOTE,
        )


def ineffective_thread_count(here: Surroundings) -> Iterable[Threat]:
    """The number that was asked for is the one in effect."""
    asked = here.variables.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    threads = here.torch.threads
    if asked and threads and asked != str(threads):
        yield Threat(
            "repeatable",
            "OMP_NUM_THREADS",
            f"OMP_NUM_THREADS={asked}, but torch runs {_counted(threads, 'thread')}",
            "torch takes no more threads than there are CPUs, without a warning, so a machine with more CPUs "
            "takes another number.",
            f"export OMP_NUM_THREADS={min(threads, here.cpus.usable) or 1}",
            "measured, torch 2.13.0 CPU: OMP_NUM_THREADS=4 on 2 CPUs gives 2 threads",
            MAY_BREAK,
        )


def cpu_quota(here: Surroundings) -> Iterable[Threat]:
    """The container allows as many CPUs as torch has threads."""
    quota, threads = here.cpus.quota, here.torch.threads
    if quota is not None and threads > quota:
        yield Threat(
            "repeatable",
            "cgroup",
            f"the control group allows {quota:g} CPUs, torch runs {_counted(threads, 'thread')}",
            "torch does not see the limit of the container. The threads are stopped in turn, which brings "
            "out races; and a tool that does see the limit chooses another number of threads.",
            f"export OMP_NUM_THREADS={max(1, int(quota))}",
            "Linux, control group v2, cpu.max; os.sched_getaffinity does not include it",
            NOTE,
        )


def core_kinds(here: Surroundings) -> Iterable[Threat]:
    """All cores are alike."""
    if here.cpus.kinds:
        yield Threat(
            "repeatable",
            "hybrid CPU",
            f"cores of {len(here.cpus.kinds)} kinds: {', '.join(here.cpus.kinds)}",
            "Threads on slower cores end later, so an order of completion changes more often; and which "
            "cores are usable decides the number of threads.",
            "taskset -c CPUS, with cores of one kind",
            "Linux, /sys/devices; a race needs more than this to change bits",
            NOTE,
        )


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
