"""Checks of what proves anything: the digest, the folder of records, and switches that are not as asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits.commands.doctor.environment import differing, relevant_switches
from samebits.commands.doctor.threat import BREAKS, MAY_BREAK, NOTE, Threat

if TYPE_CHECKING:
    from collections.abc import Iterable

    from samebits.commands.doctor.environment import EnvironmentSnapshot

HASH_SEED = "PYTHONHASHSEED"  # has a check of its own


def unfit_variables(snapshot: EnvironmentSnapshot) -> Iterable[Threat]:
    """No environment variable has a value that breaks a promise or is not possible."""
    for view in differing(snapshot):
        if not view.is_variable or not view.now or view.name == HASH_SEED:
            continue
        reason = f"expected {view.problem}" if view.problem else view.why
        remedy = f"unset {view.name}" if view.wanted is None else f"export {view.name}={view.wanted}"
        yield Threat(
            view.promises[0],
            view.name,
            f"{view.name}={view.now}: {reason}",
            f"It is set in the environment that a script would have here: {view.why}.",
            f"{remedy}; samebits run --seed N SCRIPT" if view.wanted else remedy,
            view.source,
            MAY_BREAK if view.wanted is None else BREAKS,
        )


def unset_switches(snapshot: EnvironmentSnapshot) -> Iterable[Threat]:
    """The switches of a fresh process are those of a repeatable run."""
    views = [view for view in differing(snapshot) if not (view.is_variable and view.now)]
    if views:
        names = ", ".join(view.name for view in views)
        verb = "switch is" if len(views) == 1 else "switches are"
        yield Threat(
            "repeatable",
            "switches",
            f"{len(views)} {verb} not set as a repeatable run needs, listed below",
            f"A script starts with torch's own defaults: {names}.",
            "samebits run --seed N SCRIPT, or samebits.deterministic(seed=N)",
            "samebits doctor --switches; PyTorch notes on reproducibility",
            MAY_BREAK,
        )


def set_variables(snapshot: EnvironmentSnapshot) -> Iterable[Threat]:
    """No variable is set that changes bits but breaks no promise here."""
    views = [
        view for view in relevant_switches(snapshot) if view.is_variable and view.now and view.wanted is None
    ]
    views = [view for view in views if not view.problem]
    if views:
        texts = ", ".join(f"{view.name}={view.now}" for view in views)
        yield Threat(
            "portable",
            "variables",
            f"set here: {texts}",
            "Each of them changes bits: a shell, a job or a machine without them gives different bits.",
            "set the same wherever runs are compared",
            "; ".join(dict.fromkeys(view.source for view in views)),
            NOTE,
        )


_TIGHT_BYTES = 1 << 30
_NO_BYTES = 8 << 20


def writable_folder(snapshot: EnvironmentSnapshot) -> Iterable[Threat]:
    """Records can be written."""
    if snapshot.record_folder.unwritable:
        yield Threat(
            "proven",
            "records",
            f"cannot write {snapshot.record_folder.folder}: {snapshot.record_folder.unwritable}",
            "`run` and `verify` write their records there, and do not start if they cannot.",
            "change to another folder, or give --record PATH or --keep DIR",
            "tried here",
            BREAKS,
        )


def free_space(snapshot: EnvironmentSnapshot) -> Iterable[Threat]:
    """There is space for records."""
    free = snapshot.record_folder.free_bytes
    if free >= _TIGHT_BYTES:
        return
    yield Threat(
        "proven",
        "disk",
        f"{free / 1e6:.0f} MB left on the disk of the records",
        "A record of steps takes kilobytes per step, a record of every operation far more. A record that "
        "cannot be written to its end proves nothing about the steps after it.",
        "free some space, or give --record PATH or --keep DIR",
        "docs/reference/record-format.md",
        BREAKS if free < _NO_BYTES else MAY_BREAK,
    )


def digest(snapshot: EnvironmentSnapshot) -> Iterable[Threat]:
    """The digest gives the right values."""
    tried = snapshot.digest
    if tried is not None and tried.error:
        yield Threat(
            "proven",
            "digest",
            f"the digest fails its own test: {tried.error}",
            "Values with known digests were digested in a fresh process, with the back end that runs would "
            "use.",
            "unset SAMEBITS_DIGEST_BACKEND, or set it to torch; reinstall samebits",
            "docs/reference/digest.md",
            BREAKS,
        )
    elif tried is not None and tried.backend == "torch":
        reason = "the C library is not installed" if not tried.library else "the C library is not used"
        yield Threat(
            "proven",
            "digest",
            f"{reason}: digests are right, but slow",
            "The back end in plain torch gives the same values but takes many times as long.",
            "reinstall samebits with a C compiler at hand; unset SAMEBITS_DIGEST_BACKEND",
            "docs/reference/digest.md",
            NOTE,
        )


def address_layout(snapshot: EnvironmentSnapshot) -> Iterable[Threat]:
    """`--stress` can switch address space randomisation off."""
    if not snapshot.fixable_layout:
        yield Threat(
            "proven",
            "addresses",
            "address randomisation cannot be switched off here",
            "`verify --stress` then leaves addresses random in all runs instead of fixing them in every "
            "second run. Containers forbid the call `personality` by default.",
            "docker run --security-opt seccomp=unconfined, if you use --stress",
            "personality(2); Docker docs, seccomp",
            NOTE,
        )


def repository(snapshot: EnvironmentSnapshot) -> Iterable[Threat]:
    """The record can name the code that ran."""
    texts = {
        "absent": ("git is not installed: records cannot name the commit", "install git"),
        "none": ("no git commit here: records cannot name the code that ran", "git init, and commit"),
        "distrusted": (
            "git does not trust this repository, which another user owns: records cannot name the commit",
            "git config --global --add safe.directory FOLDER",
        ),
        "changed": ("uncommitted changes: the commit alone does not name the code", "commit them first"),
    }
    if snapshot.record_folder.git in texts:
        fact, remedy = texts[snapshot.record_folder.git]
        yield Threat(
            "proven",
            "git",
            fact,
            "A record holds the commit and whether tracked files differ from it, so that a later run "
            "can be made from the same code.",
            remedy,
            "docs/reference/record-format.md",
            NOTE,
        )
