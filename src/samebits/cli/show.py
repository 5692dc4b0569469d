"""`samebits show`."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from samebits.cli.command import help_texts
from samebits.cli.script_parser import CommandParser, whole_number
from samebits.cli.terminal import style_of, write
from samebits.errors import SamebitsError
from samebits.records.kinds import KINDS, EventKind
from samebits.records.reader import RecordReader
from samebits.report import record as report

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator, Sequence

    from samebits.records.events import Event, RunInfo


class ShowCommand:
    """Show what a record holds.

    The summary has the command, how the run ended, the environment, and for each step one digest per kind
    of state. A record that was cut short by a kill is shown as far as it goes.

    Examples:
      samebits show .samebits/train-1.sbr
      samebits show a.sbr --events read,save
      samebits show a.sbr --events all --step 3 --json
    """

    name = "show"
    has_json_errors = False

    def parser(self) -> CommandParser:
        """Return the parser of the words that follow `show`."""
        parser = CommandParser(**help_texts(self))
        parser.add_argument("record", metavar="RECORD", help="the record of a run")
        parser.add_argument(
            "--events",
            metavar="KINDS",
            help=f"list events instead: `all`, or kinds separated by commas ({', '.join(KINDS)})",
        )
        parser.add_argument("--step", type=whole_number(0), metavar="N", help="only events of step N")
        parser.add_argument(
            "--json", action="store_true", help="print JSON; with --events, one object per line"
        )
        return parser

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Read the words that follow `show`."""
        return self.parser().parse_args(list(arguments))

    def run(self, options: argparse.Namespace) -> int:
        """Print the record."""
        kinds = _kinds(options.events)
        with RecordReader(options.record) as reader:
            _check_step(options.step, reader)
            events = reader.events(kinds, options.step, options.step)
            info = reader.info if options.events is not None else _counted(reader)
            for text in _texts(options, info, events):
                write(text, sys.stdout)
        return 0


def _texts(options: argparse.Namespace, info: RunInfo, events: Iterator[Event]) -> Iterable[str]:
    """Return the output piece by piece: a record may hold millions of events."""
    style = style_of(sys.stdout)
    if options.events is not None:
        return map(report.event_json, events) if options.json else report.render_events(events, style)
    summary = report.summarize(options.record, os.path.getsize(options.record), info, events)
    return [report.render_json(summary) if options.json else report.render_text(summary, style)]


def _check_step(step: int | None, reader: RecordReader) -> None:
    """Refuse a step that the record does not have."""
    if step is None or next(iter(reader.events((), step, step)), None) is not None:
        return
    last = max((event.step for event in reader.events((EventKind.STEP,))), default=None)
    held = "it has no steps" if last is None else f"it has steps 0 to {last}"
    raise SamebitsError(f"the record has no event of step {step}; {held}", slug="usage")


def _counted(reader: RecordReader) -> RunInfo:
    """Return the facts of the run, with the number of steps that a comparison counts."""
    return replace(reader.info, steps=reader.n_steps())


def _kinds(text: str | None) -> tuple[EventKind, ...]:
    if text in (None, "all"):
        return ()
    return tuple([_kind(name) for name in str(text).split(",")])


def _kind(name: str) -> EventKind:
    try:
        return EventKind(name)
    except ValueError:
        message = f"there is no event kind {name!r}; expected `all`, or some of {','.join(KINDS)}"
        raise SamebitsError(message, slug="usage") from None
