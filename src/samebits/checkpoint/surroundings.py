"""What a checkpoint says of the process that wrote it, and what differs here: versions, switches."""

from __future__ import annotations

import platform
import sys

from samebits.determinism.switches import TABLE
from samebits.environment.torch_facts import collect_torch

# Of the facts that are kept, those whose change can change bits.
_COMPARED = ("torch", "cuda", "cudnn", "mkl", "onednn", "capability", "gpus", "numpy")
# Something done once in a process, not a setting: `off` says nothing of what the script itself has called.
_DEEDS = ("prepare-vector-math",)


def collect_surroundings() -> dict[str, dict[str, str]]:
    """Versions, hardware and switches of this process, as JSON would give them back."""
    return {"versions": _versions(), "switches": _switches()}


def _versions() -> dict[str, str]:
    facts = collect_torch(sys.modules["torch"])
    versions = {"python": platform.python_version(), "numpy": sys.modules["numpy"].__version__}
    if facts is not None:
        versions |= {"torch": facts.version, "cuda": facts.cuda, "cudnn": facts.cudnn, "mkl": facts.mkl}
        versions |= {"onednn": facts.onednn, "capability": facts.capability}
        versions["gpus"] = ", ".join(f"{gpu.name} ({gpu.multiprocessors})" for gpu in facts.gpus)
    return versions


def _switches() -> dict[str, str]:
    """The value of every switch that this process has; of libraries that are not imported, none."""
    found = {}
    for switch in TABLE:
        handle = switch.handle
        known = not handle.module or handle.module in sys.modules
        if switch.name not in _DEEDS and known and not handle.missing():
            found[switch.name] = handle.read()
    return found


def changes(saved: dict[str, dict[str, str]], here: dict[str, dict[str, str]]) -> list[str]:
    """What is different here, one text each: of versions those that matter for bits, and all switches.

    What only one side knows is no difference: hardware that was not in use, a switch of another release.
    """
    old, new = saved.get("versions", {}), here["versions"]
    texts = [
        _change(name, old[name], new[name]) for name in _COMPARED if _differ(old.get(name), new.get(name))
    ]
    before, now = saved.get("switches", {}), here["switches"]
    both = [name for name in now if name in before and before[name] != now[name]]
    return texts + [_change(name, before[name], now[name]) for name in both]


def _differ(old: str | None, new: str | None) -> bool:
    return bool(old) and bool(new) and old != new


def _change(name: str, old: str, new: str) -> str:
    return f"{name} was {old or 'not set'} and is {new or 'not set'} here"
