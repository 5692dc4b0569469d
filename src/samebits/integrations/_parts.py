"""The parts of a notebook's state: each can be read, and put back in place."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from samebits._runtime.containers import are_same, contents, refill, restore_space
from samebits.rng.generator_objects import RegisteredGenerator

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import CellType

_MISSING = object()


class Part(Protocol):
    """**Protocol:** an object that a cell can change in place."""

    def read(self, before: Any = None) -> Any:
        """Return what it holds; `before` itself, an earlier reading, where nothing has changed since."""

    def write(self, reading: Any) -> None:
        """Put back what `read` gave."""


class ContainerPart:
    """The elements of a list, dict, set, deque or bytearray.

    Args:
        container: the object.
    """

    def __init__(self, container: Any) -> None:
        self._container = container

    def read(self, before: Any = None) -> Any:
        """See `Part`."""
        now = contents(self._container)
        return before if before is not None and are_same(now, before) else now

    def write(self, reading: Any) -> None:
        """See `Part`."""
        refill(self._container, reading)


class SpacePart:
    """The names of a namespace: attributes of an object, or variables.

    Args:
        space: its dict.
    """

    def __init__(self, space: dict[str, Any]) -> None:
        self._space = space

    def read(self, before: Any = None) -> Any:
        """See `Part`."""
        now = dict(self._space)
        return before if before is not None and are_same(now, before) else now

    def write(self, reading: Any) -> None:
        """See `Part`."""
        restore_space(self._space, reading)


class AttributePart:
    """Attributes that no dict holds: slots of an object, a cell of a closure, attributes of a class.

    Args:
        attributes: gives the present ones.
        put: sets one.
        delete: deletes one.
    """

    def __init__(
        self,
        attributes: Callable[[], Mapping[str, Any]],
        put: Callable[[str, Any], None],
        delete: Callable[[str], None],
    ) -> None:
        self._attributes = attributes
        self._put = put
        self._delete = delete

    @classmethod
    def of_names(cls, value: Any, names: tuple[str, ...]) -> AttributePart:
        """Return attributes that an object always has."""
        put = partial(object.__setattr__, value)
        return cls(lambda: {name: getattr(value, name) for name in names}, put, partial(delattr, value))

    @classmethod
    def of_cell(cls, cell: CellType) -> AttributePart:
        """Return the variable of a closure."""

        def put(_: str, value: Any) -> None:
            cell.cell_contents = value

        def delete(_: str) -> None:
            del cell.cell_contents

        return cls(lambda: _of_cell(cell), put, delete)

    def read(self, before: Any = None) -> Any:
        """See `Part`."""
        now = dict(self._attributes())
        return before if before is not None and are_same(now, before) else now

    def write(self, reading: Any) -> None:
        """See `Part`."""
        now = self._attributes()
        for name in now.keys() - reading.keys():
            self._delete(name)
        for name, value in reading.items():
            if now.get(name, _MISSING) is not value:
                self._put(name, value)


def _of_cell(cell: CellType) -> dict[str, Any]:
    try:
        return {"": cell.cell_contents}
    except ValueError:  # it is empty
        return {}


class StoragePart:
    """The bytes of a tensor's memory, which several tensors may share.

    Args:
        storage: an untyped storage of torch.
    """

    def __init__(self, storage: Any) -> None:
        self._storage = storage

    def read(self, before: Any = None) -> Any:
        """See `Part`. The copy is in the memory of the CPU."""
        now = _bytes_of(self._storage).to("cpu", copy=True)
        return before if before is not None and now.equal(before) else now

    def write(self, reading: Any) -> None:
        """See `Part`."""
        if self._storage.nbytes() != reading.numel():
            self._storage.resize_(reading.numel())
        now = _bytes_of(self._storage)
        if not now.cpu().equal(reading):
            now.copy_(reading)


def _bytes_of(storage: Any) -> Any:
    import torch

    empty = torch.empty(0, dtype=torch.uint8, device=storage.device)
    return empty.set_(storage)


class TensorPart:
    """What a tensor is beside its memory: which memory that is, its shape, its gradient.

    Args:
        tensor: the object.
    """

    def __init__(self, tensor: Any) -> None:
        self._tensor = tensor

    def read(self, before: Any = None) -> Any:
        """See `Part`; None for a parameter that a lazy layer has not made yet."""
        tensor = self._tensor
        if hasattr(tensor, "cls_to_become"):
            return None
        now = (tensor.detach(), tensor.requires_grad, gradient(tensor), tensor.is_leaf)
        return before if before is not None and _is_same_tensor(now, before) else now

    def write(self, reading: Any) -> None:
        """See `Part`."""
        if reading is None or _is_same_tensor(self.read(), reading):
            return
        tensor, (alias, requires_grad, grad, is_leaf) = self._tensor, reading
        if is_leaf and not tensor.is_leaf:  # written to by something that has a graph
            tensor.detach_()
        if tensor.is_leaf and _memory_of(tensor) != _memory_of(alias):
            tensor.data = alias
        if tensor.is_leaf and tensor.requires_grad != requires_grad:
            tensor.requires_grad_(requires_grad)
        if gradient(tensor) is not grad:
            tensor.grad = grad


def gradient(tensor: Any) -> Any:
    """Return the gradient that a tensor holds; torch warns where it cannot hold one."""
    return tensor.grad if tensor.is_leaf or tensor.retains_grad else None


def components(tensor: Any) -> list[Any]:
    """Return the tensors that a sparse tensor consists of; none of a dense one."""
    layout = str(tensor.layout).removeprefix("torch.")
    if layout == "sparse_coo":
        return [tensor._indices(), tensor._values()]  # `indices()` needs a coalesced one
    if layout in ("sparse_csr", "sparse_bsr"):
        return [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
    if layout in ("sparse_csc", "sparse_bsc"):
        return [tensor.ccol_indices(), tensor.row_indices(), tensor.values()]
    return []


def _is_same_tensor(a: Any, b: Any) -> bool:
    return a[1] == b[1] and a[2] is b[2] and a[3] == b[3] and _memory_of(a[0]) == _memory_of(b[0])


def _memory_of(tensor: Any) -> tuple[Any, ...]:
    """Tell where the elements of a tensor lie."""
    parts = components(tensor)
    if parts:
        return (tensor.shape, *map(_memory_of, parts))
    memory = tensor.untyped_storage().data_ptr(), tensor.storage_offset()
    return (*memory, tensor.dtype, tensor.shape, tensor.stride())


class ArrayPart:
    """The elements of a NumPy array.

    Args:
        array: the object; it is writeable.
    """

    def __init__(self, array: Any) -> None:
        self._array = plain_array(array)

    def read(self, before: Any = None) -> Any:
        """See `Part`."""
        now = self._array.copy(order="C")
        return before if before is not None and _is_same_array(now, before) else now

    def write(self, reading: Any) -> None:
        """See `Part`."""
        if self._array.shape == reading.shape:
            self._array[...] = reading


def plain_array(array: Any) -> Any:
    """Return a view that has no more than elements: a masked array has its mask beside them."""
    numpy: Any = sys.modules["numpy"]
    return array.view(numpy.ndarray)


def _is_same_array(a: Any, b: Any) -> bool:
    if a.shape != b.shape:
        return False
    if a.dtype.hasobject:
        return are_same(a.ravel().tolist(), b.ravel().tolist())
    return bool((a.reshape(-1).view("u1") == b.reshape(-1).view("u1")).all())


class GeneratorPart:
    """The state of a generator of random numbers.

    Args:
        generator: of Python, NumPy or torch.
    """

    def __init__(self, generator: Any) -> None:
        self._source = RegisteredGenerator("generator", generator)

    def read(self, before: Any = None) -> Any:
        """See `Part`."""
        now = self._source.get_state()
        return before if before is not None and now == before else now

    def write(self, reading: Any) -> None:
        """See `Part`."""
        self._source.set_state(reading)


class TablePart:
    """The contents of a table or a column of pandas.

    Args:
        table: the object.
        kind: the class of pandas that it belongs to.
    """

    def __init__(self, table: Any, kind: Any) -> None:
        self._table = table
        self._class = kind

    def read(self, before: Any = None) -> Any:
        """See `Part`."""
        return before if before is not None and self._is(before) else self._table.copy()

    def write(self, reading: Any) -> None:
        """See `Part`."""
        if not self._is(reading):
            self._class.__init__(self._table, reading, copy=True)
            self._table.attrs = dict(reading.attrs)

    def _is(self, reading: Any) -> bool:
        table = self._table
        names = [getattr(each, "name", None) for each in (table, reading)]
        return reading.equals(table) and names[0] == names[1] and reading.attrs == table.attrs
