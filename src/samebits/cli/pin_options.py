"""The options by which things in a run are pinned."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from samebits.determinism.pins.plan import check_interventions, why_not
from samebits.determinism.pins.table import INTERVENTIONS
from samebits.errors import EXIT_IDENTICAL

if TYPE_CHECKING:
    from samebits.cli.script_parser import ScriptParser


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
