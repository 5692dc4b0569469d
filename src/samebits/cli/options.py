"""The options by which a run is controlled, shared by all commands that run a script."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any

from samebits.errors import EXIT_IDENTICAL, SamebitsError
from samebits.interventions.plan import check_interventions, why_not
from samebits.interventions.table import INTERVENTIONS
from samebits.rng.seeds import check_seed
from samebits.rng.states import current_rank
from samebits.switches.control import LEFT_ALONE, Control
from samebits.switches.table import environment_for

if TYPE_CHECKING:
    from samebits.cli.script_parser import ScriptParser

# The script seeds itself, and no switch is touched.
_ONLY_PORTABLE = Control(all_switches=False, on_drift="ignore", workers=False, portable=True)


def add_control_options(parser: ScriptParser) -> None:
    """`--seed` and what belongs to it."""
    group = parser.add_argument_group("control of the run")
    group.add_argument(
        "--seed",
        type=seed_text,
        metavar="N",
        help="seed every RNG source and set every switch that makes runs repeatable",
    )
    group.add_argument(
        "--deterministic", action="store_true", help="set the switches only; the script seeds itself"
    )
    group.add_argument(
        "--portable",
        action="store_true",
        help="the same bits on any thread count, instruction set and torch release, on the CPU",
    )
    group.add_argument(
        "--set",
        action="append",
        default=[],
        type=assignment,
        metavar="SWITCH=VALUE",
        help="give a switch another value than control would (`samebits doctor` lists them)",
    )
    group.add_argument(
        "--leave", action="append", default=[], metavar="SWITCH", help="do not touch or watch a switch"
    )
    group.add_argument(
        "--per-rank-seeds", action="store_true", help="in a distributed run, another seed for each rank"
    )
    group.add_argument(
        "--keyed-samples",
        action="store_true",
        help="what a dataset draws follows from the sample, not from the worker that loads it",
    )
    group.add_argument(
        "--reseed",
        action="store_true",
        help="seeds that the script sets itself follow from --seed too (default: they are the script's)",
    )
    group.add_argument(
        "--on-drift",
        choices=("warn", "error", "restore", "ignore"),
        help="when a switch or a generator is changed behind your back (default: warn)",
    )


def control_of(options: argparse.Namespace) -> Control | None:
    """What the options ask for; None when they ask for no control.

    Raises:
        SamebitsError: options that mean nothing without `--seed` or `--deterministic`; `usage`.
    """
    if options.seed is None:
        _refuse_idle(options)
    if options.seed is None and not options.deterministic:
        return _ONLY_PORTABLE if options.portable else None
    _refuse_contradictions(options)
    return Control(
        seed=options.seed,
        per_rank=options.per_rank_seeds,
        switches=(*options.set, *((name, LEFT_ALONE) for name in options.leave)),
        on_drift=options.on_drift or "warn",
        reseed=options.reseed,
        keyed_samples=options.keyed_samples,
        portable=options.portable,
    )


def _refuse_idle(options: argparse.Namespace) -> None:
    """Refuse options that would do nothing without a seed, or without any control."""
    of_seed = {
        "--per-rank-seeds": options.per_rank_seeds,
        "--reseed": options.reseed,
        "--keyed-samples": options.keyed_samples,
    }
    of_control = {"--set": options.set, "--leave": options.leave, "--on-drift": options.on_drift}
    idle = [name for name, given in of_seed.items() if given]
    if idle:
        message = f"{' and '.join(idle)} {'needs' if len(idle) == 1 else 'need'} a seed; give --seed N too"
        raise SamebitsError(message, slug="usage")
    idle = [name for name, given in of_control.items() if given]
    if idle and not options.deterministic:
        does = "does" if len(idle) == 1 else "do"
        message = f"{' and '.join(idle)} {does} nothing without control; give --seed N or --deterministic too"
        raise SamebitsError(message, slug="usage")


def _refuse_contradictions(options: argparse.Namespace) -> None:
    asked: dict[str, str] = {}
    for name, value in (*options.set, *((name, LEFT_ALONE) for name in options.leave)):
        if asked.setdefault(name, value) != value:
            message = f"the switch {name} is to be both {asked[name]} and {value}; expected one value"
            raise SamebitsError(message, slug="usage")


def control_variables(control: Control | None) -> dict[str, str]:
    """The variables that a controlled run starts with; what is replaced of the user's own is said on stderr.

    Raises:
        SamebitsError: a switch that does not exist, or cannot have that value; no rank.
    """
    if control is None:
        return {}
    if control.per_rank:
        current_rank()  # one that is wrong is said before a record is begun
    plan = environment_for(control, os.environ)
    for warning in plan.warnings:
        print(f"samebits: {warning}", file=sys.stderr)
    return dict(plan.variables)


def seed_text(text: str) -> int:
    """The type of `--seed`."""
    value = int(text) if text.isascii() and text.isdigit() else text
    try:
        return check_seed(value)
    except SamebitsError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def assignment(text: str) -> tuple[str, str]:
    """The type of `--set`."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        message = f"expected SWITCH=VALUE, found {text!r}"
        raise argparse.ArgumentTypeError(message)
    return name, value


def add_pin_options(parser: ScriptParser) -> None:
    """`--pin` and `--list-pins`."""
    parser.add_argument(
        "--pin",
        action="append",
        default=[],
        metavar="NAME",
        help="fix one thing in every run, such as `clock` or `seed-numpy` (can be repeated; see --list-pins)",
    )
    parser.add_argument("--list-pins", action=_ListPins, nargs=0, help="list the pins and end")


def pins_of(options: argparse.Namespace) -> tuple[str, ...]:
    """The pins that are asked for, each once.

    Raises:
        SamebitsError: one does not exist (`pin-unknown`), or cannot be had here (`pin-impossible`).
    """
    pins = tuple(dict.fromkeys(options.pin))
    check_interventions(pins)
    return pins


class _ListPins(argparse.Action):
    def __call__(self, *_: Any) -> None:
        width = max(len(pin.name) for pin in INTERVENTIONS)
        for pin in INTERVENTIONS:
            obstacle = why_not(pin)
            more = f"; not here: {obstacle}" if obstacle else ""
            print(f"{pin.name:{width}}  {pin.words}{more}")
        sys.exit(EXIT_IDENTICAL)
