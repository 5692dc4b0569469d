"""All checks, and the order in which the threats that they find are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from samebits.commands.doctor.checks import gpus, machine, packages, process, proof, script
from samebits.commands.doctor.threat import EVERY, LEVELS, PROMISES, Threat

if TYPE_CHECKING:
    from samebits.commands.doctor.environment import EnvironmentSnapshot

Check = Callable[["EnvironmentSnapshot"], Iterable[Threat]]

CHECKS: tuple[Check, ...] = (
    process.torch_import,
    process.hash_seed,
    process.startup_code,
    process.device_backends,
    process.preloaded_libraries,
    proof.unfit_variables,
    proof.unset_switches,
    proof.set_variables,
    script.settings_against_repeating,
    script.compiled_attention,
    process.thread_count,
    process.torchrun_threads,
    process.ineffective_thread_count,
    process.cpu_quota,
    process.core_kinds,
    gpus.unusable_cuda,
    gpus.unknown_architecture,
    gpus.shared_gpu,
    gpus.mixed_gpus,
    gpus.gpu_slices,
    gpus.gpu_model,
    packages.known_packages,
    packages.packages_not_imported,
    process.loader_position,
    process.worker_draws,
    process.worker_threads,
    machine.torch_release,
    machine.instruction_set,
    machine.ineffective_instruction_set,
    machine.missing_instruction_set,
    machine.blas_library,
    machine.onednn_library,
    machine.cpu_count,
    machine.tf32_override,
    script.narrow_floats,
    proof.writable_folder,
    proof.free_space,
    proof.digest,
    gpus.slow_digest,
    proof.address_layout,
    proof.repository,
)


def examine(snapshot: EnvironmentSnapshot, promises: Iterable[str] = PROMISES) -> tuple[Threat, ...]:
    """Return the threats to these promises, by promise, the worst first.

    A threat to every promise is always among them.
    """
    wanted = (EVERY, *promises)
    threats = [threat for check in CHECKS for threat in check(snapshot) if threat.promise in wanted]
    order = (EVERY, *PROMISES)
    return tuple(sorted(threats, key=lambda t: (order.index(t.promise), LEVELS.index(t.level))))
