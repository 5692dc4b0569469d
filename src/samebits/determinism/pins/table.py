"""The table of pins."""

from __future__ import annotations

import platform
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from samebits.determinism.pins.baton import pin_threads_in_turn
from samebits.determinism.pins.child_turns import pin_processes_in_turn
from samebits.determinism.pins.clock import pin_clock
from samebits.determinism.pins.completion import pin_completion
from samebits.determinism.pins.entropy import pin_entropy
from samebits.determinism.pins.files import pin_file_times, pin_inodes, pin_listing
from samebits.determinism.pins.machine import pin_load
from samebits.determinism.pins.process_facts import pin_ports, pin_process
from samebits.determinism.pins.torch_parts import pin_fill, pin_thread_calls, pin_workers
from samebits.determinism.rng_sources import NUMPY, PYTHON, TORCH, sources_seeded_by
from samebits.determinism.rng_sources.source import SEED_LIBRARIES
from samebits.hooks.layout import why_layout_cannot_be_fixed

if TYPE_CHECKING:
    from collections.abc import Callable

    from samebits.determinism.pins.tools import PinTools


@dataclass(frozen=True, slots=True)
class Pin:
    """One thing that can be fixed in a run, the same in every run that has it.

    Args:
        name: what the user types.
        words: for a report, after "in runs".
        environment: variables of the run.
        fixed_layout: address space randomisation is off.
        sources: names of the RNG sources that are seeded.
        switches: (name, value) of switches that are set; all others are left alone.
        patch: puts its in-process part in place.
        obstacle: says why it cannot be had on this machine; empty when it can.
        limits: what it does not reach.
    """

    name: str
    words: str
    environment: tuple[tuple[str, str], ...] = ()
    fixed_layout: bool = False
    sources: tuple[str, ...] = ()
    switches: tuple[tuple[str, str], ...] = ()
    patch: Callable[[PinTools], None] | None = None
    obstacle: Callable[[], str] = str
    limits: str = ""


def _fill_obstacle() -> str:
    library = platform.libc_ver()[0]
    return "" if library == "glibc" else f"filling memory needs glibc; found {library or 'another C library'}"


def _baton_obstacle() -> str:
    needed = hasattr(time, "pthread_getcpuclockid")
    return "" if needed else "the clock of a thread (pthread_getcpuclockid) is not there"


def _processes_obstacle() -> str:
    return "" if sys.platform == "linux" else "what a process does is read from /proc, which only Linux has"


_HASH = ("PYTHONHASHSEED", "0")

PINS: tuple[Pin, ...] = (
    Pin(
        PYTHON.intervention,
        "with Python's generators seeded",
        sources=sources_seeded_by(PYTHON.intervention),
        limits="a seed that the script gives stays, also one taken from the clock",
    ),
    Pin(
        NUMPY.intervention,
        "with NumPy's generators seeded",
        sources=sources_seeded_by(NUMPY.intervention),
        limits="a seed that the script gives stays, also one taken from the clock",
    ),
    Pin(
        TORCH.intervention,
        "with torch's generators seeded",
        sources=sources_seeded_by(TORCH.intervention),
        limits="a seed that the script gives stays, also one taken from the clock",
    ),
    Pin(
        SEED_LIBRARIES,
        "with the generators of OpenCV, CuPy and TensorFlow seeded",
        sources=sources_seeded_by(SEED_LIBRARIES),
    ),
    Pin(
        "hash-seed",
        "with the hash seed fixed",
        environment=(_HASH,),
        limits="a value of PYTHONHASHSEED that the user set stays",
    ),
    Pin(
        "layout",
        "with addresses fixed",
        environment=(
            _HASH,
            ("PYTHONDONTWRITEBYTECODE", "1"),
        ),  # else the first run compiles
        fixed_layout=True,
        obstacle=why_layout_cannot_be_fixed,
        limits="addresses follow from everything that is allocated before: threads and large differences "
        "between the runs still move them. Hashes are fixed too, for they decide what is allocated",
    ),
    Pin(
        "clock",
        "with the clock frozen",
        patch=pin_clock,
        limits="clocks read in C or C++ (`numpy.datetime64('now')`, CUDA kernels) go on; real waits take as "
        "long as they take",
    ),
    Pin(
        "entropy",
        "with the system's entropy fixed",
        patch=pin_entropy,
        limits="entropy that C code, other programs or a database take; seeds of generators (`seed-python`)",
    ),
    Pin(
        "process",
        "with process numbers and the host's name fixed",
        patch=pin_process,
        limits="numbers that libraries ask for, and what /proc says",
    ),
    Pin(
        "ports",
        "with the ports that the system hands out fixed",
        patch=pin_ports,
        limits="ports that C code or another program binds; a port in use is passed over",
    ),
    Pin(
        "file-times",
        "with the times of files fixed",
        patch=pin_file_times,
        limits="what other programs (`ls`) and C code see",
    ),
    Pin(
        "inodes",
        "with the inode numbers of files fixed",
        patch=pin_inodes,
        limits="what other programs (`ls`) and C code see",
    ),
    Pin(
        "memory-load",
        "with free memory and the machine's load fixed",
        patch=pin_load,
        limits="what C code reads of /proc; psutil and the files of /proc and /sys are covered",
    ),
    Pin(
        "listing",
        "with directories listed in order",
        patch=pin_listing,
        limits="listings by other programs and C code",
    ),
    Pin(
        "completion",
        "with results taken in the order of submission",
        patch=pin_completion,
        limits="queues between threads (`serial-threads`) and of a manager; a result or a process that takes "
        "over 5 s longer than others is passed over",
    ),
    Pin(
        "serial-threads",
        "with the script's threads run one at a time",
        patch=pin_threads_in_turn,
        obstacle=_baton_obstacle,
        limits="processes, threads of C code; a thread that waits in C code is passed over",
    ),
    Pin(
        "serial-processes",
        "with the script's processes run one at a time",
        patch=pin_processes_in_turn,
        obstacle=_processes_obstacle,
        limits="processes of pools and loaders; one that waits for another one, or runs for over a minute, "
        "is passed over",
    ),
    Pin(
        "workers",
        "with data loaded in the main process",
        patch=pin_workers,
        limits="`worker_init_fn` is not called then, and datasets that shard by worker are not sharded",
    ),
    Pin(
        "threads",
        "with one thread per operation",
        environment=(("OMP_NUM_THREADS", "1"), ("MKL_NUM_THREADS", "1")),
        switches=(("threads", "1"),),
        limits="a number that the script sets itself (`thread-calls`)",
    ),
    Pin(
        "thread-calls",
        "with the script's calls of set_num_threads held at one thread",
        patch=pin_thread_calls,
    ),
    Pin(
        "deterministic",
        "with deterministic algorithms",
        switches=(
            ("deterministic-algorithms", "warn"),
            ("fill-uninitialized", "off"),
            ("cudnn-deterministic", "on"),
            ("cudnn-benchmark", "off"),
            ("mkldnn-deterministic", "on"),
            ("prepare-vector-math", "on"),
            ("CUBLAS_WORKSPACE_CONFIG", ":4096:8"),
        ),
        limits="ops that have no deterministic kernel run and warn; `warn` leaves the backward of fused "
        "attention nondeterministic on CUDA",
    ),
    Pin(
        "fill",
        "with fresh memory filled with zeros",
        environment=(
            ("MALLOC_PERTURB_", "255"),
            ("GLIBC_TUNABLES", "glibc.malloc.perturb=255:glibc.malloc.tcache_count=0"),
        ),
        patch=pin_fill,
        obstacle=_fill_obstacle,
        limits="memory of a device that C++ code takes; what Python's own allocator hands to C code",
    ),
    Pin(
        "eager",
        "with torch.compile switched off",
        environment=(("TORCHDYNAMO_DISABLE", "1"),),
    ),
    Pin(
        "autotuning",
        "with no kernel chosen by timing",
        environment=(("PYTORCH_TUNABLEOP_ENABLED", "0"), ("TORCHINDUCTOR_DETERMINISTIC", "1")),
        switches=(
            ("cudnn-benchmark", "off"),
            ("inductor-max-autotune", "off"),
            ("inductor-max-autotune-gemm", "off"),
            ("inductor-max-autotune-pointwise", "off"),
            ("inductor-coordinate-descent", "off"),
        ),
        limits="a choice that the script makes itself, by the clock (`clock`)",
    ),
)
