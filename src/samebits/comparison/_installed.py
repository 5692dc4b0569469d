"""The packages and the loaded libraries of two environments: whether each is of the same build.

Libraries are compared by kind, and of a kind the files that both have, by name without its version: cuDNN and
MKL load parts of themselves when they are first needed. Records of earlier versions hold names of files only.
"""

from __future__ import annotations

import re
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from samebits.environment.numeric_libraries import Library, kind_of
from samebits.environment.origins import OriginKind
from samebits.environment.snapshot import HERE, TAKEN, fact_at, table_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Kinds = dict[str, list[Library]]

DIGEST_SHOWN = 12
"""Digits of a digest that are shown."""

# What auditwheel adds to a name (`-a34b3233`), and all from the ending on.
_AFTER_NAME = re.compile(r"(?:-[0-9a-f]{8})?\.(?:so|dylib).*$")
_TYPES = {field.name: type(field.default) for field in fields(Library) if field.name != "file"}


def package_texts(facts: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, str]:
    """Return a text for each package that both environments use: the other's, if it is the same build.

    A package that a run imported and that a machine lacks on which nothing ran has a text too.

    Args:
        facts: of the environment; they may hold anything.
        others: of the one that it is compared with.
    """
    return {
        name: _package_text(package, fact_at(others, "distributions", name))
        for name, package in table_at(facts, "distributions").items()
        if _was_imported(package, facts)
        and (
            _was_imported(fact_at(others, "distributions", name), others)
            or _is_missing(name, package, others)
        )
    }


def _is_missing(name: str, package: Any, others: Mapping[str, Any]) -> bool:
    """Tell whether a machine lacks a package; one from a folder is code, and compared as such."""
    packages = fact_at(others, "distributions")
    from_folder = fact_at(package, "origin", "kind") in (OriginKind.FOLDER, OriginKind.EDITABLE)
    return (
        others.get(TAKEN) == HERE and isinstance(packages, dict) and name not in packages and not from_folder
    )


def _was_imported(package: Any, facts: Mapping[str, Any]) -> bool:
    """Tell whether a run imported a package; an environment without a run counts every package."""
    return isinstance(package, dict) and (bool(package.get("imported")) or facts.get(TAKEN) == HERE)


def _package_text(package: Any, other: Any) -> str:
    version = str(package.get("version"))
    edited = package.get("edited")
    if edited and isinstance(edited, list):
        return f"{version}, edited: {', '.join(str(file)[:-52] for file in edited)}"
    contents = package.get("contents"), fact_at(other, "contents")
    if version == str(fact_at(other, "version")) and all(contents) and contents[0] != contents[1]:
        return f"{version}, contents {str(contents[0])[:DIGEST_SHOWN]}"
    return version


# ---- libraries


def library_texts(facts: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, str] | None:
    """Return a text for each kind of library that an environment has: the other's, if it is the same build.

    Args:
        facts: of the environment; they may hold anything.
        others: of the one that it is compared with.

    Returns:
        None where the facts do not tell.
    """
    ours, theirs = _kinds(facts), _kinds(others)
    if ours is None or theirs is None:
        return None
    _add_installed(ours, theirs, facts)
    _add_installed(theirs, ours, others)
    return {kind: _text(libraries, theirs.get(kind, [])) for kind, libraries in ours.items()}


def _kinds(facts: Mapping[str, Any]) -> Kinds | None:
    listed = facts.get("libraries")
    if not isinstance(listed, list):
        return None
    kinds: Kinds = {}
    for library in filter(None, map(_read, listed)):
        kinds.setdefault(kind_of(library.file) or _stem(library), []).append(library)
    return kinds


def _read(listed: object) -> Library | None:
    if isinstance(listed, str):
        return Library(listed)
    file = fact_at(listed, "file")
    if not isinstance(listed, dict) or not isinstance(file, str):
        return None
    known = {name: listed[name] for name, kind in _TYPES.items() if type(listed.get(name)) is kind}
    return Library(file, **known)


def _stem(library: Library) -> str:
    return _AFTER_NAME.sub("", library.file)


def _add_installed(here: Kinds, run: Kinds, facts: Mapping[str, Any]) -> None:
    """Add what a run would load of the packages here: where nothing ran, only torch's are loaded."""
    if facts.get(TAKEN) != HERE:
        return
    for kind, libraries in run.items():
        for library in libraries if kind not in here else ():
            version = fact_at(facts, "distributions", library.package, "version")
            if library.package and isinstance(version, str):
                installed = Library(library.file, package=library.package, version=version)
                here.setdefault(kind, []).append(installed)


def _text(ours: list[Library], theirs: list[Library]) -> str:
    if theirs and _is_same(ours, theirs):
        return ""
    text = _described(ours)
    if text != _described(theirs):
        return text
    builds = (library.build[:DIGEST_SHOWN] or f"{library.size} bytes" for library in ours)
    return f"{text}, build {', '.join(dict.fromkeys(builds))}"


def _described(libraries: Iterable[Library]) -> str:
    """Name what libraries came with, or the files themselves, whose names then often end with a version."""
    names = (f"{each.package} {each.version}" if each.package else each.file for each in libraries)
    return ", ".join(dict.fromkeys(names))


def _is_same(ours: list[Library], theirs: list[Library]) -> bool:
    common = {*map(_stem, ours)} & {*map(_stem, theirs)}
    return bool(common) and all(
        _same_builds([each for each in ours if _stem(each) == stem], [x for x in theirs if _stem(x) == stem])
        for stem in common
    )


def _same_builds(ours: list[Library], theirs: list[Library]) -> bool:
    """Compare libraries of one name by the surest that is known of both: the build, or all the rest."""
    both = [*ours, *theirs]
    facets: list[Callable[[Library], object]] = [lambda each: each.build]
    if not all(each.build for each in both):
        facets = [lambda each: each.size, lambda each: each.version and (each.package, each.version)]
        facets.append(lambda each: each.file)
    known = [facet for facet in facets if all(map(facet, both))]
    return all({*map(facet, ours)} == {*map(facet, theirs)} for facet in known)
