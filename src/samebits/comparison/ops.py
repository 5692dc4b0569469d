"""What the comparison knows of ops by their names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits.recording.events import NO_WRITER

if TYPE_CHECKING:
    from samebits.recording.events import Event, TensorInfo

_ALLOCATING = ("empty", "new_empty", "_empty", "resize_", "_resize_output_")
# They write every element of their first argument and read none of it.
_OVERWRITING = frozenset(
    ("copy_", "fill_", "zero_", "normal_", "uniform_", "random_", "bernoulli_", "exponential_", "log_normal_",
     "cauchy_", "geometric_", "set_", "resize_as_", "_foreach_copy_", "_foreach_zero_", "eye_")
)  # fmt: skip
# Their output holds the same values as their input, computed from nothing else.
_MOVING = frozenset(
    ("copy_", "clone", "_to_copy", "_foreach_copy_", "lift_fresh", "detach", "contiguous", "_unsafe_view",
     "_reshape_copy", "alias_copy", "view_copy")
)  # fmt: skip


def base_name(op: str) -> str:
    """`add_` for `aten::add_.Tensor`."""
    return op.rpartition("::")[2].partition(".")[0]


def allocates(event: Event) -> bool:
    """Whether an op gives memory with whatever was in it before."""
    return event.kind == "op" and base_name(event.op).startswith(_ALLOCATING)


def brings(event: Event) -> bool:
    """Whether an op puts a tensor on memory that was filled elsewhere: by another process, from a file."""
    return event.kind == "op" and base_name(event.op) == "set_" and not read_inputs(event)


def given(event: Event) -> list[int]:
    """Which tensors an op goes by: those it reads, and its generator; what it overwrites is none of them."""
    return [*read_inputs(event), *positions(event, "rng")]


def moves(event: Event) -> bool:
    """Whether an op only copies values."""
    return event.kind == "op" and base_name(event.op) in _MOVING


def positions(event: Event, role: str) -> list[int]:
    """Which tensors of an event have a role."""
    return [i for i, info in enumerate(event.tensors) if info.role == role]


def written(event: Event, memory: int) -> list[int]:
    """Which tensors an event left on a memory."""
    role = "out" if event.kind == "op" else "value"
    return [i for i in positions(event, role) if i < len(event.links) and event.links[i].memory == memory]


def read_inputs(event: Event) -> list[int]:
    """Which input tensors can influence an op's outputs: all but those that it overwrites."""
    inputs = positions(event, "in")
    name, overload = base_name(event.op), event.op.rpartition(".")[2]
    if overload.endswith("out") or overload.startswith("out_"):
        n_out = len(positions(event, "out"))
        return inputs[:-n_out] if n_out else inputs
    if name in _OVERWRITING and inputs:
        targets = {event.links[i].memory for i in positions(event, "out")} if event.links else set()
        if name.startswith("_foreach"):
            return [i for i in inputs if event.links and event.links[i].memory not in targets]
        return inputs[1:]
    return inputs


def differing_inputs(a: Event, b: Event) -> list[tuple[int, int]]:
    """Which inputs, of those that can matter, differ between the same op of two runs."""
    pairs = zip(read_inputs(a), read_inputs(b), strict=False)
    return [(i, j) for i, j in pairs if a.digests[i] != b.digests[j]]


def previous_writer(event: Event, memory: int) -> int:
    """Who wrote a memory before an event wrote it."""
    places = written(event, memory)
    return event.links[places[0]].writer if places else NO_WRITER


def n_bytes(info: TensorInfo) -> int:
    """Size of a tensor, with all elements of unknown types counted as 8 bytes."""
    bits = "".join(char for char in info.dtype.partition("_")[0] if char.isdigit())
    size = int(bits) // 8 if bits else (1 if info.dtype == "bool" else 8)
    for length in info.shape:
        size *= length
    return size
