"""Reading the user's own source files, for patches: the script, and what it imports from beside it."""

from __future__ import annotations

import ast
import os
from typing import TYPE_CHECKING

from samebits._runtime.frames import USER, FrameRanks
from samebits._text import files
from samebits.diagnosis.patches.edits import Project, SourceFile, refusal_of_path
from samebits.recording.target import program_folders, script_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from samebits.comparison.results import Finding
    from samebits.recording.runner import Target

_MOST_FILES = 200
_MOST_BYTES = 1 << 20  # of one file; larger ones are data or were generated


def read_project(target: Target, findings: Iterable[Finding]) -> Project:
    """Read the files of the user that a patch may change.

    Args:
        target: what was run.
        findings: the files of their sites are read too.
    """
    script = main_file(target)
    root = project_root(script or os.getcwd())
    ranks = FrameRanks()
    folders = [os.path.dirname(script)] if script else []
    folders = list(dict.fromkeys([*folders, os.getcwd(), root, os.path.join(root, "src")]))
    files: dict[str, SourceFile] = {}
    waiting = [*([script] if script else []), *_site_files(findings)]
    while waiting and len(files) < _MOST_FILES:
        path = waiting.pop(0)
        file = None if path in files or not _is_users(ranks, path) else _read(path)
        if file is not None:
            files[path] = file
            waiting += _imported(file, folders)
    return Project(root, script, tuple(files.values()))


def read_program(target: Target, findings: Iterable[Finding]) -> tuple[SourceFile, ...]:
    """Read the user's files, with those of an installed package that is the program: for reading only.

    Args:
        target: what was run.
        findings: the files of their sites are read too.
    """
    project = read_project(target, findings)
    paths = [path for folder in program_folders(target) for path in _python_files(folder)]
    read = (_read(path) for path in paths[:_MOST_FILES])
    files = {file.path: file for file in read if file is not None}
    return tuple({**files, **{file.path: file for file in project.files}}.values())


def _python_files(top: str) -> list[str]:
    if os.path.isfile(top):
        return [top]
    paths = (os.path.join(folder, name) for folder, _, names in os.walk(top) for name in names)
    return sorted(path for path in paths if path.endswith(".py"))


def project_root(path: str) -> str:
    """Return the folder of a path's project: its git tree, else the working directory if that holds it."""
    folder = path if os.path.isdir(path) else os.path.dirname(path)
    root = folder
    while not os.path.exists(os.path.join(root, ".git")):
        above = os.path.dirname(root)
        if above == root:
            here = os.getcwd()
            return here if os.path.commonpath([here, folder]) == here else folder
        root = above
    return root


def main_file(target: Target) -> str:
    """Return the file that runs as `__main__`; empty where there is none that can be read."""
    if target.script is not None:
        path = os.path.realpath(script_path(target.script))
        main = os.path.join(path, "__main__.py")
        return (main if os.path.isfile(main) else "") if os.path.isdir(path) else path
    base = os.path.join(os.getcwd(), *str(target.module).split("."))
    candidates = (base + ".py", os.path.join(base, "__main__.py"))
    return next((os.path.realpath(path) for path in candidates if os.path.isfile(path)), "")


def _site_files(findings: Iterable[Finding]) -> list[str]:
    paths = []
    for finding in findings:
        sites = [
            finding.origin.site,
            finding.origin.forward_site,
            finding.origin.other_site,
            *(s.site for s in finding.origin.sources),
        ]
        paths += [site.file for site in sites if site is not None]
    return list(dict.fromkeys(paths))


def _is_users(ranks: FrameRanks, path: str) -> bool:
    return not refusal_of_path(path) and ranks.rank_of_file(path) == USER


def _read(path: str) -> SourceFile | None:
    try:
        with files.open_to_read(path) as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError:
        return None
    return SourceFile(path, data) if len(data) <= _MOST_BYTES else None


def _imported(file: SourceFile, folders: list[str]) -> Iterator[str]:
    """Return the paths of a file's imported modules that lie beside it or in one of some folders."""
    try:
        tree = ast.parse(file.text)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        names: list[str] = []
        searched = [*folders, os.path.dirname(file.path)]
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            names = [base, *(f"{base}.{alias.name}".lstrip(".") for alias in node.names)]
            if node.level:
                up = os.path.dirname(file.path)
                for _ in range(node.level - 1):
                    up = os.path.dirname(up)
                searched = [up]
        yield from (path for name in names for path in _files_of(name, searched))


def _files_of(name: str, folders: Iterable[str]) -> Iterator[str]:
    parts = [part for part in name.split(".") if part]
    for folder in folders:
        base = os.path.join(folder, *parts)
        for path in (base + ".py", os.path.join(base, "__init__.py")):
            if parts and os.path.isfile(path):
                yield os.path.realpath(path)
                return
