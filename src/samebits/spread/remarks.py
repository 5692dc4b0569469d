"""What a user must know to read the numbers: seeds without effect, files that runs share, and the like."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from samebits.spread.seeds import seeds_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from samebits.spread.results import Configuration, Measured, Seeding, SeedRun

_MOST_SITES = 3


def constant_seedings(runs: Sequence[SeedRun]) -> tuple[Seeding, ...]:
    """Calls by which the script seeds a generator with the same value in every run."""
    if len(runs) < 2:
        return ()
    shared = set(runs[0].seedings).intersection(*(run.seedings for run in runs[1:]))
    return tuple(seeding for seeding in runs[0].seedings if seeding in shared)


def remarks(measured: Measured, last: int) -> tuple[str, ...]:
    """What is to be said of one configuration.

    Args:
        measured: the configuration.
        last: how many values were asked to be averaged at the end.
    """
    configuration = measured.configuration
    runs = configuration.runs
    found = [*_of_seeding(measured), *_of_shared_files(runs), *_of_values(measured, last)]
    if configuration.changed:
        names = ", ".join(os.path.relpath(path) for path in configuration.changed[:_MOST_SITES])
        found.append(f"{names} changed since: seeds that had finished were run again")
    if len({run.threads for run in runs}) > 1:
        found.append("the runs used different numbers of threads, which changes bits: the script sets them")
    return tuple(found)


def _of_seeding(measured: Measured) -> list[str]:
    runs = measured.configuration.runs
    constant = constant_seedings(runs)
    where = "; ".join(f"{seeding.call} at {_place(seeding)}" for seeding in constant[:_MOST_SITES])
    if measured.same_bits:
        own = f"the script seeds itself with the same value in each: {where}"
        why = own if constant else "it draws from no generator that the seed reaches"
        text = (
            f"every seed gave the same bits: {why}. So this says nothing of how much randomness matters to it"
        )
        advice = ". If it takes a seed, hand it over: --seed-argument --seed" if constant else ""
        return [text + advice]
    if constant:
        text = f"the script seeds itself with the same value in each run: {where}"
        return [f"{text}. What is drawn from that generator afterwards does not vary here"]
    return []


def _place(seeding: Seeding) -> str:
    inside = os.path.relpath(seeding.file)
    return f"{seeding.file if inside.startswith('..') else inside}:{seeding.line}"


def _of_shared_files(runs: Sequence[SeedRun]) -> list[str]:
    shared = set(runs[0].saved).intersection(*(run.saved for run in runs[1:])) if len(runs) > 1 else set()
    if not shared:
        return []
    path = os.path.relpath(min(shared))
    text = f"each run saved to {path}: runs at the same time overwrite each other's file"
    return [f"{text}. Put {{seed}} into its name in the arguments, or use --jobs 1"]


def _of_values(measured: Measured, last: int) -> list[str]:
    found = []
    lengths = [len(curve.values) for curve in measured.curves]
    least, most = min(lengths), max(lengths)
    if least != most:
        text = f"the runs have different numbers of values, {least} to {most}"
        found.append(f"{text}: the median is drawn where all have one")
    if least < last:
        found.append(f"a run has {least} values, fewer than --last {last}: all of them are averaged")
    if len(measured.finals) > 1 and len(set(measured.finals.values())) == 1 and not measured.same_bits:
        text = "the final value is the same in every run: rounded, at its limit, or out of the seed's reach"
        found.append(f"{text}; another metric may say more (--list-metrics)")
    estimate = measured.estimate
    left_out = tuple(measured.finals) if estimate is None else estimate.left_out
    if left_out:
        seeds = seeds_text(left_out)
        found.append(f"the final value of seed {seeds} is NaN or infinite: left out of mean and interval")
    return found


def comparability(first: Configuration, second: Configuration) -> tuple[str, ...]:
    """What makes the comparison of two configurations unfair."""
    if first.threads != second.threads:
        return (
            f"the two used {first.threads} and {second.threads} threads for each run, which changes bits too",
        )
    return ()
