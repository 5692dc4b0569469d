"""Pinned requirements: the packages of a recorded run, as pip installs them again."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from samebits.environment import fact_at, table_at
from samebits.environment.origins import OriginKind

if TYPE_CHECKING:
    from collections.abc import Mapping

SAMEBITS = "samebits"
_NAME = re.compile(r"[a-z0-9]([a-z0-9._-]*[a-z0-9])?")
_VERSION = re.compile(r"[A-Za-z0-9.!_-]+(\+[A-Za-z0-9._-]+)?")
_ADDRESS = re.compile(r"(?:git\+|hg\+|svn\+|bzr\+)?(?:https?|ssh)://[\w.~:/?@%+=&,-]+")
_FOLDER = re.compile(r"\.|[^~/\n][^\n]*")
# Wheels of PyTorch whose version ends in `+cpu` or the like are on an index of their own for each such build
# (pytorch.org, "Previous PyTorch Versions"; nightly builds below `nightly`).
_OF_TORCH = frozenset(("torch", "torchvision", "torchaudio", "torchtext", "torchao", "torchcodec"))
_BUILD = re.compile(r"cpu|xpu|cu[0-9]{2,4}|rocm[0-9.]+")
_INDEX = "https://download.pytorch.org/whl"


class Gap(Enum):
    """Why a package cannot be installed just as it was."""

    BUILD = "build"
    """The version is that of a build of somebody's own: `2.6.0a0+df5bbc09d1`."""
    FOLDER = "folder"
    """It came from a folder outside of the repository."""
    FILE = "file"
    """It came from a wheel or an archive on the disk."""
    ADDRESS = "address"
    """Its address is masked, or is no address."""
    CONDA = "conda"
    """It came from conda, whose builds pip does not have."""
    EDITED = "edited"
    """Its files were edited after it was installed."""


@dataclass(frozen=True, slots=True)
class Unlike:
    """A package that will not be just as it was.

    Args:
        name: normalised.
        version: of the package in the run.
        gap: why.
        at: the folder or the file that it came from.
    """

    name: str
    version: str
    gap: Gap
    at: str = ""


@dataclass(frozen=True, slots=True)
class Pins:
    """The packages of a run, as pip takes them.

    Args:
        requirements: lines of a requirements file: what the run imported.
        constraints: lines of a constraints file: the version of everything else that was installed.
        from_code: what pip installs from the code of the run, as words of a shell: `-e .`.
        unlike: packages that will not be just as they were.
        samebits: the version of samebits; empty if no index has it.
    """

    requirements: tuple[str, ...]
    constraints: tuple[str, ...]
    from_code: tuple[str, ...]
    unlike: tuple[Unlike, ...]
    samebits: str

    @property
    def needs_git(self) -> bool:
        """Whether pip calls git."""
        return any(" @ git+" in line for line in self.requirements)


def pins_of(facts: Mapping[str, Any]) -> Pins:
    """Return how the packages of a recorded environment are installed again.

    A record, perhaps a stranger's, cannot add an option or a command: what is no name, version or address is
    left out.

    Args:
        facts: the environment.
    """
    packages = {
        name: package
        for name, package in sorted(table_at(facts, "distributions").items())
        if _NAME.fullmatch(name) and _VERSION.fullmatch(str(fact_at(package, "version")))
    }
    used = {name: package for name, package in packages.items() if _is_used(name, package)}
    indexes = dict.fromkeys(index for name, package in used.items() for index in _index(name, package))
    lines = [line for name, package in used.items() for line in _requirement(name, package)]
    return Pins(
        requirements=(*(f"--extra-index-url {index}" for index in indexes), *lines),
        constraints=tuple(
            line
            for name, package in packages.items()
            if name != SAMEBITS
            for line in _constraint(name, package)
        ),
        from_code=tuple(words for package in used.values() for words in _from_code(package)),
        unlike=tuple(gap for name, package in used.items() for gap in _gaps(name, package)),
        samebits=_version_of_samebits(packages.get(SAMEBITS)),
    )


def _is_used(name: str, package: object) -> bool:
    return name != SAMEBITS and bool(fact_at(package, "imported"))


def _version_of_samebits(package: object) -> str:
    """Return the version that an index has; a package that was installed from a folder may have no other."""
    return "" if package is None or _kind(package) is not None else str(fact_at(package, "version"))


def _kind(package: object) -> OriginKind | None:
    """Return what a package was installed from; None if that was an index."""
    if isinstance(package, dict) and "origin" not in package and not package.get("contents"):
        return OriginKind.EDITABLE  # as records told it that had no origins
    kind = fact_at(package, "origin", "kind")
    return next((each for each in OriginKind if each == kind), None)


def _parts(package: object) -> tuple[str, str]:
    """Return the public version and the local one: `2.13.0` and `cpu`."""
    public, _, local = str(fact_at(package, "version")).partition("+")
    return public, local


def _index(name: str, package: object) -> list[str]:
    """Return the index that has the build of a package of PyTorch, if PyPI does not have it."""
    public, local = _parts(package)
    if name not in _OF_TORCH or not _BUILD.fullmatch(local):
        return []
    return [f"{_INDEX}{'/nightly' if '.dev' in public else ''}/{local}"]


def _constraint(name: str, package: object) -> list[str]:
    """Return the line that pins a version; none for what no index has."""
    if name == SAMEBITS or _kind(package) in (
        OriginKind.FOLDER,
        OriginKind.EDITABLE,
        OriginKind.REPOSITORY,
        OriginKind.ARCHIVE,
    ):
        return []  # a constraint would refuse the version that its address gives
    public, local = _parts(package)
    build = f"+{local}" if _index(name, package) else ""
    return [f"{name}=={public}{build}"]


def _requirement(name: str, package: object) -> list[str]:
    """Return the line that requires a package."""
    kind = _kind(package)
    if kind in (OriginKind.FOLDER, OriginKind.EDITABLE):
        return []
    address = _address(package) if kind in (OriginKind.REPOSITORY, OriginKind.ARCHIVE) else ""
    if address:
        return [f"{name} @ {address}"]
    public, local = _parts(package)
    if not local:
        return [f"{name}=={public}"]
    if _index(name, package):
        return [f"{name}=={public}+{local}"]
    return [f"{name}=={public}  # the run had build {local}"]


def _address(package: object) -> str:
    """Return the address of a repository or an archive, pinned; empty if the record has none that works."""
    at, commit, subdirectory, sha256 = (
        str(fact_at(package, "origin", key) or "") for key in ("at", "commit", "subdirectory", "sha256")
    )
    if not _ADDRESS.fullmatch(at):
        return ""
    is_safe = re.fullmatch(r"[\w./-]*", subdirectory) and re.fullmatch(r"\w*", commit + sha256)
    if not is_safe:
        return ""
    fragments = [f"sha256={sha256}"] * bool(sha256) + [f"subdirectory={subdirectory}"] * bool(subdirectory)
    return f"{at}{f'@{commit}' if commit else ''}{'#' if fragments else ''}{'&'.join(fragments)}"


def _from_code(package: object) -> list[str]:
    """Return how pip installs a package from the folder of the code, if it came from the repository."""
    kind, folder = _kind(package), str(fact_at(package, "origin", "at") or "")
    if kind not in (OriginKind.FOLDER, OriginKind.EDITABLE) or not _is_inside(folder):
        return []
    return [f"{'-e ' if kind == OriginKind.EDITABLE else ''}{shlex.quote(f'./{folder}')}"]


def _is_inside(folder: str) -> bool:
    return _FOLDER.fullmatch(folder) is not None and ".." not in folder.split("/")


def _gaps(name: str, package: object) -> list[Unlike]:
    version, at = str(fact_at(package, "version")), str(fact_at(package, "origin", "at") or "")
    return [Unlike(name, version, gap, at) for gap in _gaps_of(name, package, at)]


def _gaps_of(name: str, package: object, at: str) -> list[Gap]:
    kind = _kind(package)
    gaps = [Gap.EDITED] if fact_at(package, "edited") else []
    if kind == OriginKind.CONDA:
        gaps.append(Gap.CONDA)
    elif kind in (OriginKind.FOLDER, OriginKind.EDITABLE):
        gaps += [] if _is_inside(at) else [Gap.FOLDER]
    elif kind == OriginKind.ARCHIVE and "://" not in at:
        gaps.append(Gap.FILE)
    elif kind is not None:
        gaps += [] if _address(package) else [Gap.ADDRESS]
    elif _parts(package)[1] and not _index(name, package):
        gaps.append(Gap.BUILD)
    return gaps
