"""Whether the manifest of a sharded checkpoint has the form of one: it may come from anyone."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from typing import TYPE_CHECKING, Any

import torch

from samebits._text import files
from samebits.checkpoint._decoding import load_json, shown
from samebits.checkpoint._refusals import DamageError
from samebits.digest import digest
from samebits.digest.tensors import digest_bytes
from samebits.errors import SamebitsError

if TYPE_CHECKING:
    from pathlib import Path

# Files of the folder itself, or of its shards: no name leads to another place.
_FILE = re.compile(r"(?:shards/)?[A-Za-z0-9][A-Za-z0-9_.\-]{0,200}")
_MOST_RANKS = 1 << 24
_MOST_DIMENSIONS = 64


def is_manifest(fields: dict[str, Any]) -> bool:
    """Whether all that is read of a manifest has the type that it must have."""
    size = fields.get("world_size")
    return (
        type(size) is int
        and 0 < size <= _MOST_RANKS
        and type(fields.get("values_apart")) is bool
        and all(_is_text_list(fields.get(name)) for name in ("own", "apart"))
        and _is_mapping(fields.get("files"), _is_file)
        and _is_mapping(fields.get("shapes"), _is_shape)
        and all(_FILE.fullmatch(name) for name in fields["files"])
    )


def _is_text_list(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def _is_mapping(value: Any, holds: Any) -> bool:
    return isinstance(value, dict) and all(map(holds, value.values()))


def _is_file(facts: Any) -> bool:
    """Length and digest."""
    return isinstance(facts, list) and len(facts) == 2 and type(facts[0]) is int and isinstance(facts[1], str)


def _is_shape(facts: Any) -> bool:
    """Sizes and dtype."""
    if not (isinstance(facts, list) and len(facts) == 2 and isinstance(facts[0], list)):
        return False
    sizes = facts[0]
    return (
        len(sizes) <= _MOST_DIMENSIONS
        and all(type(size) is int and size >= 0 for size in sizes)
        and isinstance(facts[1], str)
    )


MANIFEST, COMMON, VALUES, SHARDS = "manifest.json", "common.safetensors", "values.safetensors", "shards"
KIND, VERSION = "samebits.checkpoint.sharded", 1
_MOST_MANIFEST = 1 << 28


def rank_file(rank: int) -> str:
    """The file of one rank."""
    return f"rank-{rank}.safetensors"


def own_file(rank: int) -> str:
    """The file of tensors that only one rank has so."""
    return f"own-{rank}.safetensors"


def temporary(path: Path, *, make: bool) -> Path:
    """Where the folder is written before it gets its name.

    Args:
        path: the name that it is to get.
        make: remove what an earlier try has left, and make it: on one rank.

    Raises:
        SamebitsError: it cannot be made; `checkpoint-unwritable`.
    """
    place = path.with_name(f".{path.name}.tmp")
    if make:
        _refuse_foreign(path)
        try:
            _remove(place)
            (place / SHARDS).mkdir(parents=True)
        except OSError as error:
            message = f"{path} cannot be written: {error.strerror}. Give another folder."
            raise SamebitsError(message, slug="checkpoint-unwritable") from None
    return place


def _refuse_foreign(path: Path) -> None:
    """Refuse to replace what is no sharded checkpoint; a symbolic link is none, whatever it leads to."""
    other = path.is_symlink() or (os.path.lexists(path) and not path.is_dir())
    if other or (path.is_dir() and any(path.iterdir()) and not (path / MANIFEST).exists()):
        message = f"{path} is there and is no sharded checkpoint; it is not replaced. Give another folder."
        raise SamebitsError(message, slug="checkpoint-unwritable")


def file_facts(path: Path) -> tuple[int, str]:
    """Length in bytes and digest of a file."""
    size = path.stat().st_size
    if not size:
        return 0, digest_bytes(b"").hex()
    data = torch.from_file(str(path), shared=False, size=size, dtype=torch.uint8, device="cpu")
    return size, str(digest(data))


def flush(path: Path) -> None:
    """Have a file or a folder reach the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def finish(place: Path, path: Path, fields: dict[str, Any]) -> None:
    """Write the manifest and give the folder its name; one that was there goes in the same moment.

    Args:
        place: what `temporary` gave.
        path: the name.
        fields: of the manifest.
    """
    body = {"kind": KIND, "version": VERSION, **fields}
    text = json.dumps({**body, "digest": _digest(body)})
    with files.open_text_to_write(place / MANIFEST, mode=files.SHARED) as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    for folder in (place / SHARDS, place):
        flush(folder)
    before = path.with_name(f".{path.name}.before")
    if path.exists():
        _remove(before)
        path.rename(before)
    place.rename(path)
    flush(path.parent)
    _remove(before)


def find(path: Path) -> Path:
    """The folder to load: the one that a kill between two renamings has left, where there is no other."""
    before = path.with_name(f".{path.name}.before")
    return before if not path.exists() and before.is_dir() else path


def read_manifest(path: Path) -> dict[str, Any]:
    """The manifest, checked.

    Raises:
        SamebitsError: there is none, `checkpoint-missing`; it is of something else, `checkpoint-foreign`, of
            another version, `checkpoint-version`, or altered, `checkpoint-damaged`.
    """
    if not path.exists():
        raise SamebitsError(f"there is no checkpoint {path}", slug="checkpoint-missing")
    try:
        with files.open_to_read(path / MANIFEST) as file:
            fields = load_json(file.read(_MOST_MANIFEST))
    except OSError as error:
        message = (
            f"{path} has no {MANIFEST} that can be read ({error.strerror}); expected a folder of save_sharded"
        )
        raise SamebitsError(message, slug="checkpoint-foreign") from None
    except DamageError as error:
        raise _damaged(path, f"{MANIFEST}: {error}") from None
    if not isinstance(fields, dict) or fields.get("kind") != KIND:
        message = f"{path / MANIFEST} is not of samebits; expected a folder of save_sharded"
        raise SamebitsError(message, slug="checkpoint-foreign")
    if fields.get("version") != VERSION:
        message = f"{path} has the version {shown(fields.get('version'))}; this samebits reads {VERSION}"
        raise SamebitsError(message, slug="checkpoint-version")
    if _digest({key: value for key, value in fields.items() if key != "digest"}) != fields.get("digest"):
        raise _damaged(path, f"its {MANIFEST} is not as it was written")
    if not is_manifest(fields):
        raise _damaged(path, f"its {MANIFEST} has parts of another form than those of a sharded checkpoint")
    return fields


def check_files(path: Path, listed: dict[str, list[Any]], *, first: int, step: int) -> None:
    """Check some of the files against the manifest, and that there are no others among the shards.

    Args:
        path: the folder.
        listed: name -> [bytes, digest].
        first: position of the first one to check.
        step: distance to the next.

    Raises:
        SamebitsError: one is missing or altered, or there is one more; `checkpoint-damaged`.
    """
    more = {f"{SHARDS}/{entry.name}" for entry in (path / SHARDS).iterdir()} - set(listed)
    if more:
        raise _damaged(path, f"{min(more)} does not belong to it")
    for name in sorted(listed)[first::step]:
        try:
            files.refuse_irregular(path / name)
            found = list(file_facts(path / name))
        except OSError as error:
            raise _damaged(path, f"{name} cannot be read ({error.strerror})") from None
        if found != listed[name]:
            raise _damaged(path, f"{name} is not as it was written")


def _digest(fields: dict[str, Any]) -> str:
    return digest_bytes(json.dumps(fields, sort_keys=True).encode()).hex()


def _damaged(path: Path, text: str) -> SamebitsError:
    error = DamageError(text)
    message = f"{path} is damaged, and nothing of it was loaded: {error}. Load an earlier checkpoint."
    return SamebitsError(message, slug="checkpoint-damaged")


def _remove(folder: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(folder)
