"""Conditions under which samebits itself can prove anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits.commands.doctor.threat import BREAKS, MAY_BREAK, NOTE, Threat

if TYPE_CHECKING:
    from collections.abc import Iterable

    from samebits.commands.doctor.environment import EnvironmentSnapshot

_TIGHT_BYTES = 1 << 30
_NO_BYTES = 8 << 20


def writable_folder(here: EnvironmentSnapshot) -> Iterable[Threat]:
    """Records can be written."""
    if here.record_folder.unwritable:
        yield Threat(
            "proven",
            "records",
            f"cannot write {here.record_folder.folder}: {here.record_folder.unwritable}",
            "`run` and `verify` keep their records there, and refuse to start if they cannot.",
            "change to another folder, or give --record PATH or --keep DIR",
            "tried here",
            BREAKS,
        )


def free_space(here: EnvironmentSnapshot) -> Iterable[Threat]:
    """There is space for records."""
    free = here.record_folder.free_bytes
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


def digest(here: EnvironmentSnapshot) -> Iterable[Threat]:
    """The digest gives the right values."""
    tried = here.digest
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


def address_layout(here: EnvironmentSnapshot) -> Iterable[Threat]:
    """`--stress` can switch address space randomisation off."""
    if not here.fixable_layout:
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


def repository(here: EnvironmentSnapshot) -> Iterable[Threat]:
    """The record can name the code that ran."""
    texts = {
        "absent": ("git is not installed: records cannot name the commit", "install git"),
        "none": ("no git commit here: records cannot name the code that ran", "git init, and commit"),
        "changed": ("uncommitted changes: the commit alone does not name the code", "commit them first"),
    }
    if here.record_folder.git in texts:
        found, remedy = texts[here.record_folder.git]
        yield Threat(
            "proven",
            "git",
            found,
            "A record holds the commit and whether tracked files differ from it, so that a later run "
            "can be made from the same code.",
            remedy,
            "docs/reference/record-format.md",
            NOTE,
        )
