"""The stream that torch would launch a kernel on."""

from __future__ import annotations

from typing import Any

import torch


def stream_handle(index: int) -> int:
    """Return the handle of the current stream of a device, as CUDA's driver takes it.

    `torch.cuda.current_stream` makes an object of Python for it, which takes ten times as long as this
    function of its own (torch/csrc/cuda/Module.cpp, 2.15.0; the code that inductor makes calls it too).

    Args:
        index: of the device.
    """
    core: Any = torch._C
    quick = getattr(core, "_cuda_getCurrentRawStream", None)
    return int(torch.cuda.current_stream(index).cuda_stream if quick is None else quick(index))
