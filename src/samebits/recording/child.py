"""What the process does in which a recorded script runs; `launch` starts it."""

from __future__ import annotations

import atexit
import os
import sys

from samebits.recording.runner import RunResult, Target, run_target
from samebits.recording.session import RecordingSession
from samebits.recording.settings import ENVIRONMENT_NAME, RecordingSettings


def target_of(arguments: list[str]) -> Target:
    """What the command line of a child asks to run."""
    if arguments[0] == "-m":
        return Target(script=None, module=arguments[1], arguments=tuple(arguments[2:]))
    return Target(script=arguments[0], module=None, arguments=tuple(arguments[1:]))


def main(arguments: list[str]) -> int:
    """Record a script; give its exit status.

    Args:
        arguments: `[script, *arguments]` or `["-m", module, *arguments]`.

    Raises:
        SamebitsError: nothing to run, or the record cannot be written.
    """
    settings = RecordingSettings.from_json(os.environ.pop(ENVIRONMENT_NAME))
    if settings.level == "op":
        # Compiled code has no ops to record. It is the only variable that a script can see.
        os.environ["TORCHDYNAMO_DISABLE"] = "1"
    session = RecordingSession(settings, tuple(arguments))
    session.start()
    result: list[RunResult] = []

    def close() -> None:
        session.finish(**_ending(result[0] if result else None))

    # First in, last out: threads that outlive the script and its own exit handlers are recorded too.
    atexit.register(close)
    result.append(run_target(target_of(arguments)))
    return result[0].exit_status


def _ending(result: RunResult | None) -> dict[str, str | int | None]:
    if result is None:
        return {"status": "failed", "failure": "the script ended the interpreter"}
    status = "stopped" if result.stopped else "failed" if result.failure else "finished"
    return {"status": status, "exit_status": result.exit_status, "failure": result.failure}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
