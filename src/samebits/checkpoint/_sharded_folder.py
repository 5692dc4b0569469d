"""The folder of a sharded checkpoint: its manifest, which may come from anyone, and its files."""

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
from samebits.checkpoint._stateful import DamageError, damaged
from samebits.digest import digest
from samebits.digest.tensors import digest_bytes
from samebits.errors import SamebitsError

if TYPE_CHECKING:
    from pathlib import Path

# Files of the folder itself, or of its shards: no name leads elsewhere.
_FILE = re.compile(r"(?:shards/)?[A-Za-z0-9][A-Za-z0-9_.\-]{0,200}")
_MOST_RANKS = 1 << 24
_MOST_DIMENSIONS = 64


def _is_manifest(fields: dict[str, Any]) -> bool:
    """Tell whether all fields of a manifest that are read have the right types."""
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
    """Tell whether facts are length and digest of a file."""
    return isinstance(facts, list) and len(facts) == 2 and type(facts[0]) is int and isinstance(facts[1], str)


def _is_shape(facts: Any) -> bool:
    """Tell whether facts are sizes and dtype of a tensor."""
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
    """Return the name of the file of one rank."""
    return f"rank-{rank}.safetensors"


def own_file(rank: int) -> str:
    """Return the name of the file of tensors that differ between ranks."""
    return f"own-{rank}.safetensors"


def temporary_folder(path: Path, *, make: bool) -> Path:
    """Return the folder that is written before it gets its final name.

    Args:
        path: its final name.
        make: whether to remove a folder of an earlier attempt and make a new one; on one rank only.

    Raises:
        SamebitsError: it cannot be made; `checkpoint-unwritable`.
    """
    folder = path.with_name(f".{path.name}.tmp")
    if make:
        _refuse_foreign(path)
        try:
            _remove(folder)
            (folder / SHARDS).mkdir(parents=True)
        except OSError as error:
            message = f"{path} cannot be written: {error.strerror}. Give another folder."
            raise SamebitsError(message, slug="checkpoint-unwritable") from None
    return folder


def _refuse_foreign(path: Path) -> None:
    """Refuse to replace anything but a sharded checkpoint; a symbolic link never is one."""
    other = path.is_symlink() or (os.path.lexists(path) and not path.is_dir())
    if other or (path.is_dir() and any(path.iterdir()) and not (path / MANIFEST).exists()):
        message = f"{path} exists and is no sharded checkpoint; it is not replaced. Give another folder."
        raise SamebitsError(message, slug="checkpoint-unwritable")


def file_facts(path: Path) -> tuple[int, str]:
    """Return the length in bytes and the digest of a file."""
    size = path.stat().st_size
    if not size:
        return 0, digest_bytes(b"").hex()
    data = torch.from_file(str(path), shared=False, size=size, dtype=torch.uint8, device="cpu")
    return size, str(digest(data))


def flush(path: Path) -> None:
    """Flush a file or a folder to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def finish_folder(folder: Path, path: Path, fields: dict[str, Any]) -> None:
    """Write the manifest, and rename the folder to its final name in place of one that exists.

    Args:
        folder: the result of `temporary_folder`.
        path: the final name.
        fields: the fields of the manifest.
    """
    body = {"kind": KIND, "version": VERSION, **fields}
    text = json.dumps({**body, "digest": _digest(body)})
    with files.open_text_to_write(folder / MANIFEST, mode=files.SHARED) as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    for each in (folder / SHARDS, folder):
        flush(each)
    before = path.with_name(f".{path.name}.before")
    if path.exists():
        _remove(before)
        path.rename(before)
    folder.rename(path)
    flush(path.parent)
    _remove(before)


def find_folder(path: Path) -> Path:
    """Return the folder to load: the former one, if a kill between two renamings left no other."""
    before = path.with_name(f".{path.name}.before")
    return before if not path.exists() and before.is_dir() else path


def read_manifest(path: Path) -> dict[str, Any]:
    """Read and check the manifest.

    Raises:
        SamebitsError: there is none, `checkpoint-missing`; it is another kind of file, `checkpoint-foreign`,
            of another version, `checkpoint-version`, or altered, `checkpoint-damaged`.
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
        raise damaged(path, f"{MANIFEST}: {error}") from None
    if not isinstance(fields, dict) or fields.get("kind") != KIND:
        message = f"{path / MANIFEST} was not written by samebits; expected a folder of save_sharded"
        raise SamebitsError(message, slug="checkpoint-foreign")
    if fields.get("version") != VERSION:
        message = f"{path} has the version {shown(fields.get('version'))}; this samebits reads {VERSION}"
        raise SamebitsError(message, slug="checkpoint-version")
    if _digest({key: value for key, value in fields.items() if key != "digest"}) != fields.get("digest"):
        raise damaged(path, f"its {MANIFEST} is not as it was written")
    if not _is_manifest(fields):
        raise damaged(path, f"its {MANIFEST} has parts of another form than those of a sharded checkpoint")
    return fields


def check_files(path: Path, listed: dict[str, list[Any]], *, first: int, step: int) -> None:
    """Check some files against the manifest, and that there are no unknown shards.

    Args:
        path: the folder.
        listed: name -> [bytes, digest].
        first: position of the first one to check.
        step: distance to the next.

    Raises:
        SamebitsError: one is missing or altered, or there is one more; `checkpoint-damaged`.
    """
    unknown = {f"{SHARDS}/{file.name}" for file in (path / SHARDS).iterdir()} - set(listed)
    if unknown:
        raise damaged(path, f"{min(unknown)} does not belong to it")
    for name in sorted(listed)[first::step]:
        try:
            files.refuse_irregular(path / name)
            facts = list(file_facts(path / name))
        except OSError as error:
            raise damaged(path, f"{name} cannot be read ({error.strerror})") from None
        if facts != listed[name]:
            raise damaged(path, f"{name} is not as it was written")


def _digest(fields: dict[str, Any]) -> str:
    return digest_bytes(json.dumps(fields, sort_keys=True).encode()).hex()


def _remove(folder: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(folder)
