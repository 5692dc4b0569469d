"""Keeping the tensors of one event whole, so that two runs can be compared element by element."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from samebits.recording.recorder import Recorder
    from samebits.recording.settings import CaptureSpec

_MOST_BYTES = 1 << 28


class CaptureProbe:
    """Stores the tensors of the event that `spec` describes.

    Args:
        recorder: whose events are watched.
        spec: which event.
    """

    def __init__(self, recorder: Recorder, spec: CaptureSpec) -> None:
        self._recorder = recorder
        self._spec = spec
        self._matches = 0

    def install(self, torch: Any) -> None:  # noqa: ARG002 - all probes are installed alike
        """Watch events."""
        self._recorder.on_tensors.append(self.see)

    def remove(self) -> None:
        """Watch nothing."""
        self._recorder.on_tensors.remove(self.see)

    def see(self, seq: int, kind: str, op: str, site: int | None, tensors: Sequence[tuple[int, Any]]) -> None:
        """Store the tensors (position in the event, tensor) if this is the event."""
        spec = self._spec
        if kind != spec.kind or op != spec.op or self._recorder.step != spec.step:
            return
        place = self._recorder.sites.known(site)
        if (place.file if place else "", place.line if place else 0) != (spec.file, spec.line):
            return
        self._matches += 1
        if self._matches == spec.occurrence + 1:
            for position, tensor in tensors:
                self._store(seq, position, tensor)

    def _store(self, seq: int, position: int, tensor: Any) -> None:
        data = as_file(tensor) if tensor.numel() * tensor.element_size() <= _MOST_BYTES else b""
        if data:
            self._recorder.writer.capture(seq, position, data)


def as_file(tensor: Any) -> bytes:
    """A tensor as a safetensors file; empty for one that the format does not hold."""
    from safetensors.torch import save
    from torch import view_as_real

    plain = tensor.detach()
    if str(plain.layout) != "torch.strided" or plain.is_quantized:
        return b""
    if plain.is_complex():  # the format has no complex numbers; bits are compared as pairs
        plain = view_as_real(plain.resolve_conj())
    with contextlib.suppress(KeyError):  # nor every other dtype
        return bytes(save({"value": plain.cpu().contiguous()}))
    return b""
