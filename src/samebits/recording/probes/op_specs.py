"""What is known of an op before it is called."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from samebits.recording.probes.memory import RANDOM, SOURCE, WRITES
from samebits.torch_private import is_random, mutated_arguments

if TYPE_CHECKING:
    from collections.abc import Callable

# What they return holds values from outside torch: Python, NumPy, a file.
_SOURCES = ("aten::lift_fresh", "aten::lift", "aten::set_")
# What they return is their input under another name.
_ALIASES = ("aten::detach.default", "aten::alias.default")
# They have no numbers of their own: profiler ranges, bookkeeping.
_IGNORED = ("profiler::", "prim::", "c10d::")


@dataclasses.dataclass(frozen=True, slots=True)
class OpSpec:
    """What is known of an op before it is called.

    Args:
        name: text id of `aten::mm.default`.
        text: the same as text.
        ignored: whether it is not recorded.
        random: whether it draws from a generator.
        positions: positional arguments that it writes to.
        keywords: keyword arguments that it writes to.
        writes: whether it writes to any argument.
        alias: whether its output is its input under another name.
        source: whether its output's contents come from outside torch.
        flags: `random`, `writes` and `source` as the memory map takes them.
    """

    name: int
    text: str
    ignored: bool
    random: bool
    positions: tuple[int, ...]
    keywords: tuple[str, ...]
    writes: bool
    alias: bool
    source: bool
    flags: int


def spec_of(op: Any, intern: Callable[[str], int]) -> OpSpec:
    """Describe an op overload."""
    text = op.name()
    text = text if "." in text.partition("::")[2] else f"{text}.default"
    positions, keywords = mutated_arguments(op)
    writes, random, source = bool(positions or keywords), is_random(op), text.partition(".")[0] in _SOURCES
    return OpSpec(
        name=intern(text),
        text=text,
        ignored=text.startswith(_IGNORED),
        random=random,
        positions=positions,
        keywords=keywords,
        writes=writes,
        alias=text in _ALIASES,
        source=source,
        flags=source * SOURCE | random * RANDOM | writes * WRITES,
    )
