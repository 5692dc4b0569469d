"""The packages of a process, imported and installed."""

from __future__ import annotations

import base64
import csv
import hashlib
import os
import re
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from samebits.environment._cache import FileCache, stamp_of
from samebits.environment.origins import Origin, OriginKind, named, origin_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_SHARED_LIBRARY = re.compile(r"lib[^/]*\.(?:so|dylib)[^/]*$")
_INFO = re.compile(r"^(?P<name>.+?)-(?P<version>[^-]+)(?:-py[\d.]+)?\.(?:dist|egg)-info$")
_LARGEST_LIST = 64 << 20  # bytes of the list of a package's files
_DIGEST_BYTES = 16


@dataclass(frozen=True)
class Distribution:
    """An installed package.

    Args:
        version: as installed.
        contents: 32 hexadecimal digits, of the names and digests that the installer recorded of its files;
            empty where it recorded none, and for an editable installation, whose modules are code.
        imported: whether this process has imported a module of it.
        edited: imported modules whose files are not as they were installed, as `path sha256`.
        origin: what it was installed from; None if that was an index.
    """

    version: str
    contents: str = ""
    imported: bool = False
    edited: tuple[str, ...] = ()
    origin: Origin | None = None


@dataclass(frozen=True)
class _FileList:
    """The list of files that an installer wrote: their names, and of each its digest and size.

    Args:
        contents: digest of the list.
        beginnings: of the names: two parts, because many packages share a first one such as `nvidia`.
        libraries: the names of shared libraries.
        origin: of the package; a folder by its absolute path.
    """

    contents: str
    beginnings: frozenset[str]
    libraries: frozenset[str] = frozenset()
    origin: Origin | None = None


def collect_packages() -> dict[str, str]:
    """Return the version of each distribution of which a module is imported, standard library aside."""
    packages = {}
    for name, module in list(sys.modules.items()):
        if "." in name or name.startswith("_") or name in sys.stdlib_module_names or name == "samebits":
            continue
        version = vars(module).get("__version__") if hasattr(module, "__dict__") else None
        if not isinstance(version, str):  # asking the module instead could run its code
            version = installed_version(name) if getattr(module, "__spec__", None) else None
        if version:
            packages[name] = version
    return dict(sorted(packages.items()))


def installed_version(name: str) -> str | None:
    """Return the version of an installed package; None if there is none of that name."""
    try:
        from importlib import metadata  # late: it imports twenty modules, and most packages need no question

        return metadata.version(name)
    except Exception:  # noqa: BLE001 - it is not installed, or a module of the script's stands for a standard one
        return None


def collect_distributions(root: str | None = None) -> dict[str, Distribution]:
    """Return the packages that can be imported, by normalised name; the first on the path counts.

    Args:
        root: folder of the repository that the script is in: packages that were installed from a folder in it
            are known by its name there.
    """
    cache = FileCache("packages")
    imported = _imported_files()
    distributions: dict[str, Distribution] = {}
    for name, version, site, info in _installed():
        if name not in distributions:
            package = _describe(site, info, version, imported.get(site, {}), cache)
            distributions[name] = _with_origin_below(root, package)
    cache.save()
    return dict(sorted(distributions.items()))


def packaged_modules() -> frozenset[str]:
    """Return the files of imported modules that belong to a package, wherever it is installed."""
    cache = FileCache("packages")
    imported = _imported_files()
    files: set[str] = set()
    for *_, site, info in _installed():
        listed = _listed(os.path.join(site, info, "RECORD"), cache) if imported.get(site) else None
        for beginning in () if listed is None else listed.beginnings:
            files.update(
                os.path.realpath(os.path.join(site, file)) for file in imported[site].get(beginning, ())
            )
    return frozenset(files)


def owners(paths: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return name and version of the package that each shared library came with; others are left out.

    Args:
        paths: of the libraries, without symbolic links.
    """
    wanted: dict[str, set[str]] = {}
    for path in paths:
        wanted.setdefault(os.path.basename(path), set()).add(path)
    cache = FileCache("packages")
    found: dict[str, tuple[str, str]] = {}
    for name, version, site, info in _installed() if wanted else ():
        listed = _listed(os.path.join(site, info, "RECORD"), cache)
        for file in () if listed is None else listed.libraries:
            path = os.path.realpath(os.path.join(site, file)) if os.path.basename(file) in wanted else ""
            if path in wanted.get(os.path.basename(path), ()):
                found.setdefault(path, (name, version))
    cache.save()
    return found


def normalised(name: str) -> str:
    """Return the name of a package as indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _installed() -> Iterator[tuple[str, str, str, str]]:
    """Return name, version, folder and description of each installed package, in the path's order."""
    for site in dict.fromkeys(map(os.path.abspath, sys.path)):
        with suppress(OSError):
            matches = {info: match for info in os.listdir(site) if (match := _INFO.match(info)) is not None}
            for info, match in sorted(matches.items()):
                yield normalised(match["name"]), match["version"], site, info


def _imported_files() -> dict[str, dict[str, list[str]]]:
    """Return the files of imported modules, by folder of the path and the beginning of their names."""
    sites = {site: f"{site}{os.sep}" for site in dict.fromkeys(map(os.path.abspath, sys.path))}
    files: dict[str, dict[str, list[str]]] = {site: {} for site in sites}
    for module in list(sys.modules.values()):
        file = vars(module).get("__file__") if hasattr(module, "__dict__") else None
        if not isinstance(file, str):
            continue
        site = max((site for site, prefix in sites.items() if file.startswith(prefix)), key=len, default=None)
        if site is not None:
            inside = os.path.relpath(file, site)
            files[site].setdefault(_beginning(inside.replace(os.sep, "/")), []).append(inside)
    return files


def _describe(
    site: str, info: str, version: str, imported: dict[str, list[str]], cache: FileCache
) -> Distribution:
    path = os.path.join(site, info, "RECORD")
    listed = _listed(path, cache)
    if listed is None:
        return Distribution(version, origin=origin_of(os.path.join(site, info)))
    own = [file for beginning in listed.beginnings for file in imported.get(beginning, ())]
    edited = _edited(site, path, own) if own else ()
    return Distribution(version, listed.contents, bool(own), edited, listed.origin)


def _with_origin_below(root: str | None, package: Distribution) -> Distribution:
    origin = package.origin
    if origin is None:
        return package
    if origin.kind == OriginKind.EDITABLE:  # the installer lists none of its modules, but names the folder
        package = replace(package, contents="", imported=_is_used(origin.at + os.sep))
    return replace(package, origin=named(origin, root))


def _is_used(beginning: str) -> bool:
    """Tell whether a module whose path begins so is imported."""
    files = (getattr(module, "__dict__", {}).get("__file__") for module in list(sys.modules.values()))
    return any(isinstance(file, str) and os.path.realpath(file).startswith(beginning) for file in files)


def _listed(path: str, cache: FileCache) -> _FileList | None:
    """Return the list of a package's files, from the cache if it has not changed; None if there is none."""
    try:
        stamp = stamp_of(os.stat(path))
    except OSError:
        return None
    held = _held(cache.get(path, stamp))
    if held is not None:
        return held
    listed = replace(_read_list(path), origin=origin_of(os.path.dirname(path)))
    origin = None if listed.origin is None else list(vars(listed.origin).values())
    cache.put(path, stamp, [listed.contents, sorted(listed.beginnings), sorted(listed.libraries), origin])
    return listed


def _held(value: Any) -> _FileList | None:
    """Return a list of files from the cache; None for what another release, or nobody, wrote there."""
    with suppress(TypeError, ValueError):
        contents, beginnings, libraries, origin = value
        if [type(contents), type(beginnings), type(libraries)] == [str, list, list]:
            told = None if origin is None else Origin(OriginKind(origin[0]), *map(str, origin[1:]))
            return _FileList(contents, frozenset(beginnings), frozenset(libraries), told)
    return None


def _read_list(path: str) -> _FileList:
    """Read a list of files, without what differs between two installations of the same package."""
    listed = [(name, digest) for name, digest, _ in _all_rows(path)]
    # Also those outside the folder of packages, where the wheels of MKL put theirs.
    libraries = frozenset(name for name, _ in listed if _SHARED_LIBRARY.match(os.path.basename(name)))
    rows = sorted(f"{name},{digest}" for name, digest in listed if _is_content(name, digest))
    if not rows:
        return _FileList("", frozenset(), libraries)
    contents = hashlib.sha256("\n".join(rows).encode(errors="surrogateescape")).hexdigest()
    beginnings = frozenset(_beginning(row.rpartition(",")[0]) for row in rows)
    return _FileList(contents[: 2 * _DIGEST_BYTES], beginnings, libraries)


def _beginning(name: str) -> str:
    return "/".join(name.split("/", maxsplit=2)[:2])


def _rows(path: str) -> Iterator[tuple[str, str, str]]:
    """Return name, digest and size of each file that came with a package.

    Scripts are left out, because they hold the path of their interpreter, and so is what the installer wrote
    of the installation.
    """
    return (row for row in _all_rows(path) if _is_content(*row[:2]))


def _all_rows(path: str) -> Iterator[tuple[str, str, str]]:
    """Return the rows of a list of files (PyPA, `RECORD`)."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
            text = file.read(_LARGEST_LIST)
    except OSError:
        return
    for row in csv.reader(text.splitlines()):
        if len(row) == 3:
            yield row[0], row[1], row[2]


def _is_content(name: str, digest: str) -> bool:
    return bool(digest) and not name.startswith(("..", "/")) and not _is_description(name)


def _is_description(name: str) -> bool:
    return name.split("/", maxsplit=1)[0].endswith(".dist-info") or name.endswith(".pyc")


def _edited(site: str, record: str, imported: list[str]) -> tuple[str, ...]:
    """Return which imported files of a package are not as they were installed."""
    installed_at = os.stat(record).st_mtime_ns
    suspects = []
    for file in imported:
        with suppress(OSError):
            if os.stat(os.path.join(site, file)).st_mtime_ns > installed_at:
                suspects.append(file)
    if not suspects:
        return ()
    digests = {name: digest for name, digest, _ in _rows(record)}
    edited = []
    for file in sorted(suspects):
        with suppress(OSError), open(os.path.join(site, file), "rb") as opened:
            digest = hashlib.sha256(opened.read()).digest()
            recorded = digests.get(file.replace(os.sep, "/"), "")
            if recorded.startswith("sha256=") and recorded[7:] != _as_recorded(digest):
                edited.append(f"{file.replace(os.sep, '/')} {digest.hex()}")
    return tuple(edited)


def _as_recorded(digest: bytes) -> str:
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
