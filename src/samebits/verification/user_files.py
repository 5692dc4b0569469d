"""The user's files: sources that patches change, patches applied to them, files that an earlier run left."""

from __future__ import annotations

import ast
import contextlib
import json
import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from samebits._runtime.frames import USER, FrameRanks, Site
from samebits._text import files
from samebits.causes import Cause
from samebits.comparison.evidence import Evidence, EvidenceCode
from samebits.comparison.results import Remedy, Source
from samebits.diagnosis.patches.edits import Project, SourceFile, refusal_of_path
from samebits.environment.snapshot import table_at
from samebits.errors import SamebitsError
from samebits.recording.target import program_folders, script_path
from samebits.records.notes import Note, NoteCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from samebits.comparison.reasons import Reason
    from samebits.comparison.results import Comparison, Finding
    from samebits.diagnosis.patches.edits import PatchedFile
    from samebits.recording.runner import Target
    from samebits.records.events import RunInfo
    from samebits.verification.results import Fix

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
    """Read the user's files, and those of an installed package that is run, which no patch changes.

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


def changed_code(first: RunInfo | None, second: RunInfo | None) -> tuple[str, ...]:
    """Return the names of the code that was changed between two runs, or while the first went on.

    Args:
        first: a run.
        second: a later one. What was changed while that went on had been read before.
    """
    if first is None or second is None:
        return ()
    ours, theirs = (table_at(info.environment, "code") for info in (first, second))
    differing = {name for name in ours if name in theirs and ours[name] != theirs[name]}
    return tuple(sorted((differing - _changed_during(second)) | _changed_during(first)))


def refuse_other_code(first: RunInfo | None, second: RunInfo | None) -> None:
    """Refuse to conclude anything from a run whose code is not that of an earlier one.

    Raises:
        SamebitsError: `code-changed`.
    """
    if changed := changed_code(first, second):
        names = ", ".join(changed)
        message = f"{names} changed while the runs were made, so they did not run the same code; run it again"
        raise SamebitsError(message, slug="code-changed")


def _changed_during(run: RunInfo) -> set[str]:
    return {name for note in run.notes if note.code is NoteCode.CODE_CHANGED for name in note.arguments}


_SHOWN = 2


@dataclass(frozen=True)
class EarlierFile:
    """A file that a run read as an earlier run had left it.

    Args:
        path: the file.
        changed: when it was last changed, in nanoseconds of the system's clock.
        site: the line that opened it.
    """

    path: str
    changed: int
    site: Site


def read_notes(path: str) -> tuple[EarlierFile, ...]:
    """Read the notes of a run (`recording.probes.earlier_files`), and remove them.

    Args:
        path: the file of notes; if it does not exist, nothing was noted.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
        Path(path).unlink()
    except OSError:
        return ()
    return tuple(file for file in map(_of_line, lines) if file is not None)


def _of_line(line: str) -> EarlierFile | None:
    try:
        name, changed, file, number, function = json.loads(line)
    except ValueError:  # the run was killed while it wrote
        return None
    return EarlierFile(str(name), int(changed), Site(str(file), int(number), str(function)))


def note_of(files: Sequence[EarlierFile], number: int, before: Reason | None = None) -> Note:
    """Return the note on a run that read files of the previous run.

    Args:
        files: the files.
        number: of the run that read them, from 1.
        before: why the previous run differs from run 1, if one more run was compared with the previous one.
    """
    shown = tuple((file.path, file.site) for file in files[:_SHOWN])
    return Note.of(NoteCode.READ_EARLIER_FILES, number, shown, len(files) - len(shown), before)


def blamed(comparison: Comparison, files: Sequence[EarlierFile]) -> Comparison:
    """Return the comparison of two runs, each of which read files that the previous run had written.

    Args:
        comparison: of the two.
        files: files of the first that the second read.
    """
    if not comparison.findings:  # runs of different lengths diverge at no common event
        return comparison
    first, *others = comparison.findings
    file = files[0]
    origin = replace(
        first.origin,
        site=file.site,
        entered_site=None if file.site == first.origin.site else first.origin.site,
        sources=tuple(Source(each.path, each.site, Cause.ENVIRONMENT, is_left_file=True) for each in files),
    )
    remedy = Remedy(f"remove {file.path} before each run, or give each run a copy of the folder (`--fresh`)")
    left = (Evidence.of(EvidenceCode.LEFT_BY_RUN_BEFORE, each.path, each.site) for each in files)
    blamed = replace(first, origin=origin, remedy=remedy).with_cause(Cause.ENVIRONMENT, *left)
    return replace(comparison, findings=(blamed, *others))


DIFF_NAME = "fix.diff"


def write_diff(fix: Fix, folder: Path) -> Fix:
    """Write the diff beside the records.

    Raises:
        SamebitsError: it cannot be written; `record-unwritable`.
    """
    if fix.patch is None:
        return fix
    path = folder / DIFF_NAME
    try:
        files.write_whole(path, fix.diff)
    except OSError as error:
        message = f"cannot write {path}: {error.strerror}; give another --keep"
        raise SamebitsError(message, slug="record-unwritable") from None
    return replace(fix, diff_file=str(path))


def apply(fix: Fix) -> Fix:
    """Write the patched files, each in one step; where one cannot be written, those before it are put back.

    Raises:
        SamebitsError: a file has changed since (`fix-file-changed`), is outside of the project
            (`fix-outside-project`), or cannot be written (`fix-unwritable`). Then no file is changed.
    """
    if fix.patch is None:
        return fix
    for file in fix.patch.files:
        _check(file, fix.root)
    done: list[PatchedFile] = []
    try:
        for file in fix.patch.files:
            _replace(file.after.path, file.after.data)
            done.append(file)
    except OSError as error:
        for file in done:
            with contextlib.suppress(OSError):
                _replace(file.before.path, file.before.data)
        raise _unwritable(fix.patch.files[len(done)].after.path, error) from None
    return replace(fix, applied=True)


def _check(file: PatchedFile, root: str) -> None:
    path = os.path.realpath(file.before.path)
    if os.path.commonpath([os.path.realpath(root), path]) != os.path.realpath(root):
        message = f"{path} is not in the project {root}: not changed; apply the diff by hand"
        raise SamebitsError(message, slug="fix-outside-project")
    try:
        with files.open_to_read(path) as now:
            data = now.read()
    except OSError as error:
        raise _unwritable(path, error) from None
    if data != file.before.data:
        message = f"{path} was changed while its patch was tried: nothing was applied; run verify --fix again"
        raise SamebitsError(message, slug="fix-file-changed")
    if not os.access(path, os.W_OK) or not os.access(os.path.dirname(path), os.W_OK):
        raise _unwritable(path, PermissionError(13, "Permission denied"))


def _unwritable(path: str, error: OSError) -> SamebitsError:
    message = f"cannot write {path}: {error.strerror}; no file was changed, the diff is beside the records"
    return SamebitsError(message, slug="fix-unwritable")


def _replace(path: str, data: bytes) -> None:
    """Replace the contents of a file in one step; a link stays a link, and the mode stays."""
    path = os.path.realpath(path)
    temporary = os.path.join(os.path.dirname(path), f".samebits-{os.getpid()}-{os.path.basename(path)}")
    try:
        with os.fdopen(files.create(temporary), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        shutil.copymode(path, temporary)
        files.put_in_place(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.remove(temporary)
        raise
