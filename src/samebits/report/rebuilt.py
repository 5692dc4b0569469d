"""What was rebuilt of a recorded run, and what is missing, in English."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits._text.printable import printable
from samebits.commands.pins import Gap
from samebits.commands.rebuild import CodeState
from samebits.report.vocabulary import some_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from samebits.commands.pins import Unlike
    from samebits.commands.rebuild import Rebuilt
    from samebits.report.style import Style

_MOST = 5


def render_text(rebuilt: Rebuilt, style: Style) -> str:
    """Return the files that were written, what to do with them, and what is missing."""
    folder = printable(rebuilt.folder)
    code = " and the code" if rebuilt.code.is_there else ""
    head = f"{rebuilt.folder}: {', '.join(rebuilt.files)}{code}"
    lines = [*style.wrap(printable(head), hanging=2), "", f"run it: {folder}/run.sh"]
    lines += [f"needs Python {rebuilt.python}; or: docker build {folder}"]
    for problem in _problems(rebuilt):
        lines += style.wrap(printable(f"missing: {problem}"), hanging=2)
    if rebuilt.data:
        names = some_names([name for name, _ in rebuilt.data], _MOST)
        lines += style.wrap(printable(f"put the data in its place: {names}"), hanging=2)
    return "\n".join(lines)


def _problems(rebuilt: Rebuilt) -> list[str]:
    problems = [_CODE[rebuilt.code]] if rebuilt.code in _CODE else []
    problems += _packages(rebuilt.packages)
    if rebuilt.unlike:
        problems.append(f"the code of {some_names(rebuilt.unlike, _MOST)} as it was in the run")
    if rebuilt.left_out:
        problems.append(
            f"changes of files that are too large for a record: {some_names(rebuilt.left_out, _MOST)}"
        )
    if rebuilt.absolute:
        names = some_names(rebuilt.absolute, _MOST)
        problems.append(f"what was at {names} when the run was made: `run.sh` uses these paths as they are")
    if rebuilt.variables:
        names = some_names(rebuilt.variables, _MOST)
        problems.append(
            f"the values of {names}, which the record does not hold whole; set them in environment.sh"
        )
    if not rebuilt.has_all_arguments:
        problems.append(
            f"arguments of the script, which are masked; give all: {rebuilt.folder}/run.sh -- ARGUMENTS"
        )
    if rebuilt.masked:
        problems.append("secrets, which are masked in changes.patch")
    return problems


def _packages(unlike: Sequence[Unlike]) -> list[str]:
    """Return what is missing of packages, a line for each reason."""
    problems = []
    for gap, text in _GAPS.items():
        of_gap = [package for package in unlike if package.gap == gap]
        names = [f"{each.name} {each.version}{f' ({each.at})' if each.at else ''}" for each in of_gap]
        if names:
            problems.append(text.format(some_names(names, _MOST)))
    return problems


_CODE = {
    CodeState.MISSING: (
        "the code. The commit is not in this repository; expected `--repository` with a clone that has it, "
        "or the code in the folder `code`"
    ),
    CodeState.NO_GIT: "the code. Git is not on the path; install it, or put the code in the folder `code`",
    CodeState.NO_COMMIT: "the code. The record names no commit; put the code in the folder `code`",
    CodeState.UNCHANGED: (
        "the changes since the commit. `git apply` does not accept changes.patch; make the changes by hand "
        "in the folder `code`"
    ),
}
_GAPS = {
    Gap.BUILD: "the build of {}. No index has it; requirements.txt asks for the version without it",
    Gap.FOLDER: "{}, from a folder that is not in the code of the commit; install it yourself into `venv`",
    Gap.FILE: "the file of {}; requirements.txt asks an index for the version",
    Gap.ADDRESS: "the pinned address of {}; requirements.txt asks an index for the version",
    Gap.CONDA: "the conda builds of {}. pip installs those of PyPI, which can give other bits",
    Gap.EDITED: "the edits of {}, whose files were changed after it was installed",
}
