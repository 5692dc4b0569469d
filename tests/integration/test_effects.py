"""What a run changes or takes outside of itself is noted: then no other goes on at the same time."""

from __future__ import annotations

import os
import subprocess
import sys
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest
from cli_support import environment

from samebits.recording.launch import child_command
from samebits.recording.runner import Target
from samebits.recording.settings import ENVIRONMENT_NAME, RecordingSettings

if TYPE_CHECKING:
    from pathlib import Path

EFFECTS = {
    "a file is written": "open('x', 'w')",
    "a file is appended to": "open('x', 'ab')",
    "a file is written in a thread of a library": """
        import logging.handlers, queue
        records = queue.Queue()
        listener = logging.handlers.QueueListener(records, logging.FileHandler("x", delay=True))
        listener.start()
        records.put(logging.LogRecord("a", 30, "b", 1, "c", (), None))
        listener.stop()
    """,
    "os.open": "os.open('x', os.O_CREAT | os.O_RDWR)",
    "pathlib": "from pathlib import Path; Path('x').touch()",
    "a folder": "os.makedirs('a/b')",
    "a folder is taken away": "os.rmdir('empty')",
    "a file is renamed": "os.replace('old', 'new')",
    "a file is removed": "os.unlink('old')",
    "shutil": "import shutil; shutil.copytree('empty', 'other')",
    "a link": "os.symlink('old', 'x')",
    "a temporary file": "import tempfile; tempfile.NamedTemporaryFile()",
    "a lock": "import fcntl; fcntl.flock(open('old'), fcntl.LOCK_EX)",
    "another lock": "import os; os.lockf(os.open('old', os.O_RDONLY), os.F_TEST, 1)",
    "the terminal": """
        try:
            open("/dev/tty", "w")
        except OSError:
            pass
    """,
    "a signal": "os.kill(os.getpid(), 0)",
    "a link to a device": "os.symlink('/dev/null', 'x')",
    "a program in a folder of records": "import subprocess; subprocess.run(['true'], cwd='records')",
    "a file beside the record": "open('records/model.pt', 'w')",
    "a port": "import socket; socket.socket().bind(('127.0.0.1', 0))",
    "a connection": """
        import socket
        try:
            socket.create_connection(("127.0.0.1", 9))
        except OSError:
            pass
    """,
    "a program": "import subprocess; subprocess.run(['true'])",
    "a shell": "os.system('true')",
    "a question": "input()",
    "a database": "import sqlite3; sqlite3.connect('x.db')",
    "named shared memory": "open('/dev/shm/samebits-test', 'w'); os.unlink('/dev/shm/samebits-test')",
    "a spawned process": """
        import multiprocessing
        if __name__ == "__main__":
            process = multiprocessing.get_context("spawn").Process(target=print)
            process.start()
            process.join()
    """,
    "a forked process": "os.fork() or os._exit(0); os.wait()",
    "workers of a loader": """
        import torch
        list(torch.utils.data.DataLoader(torch.ones(4, 2), num_workers=1))
    """,
    "a worker writes": """
        import multiprocessing
        process = multiprocessing.get_context("fork").Process(target=open, args=("x", "w"))
        process.start()
        process.join()
    """,
    "an imported module of the user writes": "import helper",
    "torch.save": "import torch; torch.save({}, 'x.pt')",
    "a group that is there between two steps only": """
        import torch
        model = torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters())
        def step():
            model(torch.ones(4, 2)).sum().backward()
            optimizer.step()
        step()
        store = torch.distributed.HashStore()
        torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        step()
        torch.distributed.destroy_process_group()
        step()
    """,
    "a store of torch.distributed": """
        import torch
        store = torch.distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    """,
}
NO_EFFECTS = {
    "nothing": "",
    "a file is read": "open('old').read()",
    "a module is imported and compiled": "import quiet",
    "output": "print(1); os.write(1, b'a'); open(1, 'w', closefd=False).write('b')",
    "nowhere": "open(os.devnull, 'w').write('a')",
    "pipes": "reading, writing = os.pipe(); os.write(writing, b'a'); os.fdopen(writing, 'w').write('b')",
    "tensors in memory": "import io, torch; torch.save(torch.ones(2), io.BytesIO())",
    "a training": """
        import torch
        model = torch.nn.Linear(2, 1)
        optimizer = torch.optim.Adam(model.parameters())
        for x in torch.utils.data.DataLoader(torch.ones(4, 2)):
            model(x).sum().backward()
            optimizer.step()
    """,
}


def noted(folder: Path, source: str, notes: str = "notes") -> list[str]:
    """What a recorded run of a script has noted."""
    (folder / "empty").mkdir()
    (folder / "old").write_text("old")
    (folder / "helper.py").write_text("with open('x', 'w'):\n    pass\n")
    (folder / "quiet.py").write_text("import json.tool\n")
    (folder / "train.py").write_text("import os\n" + dedent(source))
    (folder / "records").mkdir()
    settings = RecordingSettings("records/a.sbr", effects=str(folder / "records" / notes))
    done = subprocess.run(
        child_command(Target("train.py", None, ())),
        cwd=folder,
        env={**environment(), ENVIRONMENT_NAME: settings.to_json(), "PYTHONDONTWRITEBYTECODE": ""},
        input="",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 or "EOFError" in done.stderr, done.stderr
    assert "effects" not in done.stderr
    path = folder / "records" / notes
    return path.read_text().splitlines() if path.exists() else []


@pytest.mark.parametrize("source", EFFECTS.values(), ids=EFFECTS)
def test_an_effect_is_noted_once(tmp_path, source):
    lines = noted(tmp_path, source)
    assert len(lines) == 1
    assert lines not in (["none"], ["unknown"])


@pytest.mark.parametrize("source", NO_EFFECTS.values(), ids=NO_EFFECTS)
def test_what_no_other_run_sees_is_none(tmp_path, source):
    assert noted(tmp_path, source) == ["none"]
    if "quiet" in source:
        assert os.listdir(tmp_path / "__pycache__")


def test_a_run_that_is_killed_says_nothing(tmp_path):
    source = "import ctypes, threading; ctypes.CDLL(None)._exit(0)"
    assert noted(tmp_path, source) == []


def test_a_note_that_cannot_be_written_is_no_business_of_the_script(tmp_path):
    """Nor is there a note that there was nothing."""
    assert noted(tmp_path, "open('x', 'w').write('a')", notes="missing/notes") == []
    assert (tmp_path / "x").read_text() == "a"


def test_nothing_is_looked_for_where_nobody_asks(tmp_path):
    code = (
        "import sys; sys.addaudithook = None\n"
        "from samebits.recording.session import RecordingSession\n"
        "from samebits.recording.settings import RecordingSettings\n"
        "session = RecordingSession(RecordingSettings('a.sbr'), ()); session.start(); session.finish()\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
