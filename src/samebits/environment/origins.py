"""Where an installed package came from, if not from an index."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from samebits._text.masking import masked
from samebits._text.str_enum import StrEnum

if TYPE_CHECKING:
    from collections.abc import Mapping

_LARGEST = 1 << 16  # bytes of a description
_SITES = ("site-packages", "dist-packages")


class OriginKind(StrEnum):
    """What a package was installed from."""

    REPOSITORY = "repository"
    """A commit of a repository: `pip install git+https://…`."""
    ARCHIVE = "archive"
    """A wheel or a source archive, by its address or from a disk."""
    FOLDER = "folder"
    """A folder, from which the files were copied: `pip install .`."""
    EDITABLE = "editable"
    """A folder, from which the modules are imported: `pip install -e .`."""
    CONDA = "conda"
    """A conda channel, whose builds are not those of PyPI."""


@dataclass(frozen=True)
class Origin:
    """What a package was installed from.

    Args:
        kind: of the source.
        at: the address of a repository or an archive; the name of an archive on a disk; a folder relative to
            the repository that the script is in, or by its name outside of it: `~/src/package`.
        commit: of a repository.
        subdirectory: of a repository or an archive.
        sha256: of an archive, 64 hexadecimal digits; empty if the installer did not note it.
    """

    kind: OriginKind
    at: str = ""
    commit: str = ""
    subdirectory: str = ""
    sha256: str = ""

    @property
    def is_folder(self) -> bool:
        """Whether it was a folder on the disk."""
        return self.kind in (OriginKind.FOLDER, OriginKind.EDITABLE)


def origin_of(info: str) -> Origin | None:
    """Return what a package was installed from; None if it was an index, as far as the installer tells.

    Source: "Recording the Direct URL Origin of installed distributions" and "Recording installed projects"
    (`INSTALLER`), packaging.python.org.

    Args:
        info: path of the description: `….dist-info` or `….egg-info`.

    Returns:
        the origin, a folder by its absolute path.
    """
    if _read(os.path.join(info, "INSTALLER")).strip() == "conda":
        return Origin(OriginKind.CONDA)  # it notes a folder of the machine that built the package
    try:
        told = json.loads(_read(os.path.join(info, "direct_url.json")) or "null")
    except ValueError:
        told = None
    if isinstance(told, dict) and isinstance(told.get("url"), str):
        return _told(told)
    folder = os.path.dirname(info)
    if info.endswith(".egg-info") and os.path.basename(folder) not in _SITES:
        return Origin(OriginKind.EDITABLE, folder)  # `setup.py develop` leaves no other trace
    return None


def named(origin: Origin, root: str | None) -> Origin:
    """Return an origin whose folder is named as a record may name it.

    Args:
        origin: with the absolute path of a folder.
        root: folder of the repository that the script is in.
    """
    return replace(origin, at=_name_of(origin.at, root)) if origin.is_folder else origin


def _told(told: Mapping[str, Any]) -> Origin:
    url, subdirectory = str(told["url"]), str(told.get("subdirectory") or "")
    source, folder, archive = (told.get(name) for name in ("vcs_info", "dir_info", "archive_info"))
    if isinstance(source, dict):
        address = masked(f"{source.get('vcs')}+{url}")
        return Origin(OriginKind.REPOSITORY, address, str(source.get("commit_id") or ""), subdirectory)
    if isinstance(folder, dict):
        kind = OriginKind.EDITABLE if folder.get("editable") else OriginKind.FOLDER
        return Origin(kind, os.path.realpath(_path_of(url)))
    at = os.path.basename(_path_of(url)) if urlsplit(url).scheme == "file" else masked(url)
    return Origin(OriginKind.ARCHIVE, at, "", subdirectory, _sha256_in(archive))


def _sha256_in(archive: object) -> str:
    if not isinstance(archive, dict):
        return ""
    hashes = archive.get("hashes")
    told = hashes.get("sha256") if isinstance(hashes, dict) else None
    found = re.fullmatch(r"(?:sha256=)?([0-9a-f]{64})", str(told or archive.get("hash")))
    return found[1] if found else ""


def _path_of(url: str) -> str:
    return url2pathname(urlsplit(url).path)


def _name_of(folder: str, root: str | None) -> str:
    """Return the name of a folder: below the repository, else below the home folder, else as it is."""
    for top, before in ((root, ""), (os.path.expanduser("~"), "~/")):
        base = os.path.realpath(top) if top else ""
        if base and (folder == base or folder.startswith(base.rstrip(os.sep) + os.sep)):
            return before + os.path.relpath(folder, base).replace(os.sep, "/")
    return folder


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(_LARGEST)
    except OSError:
        return ""
