"""Files that one run wrote and the next one read: then the two did not do the same work."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from samebits._runtime.frames import Site
from samebits.causes import Cause
from samebits.comparison.evidence import Evidence, EvidenceCode
from samebits.comparison.results import Remedy, Source
from samebits.records.notes import Note, NoteCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from samebits.comparison.results import Comparison

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
    """Read and remove what a run noted (`recording.probes.earlier_files`).

    Args:
        path: the file of notes; that there is none means that nothing was noted.
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


def note_of(files: Sequence[EarlierFile], number: int, before: str | None = None) -> Note:
    """Return the note for a run that read files of the run before it.

    Args:
        files: the files.
        number: of the run that read them, from 1.
        before: how the run before it differs from run 1, where one more run is compared with that one.
    """
    shown = tuple((file.path, file.site) for file in files[:_SHOWN])
    return Note.of(NoteCode.READ_EARLIER_FILES, number, shown, len(files) - len(shown), before)


def blamed(comparison: Comparison, files: Sequence[EarlierFile]) -> Comparison:
    """Return the comparison of two runs each of which read what the one before it had written.

    Args:
        comparison: what was said of them.
        files: what the second of them read of the first's files.
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
