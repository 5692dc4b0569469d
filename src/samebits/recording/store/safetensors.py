"""Check that a captured blob is a safetensors file, before anything is made of it."""

from __future__ import annotations

from samebits.recording.store.decoding import Damage, load_json, naturals

_LENGTH_BYTES = 8


def check_safetensors(data: bytes) -> None:
    """Refuse a blob whose header does not describe its contents exactly.

    Args:
        data: the length of the header in 8 bytes, a JSON header, then the tensors one after another.

    Raises:
        Damage: if it is not that.
    """
    length = int.from_bytes(data[:_LENGTH_BYTES], "little")
    start = _LENGTH_BYTES + length
    if len(data) < _LENGTH_BYTES or start > len(data):
        raise Damage("a captured tensor is cut short")
    header = load_json(data[_LENGTH_BYTES:start].decode())
    if type(header) is not dict:
        raise Damage("a captured tensor has no header")
    end = 0
    for begin, stop in sorted(_extent(entry) for name, entry in header.items() if name != "__metadata__"):
        if begin != end or stop < begin:
            raise Damage("captured tensors overlap or leave gaps")
        end = stop
    if end != len(data) - start:
        raise Damage("a captured tensor is cut short")


def _extent(entry: object) -> tuple[int, int]:
    if type(entry) is not dict or type(entry.get("dtype")) is not str:
        raise Damage("a captured tensor has no dtype")
    naturals(entry.get("shape"))
    begin, stop = naturals(entry.get("data_offsets"))
    return begin, stop
