"""`samebits cost`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from samebits.cli.command import help_texts, refuse_rank
from samebits.cli.ending import held_back
from samebits.cli.executor_options import add_executor_options, chosen_executor
from samebits.cli.options import add_control_options, control_of
from samebits.cli.page_file import add_html, check_page, write_page
from samebits.cli.script_parser import ScriptParser, whole_number
from samebits.cli.terminal import Phases, style_of, write
from samebits.commands.cost import CostReport, CostRequest, measure_cost, measure_in_job
from samebits.errors import EXIT_IDENTICAL, SamebitsError
from samebits.executors.jobs import results_of
from samebits.executors.surroundings import surroundings
from samebits.report.cost import render_cost, render_cost_json
from samebits.switches.switch import Control
from samebits.verification.preconditions import check_target

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence


class CostCommand:
    """Measure what each determinism switch costs on your script.

    The first steps of the script run with all switches off, with all on, and with each one alone, several
    times in turn. The table shows what each switch adds to the time of a step, and how much that varies.
    Each run is a fresh process; only the steps are timed. Seeds are not touched.

    Examples:
      samebits cost train.py --batch-size 64
      samebits cost --steps 50 --rounds 9 train.py    # less noise
      samebits cost --json train.py > cost.json
    """

    name = "cost"
    has_json_errors = False

    def parser(self) -> ScriptParser:
        """Return the parser of the words that follow `cost`."""
        parser = ScriptParser(
            **help_texts(self),
            usage="samebits cost [options] SCRIPT|-m MODULE [arguments of the script]",
        )
        parser.add_argument(
            "--steps", type=whole_number(3), default=20, metavar="N", help="time N steps (default: 20)"
        )
        parser.add_argument(
            "--warmup",
            type=whole_number(0),
            default=3,
            metavar="N",
            help="skip the first N steps (default: 3)",
        )
        parser.add_argument(
            "--rounds",
            type=whole_number(1),
            default=5,
            metavar="N",
            help="run each variant N times (default: 5)",
        )
        parser.add_argument("--output", action="store_true", help="show what the script prints")
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        add_html(parser)
        add_executor_options(parser)
        add_control_options(parser, brief=True)
        parser.set_defaults(deterministic=True)  # the switches are what it measures
        return parser

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Read the words that follow `cost`."""
        return self.parser().parse_command(arguments)

    def run(self, options: argparse.Namespace) -> int:
        """Measure and print."""
        refuse_rank("cost", options.executor)
        check_target(options.target)
        if options.portable:
            message = "--portable is not a switch; leave it out, and time `samebits run` with and without it"
            raise SamebitsError(message, slug="usage")
        page = None if options.html is None else check_page(options.html)
        with tempfile.TemporaryDirectory(prefix="samebits-cost-") as folder:
            request = CostRequest(
                target=options.target,
                folder=Path(folder),
                control=control_of(options) or Control(),
                rounds=options.rounds,
                steps=options.steps,
                warmup=options.warmup,
                output="stderr" if options.output else "nothing",
            )
            report = _measured(request, options)
        text = render_cost_json(report) if options.json else render_cost(report, style_of(sys.stdout))
        with held_back():
            write(text, sys.stdout)
            if page is not None:
                from samebits.report.html.cost_page import cost_page

                write_page(cost_page(report), page)
        if report.interrupted:
            raise KeyboardInterrupt
        return EXIT_IDENTICAL


def _measured(request: CostRequest, options: argparse.Namespace) -> CostReport:
    """Measure here, or on one machine of a cluster."""
    with chosen_executor(options) as executor:
        if executor is None:
            return measure_cost(request, Phases(sys.stderr) if sys.stderr.isatty() else None)
        around = surroundings(shares_files=executor.shares_files)
        report: CostReport
        (report,) = results_of([executor.submit(measure_in_job, around, request)])
        return report
