"""Encodes values as JSON, and the arrays in them as entries of a file.

Plain JSON stands for itself; everything else is an object with a `type`. `TreeReader` decodes it. No class is
ever looked up by name, so that a file can execute nothing.
"""

from __future__ import annotations

import base64
import json
import math
import struct
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from samebits._runtime.frames import pass_on
from samebits._torch.core import state_versions
from samebits.checkpoint._arrays import (
    Entry,
    array_node,
    check_tensor,
    dtype_name,
    entry_of,
    scalar_node,
    sparse_parts,
    tensor_facts,
)
from samebits.checkpoint._stateful import describe, is_stateful, state_facts, unsaveable
from samebits.rng.generator_objects import RegisteredGenerator, family_of
from samebits.rng.states import SourceState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

FACTORIES = {"dict": dict, "list": list, "set": set, "int": int, "float": float, "none": None}
_LARGEST = 1 << 64  # larger numbers are written in hexadecimal: Python limits the decimals that it reads
_DEEPEST = 100


_Encoder: TypeAlias = "Callable[[TreeWriter, Any, str], Any]"


class TreeWriter:
    """Turns values into JSON and entries.

    Args:
        entries: receives the arrays.
    """

    def __init__(self, entries: list[Entry]) -> None:
        self._entries = entries
        self._names = {"__metadata__"}  # reserved by the format
        self._written: dict[Any, str] = {}
        self._alive: list[Any] = []  # encoded arrays: their addresses must not be reused
        self._open: set[int] = set()

    def encode(self, value: Any, where: str) -> Any:
        """Return the JSON of a value.

        Args:
            value: the value to save.
            where: its path, which names it in errors and its arrays in the file.

        Raises:
            SamebitsError: it, or something in it, cannot be saved; `checkpoint-entry`.
        """
        if value is None or type(value) in (bool, str):
            return value
        if type(value) is float and math.isfinite(value):
            return value
        if id(value) in self._open or len(self._open) > _DEEPEST:
            raise unsaveable(where, "it contains itself, or is nested too deeply")
        self._open.add(id(value))
        try:
            encoder = _ENCODERS.get(type(value)) or self._by_kind(value)
            if encoder is None:
                raise unsaveable(where, describe(value))
            return encoder(self, value, where)
        finally:
            self._open.discard(id(value))

    def _by_kind(self, value: Any) -> _Encoder | None:
        if isinstance(value, torch.Tensor):
            return TreeWriter._tensor
        numpy: Any = sys.modules["numpy"]
        if isinstance(value, numpy.ndarray):
            return TreeWriter._array
        if isinstance(value, numpy.generic):
            return _scalar
        if is_stateful(value):
            return TreeWriter._stateful
        if family_of(value):
            return _generator
        is_state = state_versions(value) is not None and isinstance(value, dict)
        return TreeWriter._mapping if is_state else None

    def _items(self, values: Iterable[Any], where: str) -> list[Any]:
        return [self.encode(value, f"{where}.{index}") for index, value in enumerate(values)]

    def _deque(self, value: deque[Any], where: str) -> Any:
        return {"type": "deque", "items": self._items(value, where), "maxlen": value.maxlen}

    def _set(self, value: Any, where: str) -> Any:
        items = sorted(self._items(value, where), key=json.dumps)  # so that equal sets make equal files
        return {"type": type(value).__name__, "items": items}

    def _mapping(self, value: dict[Any, Any], where: str) -> Any:
        items = [
            [self._key(key, where), self.encode(item, f"{where}.{key if type(key) is str else repr(key)}")]
            for key, item in value.items()
        ]
        kind = type(value).__name__ if type(value) in (OrderedDict, Counter) else "dict"
        node = {"type": kind, "items": items}
        versions = state_versions(value)
        if versions is not None:
            node |= {"type": "OrderedDict", "versions": self.encode(dict(versions), f"{where}._metadata")}
        return node

    def _key(self, key: Any, where: str) -> Any:
        return key if type(key) is str else self.encode(key, f"{where}.{key!r} (the key)")

    def _default_mapping(self, value: defaultdict[Any, Any], where: str) -> Any:
        names = [name for name, factory in FACTORIES.items() if factory is value.default_factory]
        if not names:
            raise unsaveable(where, describe(value))
        return {**self._mapping(value, where), "type": "defaultdict", "factory": names[0]}

    def _stateful(self, value: Any, where: str) -> Any:
        try:
            state = value.state_dict()
        except Exception as error:
            pass_on(error)
            raise unsaveable(
                where, f"its state_dict() failed with {type(error).__name__}: {error}"
            ) from error
        return {"type": "state", **state_facts(value), "value": self.encode(state, where)}

    def _tensor(self, value: torch.Tensor, where: str) -> Any:
        if value.layout is not torch.strided:
            layout, parts = sparse_parts(value, where)
            nodes = [self._tensor(part, f"{where}.{name}") for name, part in parts]
            return {"type": "sparse", "layout": layout, "shape": list(value.shape), "parts": nodes}
        check_tensor(value, where)
        lazy = (value.is_conj(), value.is_neg())
        identity = (value.data_ptr(), value.device, value.dtype, value.shape, value.stride(), lazy)
        return {"type": "tensor", "name": self._store(value, value, identity, where), **tensor_facts(value)}

    def _array(self, value: Any, where: str) -> Any:
        facts, tensor = array_node(value, where)
        identity = (value.ctypes.data, value.dtype.str, value.shape, value.strides)
        return {"type": "array", "name": self._store(tensor, value, identity, where), **facts}

    def _store(self, tensor: torch.Tensor, held: Any, identity: Any, where: str) -> str:
        """Return the name of the entry; views of the same memory with the same shape share one."""
        known = self._written.get(identity) if tensor.numel() else None
        if known is not None:
            return known
        name, number = where, 1
        while name in self._names:
            number += 1
            name = f"{where}#{number}"
        self._names.add(name)
        self._written[identity] = name
        self._alive.append(held)
        self._entries.append(entry_of(name, tensor))
        return name


def source_state_node(state: SourceState) -> dict[str, Any]:
    """Return the JSON of the state of an RNG source."""
    data = base64.b64encode(state.data).decode()
    return {"type": "rng", "source": state.source, "version": state.version, "base64": data}


def _scalar(_writer: TreeWriter, value: Any, where: str) -> Any:
    return scalar_node(value, where)


def _generator(_writer: TreeWriter, value: Any, where: str) -> Any:
    data = RegisteredGenerator(where, value).get_state()
    return {"type": "generator", "family": family_of(value), "base64": base64.b64encode(data).decode()}


def _integer(value: int) -> Any:
    return value if -_LARGEST < value < _LARGEST else {"type": "int", "hex": hex(value)}


def _float(value: float) -> Any:
    return value if math.isfinite(value) else {"type": "float", "hex": struct.pack("<d", value).hex()}


# Functions, not bound methods: a writer that refers to itself would live on with its arrays.
_ENCODERS: dict[type, _Encoder] = {
    int: lambda _, value, __: _integer(value),
    float: lambda _, value, __: _float(value),
    complex: lambda _, value, __: {
        "type": "complex",
        "hex": struct.pack("<dd", value.real, value.imag).hex(),
    },
    bytes: lambda _, value, __: {"type": "bytes", "base64": base64.b64encode(value).decode()},
    bytearray: lambda _, value, __: {"type": "bytearray", "base64": base64.b64encode(value).decode()},
    list: TreeWriter._items,
    tuple: lambda writer, value, where: {"type": "tuple", "items": writer._items(value, where)},
    torch.Size: lambda _, value, __: {"type": "Size", "items": list(value)},
    deque: TreeWriter._deque,
    set: TreeWriter._set,
    frozenset: TreeWriter._set,
    dict: TreeWriter._mapping,
    OrderedDict: TreeWriter._mapping,
    Counter: TreeWriter._mapping,
    defaultdict: TreeWriter._default_mapping,
    torch.Tensor: TreeWriter._tensor,
    torch.nn.Parameter: TreeWriter._tensor,
    torch.dtype: lambda _, value, __: {"type": "dtype", "name": dtype_name(value)},
    torch.device: lambda _, value, __: {"type": "device", "name": str(value)},
    SourceState: lambda _, value, __: source_state_node(value),
}
