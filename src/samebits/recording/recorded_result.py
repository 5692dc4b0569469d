"""What a function returns, made part of the record: its tensors, arrays, numbers and texts."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from samebits._runtime.frames import pass_on
from samebits.records.kinds import EventKind
from samebits.rng.active import PROCESS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from samebits._runtime.frames import Site

_DEEPEST = 20
_LONGEST = 10_000  # a longer list of numbers or texts counts as one value
_PLAIN = (bool, int, float, complex, str, bytes, bytearray)


def await_judged_call() -> None:
    """Have the recording of this process judge nothing before a `judged_call`; without one nothing happens.

    Before it, only what may explain a difference is recorded: operations, draws, batches and reads.
    """
    recording: Any = PROCESS.recording
    if recording is not None:
        recording.await_call()


@contextlib.contextmanager
def judged_call() -> Iterator[None]:
    """Have the recording of this process judge the block, and end with it; without one nothing happens."""
    recording: Any = PROCESS.recording
    if recording is not None:
        recording.begin_call()
    try:
        yield
    finally:
        if recording is not None:
            recording.end_call()


def record_result(result: Any) -> None:
    """Have the recording of this process see what a function returned; without one nothing happens.

    Objects with a `state_dict` (models, optimizers) count by it, dataclasses by their fields, tables of
    pandas by their columns and index. An object without defined contents does not count. The order of lists
    and of dicts counts, that of sets does not.

    Args:
        result: any value.
    """
    import torch  # noqa: F401 - what is recorded are tensors

    recording: Any = PROCESS.recording
    leaves = dict(_leaves(result, "result", 0))
    if leaves and recording is not None:
        recording.record_returned(leaves)


def _leaves(value: Any, name: str, depth: int) -> Iterator[tuple[str, Any]]:
    """Yield the parts of a value as tensors, each with its path."""
    torch: Any = sys.modules["torch"]
    if depth > _DEEPEST or hasattr(type(value), "cls_to_become"):  # that a lazy layer has not made yet
        return
    if isinstance(value, torch.Tensor):
        yield name, value.detach()
    elif isinstance(value, torch.Generator):
        yield name, value.get_state()
    elif _has_state(value):
        yield from _leaves(value.state_dict(), name, depth + 1)
    elif isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray)):
        yield from _elements(value, name, depth)
    else:
        entries = _entries_of(value)
        tensor = _tensor(value) if entries is None else None
        if entries is not None:
            yield from _entries(entries, name, depth)
        elif tensor is not None:
            yield name, tensor


def _entries_of(value: Any) -> Iterable[tuple[Any, Any]] | None:
    """Return the parts of a value that names or numbers tell apart; None for a value of another kind."""
    if isinstance(value, Mapping):
        return value.items()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(field.name, getattr(value, field.name)) for field in dataclasses.fields(value)]
    if isinstance(value, AbstractSet):
        return enumerate(sorted(repr(item) for item in value if isinstance(item, (str, int, float, bytes))))
    if _is_of_pandas(value, "DataFrame"):
        columns = [(column, value.iloc[:, position]) for position, column in enumerate(value.columns)]
        return [("index", value.index), *columns]
    return None


def _is_of_pandas(value: Any, *names: str) -> bool:
    pandas: Any = sys.modules.get("pandas")
    return any(isinstance(value, getattr(pandas, name, ())) for name in names)


def _has_state(value: Any) -> bool:
    try:
        return callable(getattr(value, "state_dict", None)) and not isinstance(value, type)
    except Exception as error:  # noqa: BLE001 - a class can do anything when it is asked for an attribute
        pass_on(error)
        return False


def _elements(value: Sequence[Any], name: str, depth: int) -> Iterator[tuple[str, Any]]:
    if len(value) > _LONGEST and set(map(type, value)) <= set(_PLAIN):
        yield name, _of_bytes(repr(value).encode("utf-8", "surrogatepass"))
    else:
        yield from _entries(enumerate(value), name, depth)


def _entries(entries: Any, name: str, depth: int) -> Iterator[tuple[str, Any]]:
    for position, (key, value) in enumerate(entries):
        label = key if isinstance(key, (str, int)) else position
        yield from _leaves(value, f"{name}.{label}", depth + 1)


def _tensor(value: Any) -> Any:
    """Return a number, a text or an array as a tensor; None for another object."""
    torch: Any = sys.modules["torch"]
    numpy = sys.modules.get("numpy")
    if isinstance(value, bool):
        return torch.tensor(value)
    if isinstance(value, int):
        return torch.tensor(value) if -(2**63) <= value < 2**63 else _of_bytes(str(value).encode())
    if isinstance(value, (float, complex)):
        return torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else torch.complex128)
    if isinstance(value, (str, bytes, bytearray)):
        return _of_bytes(value.encode("utf-8", "surrogatepass") if isinstance(value, str) else bytes(value))
    if numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)):
        return _of_array(numpy.asarray(value))
    return _of_column(value) if _is_of_pandas(value, "Series", "Index") else None


def _of_column(column: Any) -> Any:
    """Return a column or an index of a table as a tensor; None where objects of other kinds are in it."""
    array = column.to_numpy()
    if not array.dtype.hasobject:
        return _of_array(array)
    values = array.tolist()
    known = all(value is None or isinstance(value, _PLAIN) for value in values)
    return _of_bytes(repr(values).encode("utf-8", "surrogatepass")) if known else None


def _of_array(array: Any) -> Any:
    torch: Any = sys.modules["torch"]
    try:
        return torch.from_numpy(array.copy())
    except (TypeError, ValueError):  # text, objects, or a dtype that torch lacks
        return None if array.dtype.hasobject else _of_bytes(array.tobytes())


def _of_bytes(data: bytes) -> Any:
    """Return the digest of bytes as a tensor of 16 bytes."""
    from samebits.digest import digest_bytes  # which imports torch: the user's code does that first

    torch: Any = sys.modules["torch"]
    return torch.tensor(list(digest_bytes(data)), dtype=torch.uint8)


@dataclass(frozen=True)
class NamedValue:
    """A value that code leaves behind.

    Args:
        name: of the variable.
        value: any value.
        site: the line that made it; None if that is not known.
    """

    name: str
    value: Any
    site: Site | None = None


def record_values(values: Callable[[], Iterable[NamedValue]]) -> None:
    """Have the recording of this process see values; without one nothing happens.

    A number or a text counts as read out: no state depends on it. All else counts as `record_result` says.

    Args:
        values: gives the values; what it computes is not recorded.
    """
    import torch  # noqa: F401 - what is recorded are tensors

    recording: Any = PROCESS.recording
    if recording is None:
        return
    with recording.paused():
        leaves = [(each, dict(_leaves(each.value, each.name, 0))) for each in values()]
    for each, parts in leaves:
        if parts:
            kind = EventKind.READ if isinstance(each.value, _PLAIN) else EventKind.SAVE
            recording.record_value(kind, f"variable {each.name}", each.site, parts)
