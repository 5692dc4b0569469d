"""`samebits verify`, on one process or on several ranks."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from samebits.cli.command import help_texts, refuse_rank
from samebits.cli.ending import held_back
from samebits.cli.executor_options import add_executor_options, chosen_executor, is_elsewhere
from samebits.cli.left_behind import announce
from samebits.cli.option_rules import ONE_PROCESS
from samebits.cli.options import (
    add_control_options,
    add_intervention_options,
    add_recording_options,
    add_state_only,
    chosen_interventions,
    control_of,
    control_variables,
    kept_folder,
    wants_progress,
)
from samebits.cli.output import FirstAnswer, print_launches, print_result
from samebits.cli.page_file import add_html, check_page, write_page
from samebits.cli.script_parser import ScriptParser, seconds, whole_number
from samebits.cli.terminal import Phases, style_of
from samebits.errors import SamebitsError
from samebits.recording.naming import DEFAULT_FOLDER, next_free, target_name
from samebits.records.kinds import Level
from samebits.verification import Tools, VerifyRequest, verify
from samebits.verification.rank_launches import LaunchRequest, verify_launch
from samebits.verification.runs import run_jobs
from samebits.verification.user_files import apply, write_diff
from samebits.verification.verify import pruned

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from pathlib import Path

    from samebits.commands.compared_facts import ComparedFacts
    from samebits.verification.results import Fix, Verification


def _verify_ranks(options: argparse.Namespace, folder: Path) -> int:
    """Launch the script as often as it takes and print the verdict.

    Args:
        options: the options of `samebits verify`.
        folder: where the records go.

    Returns:
        the exit status.

    Raises:
        SamebitsError: an option that is for one process only; `usage`. What `verify_launch` raises.
    """
    refuse_rank("verify")
    if is_elsewhere(options):
        message = "--executor does not work with --nproc-per-node; leave one of them out"
        raise SamebitsError(message, slug="usage")
    for name in ONE_PROCESS:
        if getattr(options, name):
            message = f"--{name} does not work with --nproc-per-node; leave one of them out"
            raise SamebitsError(message, slug="usage")
    control_of(options)  # impossible options are refused once, not by each rank
    live = wants_progress(options)
    announce(options, folder)
    request = LaunchRequest(
        target=options.target,
        folder=folder,
        ranks=options.nproc_per_node,
        runs=options.runs,
        steps=options.steps,
        level=Level(options.level),
        run_options=tuple(_run_arguments(options)),
        localise=not options.no_localise,
        output="stderr" if options.json else "inherit",
    )
    result = verify_launch(request, Phases(sys.stderr) if live else None)
    return print_launches(result, as_json=options.json, state_only=options.state_only)


def _run_arguments(options: argparse.Namespace) -> list[str]:
    """Return control and interventions as options of `samebits run`."""
    words = [] if options.seed is None else ["--seed", str(options.seed)]
    words += ["--deterministic"] if options.deterministic else []
    words += ["--per-rank-seeds"] if options.per_rank_seeds else []
    words += ["--reseed"] if options.reseed else []
    words += ["--no-arguments"] if options.no_arguments else []
    words += ["--on-drift", options.on_drift] if options.on_drift else []
    for name, value in options.set:
        words += ["--set", f"{name}={value}"]
    for name in options.leave:
        words += ["--leave", name]
    for name in chosen_interventions(options):
        words += ["--pin", name]
    return words


class VerifyCommand:
    """Run a script twice and compare the two runs bit for bit.

    Each run is a fresh process. The runs are identical if parameters, buffers, gradients and optimizer states
    are equal at every step, and so is every value that the script reads out of a tensor or saves. If they
    differ, samebits runs the script again with every operation recorded, and names the first operation that
    differed and your line that caused it. Exit status: 0 identical, 1 different, 2 could not judge.

    Examples:
      samebits verify train.py --epochs 1
      samebits verify --steps 20 -m mypackage.train
      samebits verify --runs 5 --stress train.py    # what differs only rarely
      samebits verify --seed 3 train.py             # is it repeatable once samebits controls it?
      samebits verify --fix train.py                # look for a patch, and try it
      samebits verify --replay --steps 3 train.py   # which operations do not repeat?
      samebits verify --json train.py > verdict.json
      samebits verify --fix --html report.html train.py    # one page, to share
      samebits verify --nproc-per-node 2 train.py   # as `torchrun --nproc-per-node 2 train.py`
    """

    name = "verify"
    has_json_errors = True

    def parser(self) -> ScriptParser:
        """Return the parser of the words that follow `verify`."""
        parser = ScriptParser(
            **help_texts(self),
            usage="samebits verify [options] SCRIPT|-m MODULE [arguments of the script]",
        )
        parser.add_argument(
            "--runs", type=whole_number(2), default=2, metavar="N", help="compare N runs (default: 2)"
        )
        add_recording_options(parser)
        parser.add_argument(
            "--full", action="store_true", help="let later runs go on after their first difference"
        )
        parser.add_argument(
            "--one-at-a-time",
            action="store_true",
            help="never make two runs at the same time",
        )
        add_state_only(parser)
        parser.add_argument(
            "--verbose", action="store_true", help="show all evidence, all notes and every run"
        )
        parser.add_argument(
            "--keep",
            metavar="DIR",
            help="keep the records of all runs in DIR (default: those of the compared runs and of the "
            "operations, in .samebits/SCRIPT-verify-N)",
        )
        parser.add_argument(
            "--json", action="store_true", help="print one JSON object; the script's output goes to stderr"
        )
        add_html(parser)
        _add_run_options(parser)
        _add_explanation_options(parser)
        add_control_options(parser, brief=True)
        return parser

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Read the words that follow `verify`."""
        return self.parser().parse_command(arguments)

    def run(self, options: argparse.Namespace) -> int:
        """Run the script as often as it takes and print the verdict."""
        if options.nproc_per_node is not None:
            return _verify_ranks(options, _folder(options))
        refuse_rank("verify", options.executor)
        _check(options)
        page = None if options.html is None else check_page(options.html)
        request = _request(options)
        announce(options, request.folder)
        phases = Phases(sys.stderr) if request.progress else None
        style = style_of(sys.stdout, state_only=options.state_only)
        told = None if options.json else FirstAnswer(style, os.getcwd())
        try:
            with chosen_executor(options) as executor:
                tools = Tools(run_jobs=partial(run_jobs, executor=executor))
                result = verify(
                    request, announce=phases, tell=None if told is None else told.tell, tools=tools
                )
        finally:
            if phases is not None:
                phases.clear()
        failed: SamebitsError | None = None
        with held_back():
            if result.fix is not None:
                try:
                    result = replace(result, fix=_written(result.fix, request.folder, wanted=options.apply))
                except SamebitsError as error:
                    failed = error
            facts: ComparedFacts | None = None
            if page is not None:
                try:
                    result, facts = _facts_for_page(result, keep=options.keep is not None)
                except SamebitsError as error:
                    failed, page = error, None
            status = print_result(result, told, verbose=options.verbose, state_only=options.state_only)
            options.json = False  # the one object is printed already
            if page is not None:
                _write_page(result, facts, page)
        if failed is not None:
            raise failed
        if result.interrupted:
            raise KeyboardInterrupt
        return status


def _check(options: argparse.Namespace) -> None:
    """Refuse options that do not go together."""
    if options.apply and not options.fix:
        message = "--apply writes the change that --fix finds; give --fix too"
        raise SamebitsError(message, slug="apply-without-fix")
    if options.quick and options.fix:
        message = "--quick makes no further runs, and --fix needs them to try patches; give one of them"
        raise SamebitsError(message, slug="usage")
    if options.share and not options.fresh:
        raise SamebitsError("--share has an effect only with --fresh; give --fresh too", slug="usage")
    if is_elsewhere(options) and (options.fresh or options.one_at_a_time):
        name = "--fresh" if options.fresh else "--one-at-a-time"
        message = f"{name} does not work with --executor {options.executor}; leave one of them out"
        raise SamebitsError(message, slug="usage")


def _request(options: argparse.Namespace) -> VerifyRequest:
    control = control_of(options)
    return VerifyRequest(
        target=options.target,
        folder=_folder(options),
        runs=options.runs,
        steps=options.steps,
        level=Level(options.level),
        stress=options.stress,
        full=options.full,
        localise=not options.no_localise,
        output="stderr" if options.json else "inherit",
        progress=wants_progress(options),
        replay=options.replay,
        control=control,
        environment=control_variables(control),
        interventions=chosen_interventions(options),
        intervene=not options.no_interventions,
        fix=options.fix,
        quick=options.quick,
        budget=options.budget,
        no_arguments=options.no_arguments,
        one_at_a_time=options.one_at_a_time or is_elsewhere(options),  # what is free here does not matter
        all_at_once=is_elsewhere(options),
        state_only=options.state_only,
        keep_records=options.keep is not None or options.html is not None,  # until the page is written
        fresh=options.fresh,
        share=tuple(options.share),
    )


def _facts_for_page(result: Verification, *, keep: bool) -> tuple[Verification, ComparedFacts | None]:
    """Read what a page shows of the records, then remove those that only it needed.

    Raises:
        SamebitsError: a record cannot be read.
    """
    from samebits.commands.compared_facts import compared_facts

    facts = compared_facts(result)
    return result if keep else pruned(result), facts


def _write_page(result: Verification, facts: ComparedFacts | None, file: Path) -> None:
    """Write the page.

    Raises:
        SamebitsError: it cannot be written.
    """
    from samebits.report.html.comparison_page import comparison_page

    write_page(comparison_page(result, facts, os.getcwd()), file)


def _written(fix: Fix, folder: Path, *, wanted: bool) -> Fix:
    """Write the fix as a diff, and to the user's files if it is confirmed and wanted.

    Raises:
        SamebitsError: see `write_diff` and `apply`.
    """
    fix = write_diff(fix, folder)
    return apply(fix) if wanted and fix.confirmed else fix


def _add_run_options(parser: ScriptParser) -> None:
    """Add the options that change how the script is run."""
    group = parser.add_argument_group("how the script is run")
    group.add_argument(
        "--fresh",
        action="store_true",
        help="give each run its own copy of the working folder, so that no run reads what another one wrote",
    )
    group.add_argument(
        "--share",
        action="append",
        default=[],
        metavar="PATH",
        help="with --fresh: link this file or folder instead of copying it (repeatable)",
    )
    group.add_argument(
        "--stress",
        action="store_true",
        help="change what should not matter in each run: hash seed, memory contents, addresses, thread "
        "scheduling",
    )
    group.add_argument(
        "--replay",
        nargs="?",
        type=whole_number(1),
        const=1,
        default=0,
        metavar="N",
        help="make one more run that executes each operation N more times (default: 1), and name those "
        "that do not repeat",
    )
    group.add_argument(
        "--nproc-per-node",
        type=whole_number(1),
        metavar="N",
        help="start N ranks with torch's elastic launcher, and compare each rank with itself",
    )
    add_intervention_options(group)
    add_executor_options(group)


def _add_explanation_options(parser: ScriptParser) -> None:
    """Add the options for what happens if the runs differ."""
    group = parser.add_argument_group("if the runs differ")
    group.add_argument(
        "--quick",
        action="store_true",
        help="end with the operation, its line and the likely cause, without runs that prove it",
    )
    group.add_argument(
        "--fix",
        action="store_true",
        help="look for a change to your source code, try it on a copy, and print it as a diff",
    )
    group.add_argument(
        "--apply", action="store_true", help="with --fix: write a confirmed change to your files"
    )
    group.add_argument(
        "--budget",
        type=seconds,
        metavar="SECONDS",
        help="time limit for explaining, and the same again for --fix (default: 3 minutes, or 20 times "
        "the first run if that is longer)",
    )
    group.add_argument(
        "--no-interventions",
        action="store_true",
        help="find the operation, but do not look for the cause by further runs",
    )
    group.add_argument(
        "--no-localise",
        "--no-localize",
        action="store_true",
        help="do not run again to find the operation",
    )


def _folder(options: argparse.Namespace) -> Path:
    """Return a folder without records of an earlier verification."""
    if options.keep is not None:
        return kept_folder(options.keep)
    return next_free(DEFAULT_FOLDER, f"{target_name(options.target)}-verify")
