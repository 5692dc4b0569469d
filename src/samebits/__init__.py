"""samebits: the same bits twice, or the first operation that differed.

Proof: `digest`, `record`, `compare`, `tap`. Control: `deterministic`, `seed_all`, `stream`, `isolated`,
`reseeded`, `register_generator`, `save_rng_states`, `restore_rng_states`.
Resuming: `DataLoader`, `data`, `checkpoint`. The same bits on any machine: `portable`.
Hardware that computes wrong: `ReplayGuard`, `Mismatch`, `MismatchKind`, `ReplayMismatchError`.
Errors: `SamebitsError`, `SamebitsWarning`.
`import samebits` is light: torch is imported by the first of them that needs it.

PYTEST_DONT_REWRITE: a package with a pytest plugin is rewritten by pytest, which warns if it is imported
already, as it is in a process that samebits records.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from samebits._runtime.package import __version__
from samebits.errors import SamebitsError, SamebitsWarning

if TYPE_CHECKING:
    from samebits import checkpoint, data, portable
    from samebits.data.loader import DataLoader
    from samebits.determinism.context import deterministic
    from samebits.digest import digest
    from samebits.recording.session import record
    from samebits.recording.taps import tap
    from samebits.replay_guard.guard import ReplayGuard
    from samebits.replay_guard.mismatch import Mismatch, MismatchKind, ReplayMismatchError
    from samebits.report.compared import compare
    from samebits.rng.generator_objects import register as register_generator
    from samebits.rng.states import isolated, reseeded, seed_all
    from samebits.rng.states import restore_states as restore_rng_states
    from samebits.rng.states import save_states as save_rng_states
    from samebits.rng.streams import stream

_HOMES = {
    "DataLoader": ("samebits.data.loader", "DataLoader"),
    "load_ipython_extension": ("samebits.integrations.notebook", "load_ipython_extension"),
    "unload_ipython_extension": ("samebits.integrations.notebook", "unload_ipython_extension"),
    "compare": ("samebits.report.compared", "compare"),
    "record": ("samebits.recording.session", "record"),
    "tap": ("samebits.recording.taps", "tap"),
    "Mismatch": ("samebits.replay_guard.mismatch", "Mismatch"),
    "MismatchKind": ("samebits.replay_guard.mismatch", "MismatchKind"),
    "ReplayGuard": ("samebits.replay_guard.guard", "ReplayGuard"),
    "ReplayMismatchError": ("samebits.replay_guard.mismatch", "ReplayMismatchError"),
    "deterministic": ("samebits.determinism.context", "deterministic"),
    "register_generator": ("samebits.rng.generator_objects", "register"),
    "isolated": ("samebits.rng.states", "isolated"),
    "reseeded": ("samebits.rng.states", "reseeded"),
    "seed_all": ("samebits.rng.states", "seed_all"),
    "stream": ("samebits.rng.streams", "stream"),
    "save_rng_states": ("samebits.rng.states", "save_states"),
    "restore_rng_states": ("samebits.rng.states", "restore_states"),
}
__all__ = [
    "DataLoader",
    "Mismatch",
    "MismatchKind",
    "ReplayGuard",
    "ReplayMismatchError",
    "SamebitsError",
    "SamebitsWarning",
    "__version__",
    "checkpoint",
    "compare",
    "data",
    "deterministic",
    "digest",
    "isolated",
    "portable",
    "record",
    "register_generator",
    "reseeded",
    "restore_rng_states",
    "save_rng_states",
    "seed_all",
    "stream",
    "tap",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name in ("checkpoint", "data", "digest", "portable"):  # packages; the last two can be called
        return import_module(f"samebits.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _HOMES[name]
    globals()[name] = getattr(import_module(module), attribute)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted(__all__)
