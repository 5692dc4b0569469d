"""`samebits resume-check`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from samebits.cli.command import help_texts, refuse_rank
from samebits.cli.ending import held_back
from samebits.cli.left_behind import announce
from samebits.cli.options import (
    add_control_options,
    add_privacy_option,
    control_of,
    control_variables,
    kept_folder,
    wants_progress,
)
from samebits.cli.output import STATUS
from samebits.cli.script_parser import ScriptParser, seconds, whole_number
from samebits.cli.terminal import Phases, style_of, write
from samebits.commands.resume_check import ResumeRequest, resume_check
from samebits.commands.resume_check.runs import split_words
from samebits.errors import SamebitsError
from samebits.recording.naming import DEFAULT_FOLDER, next_free, target_name
from samebits.report import resume_json, resume_text
from samebits.verification.preconditions import check_target

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from samebits.commands.resume_check.runs import ResumeCheck


class ResumeCheckCommand:
    """Kill a script at exact steps, resume it, and say what it did not restore.

    The script first runs to its end. Then it runs in a fresh copy of the working folder, is killed (SIGKILL)
    after some step, and is resumed by the same command with the words of --resume-args added. From the step
    at which it resumes, every step is compared with the whole run, bit for bit.
    Exit status: 0 identical, 1 different, 2 could not judge.

    In --resume-args, {newest:ckpt/*.pt} stands for the matching file or folder that was changed last, {step}
    for the number of steps before the kill, and {run} for the run's folder. {run} also works in the arguments
    of the script.

    Examples:
      samebits resume-check --resume-args "--resume last.pt" train.py --epochs 2
      samebits resume-check --resume-args "--resume {newest:ckpt/*.pt}" --kill-at 3,7 train.py
      samebits resume-check --resume-args "" train.py       # resumes by itself
      samebits resume-check --resume-args "" --kills 5 --share data train.py
    """

    name = "resume-check"
    has_json_errors = True
    render_error = staticmethod(resume_json.render_error)

    def parser(self) -> ScriptParser:
        """Return the parser of the words that follow `resume-check`."""
        parser = ScriptParser(
            **help_texts(self),
            usage="samebits resume-check --resume-args WORDS [options] SCRIPT|-m MODULE [arguments]",
            dashed=("--resume-args",),
        )
        parser.add_argument(
            "--resume-args", required=True, metavar="WORDS",
            help="words that are added to the script's arguments when it resumes; they are split as by a "
            "shell; empty if the script resumes by itself",
        )  # fmt: skip
        parser.add_argument(
            "--kill-at", type=_numbers, default=(), metavar="N,...",
            help="kill after N optimizer steps; each N takes one killed and one resumed run (default: two "
            "that suit the length of the run)",
        )  # fmt: skip
        parser.add_argument(
            "--kills",
            type=whole_number(1),
            metavar="N",
            help="kill N times, each after a random number of steps",
        )
        parser.add_argument(
            "--share", action="append", default=[], metavar="PATH",
            help="a file or folder in the working folder, such as data, that all runs share (default: each "
            "run has a copy of everything; repeatable)",
        )  # fmt: skip
        parser.add_argument("--steps", type=whole_number(2), metavar="N", help="stop each run after N steps")
        parser.add_argument(
            "--budget", type=seconds, metavar="SECONDS", help="stop killing runs after this time"
        )
        add_privacy_option(parser)
        parser.add_argument("--no-progress", action="store_true", help="do not show progress")
        add_control_options(parser, brief=True)
        parser.add_argument(
            "--keep", metavar="DIR", help="folder for the records (default: .samebits/SCRIPT-resume-N)"
        )
        parser.add_argument("--quiet", action="store_true", help="do not show what the script prints")
        parser.add_argument("--verbose", action="store_true", help="show each kill in full, and every run")
        parser.add_argument(
            "--json", action="store_true", help="print one JSON object; the script's output goes to stderr"
        )
        return parser

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Read the words that follow `resume-check`."""
        return self.parser().parse_command(arguments)

    def run(self, options: argparse.Namespace) -> int:
        """Run the script as often as it takes and print the verdict."""
        refuse_rank("resume-check")
        if options.kill_at and options.kills:
            raise SamebitsError("--kill-at and --kills were both given; expected one of them", slug="usage")
        check_target(options.target)
        live = wants_progress(options)
        control = control_of(options)
        request = ResumeRequest(
            target=options.target,
            resume_args=split_words(options.resume_args),
            folder=_folder(options),
            source=Path(os.getcwd()),
            share=tuple(options.share),
            kill_after=options.kill_at,
            no_arguments=options.no_arguments,
            kills=options.kills,
            steps=options.steps,
            output="nothing" if options.quiet else "stderr" if options.json else "inherit",
            progress=live and not options.quiet,
            control=control,
            environment=control_variables(control),
            budget=options.budget,
        )
        announce(options, request.folder)
        result = resume_check(request, announce=Phases(sys.stderr))
        return _printed(result, options)


def _printed(result: ResumeCheck, options: argparse.Namespace) -> int:
    with held_back():
        if options.json:
            write(resume_json.render(result), sys.stdout)
        else:
            style, folder = style_of(sys.stdout), os.getcwd()
            write(resume_text.render(result, style, folder, verbose=options.verbose), sys.stdout)
    if result.interrupted:
        raise KeyboardInterrupt
    return STATUS[result.verdict]


def _numbers(text: str) -> tuple[int, ...]:
    """Parse the value of `--kill-at`."""
    parse = whole_number(1)
    return tuple(parse(part.strip()) for part in text.split(","))


def _folder(options: argparse.Namespace) -> Path:
    """Return a folder without records of an earlier check."""
    if options.keep is not None:
        return kept_folder(options.keep)
    return next_free(DEFAULT_FOLDER, f"{target_name(options.target)}-resume")
