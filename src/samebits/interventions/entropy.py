"""The intervention `entropy`: user code, and libraries on its behalf, get a fixed stream of bytes.

Generators that seed themselves are not touched: those are `seed-python`, `seed-numpy` and
`seed-torch`.
"""

from __future__ import annotations

import hashlib
import os
import random
import sys
import tempfile
import threading
from typing import TYPE_CHECKING, Any

from samebits._runtime.builtin_proxies import proxy_of
from samebits._runtime.frames import calling_frame
from samebits.interventions.intervention import Intervention, OpenedFiles, number_for
from samebits.rng.active import thread_name

if TYPE_CHECKING:
    from samebits.interventions.intervention import Replacements

_DEVICES = ("/dev/urandom", "/dev/random")
_UUID = "/proc/sys/kernel/random/uuid"
_DEVICE_BYTES = 1 << 20
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789_"


class _Streams(threading.local):
    """The numbers that this thread has taken of each of its streams."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.passing = False

    def next(self, kind: str) -> int:
        """Return a number of 64 bits that no other call of this run gets."""
        count = self.counts[kind] = self.counts.get(kind, -1) + 1
        return number_for(kind, thread_name(), count)

    def bytes(self, size: int) -> bytes:
        """Return the next bytes."""
        return hashlib.shake_128(self.next("entropy").to_bytes(8, "little")).digest(size)


def fix_entropy(replacements: Replacements) -> None:
    """Fix `os.urandom` and what is made of it, and the names of temporary files."""
    streams = _Streams()

    def rule(frame: Any) -> bool:
        return not streams.passing and replacements.asker.is_asked(frame)

    replacements.replace(os, "urandom", lambda _, size: streams.bytes(size), rule)
    replacements.replace(os, "getrandom", lambda _, size, flags=0: streams.bytes(size), rule)  # noqa: ARG005
    if hasattr(random, "_urandom"):  # what `SystemRandom` and `secrets` draw from
        replacements.patches.set(random, "_urandom", os.urandom)
    replacements.imports.on_import("uuid", lambda uuid: _fix_uuid(replacements, uuid, streams))
    replacements.imports.on_import("numpy.random", lambda _: _let_numpy_pass(replacements, streams))
    _fix_names(replacements, rule)
    _fix_devices(replacements, streams)


def _fix_uuid(replacements: Replacements, uuid: Any, streams: _Streams) -> None:
    """Fix `uuid1`, which is made of the clock and the machine's address; `uuid4` asks `os.urandom`."""

    def uuid1(_: Any, node: Any = None, clock_seq: Any = None) -> Any:  # noqa: ARG001
        return uuid.UUID(bytes=streams.bytes(16), version=1)

    replacements.replace(uuid, "uuid1", uuid1, replacements.asker.is_asked)


def _let_numpy_pass(replacements: Replacements, streams: _Streams) -> None:
    """Give NumPy real entropy for its seeds: it calls `secrets` from C, as if the user's line had."""
    bit_generator: Any = sys.modules["numpy.random.bit_generator"]
    original = bit_generator.randbits

    def randbits(_self: Any, count: int) -> Any:
        before, streams.passing = streams.passing, True
        try:
            return original(count)
        finally:
            streams.passing = before

    replacements.patches.set(bit_generator, "randbits", proxy_of(original, randbits))


def _fix_names(replacements: Replacements, rule: Any) -> None:
    """Fix the names of temporary files, in an order that stays when some of them are taken already."""
    names = getattr(tempfile, "_RandomNameSequence", None)
    if names is None:
        return
    original, counts = names.__next__, threading.local()
    get_frame = calling_frame

    def following(self: Any) -> str:
        if not rule(get_frame(1)):
            return str(original(self))
        counts.n = getattr(counts, "n", 0) + 1
        return _name(number_for("temporary name", thread_name()), counts.n)

    following.__wrapped__ = original  # type: ignore[attr-defined] # as `functools.wraps` would
    replacements.patches.set(names, "__next__", following)


def _name(of_thread: int, count: int) -> str:
    text = ""
    for number in (count, of_thread % 37**3):
        for _ in range(4):
            number, rest = divmod(number, len(_LETTERS))  # noqa: PLW2901
            text = _LETTERS[rest] + text
    return text[1:]


def _fix_devices(replacements: Replacements, streams: _Streams) -> None:
    def contents(path: str) -> bytes | None:
        if path in _DEVICES:
            return streams.bytes(_DEVICE_BYTES)
        if path == _UUID:
            import uuid

            return str(uuid.UUID(bytes=streams.bytes(16), version=4)).encode() + b"\n"
        return None

    OpenedFiles(replacements, contents).install()


ENTROPY = Intervention(
    "entropy",
    "with the system's entropy fixed",
    patch=fix_entropy,
    limits="entropy that C code, other programs or a database take; seeds of generators (`seed-python`)",
)
