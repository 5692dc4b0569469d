"""The file of a checkpoint: a safetensors file whose metadata holds the values as JSON."""

from __future__ import annotations

import json
import os
import platform
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from samebits.checkpoint._arrays import DTYPES, Entry, bytes_of, dtype_named, memory_of
from samebits.checkpoint._atomic import replaced
from samebits.checkpoint._decoding import StoredArray, load_json, shown
from samebits.checkpoint._encoding import TreeWriter, source_state_node
from samebits.checkpoint._stateful import DamageError, unsaveable
from samebits.digest import digest_bytes, digest_memory
from samebits.environment.torch_build import collect_torch
from samebits.errors import SamebitsError
from samebits.rng.active import PROCESS
from samebits.rng.states import save_states
from samebits.switches.table import switch_values

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import BinaryIO

# Of the recorded facts, those whose change can change bits.
_COMPARED = ("torch", "cuda", "cudnn", "mkl", "onednn", "capability", "gpus", "numpy")


def collect_environment() -> dict[str, dict[str, str]]:
    """Return versions, hardware and switches of this process, as JSON would give them back."""
    return {"versions": _versions(), "switches": switch_values()}


def _versions() -> dict[str, str]:
    facts = collect_torch(sys.modules["torch"])
    versions = {"python": platform.python_version(), "numpy": sys.modules["numpy"].__version__}
    if facts is not None:
        versions |= {"torch": facts.version, "cuda": facts.cuda, "cudnn": facts.cudnn, "mkl": facts.mkl}
        versions |= {"onednn": facts.onednn, "capability": facts.capability}
        versions["gpus"] = ", ".join(f"{gpu.name} ({gpu.multiprocessors})" for gpu in facts.gpus)
    return versions


def changes(saved: dict[str, dict[str, str]], here: dict[str, dict[str, str]]) -> list[str]:
    """Describe what is different here: the versions that matter for bits, and all switches.

    A fact that only one side has is no difference: unused hardware, a switch of another release.
    """
    old, new = saved.get("versions", {}), here["versions"]
    texts = [
        _change(name, old[name], new[name]) for name in _COMPARED if _differ(old.get(name), new.get(name))
    ]
    before, now = saved.get("switches", {}), here["switches"]
    both = [name for name in now if name in before and before[name] != now[name]]
    return texts + [_change(name, before[name], now[name]) for name in both]


def _differ(old: str | None, new: str | None) -> bool:
    return bool(old) and bool(new) and old != new


def _change(name: str, old: str, new: str) -> str:
    return f"{name} was {old or 'not set'} and is {new or 'not set'} here"


VERSION = "1"
FORMAT = "samebits.checkpoint"
_LENGTH_BYTES = 8
LONGEST_HEADER = 100_000_000  # the limit of the safetensors library too
_DIGEST_BYTES = 16
_MOST_DIMENSIONS = 64
_MAGIC = {b"PK\x03\x04": "a file of torch.save", b"\x80\x02\x8a\n": "an old file of torch.save"}


@dataclass(frozen=True)
class Contents:
    """The contents of a file, read and checked.

    Args:
        tree: JSON of everything beside the arrays.
        arrays: by name.
    """

    tree: Any
    arrays: dict[str, StoredArray]


def write_container(file: BinaryIO, tree: Any, entries: Sequence[Entry]) -> None:
    """Write a checkpoint, one array after another.

    The digest of an array is taken right after it is written. The length of the header does not depend on the
    digests, and it is written again at the end. Arrays that are contiguous in CPU memory are not copied.

    Args:
        file: an empty file, at its beginning.
        tree: the result of `TreeWriter.encode`.
        entries: its arrays.
    """
    ordered = sorted(entries, key=_alignment, reverse=True)
    text = json.dumps(tree, separators=(",", ":"))
    layout = _layout(ordered)
    blank = bytes(_DIGEST_BYTES * len(ordered))
    file.write(_header(text, layout, blank))
    digests = b"".join(_write_entry(file, entry) for entry in ordered)
    file.seek(0)
    file.write(_header(text, layout, digests))


def _alignment(entry: Entry) -> int:
    return entry.tensor.element_size() if len(entry.shape) == entry.tensor.dim() else 1


def _layout(entries: Sequence[Entry]) -> dict[str, Any]:
    layout, position = {}, 0
    for entry in entries:
        end = position + entry.n_bytes
        layout[entry.name] = {
            "dtype": entry.dtype,
            "shape": list(entry.shape),
            "data_offsets": [position, end],
        }
        position = end
    return layout


def _write_entry(file: BinaryIO, entry: Entry) -> bytes:
    data = bytes_of(entry.tensor)
    file.write(memory_of(data))
    return _digest(data)


def _digest(data: torch.Tensor) -> bytes:
    # With one thread: several would wait for each other beside the training that goes on.
    return digest_memory(data.data_ptr(), data.numel(), threads=1)


def _header(tree: str, layout: dict[str, Any], digests: bytes) -> bytes:
    metadata = {
        "format": "pt",  # transformers expects this of a file that torch can read
        "kind": FORMAT,
        "version": VERSION,
        "tree": tree,
        "digests": digests.hex(),
        "digest": _total(tree, layout, digests.hex()).hex(),
    }
    text = json.dumps({"__metadata__": metadata, **layout}, separators=(",", ":")).encode()
    if len(text) > LONGEST_HEADER:
        reason = f"the values beside arrays take {len(text)} bytes of JSON, more than {LONGEST_HEADER}"
        raise unsaveable("the checkpoint", f"{reason}; save long lists of numbers as arrays")
    padded = text.ljust(-(-len(text) // _LENGTH_BYTES) * _LENGTH_BYTES)
    return len(padded).to_bytes(_LENGTH_BYTES, "little") + padded


def _total(tree: str, layout: dict[str, Any], digests: str) -> bytes:
    """Return the digest of everything but the contents of the arrays, which have their own digests."""
    names = [[name, facts["dtype"], facts["shape"], facts["data_offsets"]] for name, facts in layout.items()]
    text = json.dumps([VERSION, tree, names, digests], separators=(",", ":"))
    return digest_bytes(text.encode())


def read_container(file: BinaryIO) -> Contents:
    """Read and check a checkpoint.

    Raises:
        DamageError: it is torn or altered.
        SamebitsError: it is another kind of file, `checkpoint-foreign`, or of another version,
            `checkpoint-version`.
    """
    header, start = _read_header(file)
    metadata = header.pop("__metadata__", None)
    if not isinstance(metadata, dict) or metadata.get("kind") != FORMAT:
        raise _foreign(file, "a safetensors file that samebits.checkpoint did not write")
    if metadata.get("version") != VERSION:
        message = (
            f"{file.name} has the version {shown(metadata.get('version'))}; this samebits reads {VERSION!r}. "
            "Load it with the samebits that wrote it."
        )
        raise SamebitsError(message, slug="checkpoint-version")
    tree, digests = _read_metadata(metadata, header)
    available = os.fstat(file.fileno()).st_size - start
    end = _check_layout(header, available)
    if end != available:
        raise DamageError(f"it has {available} bytes of arrays; its header describes {end}")
    arrays = {}
    for index, (name, facts) in enumerate(header.items()):
        digest = digests[_DIGEST_BYTES * index : _DIGEST_BYTES * (index + 1)]
        arrays[name] = _read_array(file, name, facts, digest)
    return Contents(tree, arrays)


def _read_header(file: BinaryIO) -> tuple[dict[str, Any], int]:
    """Return the header, and the position at which the arrays begin."""
    begin = file.read(_LENGTH_BYTES)
    for magic, name in _MAGIC.items():
        if begin.startswith(magic):
            raise _foreign(file, name)
    size = os.fstat(file.fileno()).st_size
    length = int.from_bytes(begin, "little")
    if len(begin) < _LENGTH_BYTES or length > size - _LENGTH_BYTES or length > LONGEST_HEADER:
        raise DamageError(f"it has {size} bytes, fewer than its header describes, or is no checkpoint at all")
    header = load_json(file.read(length))
    if not isinstance(header, dict):
        raise DamageError("its header is no JSON object")
    return header, _LENGTH_BYTES + length


def _foreign(file: BinaryIO, kind: str) -> SamebitsError:
    message = f"{file.name} is {kind}; expected a file that samebits.checkpoint.save wrote"
    return SamebitsError(message, slug="checkpoint-foreign")


def _read_metadata(metadata: dict[str, Any], layout: dict[str, Any]) -> tuple[Any, bytes]:
    """Return the tree and the digests of the arrays, checked."""
    try:
        tree, digests = metadata["tree"], bytes.fromhex(metadata["digests"])
        total = _total(tree, layout, metadata["digests"]).hex()
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise DamageError("its header is incomplete") from error
    if total != metadata.get("digest"):
        raise DamageError("its header is not as it was written: its digest differs")
    if len(digests) != _DIGEST_BYTES * len(layout):
        raise DamageError("its header does not have one digest for each array")
    return load_json(tree), digests


def _check_layout(layout: dict[str, Any], available: int) -> int:
    """Check the layout of the arrays, and return the position at which they end.

    Args:
        layout: name -> dtype, shape, begin and end.
        available: bytes of arrays in the file.

    Raises:
        DamageError: they overlap, leave gaps, or are of a size that their shape does not have.
    """
    position = 0
    for name, facts in layout.items():
        try:
            begin, end = facts["data_offsets"]
            expected = _n_bytes(facts["dtype"], facts["shape"], available)
        except (KeyError, TypeError, ValueError) as error:
            raise DamageError(f"its header does not describe {shown(name)}") from error
        exact = type(begin) is int and type(end) is int
        if not exact or begin != position or end != begin + expected or end > available:
            raise DamageError(f"the position of {shown(name)} in the file is not possible")
        position = end
    return position


def _n_bytes(dtype: str, shape: Any, most: int) -> int:
    """Return the length of an array's contents; more than `most` where it is longer, or no shape."""
    if type(shape) is not list or len(shape) > _MOST_DIMENSIONS:
        return most + 1
    expected = dtype_named(DTYPES[dtype]).itemsize
    for size in shape:
        if type(size) is not int or size < 0:
            return most + 1
        expected *= size
    return expected


def _read_array(file: BinaryIO, name: str, facts: dict[str, Any], digest: bytes) -> StoredArray:
    begin, end = facts["data_offsets"]
    data = torch.empty(end - begin, dtype=torch.uint8, device="cpu")
    rest = memory_of(data)
    while rest:
        count = file.readinto(rest)  # type: ignore[attr-defined] # of every binary file
        if not count:
            raise DamageError(f"it ends inside {shown(name)}")
        rest = rest[count:]
    if _digest(data) != digest:
        raise DamageError(f"the contents of {shown(name)} are not as they were written: their digest differs")
    return StoredArray(data, DTYPES[facts["dtype"]], tuple(facts["shape"]))


_RESERVED = ("strict", "map_location", "rng")


@dataclass(frozen=True)
class Collection:
    """The contents of a checkpoint to write.

    Args:
        tree: JSON of everything beside the arrays.
        entries: the arrays; they share memory with the objects that hold them.
    """

    tree: Any
    entries: Sequence[Entry]


def collect(step: int | None, epoch: int | None, parts: Mapping[str, Any]) -> Collection:
    """Collect everything that a checkpoint holds, at this moment.

    Raises:
        SamebitsError: something cannot be saved, `checkpoint-entry`; an RNG source cannot, `rng-state`.
    """
    for name, count in (("step", step), ("epoch", epoch)):
        if count is not None and type(count) is not int:
            raise unsaveable(name, f"it is {count!r}; expected a whole number or None")
    for name in _RESERVED:
        if name in parts:
            reason = f"`load` has an argument `{name}`; give the part another name"
            raise unsaveable(name, reason)
    entries: list[Entry] = []
    writer = TreeWriter(entries)
    tree = {
        "step": step,
        "epoch": epoch,
        "parts": [[name, writer.encode(value, name)] for name, value in parts.items()],
        "rng": [source_state_node(state) for state in save_states()],
        "run_seed": PROCESS.run_seed,
        "recorded_steps": None if PROCESS.recording is None else PROCESS.recording.recorded_steps(),
        "surroundings": collect_environment(),
    }
    return Collection(tree, entries)


def write(path: str, collection: Collection) -> None:
    """Write a checkpoint, whole or not at all.

    Raises:
        SamebitsError: `checkpoint-unwritable`.
    """
    with replaced(path) as file:
        write_container(file, collection.tree, collection.entries)
