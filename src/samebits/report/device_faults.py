"""Failures on a GPU in one line: what happened, and what to do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from samebits._cuda.faults import Fault, fault_of, shortage_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_SENTENCE = re.compile(r"\.\s")
_ADVICE: Mapping[Fault, str] = {
    Fault.NO_DEVICE: "see what `nvidia-smi` and CUDA_VISIBLE_DEVICES say; a container must be given its GPUs",
    Fault.OLD_DRIVER: "update the driver, or install a torch that is built for an older CUDA",
    Fault.NO_CODE: "install a torch that is built for this GPU: `samebits doctor` names the architectures",
    Fault.NO_MEMORY: "make the batch smaller, or end other programs on it (`nvidia-smi` names them)",
    Fault.BUSY: "another program may have the GPU for itself (`nvidia-smi` names it), or it has to be reset",
    Fault.BROKEN_PROGRAM: (
        "it may be of a kernel that was started before: CUDA_LAUNCH_BLOCKING=1 shows the line that started it"
    ),
    Fault.HARDWARE: "trust no result of this GPU before it was reset and tested (`nvidia-smi -q`)",
}


def failure_words(failure: str) -> str:
    """Return how a script failed: what a GPU did in one sentence with what to do, all else as it is.

    Args:
        failure: the first line of the error.
    """
    fault = fault_of(failure)
    return failure if fault is None else f"{_short(failure)}; {_ADVICE[fault]}"


def _short(failure: str) -> str:
    shortage = shortage_of(failure)
    if shortage is None:
        return _SENTENCE.split(failure, maxsplit=1)[0].rstrip(".")
    kind, _, _ = failure.partition(":")
    free = f"{shortage.free} of {shortage.capacity}"
    return f"{kind}: GPU {shortage.device} has {free} free, and {shortage.asked} more were asked for"
