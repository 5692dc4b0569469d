"""A process that ends where it is: it may be slow, and it may not hang."""

from __future__ import annotations

import subprocess
import sys

import pytest

BEGIN = """
import os, threading, time
from samebits.recording._leaving import end_when_stuck
end_when_stuck(7, os._exit)
"""
# Longer than an idle process lives.
WORKS = "until = time.process_time() + 6.5\nwhile time.process_time() < until: pass\n"
WAITS = "lock = threading.Lock(); lock.acquire(); lock.acquire()\n"


@pytest.mark.parametrize(("then", "status"), [(WORKS, 0), (WAITS, 7)])
def test_only_a_process_that_does_nothing_is_ended(then, status):
    """Closing a record may take long on a busy machine; what waits for a lock never comes to an end."""
    done = subprocess.run([sys.executable, "-c", BEGIN + then + "os._exit(0)\n"], timeout=60, check=False)
    assert done.returncode == status
