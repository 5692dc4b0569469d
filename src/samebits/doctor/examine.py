"""All checks, and the order in which threats are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from samebits.doctor.checks import (
    gpus,
    loading,
    packages,
    portability,
    process,
    proof,
    switches,
    threads,
)
from samebits.doctor.threat import EVERY, LEVELS, PROMISES, Threat

if TYPE_CHECKING:
    from samebits.doctor.surroundings import Surroundings

Check = Callable[["Surroundings"], Iterable[Threat]]

CHECKS: tuple[Check, ...] = (
    process.torch_import,
    process.hash_seed,
    process.startup_code,
    process.device_backends,
    process.preloaded_libraries,
    switches.unfit_variables,
    switches.unset_switches,
    switches.set_variables,
    threads.thread_count,
    threads.torchrun_threads,
    threads.ineffective_thread_count,
    threads.cpu_quota,
    threads.core_kinds,
    gpus.unusable_cuda,
    gpus.mixed_gpus,
    gpus.gpu_slices,
    gpus.gpu_model,
    packages.known_packages,
    packages.packages_not_imported,
    loading.loader_position,
    loading.worker_draws,
    loading.worker_threads,
    portability.torch_release,
    portability.instruction_set,
    portability.ineffective_instruction_set,
    portability.blas_library,
    portability.onednn_library,
    portability.cpu_count,
    portability.tf32_override,
    proof.writable_place,
    proof.free_space,
    proof.digest,
    proof.address_layout,
    proof.repository,
)


def examine(here: Surroundings, promises: Iterable[str] = PROMISES) -> tuple[Threat, ...]:
    """What threatens these promises, by promise, the worst first.

    A threat to every promise is among them whichever are asked for.
    """
    wanted = (EVERY, *promises)
    threats = [threat for check in CHECKS for threat in check(here) if threat.promise in wanted]
    order = (EVERY, *PROMISES)
    return tuple(sorted(threats, key=lambda t: (order.index(t.promise), LEVELS.index(t.level))))
