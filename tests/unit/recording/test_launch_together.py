"""Programs that run at the same time: the signals that are meant for them, their limits, their ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from process_support import heed_signals, is_gone

from samebits._runtime.processes import children
from samebits.errors import SamebitsError
from samebits.recording import launch as launch_module
from samebits.recording.launch import Command, Outcome, run_commands

if TYPE_CHECKING:
    from pathlib import Path

DRIVER = """\
import os, sys
from samebits.recording.launch import Command, run_commands
grace, apart, *codes = sys.argv[1:]
variables = dict(os.environ)
commands = [
    Command([sys.executable, "-c", code], variables, grace_s=float(grace) or None) for code in codes
]
print(*run_commands(commands, float(apart)), sep="\\n", flush=True)
"""

# Each ends when the other is there.
MEETING = """\
import os, sys, time
own, other, status = {words}
open(own, "w").close()
until = time.monotonic() + 60
while not os.path.exists(other):
    assert time.monotonic() < until
    time.sleep(0.01)
sys.exit(status)
"""

HANDLING = """\
import os, signal, sys, time
def handler(number, frame):
    sys.exit(number)
signal.signal({number}, handler)
os.write(1, f"ready {{os.getpid()}} 0\\n".encode())
time.sleep(60)
"""

STUBBORN = """\
import os, signal, subprocess, sys, time
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
below = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
os.write(1, f"ready {os.getpid()} {below.pid}\\n".encode())
time.sleep(60)
"""


def command(code: str, **fields: object) -> Command:
    """A program in Python."""
    return Command([sys.executable, "-c", code], dict(os.environ), **fields)  # type: ignore[arg-type]


def start(
    *codes: str, grace: float = 0, apart: float = 0, begun: int | None = None
) -> tuple[subprocess.Popen[str], list[int]]:
    """Start programs by one that waits for them; gives the processes that those speak of that have begun."""
    words = [sys.executable, "-c", DRIVER, str(grace), str(apart), *codes]
    process = subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=heed_signals,  # noqa: PLW1509 - there are no threads
    )
    assert process.stdout is not None
    lines = [process.stdout.readline().split() for _ in codes[:begun]]
    assert [line[0] for line in lines] == ["ready"] * len(lines)
    return process, [int(word) for line in lines for word in line[1:] if word != "0"]


def test_they_run_at_the_same_time(tmp_path: Path) -> None:
    """And what becomes of each is told in the order in which they were asked for."""
    first, second = str(tmp_path / "a"), str(tmp_path / "b")
    codes = [MEETING.format(words=words) for words in ((first, second, 3), (second, first, 4))]
    assert run_commands([command(code) for code in codes]) == (Outcome(3, None), Outcome(4, None))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGINT])
def test_a_signal_reaches_both(number: int) -> None:
    """Each says by which it was ended."""
    process, _ = start(*[HANDLING.format(number=int(number))] * 2)
    process.send_signal(number)
    told = 2 if number == signal.SIGINT else None
    assert process.communicate(timeout=60)[0].splitlines() == [str(Outcome(int(number), None, told=told))] * 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_both_have_their_grace(number: int) -> None:
    """Then both are killed, with all that they have started; also after Ctrl-C."""
    process, numbers = start(STUBBORN, STUBBORN, grace=0.3)
    process.send_signal(number)
    assert process.communicate(timeout=60)[0].splitlines() == [str(Outcome(137, 9, told=int(number)))] * 2
    assert len(numbers) == 4
    assert all(map(is_gone, numbers))


def test_they_begin_apart(tmp_path: Path) -> None:
    """So that the second, of which a seed may be made, is not the same."""
    code = "import sys, time; open({!r}, 'w').write(repr(time.time()))"
    paths = [tmp_path / "a", tmp_path / "b"]
    run_commands([command(code.format(str(path))) for path in paths], 1.1)
    first, second = (int(float(path.read_text())) for path in paths)
    assert second > first


def test_what_has_not_begun_is_not_begun_any_more() -> None:
    """Where the signal comes between the starts."""
    process, _ = start(*[HANDLING.format(number=15)] * 2, grace=20, apart=60, begun=1)
    process.send_signal(signal.SIGTERM)
    out = process.communicate(timeout=30)[0].splitlines()
    assert out == [str(Outcome(15, None, told=15)), str(Outcome(143, 15, told=15))]


def test_both_end_with_their_parent() -> None:
    """Also when that is killed."""
    process, numbers = start(*[HANDLING.format(number=10)] * 2)
    process.kill()
    assert all(map(is_gone, numbers))
    process.communicate()


def test_each_has_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is over in time is let alone."""
    monkeypatch.setattr(launch_module, "_GRACE_S", 0.1)
    codes = ("import time; time.sleep(60)", "pass", "import time; time.sleep(60)")
    late, early, later = run_commands([command(code, limit_s=2) for code in codes])
    assert (late, early, later) == (
        Outcome(143, 15, timed_out=True),
        Outcome(0, None),
        Outcome(143, 15, timed_out=True),
    )


def test_where_one_cannot_be_started_none_goes_on(tmp_path: Path) -> None:
    """The error is that of the one; the other is killed."""
    missing = Command([str(tmp_path / "nothing")], dict(os.environ))
    before = set(children())
    with pytest.raises(SamebitsError) as caught:
        run_commands([command("import time; time.sleep(60)"), missing])
    assert caught.value.slug == "child-start"
    left = set(children()) - before
    assert all(is_gone(process.number) for process in left)
