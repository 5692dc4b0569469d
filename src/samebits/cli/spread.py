"""`samebits spread`."""

from __future__ import annotations

import dataclasses
import os
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from samebits.cli.command import help_texts, refuse_rank
from samebits.cli.defaults import pass_over
from samebits.cli.ending import held_back
from samebits.cli.executor_options import add_executor_options, chosen_executor, is_elsewhere
from samebits.cli.left_behind import announce
from samebits.cli.options import wants_progress
from samebits.cli.page_file import add_html, check_page, write_page
from samebits.cli.script_parser import ScriptParser, whole_number
from samebits.cli.terminal import SeedCount, style_of, write
from samebits.commands.spread.remarks import Remark, RemarkCode
from samebits.commands.spread.request import SpreadRequest, merged_arguments, parse_seeds, share_cores
from samebits.commands.spread.seed_runs import folder_of, is_spread, load_configuration
from samebits.commands.spread.study import evaluate, run_configuration
from samebits.errors import EXIT_IDENTICAL, SamebitsError
from samebits.report import plot, spread_json, spread_text
from samebits.report.spread_text import BLOCKS
from samebits.switches.switch import Control
from samebits.verification.preconditions import refuse_missing

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from samebits.commands.spread.summary import Configuration, Spread
    from samebits.executors.jobs import Executor
    from samebits.recording.runner import Target

_TELLING = ("--seeds", "--versus", "--against")  # options that decide what is run


class SpreadCommand:
    """Run a script with several seeds and show how much the seed alone changes.

    Each seed is a fresh run with all generators seeded. The metrics are what the script prints or logs, and
    its loss at each backward pass. The report shows a curve for each seed, and the mean, the standard
    deviation and the 95 % interval of the final value. With a second configuration it also says whether the
    two differ by more than seed noise. Finished seeds are not run again.
    Exit status: 0 done, 2 could not be done.

    Examples:
      samebits spread --seeds 0..9 train.py --lr 0.1
      samebits spread --seeds 0..9 train.py --lr 0.1 --versus "--lr 0.01"
      samebits spread --seeds 0..4 --metric val_acc train.py --save 'model-{seed}.pt'
      samebits spread .samebits/spread/train-1a2b --html seeds.html
      samebits spread .samebits/spread/train-1a2b --against .samebits/spread/train-3c4d
    """

    name = "spread"
    has_json_errors = True
    render_error = staticmethod(spread_json.render_error)

    def parser(self) -> ScriptParser:
        """Return the parser of the words that follow `spread`."""
        parser = ScriptParser(
            **help_texts(self),
            usage="samebits spread [options] SCRIPT|-m MODULE [arguments of the script]\n"
            "       samebits spread [options] FOLDER --against FOLDER",
            dashed=("--versus", "--seed-argument"),
        )
        _add_runs(parser)
        _add_output(parser)
        parser.set_defaults(own_options=parser.option_names())
        return parser

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Read the words that follow `spread`."""
        parser = self.parser()
        return _with_folder_options(parser, parser.parse_command(arguments))

    def run(self, options: argparse.Namespace) -> int:
        """Run the seeds that have not finished yet, and print the report."""
        refuse_rank("spread", options.executor)
        _warn_of_own_words(options)
        page = None if options.html is None else check_page(options.html)
        configurations = _configurations(options)
        interrupted = any(each.interrupted for each in configurations)
        if interrupted:
            configurations = [each for each in configurations if len(each.runs) > 1]
        if not configurations:
            raise KeyboardInterrupt
        try:
            spread = evaluate(configurations, options.metric, options.last)
        except SamebitsError as error:
            raise _with_hint(error, options) from None
        if options.list_metrics:
            write(spread_text.render_metrics(spread.metrics, spread.metric, style_of(sys.stdout)), sys.stdout)
        else:
            # A plot takes longer than a command may that was told to end.
            _print(spread if interrupted else _plotted(spread, options), options, page)
        if interrupted:
            raise KeyboardInterrupt
        return EXIT_IDENTICAL


def _print(spread: Spread, options: argparse.Namespace, page: Path | None) -> None:
    """Print the report, and write the page if one is wanted."""
    with held_back():
        if options.json:
            write(spread_json.render(spread), sys.stdout)
            options.json = False  # the one object is printed already
        else:
            write(spread_text.render(spread, style_of(sys.stdout), blocks=_shows_blocks()), sys.stdout)
    if page is not None:
        from samebits.report.html.spread_page import spread_page

        write_page(spread_page(spread), page)


def _add_runs(parser: ScriptParser) -> None:
    parser.add_argument("--seeds", metavar="LIST", help="the seeds, such as 0..9 or 0,3,7 (default: 0..4)")
    parser.add_argument(
        "--versus",
        metavar="ARGS",
        help="compare with a second configuration: arguments that replace the first's, or are added",
    )
    parser.add_argument("--against", metavar="FOLDER", help="compare with an earlier spread")
    parser.add_argument(
        "--jobs", type=whole_number(1), metavar="N", help="make N runs at a time (default: one per core)"
    )
    parser.add_argument(
        "--threads", type=whole_number(1), metavar="N", help="set OMP_NUM_THREADS of each run (default: 1)"
    )
    parser.add_argument("--steps", type=whole_number(1), metavar="N", help="stop each run after N steps")
    parser.add_argument(
        "--seed-argument", default="", metavar="NAME", help="also pass the seed to the script, as NAME SEED"
    )
    parser.add_argument("--fresh", action="store_true", help="run finished seeds again")
    add_executor_options(parser)
    parser.add_argument(
        "--reseed",
        action="store_true",
        help="change the seeds that the script sets itself along with the seed",
    )


def _add_output(parser: ScriptParser) -> None:
    parser.add_argument(
        "--metric", metavar="NAME", help="the metric to show (--list-metrics marks the default)"
    )
    parser.add_argument("--list-metrics", action="store_true", help="list the metrics, and exit")
    parser.add_argument(
        "--last",
        type=whole_number(1),
        default=1,
        metavar="K",
        help="take the mean of the last K values as the final value (default: 1)",
    )
    parser.add_argument(
        "--plot", metavar="PATH", help="path of the plot (default: in the folder of the spread)"
    )
    parser.add_argument("--no-plot", action="store_true", help="draw no plot")
    add_html(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--no-progress", action="store_true", help="do not show progress")


def _with_folder_options(parser: ScriptParser, options: argparse.Namespace) -> argparse.Namespace:
    """Parse the options that follow a finished spread: a folder has no arguments, but a script has."""
    target: Target = options.target
    if target.script is not None and is_spread(Path(target.script)):
        parser.parse_args(list(target.arguments), namespace=options)
        options.target = dataclasses.replace(target, arguments=())
        pass_over(options, ("--versus",))
    else:
        _refuse_other_folder(options, target)
    return options


def _refuse_other_folder(options: argparse.Namespace, target: Target) -> None:
    """Refuse `FOLDER --against FOLDER` whose first folder is neither a finished spread nor a script.

    Raises:
        SamebitsError: `spread-missing`.
    """
    folder = Path(target.script) if target.script is not None else None
    if folder is None or not folder.is_dir() or (folder / "__main__.py").exists():
        return
    words = [word.partition("=")[0] for word in target.arguments]
    if options.against is not None or "--against" in words:
        load_configuration(folder)


def _warn_of_own_words(options: argparse.Namespace) -> None:
    """Warn that options of samebits that follow the script go to the script."""
    words = (word.partition("=")[0] for word in options.target.arguments)
    ours = [word for word in words if word in _TELLING]
    if ours:
        write(
            f"samebits: {ours[0]} follows the script, so the script gets it; if it is meant for samebits, "
            "put it before the script",
            sys.stderr,
        )


def _configurations(options: argparse.Namespace) -> list[Configuration]:
    """Run the configurations, or load those that are finished spreads."""
    if options.plot is not None and not options.no_plot:
        refuse_missing(Path(options.plot).absolute().parent, Path(options.plot))
    if options.versus is not None and options.against is not None:
        raise SamebitsError("--versus and --against were both given; expected one of them", slug="usage")
    against = None if options.against is None else load_configuration(Path(options.against))
    target: Target = options.target
    if target.script is not None and is_spread(Path(target.script)):
        if options.versus is not None:
            message = f"{target.script} is a finished spread; expected --against FOLDER in place of --versus"
            raise SamebitsError(message, slug="usage")
        configurations = [load_configuration(Path(target.script))]
    else:
        configurations = _run(options, target)
    return configurations if against is None else [*configurations, against]


def _run(options: argparse.Namespace, target: Target) -> list[Configuration]:
    seeds = parse_seeds(options.seeds or "0..4")
    jobs, threads = share_cores(options.jobs, options.threads, os.environ)
    if is_elsewhere(options):  # the scheduler knows how many it can run
        jobs = options.jobs or len(seeds)
        threads = share_cores(None, options.threads, os.environ)[1]
    request = SpreadRequest(
        target=target,
        seeds=seeds,
        jobs=jobs,
        threads=threads,
        max_steps=options.steps,
        seed_argument=options.seed_argument,
        fresh=options.fresh,
        control=Control(reseed=options.reseed),
    )
    requests = [request]
    if options.versus is not None:
        other = merged_arguments(target.arguments, _split(options.versus))
        second = dataclasses.replace(target, arguments=other)
        if other == target.arguments:
            message = f"--versus {options.versus!r} changes nothing; expected other arguments"
            raise SamebitsError(message, slug="usage")
        requests.append(dataclasses.replace(request, target=second))
    live = SeedCount(sys.stderr) if wants_progress(options) else None
    try:
        with chosen_executor(options) as executor:
            return _in_turn(requests, live, executor, options)
    finally:
        if live is not None:
            live.clear()


def _in_turn(
    requests: Sequence[SpreadRequest],
    live: SeedCount | None,
    executor: Executor | None,
    options: argparse.Namespace,
) -> list[Configuration]:
    """Run one configuration after the other, until the user ends it."""
    done: list[Configuration] = []
    for request in requests:
        announce(options, folder_of(request), "seed-*.json")
        done.append(run_configuration(request, live, executor))
        if done[-1].interrupted:
            break
    return done


def _with_hint(error: SamebitsError, options: argparse.Namespace) -> SamebitsError:
    """Return the error, with a hint if the script refused an argument that is an option of samebits."""
    ours = [word for word in options.target.arguments if word.partition("=")[0] in options.own_options]
    if error.slug != "spread-failed" or not ours or "argument" not in str(error):
        return error
    message = f"{error}; {ours[0]} is an option of `samebits spread` too: put it before the script"
    return SamebitsError(message, slug="spread-failed")


def _split(text: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        message = f"--versus {text!r}: {error}; expected arguments as a shell takes them"
        raise SamebitsError(message, slug="usage") from None


def _plotted(spread: Spread, options: argparse.Namespace) -> Spread:
    if options.no_plot:
        return spread
    if not plot.can_plot():
        return dataclasses.replace(spread, notes=(*spread.notes, Remark.of(RemarkCode.NO_MATPLOTLIB)))
    name = re.sub(r"[^\w.-]+", "_", spread.metric.name)
    versus = "-versus" if len(spread.measured) > 1 else ""
    stem = Path(spread.measured[0].configuration.folder) / f"{name}{versus}"
    if options.plot is not None:
        given = Path(options.plot)
        stem = given.with_suffix("") if given.suffix in (".png", ".svg") else given
    return dataclasses.replace(spread, plots=plot.draw(spread, stem))


def _shows_blocks() -> bool:
    """Tell whether standard output can show the characters of the curves."""
    try:
        BLOCKS.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
