"""The folder of a sharded checkpoint: it appears whole or not at all, and its files have digests.

`manifest.json` says what there is. `shards/*.safetensors` are written by `torch.distributed.checkpoint`:
tensors of models and optimizers. `values.safetensors` has what is no tensor of these, or a single number;
`common.safetensors` the parts that all ranks have alike; `rank-R.safetensors` those of one rank, and its
generators; `own-R.safetensors` tensors of models and optimizers that are no shards and yet differ from rank
to rank.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from typing import TYPE_CHECKING, Any

import torch

from samebits import files
from samebits.checkpoint.manifest import is_manifest
from samebits.checkpoint.refusals import DamageError
from samebits.checkpoint.untrusted import load_json, shown
from samebits.digest import digest
from samebits.digest.tensors import digest_bytes
from samebits.errors import SamebitsError

if TYPE_CHECKING:
    from pathlib import Path

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
