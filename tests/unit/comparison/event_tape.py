"""Writes down synthetic runs as the recorder would: tensors, memories, generators, boundaries."""

# ruff: noqa: D102, PLR0913, E501 - what the methods record is named as in the recorder

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

from samebits._runtime.frames import Site
from samebits.records.events import NO_WRITER, Event, Link, RunInfo, TensorInfo


def digest(value: Any) -> bytes:
    return hashlib.blake2b(repr(value).encode(), digest_size=16).digest()


@dataclass
class Memory:
    """A storage: named parts with values."""

    serial: int
    cells: dict[str, Any]
    writer: int = NO_WRITER


@dataclass
class Tensor:
    """A view of a memory: one part of it, or all."""

    memory: Memory
    part: str = ""
    shape: tuple[int, ...] = (4,)
    dtype: str = "float32"

    @property
    def value(self) -> Any:
        cells = self.memory.cells
        return (
            cells[self.part] if self.part else tuple(sorted(cells.items())) if len(cells) > 1 else cells[""]
        )

    def view(self, part: str, shape: tuple[int, ...] = (2,)) -> Tensor:
        """A view of one part; the memory must have been made with parts."""
        return Tensor(self.memory, part, shape)


@dataclass
class FakeRecord:
    """Events in a list, read like a record."""

    info: RunInfo
    listed: list[Event]
    lookups: int = 0

    def events(self, kinds=(), first_step=None, last_step=None):
        for event in self.listed:
            if kinds and event.kind not in kinds:
                continue
            if first_step is not None and event.step < first_step:
                continue
            if last_step is None or event.step <= last_step:
                yield event

    def event(self, seq):
        self.lookups += 1
        if not 0 <= seq < len(self.listed):
            raise LookupError(seq)
        return self.listed[seq]


@dataclass
class Tape:
    """One run being made."""

    level: str = "op"
    file: str = "/home/u/train.py"
    log: list[Event] = field(default_factory=list)
    step: int = 0
    thread: str = ""
    generator: Any = "unseeded"
    generators: dict[str, Any] = field(default_factory=lambda: {"python": 0})
    _serial: int = 0
    hard: bool = False

    def site(self, line: int | None) -> Site | None:
        return None if line is None else Site(self.file, line, "main")

    def outside(self, value: Any, shape: tuple[int, ...] = (4,)) -> Tensor:
        """A tensor whose contents no op made."""
        self._serial += 1
        return Tensor(Memory(self._serial, {"": value}), shape=shape)

    def add(
        self, kind: str, op: str, tensors: list[tuple[TensorInfo, Any, Link]], line=None, **more: Any
    ) -> int:
        seq = len(self.log)
        links = tuple(link for _, _, link in tensors) if self.level == "op" else ()
        self.log.append(
            Event(
                seq, kind, self.step, op, self.site(line), self.site(more.get("forward")), more.get("module", ""),
                more.get("thread", self.thread), more.get("arguments", ""), tuple(info for info, _, _ in tensors),
                tuple(digest(value) for _, value, _ in tensors), links,
            )
        )  # fmt: skip
        return seq

    def op(
        self, name: str, *inputs: Tensor, line: int, into: Tensor | None = None, result: Any = None, noise: Any = "",
        shape: tuple[int, ...] | None = None, draws: bool = False, **more: Any,
    ) -> Tensor:  # fmt: skip
        """Record an op; its result is made from its inputs, arguments, generator and `noise`."""
        row = [self._shown("in", t) for t in inputs]
        if draws:
            source = "given" if name.endswith(".generator") else "torch"
            row.append((TensorInfo("rng", source, "state", ()), self.generator, Link(0, NO_WRITER)))
        value = result
        if value is None:
            value = hash_of(
                name, [t.value for t in inputs], more.get("arguments", ""), noise, draws and self.generator
            )
        if draws:
            self.generator = hash_of(self.generator, value, "next")
        if into is None:
            into = self.outside(None, shape or (inputs[0].shape if inputs else (4,)))
        before = into.memory.writer
        into.memory.cells[into.part] = value
        row.append(
            (self._info("out", into), (into.value, into.shape, into.dtype), Link(into.memory.serial, before))
        )
        into.memory.writer = self.add("op", f"aten::{name}", row, line, **more)
        return into

    def parts(self, name: str, line: int, cells: dict[str, Any], shape: tuple[int, ...] = (4,)) -> Tensor:
        """A new tensor whose parts have views."""
        made = self.op(name, line=line, result=tuple(sorted(cells.items())), shape=shape)
        made.memory.cells = dict(cells)
        return made

    def add_(self, target: Tensor, other: Tensor, line: int, **more: Any) -> Tensor:
        return self.op("add_.Tensor", target, other, line=line, into=target, **more)

    def copy_(self, target: Tensor, source: Tensor, line: int, **more: Any) -> Tensor:
        return self.op("copy_.default", target, source, line=line, into=target, result=source.value, **more)

    def empty(self, garbage: Any, line: int, shape: tuple[int, ...] = (4,)) -> Tensor:
        return self.op("empty.memory_format", line=line, result=garbage, shape=shape)

    def randn(self, line: int, arguments: str = "[4]", **more: Any) -> Tensor:
        return self.op("randn.default", line=line, arguments=arguments, draws=True, **more)

    def seed(self, value: Any, line: int = 1, call: str = "torch.manual_seed") -> None:
        self.add("rng", "seed", [], line, arguments=f"{call}({value})")
        if call.startswith("torch"):
            self.generator = ("seeded", value)
        else:
            self.generators["python" if call.startswith("random") else "numpy"] = ("seeded", value)

    def batch(self, values: list[Any], line: int = 5) -> list[Tensor]:
        tensors = [self.outside(value) for value in values]
        row = [
            (
                TensorInfo("value", str(i), "float32", t.shape),
                (t.value, t.shape, t.dtype),
                Link(t.memory.serial, NO_WRITER),
            )
            for i, t in enumerate(tensors)
        ]
        seq = self.add("batch", "DataLoader", row, line)
        for tensor in tensors:
            tensor.memory.writer = seq
        return tensors

    def backward(self, loss: Tensor, grads: dict[str, Tensor], line: int = 20) -> None:
        self.hard = True
        self.add("loss", "backward", [self._shown("value", loss, "0")], line)
        if grads:
            self.add("grad", "backward", [self._shown("grad", t, name) for name, t in grads.items()], line)

    def boundary(
        self, params: dict[str, Tensor] | None = None, buffers: dict[str, Tensor] | None = None, line: int = 30,
        op: str = "SGD.step",
    ) -> None:  # fmt: skip
        self._state(params or {}, buffers or {}, line, op)
        self.hard = True
        self.step += 1

    def end(self, params: dict[str, Tensor], buffers: dict[str, Tensor] | None = None) -> None:
        self._state(params, buffers or {}, None, "end")

    def _state(self, params, buffers, line, op) -> None:
        states = {"torch": self.generator, **self.generators}
        self.add(
            "rng", "state", [(TensorInfo("rng", n, "state", ()), v, Link(0, -1)) for n, v in states.items()]
        )
        row = [self._shown("param", t, n) for n, t in params.items()]
        row += [self._shown("buffer", t, n) for n, t in buffers.items()]
        self.add("step", op, row, line)

    def read(self, tensor: Tensor, line: int, op: str = "item", **more: Any) -> None:
        self.add("read", op, [self._shown("value", tensor)], line, **more)
        if not self.hard:
            self.step += 1

    def save(self, tensors: dict[str, Tensor], line: int = 40) -> None:
        self.add("save", "torch.save", [self._shown("value", t, n) for n, t in tensors.items()], line)

    def record(self, status: str = "finished", **info: Any) -> FakeRecord:
        command = info.pop("command", ("train.py",))
        return FakeRecord(
            RunInfo(
                command=command, level=self.level, status=status, steps=info.pop("steps", self.step), **info
            ),
            self.log,
        )

    def _shown(self, role: str, tensor: Tensor, name: str = "") -> tuple[TensorInfo, Any, Link]:
        link = Link(tensor.memory.serial, tensor.memory.writer)
        return self._info(role, tensor, name), (tensor.value, tensor.shape, tensor.dtype), link

    def _info(self, role: str, tensor: Tensor, name: str = "") -> TensorInfo:
        return TensorInfo(role, name, tensor.dtype, tensor.shape)


def hash_of(*values: Any) -> str:
    return digest(values).hex()


def drawn_with(kind):
    """A chain in which each operation takes a number that its line drew, from a state that differs."""

    def run(tape, value, length):
        if kind == "moved":
            tape.seed(1)
        tape.generator = value
        x = tape.op("ones.default", line=1, result=1)
        for _ in range(length):
            name = "normal.generator" if kind == "given" else "randn.default"
            x = tape.op("add.Tensor", x, tape.op(name, line=3, draws=True), line=4)
        tape.boundary({"w": x})

    return run


def chained(entered):
    """A chain of operations; what differs enters with the first, or with each."""

    def run(tape, value, length):
        x = tape.op("lift_fresh.default", tape.outside(value), line=3)
        for i in range(length):
            more = [tape.outside((value, i))] if entered == "outside" else []
            arguments = f"{value + i}" if entered == "argument" else ""
            x = tape.op("add.Tensor", x, *more, line=4, arguments=arguments)
        tape.boundary({"w": x})

    return run
