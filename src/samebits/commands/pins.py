"""Pinned requirements: the packages of a recorded run, as pip installs them again."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from samebits.environment.origins import Origin, OriginKind
from samebits.environment.snapshot import fact_at, table_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

SAMEBITS = "samebits"
_NAME = re.compile(r"[a-z0-9]([a-z0-9._-]*[a-z0-9])?")
_VERSION = re.compile(r"[A-Za-z0-9.!_-]+(\+[A-Za-z0-9._-]+)?")
_PROJECT_FILES = ("pyproject.toml", "setup.py")
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
    """It came from a folder that is not in the code of the run."""
    FILE = "file"
    """It came from a wheel or an archive on the disk."""
    ADDRESS = "address"
    """Its address is masked, is no address, or names no commit."""
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


def pins_of(facts: Mapping[str, Any], code: Path | None = None) -> Pins:
    """Return how the packages of a recorded environment are installed again.

    A record, perhaps a stranger's, cannot add an option or a command: what is no name, version or address is
    left out.

    Args:
        facts: the environment.
        code: folder with the code of the run; None if it is not there.
    """
    packages = list(_packages(facts))
    used = [package for package in packages if package.imported]
    own = table_at(facts, "distributions").get(SAMEBITS)
    indexes = dict.fromkeys(package.index for package in used if package.index)
    return Pins(
        requirements=(
            *(f"--extra-index-url {index}" for index in indexes),
            *(_requirement(package) for package in used if not package.is_from_folder),
        ),
        constraints=tuple(map(_constraint, filter(_is_on_index, packages))),
        from_code=tuple(_installation(package) for package in used if package.is_in(code)),
        unlike=tuple(
            Unlike(package.name, package.version, gap, package.origin.at)
            for package in used
            for gap in _gaps(package, code)
        ),
        samebits="".join(package.version for package in _read(SAMEBITS, own) if package.kind is None),
    )


@dataclass(frozen=True, slots=True)
class _Package:
    """An installed package of a record.

    Args:
        name: normalised.
        version: as installed.
        imported: whether the run used it.
        edited: whether its files were changed after it was installed.
        kind: what it was installed from; None if that was an index.
        origin: the same with address, commit and so on; they may hold anything.
    """

    name: str
    version: str
    imported: bool
    edited: bool
    kind: OriginKind | None
    origin: Origin

    @property
    def public(self) -> str:
        """The public part of the version: `2.13.0` of `2.13.0+cpu`."""
        return self.version.partition("+")[0]

    @property
    def local(self) -> str:
        """The local part of the version: `cpu` of `2.13.0+cpu`."""
        return self.version.partition("+")[2]

    @property
    def is_from_folder(self) -> bool:
        """Whether it was installed from a folder, so that no index has it."""
        return self.kind in (OriginKind.FOLDER, OriginKind.EDITABLE)

    @property
    def index(self) -> str:
        """The index that has this build of a package of PyTorch; empty if PyPI has it."""
        if self.name not in _OF_TORCH or not _BUILD.fullmatch(self.local):
            return ""
        return f"{_INDEX}{'/nightly' if '.dev' in self.public else ''}/{self.local}"

    @property
    def address(self) -> str:
        """The address of a repository or an archive, pinned; empty if the record has none that works."""
        at, commit, subdirectory, sha256 = (
            self.origin.at, self.origin.commit, self.origin.subdirectory, self.origin.sha256,
        )  # fmt: skip
        is_safe = _ADDRESS.fullmatch(at) and re.fullmatch(r"[\w./-]*", subdirectory)
        if self.kind == OriginKind.REPOSITORY:
            pinned = f"{at}@{commit}" if re.fullmatch(r"\w+", commit) else ""
        else:
            pinned = at if self.kind == OriginKind.ARCHIVE else ""
        if not (is_safe and pinned and re.fullmatch(r"[0-9a-f]*", sha256)):
            return ""
        parts = [f"sha256={sha256}"] * bool(sha256) + [f"subdirectory={subdirectory}"] * bool(subdirectory)
        return pinned + ("#" + "&".join(parts) if parts else "")

    def is_in(self, code: Path | None) -> bool:
        """Tell whether it can be installed from the code; where that is not there yet, it may be.

        A folder that git ignores, or one of a submodule, is not there.
        """
        folder = self.origin.at
        is_inside = _FOLDER.fullmatch(folder) is not None and ".." not in folder.split("/")
        if not (self.is_from_folder and is_inside):
            return False
        return code is None or any((code / folder / name).is_file() for name in _PROJECT_FILES)


def _packages(facts: Mapping[str, Any]) -> Iterator[_Package]:
    """Return the packages that have a name and a version, samebits aside."""
    for name, package in sorted(table_at(facts, "distributions").items()):
        if name != SAMEBITS and _NAME.fullmatch(name):
            yield from _read(name, package)


def _read(name: str, package: object) -> Iterator[_Package]:
    version, origin = str(fact_at(package, "version")), table_at(package, "origin")
    if not isinstance(package, dict) or not _VERSION.fullmatch(version):
        return
    kind = next((kind for kind in OriginKind if kind == origin.get("kind")), None)
    if "origin" not in package and not package.get("contents"):
        kind = OriginKind.EDITABLE  # as records told it that had no origins
    parts = (str(origin.get(part) or "") for part in ("at", "commit", "subdirectory", "sha256"))
    yield _Package(
        name,
        version,
        bool(package.get("imported")),
        bool(package.get("edited")),
        kind,
        Origin(kind or OriginKind.ARCHIVE, *parts),
    )


def _is_on_index(package: _Package) -> bool:
    """Tell whether an index has the version; a constraint would refuse the one that an address gives."""
    return package.kind in (None, OriginKind.CONDA)


def _constraint(package: _Package) -> str:
    return f"{package.name}=={package.version if package.index else package.public}"


def _requirement(package: _Package) -> str:
    if package.address:
        return f"{package.name} @ {package.address}"
    told = f"  # the run had build {package.local}" if package.local and not package.index else ""
    return f"{_constraint(package)}{told}"


def _installation(package: _Package) -> str:
    """Return how pip installs a package from the folder of the code."""
    option = "-e " if package.kind == OriginKind.EDITABLE else ""
    return f"{option}{shlex.quote(f'./{package.origin.at}')}"


def _gaps(package: _Package, code: Path | None) -> Iterator[Gap]:
    """Return why a package will not be just as it was."""
    if package.edited:
        yield Gap.EDITED
    if package.kind == OriginKind.CONDA:
        yield Gap.CONDA
    elif package.is_from_folder:
        if not package.is_in(code):
            yield Gap.FOLDER
    elif package.kind == OriginKind.ARCHIVE and "://" not in package.origin.at:
        yield Gap.FILE
    elif package.kind is not None:
        if not package.address:
            yield Gap.ADDRESS
    elif package.local and not package.index:
        yield Gap.BUILD
