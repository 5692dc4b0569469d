"""Decodes the JSON and the arrays of a checkpoint, which may come from anyone, into values."""

from __future__ import annotations

import base64
import json
import struct
from collections import Counter, OrderedDict, defaultdict, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from samebits._text.printable import shortened, with_article
from samebits._torch.core import set_state_versions
from samebits.checkpoint._arrays import (
    array_from,
    dtype_named,
    scalar_from,
    sparse_tensor,
    tensor_of,
    with_strides,
)
from samebits.checkpoint._encoding import FACTORIES
from samebits.checkpoint._stateful import DamageError, State
from samebits.rng.states import SourceState

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_MOST_DIGITS = 20  # of a number in JSON; longer whole numbers of a state are hexadecimal text
_LONGEST_SHOWN = 200
_MOST_ALIKE = 200  # members of a set with equal hashes; each is compared with all before it


def load_json(data: bytes | str) -> Any:
    """Return the value of a JSON text.

    Raises:
        DamageError: it is no JSON, or has a number that is too long or not finite, or a repeated name.
    """
    try:
        return json.loads(
            data, parse_int=_whole, parse_constant=_no_constant, object_pairs_hook=_without_repetition
        )
    except (ValueError, RecursionError) as error:
        raise DamageError("its header is no JSON") from error


def shown(value: Any) -> str:
    """Return a value of the file, shortened for a message."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a whole number of thousands of digits
        text = with_article(type(value).__name__)
    return shortened(text, _LONGEST_SHOWN)


def refuse_alike(values: Sequence[Any]) -> None:
    """Refuse members of a set or keys of a dict with so many equal hashes that decoding takes hours.

    Raises:
        DamageError: too many hashes are equal.
        TypeError: one of them has no hash.
    """
    hashes = sorted(map(hash, values))
    if any(first == last for first, last in zip(hashes, hashes[_MOST_ALIKE:], strict=False)):
        raise DamageError("it holds a set or a dict whose members were chosen to have the same hash")


def _whole(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:  # converting takes time that grows with the square of their number
        raise DamageError("a whole number in its header has too many digits")
    return int(digits)


def _no_constant(name: str) -> Any:
    raise DamageError(f"its header has {name}, which is no JSON")


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise DamageError("a name is repeated in its header")
    return fields


# The exceptions that reading JSON of another form than that of `TreeWriter` can raise.
_MALFORMED = (
    *(ValueError, TypeError, KeyError, IndexError, AttributeError, RuntimeError),
    *(struct.error, OverflowError),
)


@dataclass(frozen=True, slots=True)
class GeneratorState:
    """The state of a generator object.

    Args:
        family: `python`, `numpy` or `torch`.
        data: the result of `RngSource.get_state`.
    """

    family: str
    data: bytes


@dataclass(frozen=True, slots=True)
class StoredArray:
    """One array as it is stored in the file.

    Args:
        data: uint8[n_bytes], in its own memory.
        dtype: the name of its torch dtype.
        shape: its shape.
    """

    data: torch.Tensor
    dtype: str
    shape: tuple[int, ...]


class TreeReader:
    """Turns the JSON of a checkpoint back into values.

    Args:
        arrays: the arrays of the file, by name.
        device_for: returns the device for a tensor, given the name of its former device and its path.
        device_for_state: the same for tensors in states of objects, which move what they load.
    """

    def __init__(
        self,
        arrays: Mapping[str, StoredArray],
        device_for: Callable[[str, str], torch.device],
        device_for_state: Callable[[str, str], torch.device],
    ) -> None:
        self._arrays = arrays
        self._device_for = device_for
        self._device_for_state = device_for_state
        self._made: dict[str, Any] = {}

    def decode(self, node: Any, where: str) -> Any:
        """Return the value of some JSON.

        Raises:
            DamageError: `TreeWriter` does not make such JSON.
            SamebitsError: a tensor cannot be placed; `checkpoint-device`.
        """
        if isinstance(node, list):
            return self._items(node, where)
        if not isinstance(node, dict):
            return node
        decoder = _DECODERS.get(_text(node, "type"))
        if decoder is None:
            raise DamageError(f"{where} is of the unknown type {shown(node['type'])}")
        try:
            return decoder(self, node, where)
        except _MALFORMED as error:
            reason = shortened((str(error) or type(error).__name__).splitlines()[0], 300)
            raise DamageError(f"{where} is not as it was written: {reason}") from error

    def _items(self, nodes: Any, where: str) -> list[Any]:
        return [self.decode(node, f"{where}.{index}") for index, node in enumerate(nodes)]

    def _pairs(self, node: dict[str, Any], where: str) -> list[tuple[Any, Any]]:
        pairs = []
        for key_node, value_node in node["items"]:
            key = self.decode(key_node, f"{where} (a key)")
            name = shortened(key, 200) if isinstance(key, str) else shown(key)
            pairs.append((key, self.decode(value_node, f"{where}.{name}")))
        refuse_alike([key for key, _ in pairs])
        return pairs

    def _members(self, node: dict[str, Any], where: str) -> list[Any]:
        members = self._items(node["items"], where)
        refuse_alike(members)
        return members

    def _default_mapping(self, node: dict[str, Any], where: str) -> Any:
        return defaultdict(FACTORIES[node["factory"]], self._pairs(node, where))

    def _ordered_mapping(self, node: dict[str, Any], where: str) -> Any:
        made = OrderedDict(self._pairs(node, where))
        if "versions" in node:
            versions = OrderedDict(self.decode(node["versions"], f"{where} (versions)"))
            set_state_versions(made, versions)
        return made

    def _state(self, node: dict[str, Any], where: str) -> State:
        outer = self._device_for
        kind = _text(node, "kind")
        self._device_for = _on_cpu if kind == "module" else self._device_for_state
        try:
            value = self.decode(node["value"], where)
        finally:
            self._device_for = outer
        return State(kind, _text(node, "class"), _group_shapes(node), value)

    def _tensor(self, node: dict[str, Any], where: str) -> torch.Tensor:
        device = self._device_for(node.get("device", "cpu"), where)
        key = f"tensor {node['name']} {device}"
        if key not in self._made:
            stored = self._stored(node)
            shape = tuple(node.get("shape", stored.shape))
            made = tensor_of(stored.data, dtype_named(node.get("dtype", stored.dtype)), shape)
            if "strides" in node:
                made = with_strides(made, node["strides"])
            self._made[key] = made.to(device)
        tensor: torch.Tensor = self._made[key]
        return tensor

    def _array(self, node: dict[str, Any], _where: str) -> Any:
        key = f"array {node['name']}"
        if key not in self._made:
            data = self._stored(node).data
            self._made[key] = array_from(data, node["dtype"], node["shape"], node.get("order", "C"))
        return self._made[key]

    def _stored(self, node: dict[str, Any]) -> StoredArray:
        name = _text(node, "name")
        if name not in self._arrays:
            raise ValueError(f"the file has no array {shown(name)}")
        return self._arrays[name]

    def _sparse(self, node: dict[str, Any], where: str) -> torch.Tensor:
        return sparse_tensor(node["layout"], node["shape"], self._items(node["parts"], where))


def _group_shapes(node: dict[str, Any]) -> list[list[list[int]]]:
    """Return the shapes of an optimizer's parameters, checked."""
    shapes: list[list[list[int]]] = node.get("shapes", [])
    if shapes != [[[int(size) for size in shape] for shape in group] for group in shapes]:
        raise ValueError("the shapes of its parameters are invalid")
    return shapes


def _on_cpu(_device: str, _where: str) -> torch.device:
    """Return the CPU: modules copy what they load."""
    return torch.device("cpu")


def _text(node: dict[str, Any], key: str) -> str:
    value = node.get(key)
    if not isinstance(value, str):
        raise DamageError(f"{key!r} is missing in {shown(sorted(node))}")
    return value


def _bytes(node: dict[str, Any]) -> bytes:
    return base64.b64decode(_text(node, "base64"), validate=True)


# Functions, not bound methods: a reader that refers to itself would live on with its arrays.
_DECODERS: dict[str, Callable[[TreeReader, dict[str, Any], str], Any]] = {
    "int": lambda _, node, __: int(node["hex"], 16),
    "float": lambda _, node, __: struct.unpack("<d", bytes.fromhex(node["hex"]))[0],
    "complex": lambda _, node, __: complex(*struct.unpack("<dd", bytes.fromhex(node["hex"]))),
    "bytes": lambda _, node, __: _bytes(node),
    "bytearray": lambda _, node, __: bytearray(_bytes(node)),
    "tuple": lambda reader, node, where: tuple(reader._items(node["items"], where)),
    "set": lambda reader, node, where: set(reader._members(node, where)),
    "frozenset": lambda reader, node, where: frozenset(reader._members(node, where)),
    "deque": lambda reader, node, where: deque(reader._items(node["items"], where), node["maxlen"]),
    "Size": lambda reader, node, where: torch.Size(reader._items(node["items"], where)),
    "dict": lambda reader, node, where: dict(reader._pairs(node, where)),
    "Counter": lambda reader, node, where: Counter(dict(reader._pairs(node, where))),
    "defaultdict": TreeReader._default_mapping,
    "OrderedDict": TreeReader._ordered_mapping,
    "dtype": lambda _, node, __: dtype_named(node["name"]),
    "device": lambda _, node, __: torch.device(node["name"]),
    "rng": lambda _, node, __: SourceState(_text(node, "source"), _text(node, "version"), _bytes(node)),
    "generator": lambda _, node, __: GeneratorState(_text(node, "family"), _bytes(node)),
    "scalar": lambda _, node, __: scalar_from(node["dtype"], node["hex"]),
    "tensor": TreeReader._tensor,
    "array": TreeReader._array,
    "sparse": TreeReader._sparse,
    "state": TreeReader._state,
}
