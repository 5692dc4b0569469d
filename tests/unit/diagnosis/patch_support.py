"""Findings and projects of a few lines, for tests of patches."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import finding_support

from samebits._runtime.frames import Site
from samebits.comparison.results import Finding, Source
from samebits.diagnosis.patches.edits import Project, SourceFile
from samebits.diagnosis.patches.propose import Proposal, propose

if TYPE_CHECKING:
    from samebits.diagnosis.patches.edits import Patch

ROOT = "/code"
MARK = "# <-"


def project(**texts: str | bytes) -> Project:
    """Return a project of modules; the first one is the script."""
    files = []
    for name, text in texts.items():
        data = text if isinstance(text, bytes) else textwrap.dedent(text).lstrip("\n").encode()
        files.append(SourceFile(f"{ROOT}/{name}.py", data))
    return Project(ROOT, files[0].path, tuple(files))


def site_of(files: Project, mark: str = MARK, function: str = "f") -> Site:
    """Return the site of the line with a mark."""
    for file in files.files:
        for number, line in enumerate(file.text.splitlines(), start=1):
            if mark in line:
                return Site(file.path, number, function)
    raise AssertionError(f"no line with {mark}")


def finding(cause: str, site: Site | None, *ops: str, kind: str = "op") -> Finding:
    """Return an origin with sources on its own line."""
    sources = tuple(Source(op, site, cause) for op in ops)
    return finding_support.finding(kind=kind, op="aten::mm", site=site, cause=cause, sources=sources)


def proposal(cause: str, files: Project, *ops: str) -> Proposal:
    """Return the proposal for a cause at the marked line."""
    return propose([finding(cause, site_of(files), *ops)], files)


def text_after(patch: Patch, name: str = "") -> str:
    """Return the text of a file after a patch."""
    return next(f.after.text for f in patch.files if name in f.after.path)


def patched(cause: str, text: str, *ops: str) -> str:
    """Return a script of one file after the first patch; the text itself if there is none."""
    files = project(main=text)
    patches = proposal(cause, files, *ops).patches
    return text_after(patches[0]) if patches else files.files[0].text
