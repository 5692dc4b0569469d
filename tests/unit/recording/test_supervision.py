"""Processes that a run leaves behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from process_support import is_gone

from samebits.recording.supervision import ended_orphans

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="of Linux")

# Leaves a process behind that ignores SIGTERM, and tells its number.
LEAVING = """
import subprocess, sys
stubborn = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(60)"
)
child = subprocess.Popen([sys.executable, "-c", stubborn], start_new_session=True, stdout=subprocess.PIPE)
child.stdout.read(1)
print(child.pid)
"""


def test_what_a_run_leaves_behind_is_ended():
    """Also in a session of its own; processes of before, and this one's, are left alone."""
    own = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with ended_orphans():
        run = subprocess.Popen([sys.executable, "-c", LEAVING], stdout=subprocess.PIPE)
        text, _ = run.communicate()

    with pytest.raises(ProcessLookupError):
        os.kill(int(text), 0)
    assert own.poll() is None
    own.communicate(b"\n")


def test_what_ends_by_itself_may_end():
    """A helper that is still writing the checkpoint."""
    helper = "import subprocess; subprocess.Popen(['sh', '-c', 'sleep 0.2; echo written'])"
    with ended_orphans():
        run = subprocess.Popen([sys.executable, "-c", helper], stdout=subprocess.PIPE)
        run.wait()

    assert run.stdout is not None
    assert run.stdout.read() == b"written\n"


class StoppedError(BaseException):
    """As a signal's handler raises it."""


def stop(*_: object) -> None:
    raise StoppedError


@pytest.mark.parametrize("when", ["in the block", "in the second of grace"])
def test_who_is_told_to_stop_leaves_nothing_behind(when):
    """It does not wait for what may end by itself either."""
    pids: list[int] = []

    def run() -> None:
        with ended_orphans():
            done = subprocess.run([sys.executable, "-c", LEAVING], stdout=subprocess.PIPE, check=True)
            pids.append(int(done.stdout))
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            if when == "in the block":
                signal.pause()

    before = signal.signal(signal.SIGALRM, stop)
    try:
        with pytest.raises(StoppedError):
            run()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    if not is_gone(pids[0]):
        os.kill(pids[0], signal.SIGKILL)
        pytest.fail("it is still there")
