"""Processes that a run leaves behind."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from samebits.resuming.leftovers import ended_leftovers

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
    with ended_leftovers():
        run = subprocess.Popen([sys.executable, "-c", LEAVING], stdout=subprocess.PIPE)
        text, _ = run.communicate()

    with pytest.raises(ProcessLookupError):
        os.kill(int(text), 0)
    assert own.poll() is None
    own.communicate(b"\n")


def test_what_ends_by_itself_may_end():
    """A helper that is still writing the checkpoint."""
    helper = "import subprocess; subprocess.Popen(['sh', '-c', 'sleep 0.2; echo written'])"
    with ended_leftovers():
        run = subprocess.Popen([sys.executable, "-c", helper], stdout=subprocess.PIPE)
        run.wait()

    assert run.stdout is not None
    assert run.stdout.read() == b"written\n"
