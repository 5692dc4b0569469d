"""A run in a job: what is sent to it, the run there, and what comes back.

The run writes into a folder of its own machine, because SQLite's log needs a local disk. Its files come back
with what the job returns.
"""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from samebits.errors import SamebitsError
from samebits.executors.surroundings import Surroundings, surroundings
from samebits.recording.launch import Launch, Outcome, launch
from samebits.recording.settings import RecordingSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


@dataclass(frozen=True, slots=True)
class Shipment:
    """A run that a job is to make.

    Args:
        launch: the run, with paths of the machine that submits it.
        surroundings: the working folder and the variables there.
        files: path and contents of the files that the run reads, where the job does not see them.
        wait_s: seconds that the job waits first, so that runs do not begin in one second.
    """

    launch: Launch
    surroundings: Surroundings
    files: tuple[tuple[str, bytes], ...] = ()
    wait_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Delivery:
    """What a job gives back.

    Args:
        outcome: how the run ended.
        seconds: how long it took, without the time in the queue.
        machine: the name of the machine.
        stdout: what the script printed.
        stderr: the same on the other stream.
        files: name and contents of the files that the run left beside its record, and the record.
    """

    outcome: Outcome
    seconds: float
    machine: str
    stdout: bytes = b""
    stderr: bytes = b""
    files: tuple[tuple[str, bytes], ...] = field(default=(), repr=False)


def pack(request: Launch, *, shares_files: bool, wait_s: float = 0.0) -> Shipment:
    """Return what a job needs to make a run.

    Args:
        request: the run; it gets no standard input.
        shares_files: see `Executor`.
        wait_s: see `Shipment`.
    """
    settings = RecordingSettings.from_json(request.settings_json)
    inputs = () if shares_files else tuple((path, Path(path).read_bytes()) for path in _inputs(settings))
    return Shipment(replace(request, stdin=None), surroundings(shares_files=shares_files), inputs, wait_s)


def deliver(delivery: Delivery, request: Launch) -> None:
    """Write the files of a run beside its record, here.

    Raises:
        SamebitsError: they cannot be written; `record-unwritable`.
    """
    folder = Path(request.folder or "", RecordingSettings.from_json(request.settings_json).record).parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, contents in delivery.files:
            (folder / os.path.basename(name)).write_bytes(contents)
    except OSError as error:
        message = f"{folder} cannot take the record of a job: {error.strerror}; expected a folder with room"
        raise SamebitsError(message, slug="record-unwritable") from None


def execute_all(shipments: Sequence[Shipment]) -> list[Delivery]:
    """Make runs one after the other, on one machine; called in the job. See `execute`."""
    return [execute(shipment) for shipment in shipments]


def execute(shipment: Shipment) -> Delivery:
    """Make a run; called in the job.

    Raises:
        SamebitsError: the script is not there, or its process cannot be started.
    """
    time.sleep(shipment.wait_s)
    with ExitStack() as stack:
        own = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="samebits-job-")))
        for name in ("out", "in"):
            (own / name).mkdir()
        stack.enter_context(shipment.surroundings.entered())
        moved = _moved(shipment, own)
        output, errors = own / "stdout", own / "stderr"
        begun = time.monotonic()
        with _streams(output, errors):
            outcome = launch(moved)
        seconds = time.monotonic() - begun
        files = tuple(
            (path.name, path.read_bytes()) for path in sorted((own / "out").iterdir()) if path.is_file()
        )
        return Delivery(outcome, seconds, platform.node(), output.read_bytes(), errors.read_bytes(), files)


def _inputs(settings: RecordingSettings) -> list[str]:
    """Return the paths of the files that a run reads, beside the user's own."""
    source = settings.substitution.source if settings.substitution is not None else ""
    return list(
        dict.fromkeys(filter(None, (settings.reference, source, *(text for _, text in settings.overlay))))
    )


def _moved(shipment: Shipment, own: Path) -> Launch:
    """Return the run with the paths of the job's machine.

    Args:
        shipment: the run.
        own: the folder of the job.
    """
    request, here, there = shipment.launch, shipment.surroundings.folder, os.getcwd()
    inputs: dict[str, str] = {}
    for number, (path, contents) in enumerate(shipment.files):
        placed = own / "in" / f"{number}-{os.path.basename(path)}"
        placed.write_bytes(contents)
        inputs[path] = str(placed)

    def placed_input(path: str) -> str:
        return inputs.get(path) or (os.path.join(here, path) if path else "")

    def in_folder(path: str) -> str:
        inside = os.path.relpath(path, os.path.realpath(here))
        return path if inside.startswith("..") else os.path.join(os.path.realpath(there), inside)

    settings = RecordingSettings.from_json(request.settings_json)
    folder = in_folder(os.path.join(here, request.folder)) if request.folder else there
    script = request.target.script
    target = (
        replace(request.target, script=in_folder(script))
        if script and os.path.isabs(script)
        else request.target
    )
    moved = _with_paths(settings, str(own / "out"), placed_input, in_folder)
    if there != here:  # sites are shown where the user has the files
        moved = replace(moved, moved=(os.path.realpath(there), os.path.realpath(here)))
    return replace(request, target=target, settings_json=moved.to_json(), folder=folder, output="inherit")


def _with_paths(
    settings: RecordingSettings, out: str, placed: Callable[[str], str], in_folder: Callable[[str], str]
) -> RecordingSettings:
    """Return settings whose files are in the folder `out`, or where the two functions place them."""

    def output(path: str) -> str:
        return os.path.join(out, os.path.basename(path)) if path else ""

    earlier, substitution = settings.earlier, settings.substitution
    return replace(
        settings,
        record=output(settings.record),
        values=output(settings.values),
        state_log=output(settings.state_log),
        effects=output(settings.effects),
        earlier=None if earlier is None else replace(earlier, notes=output(earlier.notes)),
        reference=placed(settings.reference),
        substitution=None
        if substitution is None
        else replace(substitution, source=placed(substitution.source)),
        overlay=tuple((in_folder(source), placed(text)) for source, text in settings.overlay),
        progress=False,
    )


@contextmanager
def _streams(output: Path, errors: Path) -> Iterator[None]:
    """Send what this process and its children print to two files."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    saved = [os.dup(number) for number in (1, 2)]
    try:
        for number, path in ((1, output), (2, errors)):
            with path.open("wb") as file:
                os.dup2(file.fileno(), number)
        yield
    finally:
        for number, copy in zip((1, 2), saved, strict=True):
            os.dup2(copy, number)
            os.close(copy)


def show_output(delivery: Delivery, output: str) -> None:
    """Print what the script of a job printed, on the streams that `Launch.output` says."""
    if output == "nothing":
        return
    streams: Sequence[tuple[bytes, int]] = (
        (delivery.stdout, 2 if output == "stderr" else 1),
        (delivery.stderr, 2),
    )
    for contents, number in streams:
        stream = sys.stdout if number == 1 else sys.stderr
        stream.write(contents.decode(errors="backslashreplace"))
        stream.flush()
