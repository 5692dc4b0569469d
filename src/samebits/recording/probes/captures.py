"""Whole tensors as safetensors files, and the probe that keeps them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from samebits._runtime.frames import ignored
from samebits.recording.distance import sampled
from samebits.records.kinds import EventKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from samebits.recording._recorder import Recorder


_WHOLE = "value"
_SAMPLE = re.compile(r"some of ([0-9]{1,19}(?:x[0-9]{1,19}){0,63})")


def shape_in(name: str) -> tuple[int, ...] | None:
    """Return the shape of the tensor of which a file has some elements; None for one that has all.

    Args:
        name: of the only tensor in the file.
    """
    match = _SAMPLE.fullmatch(name)
    return None if match is None else tuple(map(int, match[1].split("x")))


def to_safetensors(tensor: Any, name: str = _WHOLE) -> bytes | None:
    """Return a tensor as a safetensors file; None for one that the format cannot hold (sparse, quantized).

    Complex tensors are kept as pairs.
    """
    from safetensors.torch import save
    from torch import view_as_real

    plain = tensor.detach()
    if str(plain.layout) != "torch.strided" or plain.is_quantized:
        return None
    if plain.is_complex():
        plain = view_as_real(plain.resolve_conj())
    try:
        return save({name: plain.resolve_neg().cpu().contiguous()})
    except KeyError:  # the format does not have every dtype
        return None


def from_safetensors(data: bytes) -> Any:
    """Return the tensor that `to_safetensors` wrote; a complex one as pairs."""
    from safetensors.torch import load

    return load(data)[_WHOLE]


def fits(tensor: Any, contents: Any) -> bool:
    """Tell whether a kept tensor has the dtype and shape of another."""
    if tensor.is_complex():
        return bool(contents.shape == (*tensor.shape, 2) and contents.dtype == tensor.real.dtype)
    return bool(contents.shape == tensor.shape and contents.dtype == tensor.dtype)


def write_into(tensor: Any, contents: Any) -> None:
    """Write kept contents to a tensor's own memory.

    It goes through `data`, which has a version counter of its own, so that a backward pass that saved the
    tensor does not take it for modified.
    """
    from torch import view_as_complex

    tensor.data.copy_(view_as_complex(contents) if tensor.is_complex() else contents)


_MOST_EACH = 1 << 22
_KINDS = frozenset({EventKind.OP, EventKind.BATCH, EventKind.RNG})


class CaptureProbe:
    """Stores the tensors that ops and loaders give, from a step on and until a number of bytes is reached.

    It also stores what came from outside torch into an op, and the states that generators were seeded to or
    drawn from.

    Args:
        recorder: whose events are watched; its settings say from which step and how many bytes.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._first_step = recorder.settings.keep_from_step
        self._bytes_left = recorder.settings.keep_bytes
        self._most_elements = recorder.settings.keep_elements
        self._copies: list[tuple[int, int, Any, str]] = []

    def install(self, torch: Any) -> None:  # noqa: ARG002 - all probes are installed alike
        """Watch events."""
        self._recorder.on_tensors.append(self._observe)

    def remove(self) -> None:
        """Watch nothing, and write the copies."""
        self._recorder.on_tensors.remove(self._observe)
        files = []
        for seq, position, tensor, name in self._copies:
            with ignored():  # of a class that cannot be written
                files.append((seq, position, to_safetensors(tensor, name)))
        self._copies.clear()
        self._recorder.writer.capture([(seq, position, data) for seq, position, data in files if data])

    def _observe(
        self, seq: int, kind: EventKind, _op: str, _site: int | None, tensors: Sequence[tuple[int, Any]]
    ) -> None:
        """Keep a copy of the tensors (position in the event, tensor)."""
        if self._bytes_left <= 0 or self._recorder.step < self._first_step or kind not in _KINDS:
            return
        for position, tensor in tensors:
            with ignored(), self._recorder.quietly:  # of a class that cannot be copied
                self._keep(seq, position, tensor)

    def _keep(self, seq: int, position: int, tensor: Any) -> None:
        from torch import from_numpy

        total, most = tensor.numel(), self._most_elements
        n_bytes = (min(total, most) if most else total) * tensor.element_size()
        if n_bytes > _MOST_EACH:
            return
        self._bytes_left -= n_bytes
        if not most or total <= most:
            self._copies.append((seq, position, tensor.detach().clone(), _WHOLE))
            return
        places = from_numpy(sampled(total, most)).to(tensor.device)
        name = f"some of {'x'.join(map(str, tensor.shape))}"
        self._copies.append((seq, position, tensor.detach().reshape(-1).index_select(0, places), name))
