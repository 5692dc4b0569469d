"""What a check against a lock file shows, in English; text, JUnit, SARIF and JSON all take it from here."""

from __future__ import annotations

import os
import shlex
from itertools import chain, islice
from typing import TYPE_CHECKING

from samebits._text.printable import printable
from samebits.commands.lock.entry import END
from samebits.commands.lock.file import DEFAULT
from samebits.commands.lock.outcome import Beginning, Blame, Obstacle, OldCode, Proof, Relation
from samebits.report.environments import fact_difference, unknown_texts
from samebits.report.origin_words import amount_text, headline
from samebits.report.style import count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from samebits.commands.lock.entry import LockRow
    from samebits.commands.lock.outcome import Change, EntryResult, RestoredSetting
    from samebits.comparison.environments import EnvironmentDifference
    from samebits.comparison.results import Finding

_MOST_FACTS = 3
TITLES = {
    Blame.CHANGE: "your change",
    Blame.DATA: "your data",
    Blame.PLATFORM: "drift of the platform",
    Blame.BOTH: "your change, and drift of the platform",
    Blame.NONDETERMINISM: "nondeterminism",
    Blame.UNDECIDED: "not decided",
    Blame.UNRECORDED: "something that the lock does not hold",
    Blame.CHANGE_AND_UNRECORDED: "your change, and something that the lock does not hold",
}
_OBSTACLES = {
    Obstacle.GIT_MISSING: "git, which has it, is not on the path",
    Obstacle.NO_GIT: "the lock file is in no git repository that has a commit",
    Obstacle.DISTRUSTED: (
        "git does not trust the repository, because another user owns it; "
        "`git config --global --add safe.directory FOLDER` allows it"
    ),
    Obstacle.SHALLOW: "its commit was not fetched; fetch all history (`fetch-depth: 0` in GitHub Actions)",
    Obstacle.NO_COMMIT: "no commit has the code that the lock was made with",
    Obstacle.OLD_CODE_FAILED: "the old code does not run here",
}


def where_text(result: EntryResult) -> str:
    """Say where a run leaves its lock: `from step 3 of 120 on: gradients or state`."""
    mismatch = result.mismatch
    if mismatch is None:
        return ""
    locked, here = mismatch.steps
    row = mismatch.locked or mismatch.here
    if mismatch.locked is None or mismatch.here is None:
        return f"{count(locked, 'step')} in the lock, {here} here"
    assert row is not None  # noqa: S101 - one of the two is there
    what = "gradients or state" if mismatch.of_state else "only values that are read out or saved"
    if row.last == END:
        place = "after the last step" if locked else "in the values that it gives"
    else:
        steps = f"step {row.first}" if row.first == row.last else f"steps {row.first} to {row.last}"
        place = f"from {steps} of {locked} on"
    return f"{place}: {what}"


def values_text(result: EntryResult) -> str:
    """Return the first value that differs: `loss 2.302585 in the lock, 2.302591 here`; of which step."""
    mismatch = result.mismatch
    if mismatch is None or mismatch.locked is None or mismatch.here is None:
        return ""
    rows = (mismatch.locked, mismatch.here)
    later = () if result.run is None else zip(result.entry.rows, result.run.rows, strict=False)
    for number, (locked, here) in enumerate(chain([rows], islice(later, mismatch.row + 1, None))):
        for (kind, ours), theirs in zip(locked.numbers, _values(here), strict=False):
            shown = f"{ours:.7g}", f"{theirs:.7g}"
            if shown[0] != shown[1]:
                place = f"{_row_name(locked)}: " if number else ""
                return f"{place}{kind} {shown[0]} in the lock, {shown[1]} here"
    if mismatch.locked.numbers:
        kind, value = mismatch.locked.numbers[0]
        return f"{kind} {value:.7g} in both, to 7 digits"
    return ""


def _row_name(row: LockRow) -> str:
    return "after the last step" if row.last == END else f"step {row.first}"


def next_text(result: EntryResult, folder: str) -> str:
    """Say what to do about a mismatch; empty where the report has said it.

    Args:
        result: of the entry.
        folder: in which commands are typed.
    """
    entry = result.entry
    if result.blame is Blame.NONDETERMINISM:
        if entry.test:
            return "assert_repeatable says why"
        if result.old_code is OldCode.CHANCE:
            return f"if the code is fixed by now: {_update(result, folder)}"
        runs = "the runs that looked for the cause agreed; `samebits verify --runs 20` may find it"
        return runs if result.finding is None else ""
    if result.blame is Blame.UNDECIDED and _is_old_code_wanted(result):
        again = "this test" if entry.test else "`samebits check`"
        return f"check out the code of the lock and run {again} again"
    return f"if this is wanted: {_update(result, folder)}"


def _update(result: EntryResult, folder: str) -> str:
    """Return the command that writes an entry again."""
    if result.entry.test:  # its node id is relative to the lock file, so it is not for any folder
        return "pytest --samebits-update, on this test"
    is_default = result.lock in ("", os.path.join(folder, DEFAULT))
    where = () if is_default else ("--lock", os.path.relpath(result.lock, folder))
    return printable(shlex.join(("samebits", "check", *where, "--update", result.entry.name)))


def _values(row: LockRow) -> Iterator[float]:
    return (value for _, value in row.numbers)


def blame_text(result: EntryResult) -> str:
    """Say whose a mismatch is, and how that is known."""
    if result.blame is None:
        return ""
    return _BLAMES[result.blame](result)


def _of_change(result: EntryResult) -> str:
    if result.proof is Proof.TRIED:
        good = result.change.good.sha[:10] if result.change is not None else "the lock's commit"
        return f"the code of {good} still gives the bits of the lock here, and the code as it is does not"
    if any(each.fact.path[0] == "data" for each in result.inputs):
        return f"the code and the data differ from those of the lock, and nothing else does{_why_not(result)}"
    return f"the code differs from that of the lock, and nothing else does{_why_not(result)}"


def _of_data(result: EntryResult) -> str:
    if result.old_code is OldCode.SAME:
        code = "The code differs too, with the same bits (tried)"
        return f"data that the run reads differ from those of the lock. {code}"
    return f"data that the run reads differ from those of the lock, and nothing else does{_why_not(result)}"


def _of_platform(result: EntryResult) -> str:
    if result.settings:
        return "with the settings of the lock, its code gives its bits here"
    if result.proof is Proof.TRIED:
        return "the code of the lock gives other bits here than it gave then"
    promise = ". Portable mode promises the same bits: please report this" if result.entry.is_portable else ""
    return f"the code is that of the lock, and each run here gives the same other bits{promise}"


def _of_both(result: EntryResult) -> str:
    return f"{_of_platform(result)}; the code as it is gives others again"


def _of_nondeterminism(result: EntryResult) -> str:
    if result.old_code is OldCode.CHANCE:
        now = "Those of the code as it is gave the same"
        return f"two runs of the code of the lock on this machine gave different bits. {now}"
    return "two runs of the same code on this machine gave different bits"


def _is_old_code_wanted(result: EntryResult) -> bool:
    """Tell whether the code of the lock, if it was run, could show more."""
    return bool(result.inputs) and result.old_code is None


def _undecided(result: EntryResult) -> str:
    if _is_old_code_wanted(result):
        return (
            f"the code or the data differ from those of the lock, and so does the platform{_why_not(result)}"
        )
    why = _OPEN[result.begins]
    return f"{_known(result)}. That is the platform, or something that the lock does not hold: {why}"


def _unrecorded(result: EntryResult) -> str:
    return f"{_known(result)}. {_ELSE[result.begins]}"


def _known(result: EntryResult) -> str:
    """Say what was seen of runs with the code of the lock, and with its settings."""
    if result.old_code is not None:
        only_code = all(each.fact.path[0] == "code" for each in result.inputs)
        differs = "the code differs from that" if only_code else "the code or the data differ from those"
        text = f"{differs} of the lock, {_OLD[result.old_code]}"
    elif result.platform:
        text = "the code is that of the lock, and each run here gives the same other bits"
    else:
        text = "all runs here agree, and nothing that the lock holds is different"
    if not result.tried:
        return text
    return f"{text}. The settings of the lock ({_listed(result.tried)}) do not bring its bits back (tried)"


_OLD = {
    OldCode.SAME: "but the code of the lock gives the same bits here as the code as it is",
    OldCode.OTHERS: "and the code of the lock does not give its bits here either",
}
_OPEN = {
    Beginning.ENTERED: "values that differ come in from outside at the operation below",
    Beginning.OPEN: "the operation below does not show which",
    Beginning.COMPUTED: "the operation below does not show which",
    None: "no record beside the lock shows which",
}
_ANYTHING = "Something else is: a file that compiled code reads, a package that was built anew, the network"
_ELSE = {
    Beginning.ENTERED: (
        "An input that the lock does not hold is different: its values come in at the operation below"
    ),
    Beginning.OPEN: _ANYTHING,
    None: _ANYTHING,
    Beginning.COMPUTED: (
        "Something else is: the operation below gives other bits for the same input, as a package does that "
        "was built anew"
    ),
}


_BLAMES = {
    Blame.CHANGE: _of_change,
    Blame.DATA: _of_data,
    Blame.PLATFORM: _of_platform,
    Blame.BOTH: _of_both,
    Blame.NONDETERMINISM: _of_nondeterminism,
    Blame.UNDECIDED: _undecided,
    Blame.UNRECORDED: _unrecorded,
    Blame.CHANGE_AND_UNRECORDED: _unrecorded,
}


def _why_not(result: EntryResult) -> str:
    """Say why the old code was not run to make sure."""
    reasons = "; ".join(_OBSTACLES[each] for each in result.obstacles)
    return f". The old code was not run to make sure: {reasons}" if reasons else ""


def change_title(change: Change) -> str:
    """Name the change: its commit, or that it is not committed."""
    good, commit = change.good.sha[:10], change.commit
    if change.relation is Relation.APART:
        last = f"commit {commit.sha[:10]} {commit.subject}" if commit is not None else "the working tree"
        return printable(f"between commit {good} and {last}; which one was not found")
    if commit is None:
        return "not committed yet"
    name = f"{commit.sha[:10]} {commit.subject}"
    is_merge = change.relation is Relation.MERGE
    return printable(f"merge {name}, against its parent {good}" if is_merge else f"commit {name}")


def change_text(change: Change) -> str:
    """Say what was tried of a change."""
    if change.proof is Proof.TRIED:
        return "with these lines as before, the bits are those of the lock (tried)"
    if change.hunks:
        more = f", and {count(change.others, 'further place')}" if change.others else ""
        files = f". These files differ too and were not tried: {_files(change)}" if change.files else ""
        return f"with all changed lines as before, the bits are still others (tried){more}{files}"
    if change.files:
        return f"these files differ and were not tried: {_files(change)}"
    return "no line of text differs; the mode or the name of a file may"


def _files(change: Change) -> str:
    """Name files of which no lines can be taken back."""
    return printable(f"{', '.join(change.files)} (large, a link, or no text)")


def facts(result: EntryResult) -> tuple[str, ...]:
    """Return the likeliest differences of the environment, the value of the lock first."""
    inputs = result.blame in _WITH_INPUTS or (result.blame is Blame.CHANGE and result.change is None)
    platform = result.blame in _WITH_PLATFORM and not result.settings
    shown = (
        *(result.inputs[:_MOST_FACTS] if inputs else ()),
        *(result.platform[:_MOST_FACTS] if platform else ()),
    )
    return tuple(map(fact, shown))


_WITH_PLATFORM = (Blame.DATA, Blame.UNDECIDED, Blame.PLATFORM, Blame.BOTH)
_WITH_INPUTS = (Blame.DATA, Blame.UNDECIDED, Blame.BOTH, Blame.UNRECORDED, Blame.CHANGE_AND_UNRECORDED)


def fact(difference: EnvironmentDifference) -> str:
    """Name a fact that differs, with its value in the lock and here."""
    return printable(fact_difference(difference.fact))


def unknown(result: EntryResult) -> tuple[str, ...]:
    """Name the data files of which it is not known whether they are those of the lock."""
    return tuple(map(printable, unknown_texts(result.unknown, ("the lock", "this run"), _MOST_FACTS)))


def settings_text(result: EntryResult) -> str:
    """Return the settings that bring the bits of the lock back: `OMP_NUM_THREADS=2`."""
    return _listed(result.settings)


def _listed(settings: tuple[RestoredSetting, ...]) -> str:
    parts = (
        f"{each.name}={each.value}" if each.value is not None else f"{each.name} unset" for each in settings
    )
    return ", ".join(map(printable, parts))


def place_label(result: EntryResult) -> str:
    """Name what the operation is: where values come in, or where the bits part."""
    return "comes in at" if result.begins is Beginning.ENTERED else "begins at"


def operation_text(finding: Finding) -> str:
    """Name the operation at which the bits part, and how far its results are apart."""
    difference = finding.origin.difference
    amount = f": {amount_text(difference)}" if difference is not None else ""
    other = finding.origin.other_op
    instead = f"; {printable(other)} instead in the other" if other and other != finding.origin.op else ""
    return f"{headline(finding.origin)}{amount}{instead}"


def summary(result: EntryResult) -> str:
    """Return a check in one line."""
    if result.verdict == "identical":
        return f"identical, {count(result.entry.steps, 'step')}"
    if result.verdict == "not_judged":
        return f"not judged: {printable(result.error[0])}"
    title = f" ({TITLES[result.blame]})" if result.blame is not None else ""
    return f"different{title}, {where_text(result)}"
