"""Installed packages that change settings, rewind generators or hold private ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits.doctor.checks.package_table import PACKAGES
from samebits.doctor.threat import NOTE, Threat

if TYPE_CHECKING:
    from collections.abc import Iterable

    from samebits.doctor.checks.package_table import PackageFact
    from samebits.doctor.surroundings import Surroundings


def known_packages(here: Surroundings) -> Iterable[Threat]:
    """No installed package, or none that the script imports, is known to threaten a promise."""
    for fact in PACKAGES:
        name = _installed_name(fact, here)
        if not name or not _matters(fact, here):
            continue
        if here.imports is not None and fact.module not in here.imports:
            continue
        found = f"{name} {here.packages[name]}: {fact.found}"
        why = f"{fact.why} `samebits run --seed N` {fact.control or 'does not change that'}."
        yield Threat(fact.promise, name, found, why, fact.remedy, fact.source, fact.level)


def packages_not_imported(here: Surroundings) -> Iterable[Threat]:
    """With a script: packages that it does not import itself are named, not judged."""
    if here.imports is None:
        return
    facts = [fact for fact in PACKAGES if fact.module not in here.imports and _matters(fact, here)]
    names = sorted({name for fact in facts if (name := _installed_name(fact, here))})
    if names:
        yield Threat(
            "repeatable",
            "packages",
            f"installed, not imported by the script itself: {', '.join(names)}",
            "They threaten a promise only if something that the script imports does import them, which is "
            "not followed.",
            "samebits doctor, without a script, says what is known of them",
            "read from the source of the script and the modules beside it",
            NOTE,
        )


def _matters(fact: PackageFact, here: Surroundings) -> bool:
    variable, value = fact.cured_by
    if variable and here.variables.get(variable) == value:
        return False
    return not fact.cuda or bool(here.torch.cuda)


def _installed_name(fact: PackageFact, here: Surroundings) -> str:
    return next((name for name in fact.names if name in here.packages), "")
