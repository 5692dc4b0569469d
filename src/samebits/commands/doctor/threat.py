"""Threats to a promise, and which of them concern a script."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from samebits.commands.doctor.environment import EnvironmentSnapshot, SwitchView

EVERY = "every"
PROMISES = ("repeatable", "resumable", "portable", "proven")

BREAKS = "breaks"
MAY_BREAK = "may break"
NOTE = "note"
LEVELS = (BREAKS, MAY_BREAK, NOTE)


@dataclass(frozen=True, slots=True)
class Threat:
    """A fact about this machine or environment that threatens a promise.

    Args:
        promise: one of `PROMISES`, or `every`.
        subject: its subject, short and stable, such as `PYTHONHASHSEED` or `lightning`.
        found: the fact and its consequence, one line.
        why: the harm that it does, one or two sentences.
        remedy: the change proposed to the user, one line.
        source: the document or measurement that shows it.
        level: `breaks` (the promise is not kept here), `may break` (it depends on the script), `note`
            (nothing is wrong; worth knowing when bits differ).
    """

    promise: str
    subject: str
    found: str
    why: str
    remedy: str
    source: str
    level: str


# Variables that only some packages read: the beginning of the name, and the distributions.
_READERS = {
    "FLASH_ATTENTION_DETERMINISTIC": ("flash-attn", "flash-attn-3"),
    "NVTE_": ("transformer-engine",),
    "MAMBA_": ("mamba-ssm",),
    "CAUSAL_CONV1D_": ("causal-conv1d",),
    "HOROVOD_": ("horovod",),
    "HCCL_": ("torch-npu",),
    "TRITON_": ("triton", "pytorch-triton", "triton-rocm"),
}
_ACCELERATOR_WORDS = ("cudnn", "cublas", "cuda", "nvidia", "tf32", "tunableop", "cusolver", "sdpa", "sdp")
_GROUP = "process group"


def readers_of(switch: str) -> tuple[str, ...]:
    """Return the only packages that read that variable; empty when torch or a library below it does."""
    return next((packages for start, packages in _READERS.items() if switch.startswith(start)), ())


def is_relevant(view: SwitchView, here: EnvironmentSnapshot) -> bool:
    """Tell whether that switch can change bits with this torch, these packages and these devices."""
    if view.missing:
        return False
    readers = readers_of(view.name)
    if readers:
        return any(package in here.packages for package in readers)
    if _GROUP in view.when:
        return len(here.torch.gpus) > 1 or _is_distributed(here)
    about_gpus = "CUDA" in view.when or any(word in view.name.lower() for word in _ACCELERATOR_WORDS)
    return bool(here.torch.cuda) or not about_gpus


def _is_distributed(here: EnvironmentSnapshot) -> bool:
    return here.variables.get("WORLD_SIZE", "1") not in {"", "0", "1"}
