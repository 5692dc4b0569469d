"""The options that several commands have, and what their values mean."""

from __future__ import annotations

import argparse
import os
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from samebits._text.printable import printable
from samebits.cli.script_parser import whole_number
from samebits.cli.terminal import write
from samebits.digest import native
from samebits.errors import EXIT_IDENTICAL, SamebitsError
from samebits.interventions.plan import check_interventions, combine, why_not
from samebits.interventions.table import INTERVENTIONS
from samebits.portable.backends.library import check_backend
from samebits.portable.ways import wanted_way
from samebits.recording.launch import Launch
from samebits.rng.seeds import MAX_SEED
from samebits.rng.states import current_rank
from samebits.switches.switch import LEFT_ALONE, ONLY_PORTABLE, Control
from samebits.switches.table import environment_for, holds_layout
from samebits.verification.preconditions import refuse_missing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from samebits.cli.script_parser import CommandParser, ScriptParser
    from samebits.recording.runner import Target
    from samebits.recording.settings import RecordingSettings

_JOINT = "\xa0"  # lines are not broken there


def add_control_options(parser: CommandParser, *, brief: bool = False) -> None:
    """Add `--seed` and the options that go with it.

    Args:
        parser: the parser of the command.
        brief: the help lists their names only; that of `samebits run` explains them.
    """
    group = parser.add_argument_group("control of the run")
    actions = _control_actions(group)
    if brief:
        group.title = "control of the run (`samebits run --help` explains these)"
        group.description = _names_of(actions)
        for action in actions:
            action.help = argparse.SUPPRESS


def _names_of(actions: Sequence[argparse.Action]) -> str:
    """Return the options with their values, in lines that begin with an option."""
    names = (f"{action.option_strings[0]} {_value_of(action)}".strip() for action in actions)
    text = ", ".join(name.replace(" ", _JOINT) for name in names)
    return textwrap.fill(text, 76, break_on_hyphens=False).replace(_JOINT, " ")


def _value_of(action: argparse.Action) -> str:
    if action.nargs == 0:
        return ""
    return str(action.metavar or "MODE")


def _control_actions(group: argparse._ArgumentGroup) -> tuple[argparse.Action, ...]:
    return (
        group.add_argument(
            "--seed",
            type=seed_text,
            metavar="N",
            help="seed every random generator and set every determinism switch",
        ),
        group.add_argument("--deterministic", action="store_true", help="set the switches, but seed nothing"),
        group.add_argument(
            "--portable",
            action="store_true",
            help="compute the same bits with any number of threads, any CPU and any release of torch "
            "(on the CPU only)",
        ),
        group.add_argument(
            "--set",
            action="append",
            default=[],
            type=assignment,
            metavar="SWITCH=VALUE",
            help="give a switch this value instead of the default one (see `samebits doctor --switches`)",
        ),
        group.add_argument(
            "--leave", action="append", default=[], metavar="SWITCH", help="neither set nor watch this switch"
        ),
        group.add_argument(
            "--per-rank-seeds",
            action="store_true",
            help="in a distributed run, give each rank its own seed",
        ),
        group.add_argument(
            "--keyed-samples",
            action="store_true",
            help="derive what a dataset draws from the sample, not from the worker that loads it",
        ),
        group.add_argument(
            "--reseed",
            action="store_true",
            help="change the seeds that the script sets itself along with --seed (default: leave them alone)",
        ),
        group.add_argument(
            "--on-drift",
            choices=("warn", "error", "restore", "ignore"),
            help="what to do when the script changes a switch or a generator (default: warn)",
        ),
    )


def control_of(options: argparse.Namespace) -> Control | None:
    """Return the control that the options ask for, or None.

    Raises:
        SamebitsError: options that mean nothing without `--seed` or `--deterministic`; `usage`. A
            digest back end that this machine cannot run; `digest-backend`. With `--portable`, kernels that
            this machine does not have, `portable-backend`, and an unknown way of dispatch.
    """
    native.check_backend()
    if options.portable:
        check_backend()
        wanted_way()  # refuses a wrong one
    if options.seed is None:
        _refuse_idle(options)
    if options.seed is None and not options.deterministic:
        return ONLY_PORTABLE if options.portable else None
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
            message = f"the switch {name} was given two values, {asked[name]} and {value}; give one of them"
            raise SamebitsError(message, slug="usage")


def control_variables(control: Control | None) -> dict[str, str]:
    """Return the variables that a controlled run starts with; say on stderr which of the user's they replace.

    Raises:
        SamebitsError: a switch that does not exist, or cannot have that value; no rank.
    """
    if control is None:
        return {}
    if control.per_rank:
        current_rank()  # an invalid rank is reported before a record is begun
    plan = environment_for(control, os.environ)
    for warning in plan.warnings:
        write(f"samebits: {printable(warning)}", sys.stderr)
    return dict(plan.variables)


def planned_launch(target: Target, settings: RecordingSettings) -> Launch:
    """Return the launch of one recorded run, with the variables that its control and interventions need.

    What they replace of the user's is told on stderr.
    """
    control = settings.control
    variables = control_variables(control)
    plan = combine(settings.interventions, control, {**os.environ, **variables})
    fixed = plan.fixed_layout or holds_layout(control)
    return Launch(target, settings.to_json(), {**variables, **plan.environment}, fixed_layout=fixed)


def seed_text(text: str) -> int:
    """Parse the value of `--seed`."""
    value = int(text) if text.isascii() and text.isdigit() else -1
    if value not in range(MAX_SEED + 1):
        message = f"expected a whole number from 0 to 2**64 - 1, found {text!r}"
        raise argparse.ArgumentTypeError(message)
    return value


def assignment(text: str) -> tuple[str, str]:
    """Parse the value of `--set`."""
    return name_and_value(text, "SWITCH=VALUE")


def name_and_value(text: str, form: str) -> tuple[str, str]:
    """Parse a name and its value, as the help writes them.

    Args:
        text: what was given.
        form: the placeholder of the help.
    """
    name, equals, value = text.partition("=")
    if not name or not equals:
        message = f"expected {form}, found {text!r}"
        raise argparse.ArgumentTypeError(message)
    return name, value


def add_intervention_options(parser: argparse._ActionsContainer) -> None:
    """Add `--pin` and `--list-pins`."""
    parser.add_argument(
        "--pin",
        action="append",
        default=[],
        metavar="NAME",
        help="fix one thing in every run, such as `clock` or `seed-numpy` (repeatable; see --list-pins)",
    )
    parser.add_argument(
        "--list-pins", action=_ListInterventions, nargs=0, help="list what --pin can fix, and exit"
    )


def chosen_interventions(options: argparse.Namespace) -> tuple[str, ...]:
    """Return the interventions that `--pin` names, each once.

    Raises:
        SamebitsError: one does not exist (`pin-unknown`), or is impossible here (`pin-impossible`).
    """
    names = tuple(dict.fromkeys(options.pin))
    check_interventions(names)
    return names


class _ListInterventions(argparse.Action):
    def __call__(self, *_: Any) -> None:
        width = max(len(intervention.name) for intervention in INTERVENTIONS)
        for intervention in INTERVENTIONS:
            obstacle = why_not(intervention)
            more = f" (not possible here: {obstacle})" if obstacle else ""
            print(f"{intervention.name:{width}}  {intervention.words}{more}")
        sys.exit(EXIT_IDENTICAL)


def add_recording_options(parser: ScriptParser) -> None:
    """Add the options that `run` and `verify` share."""
    parser.add_argument(
        "--level",
        choices=("step", "op"),
        default="step",
        help="record only steps, or also every operation (default: step)",
    )
    parser.add_argument("--steps", type=whole_number(1), metavar="N", help="stop the script after N steps")
    add_privacy_option(parser)
    parser.add_argument(
        "--no-progress", action="store_true", help="do not show progress in the last row of the terminal"
    )


def add_privacy_option(parser: ScriptParser) -> None:
    """Add the option of all commands that write records."""
    parser.add_argument(
        "--no-arguments",
        action="store_true",
        help="record none of the script's arguments (known kinds of secrets are always masked)",
    )


def kept_folder(name: str) -> Path:
    """Return the folder of `--keep`, which may not be there yet.

    Raises:
        SamebitsError: the name is empty (`usage`); it is a file, or its parent folder does not exist
            (`record-unwritable`).
    """
    if not name:
        raise SamebitsError("--keep is empty; expected the path of a folder", slug="usage")
    folder = Path(name)
    refuse_missing(folder.absolute().parent)
    if os.path.lexists(folder) and not folder.is_dir():
        message = f"--keep {name} is not a folder; expected the path of a folder, which need not exist yet"
        raise SamebitsError(message, slug="record-unwritable")
    return folder


def wants_progress(options: argparse.Namespace) -> bool:
    """Tell whether to show a live line: only on a terminal."""
    return not options.no_progress and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def add_state_only(parser: argparse.ArgumentParser) -> None:
    """Add `--state-only`."""
    parser.add_argument(
        "--state-only",
        action="store_true",
        help="exit with status 0 if only values that the script reads out (prints, logs) differ: parameters, "
        "gradients, optimizer states and saved files are identical",
    )
