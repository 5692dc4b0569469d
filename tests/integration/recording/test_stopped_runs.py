"""A run that samebits stops ends, whatever the script has left running."""

import subprocess
import sys

from samebits.records.reader import RecordReader

SCRIPT = """
import threading, time, torch

def beat():
    while True:
        time.sleep(0.05)

threading.Thread(target=beat).start()
weight = torch.ones(3, requires_grad=True)
for step in range(100):
    (weight ** 2).sum().backward()
    print("step", step)
"""


def test_threads_that_would_never_end_do_not_keep_a_stopped_run(tmp_path):
    """After a grace, the process ends; what was recorded and printed is there."""
    (tmp_path / "train.py").write_text(SCRIPT)
    command = [sys.executable, "-m", "samebits", "run", "--steps", "2", "--record", "a.sbr", "train.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode == 0
    assert done.stdout == "step 0\n"
    with RecordReader(tmp_path / "a.sbr") as reader:
        assert (reader.info.status, reader.info.steps) == ("stopped", 2)
