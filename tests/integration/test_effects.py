"""What a run changes or takes outside of itself is noted: then no other goes on at the same time."""

from __future__ import annotations

import json
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


# Snippets that need no process of their own, one after the other: each has a probe, and a folder.
TOGETHER = """
import json, os, sys
from samebits.recording.probes.file_effects import EffectsProbe
for name, source in json.load(sys.stdin).items():
    os.chdir(name)
    probe = EffectsProbe("../notes-" + name, (os.path.abspath("records/a."),))
    code = compile(source, os.path.abspath("train.py"), "exec")
    for module in ("helper", "quiet"):
        sys.modules.pop(module, None)
    sys.path[0] = os.getcwd()
    probe.install()
    exec(code, {"__name__": "__main__"})
    probe.remove()
    os.chdir("..")
"""
_APART = ("torch", "input", "spawn")  # what they do needs a process that is run as a script is


def prepared(folder: Path, source: str) -> Path:
    """A folder with a script and what it may find."""
    (folder / "empty").mkdir(parents=True)
    (folder / "records").mkdir()
    (folder / "old").write_text("old")
    (folder / "helper.py").write_text("with open('x', 'w'):\n    pass\n")
    (folder / "quiet.py").write_text("import json.tool\n")
    (folder / "train.py").write_text("import os\n" + dedent(source))
    return folder


@pytest.fixture(scope="module")
def noted_together(tmp_path_factory) -> dict[str, list[str]]:
    """What is noted of each snippet that needs no process of its own."""
    root = tmp_path_factory.mktemp("together")
    sources = {name: text for name, text in (EFFECTS | NO_EFFECTS).items() if not _is_apart(text)}
    names = {f"n{number}": name for number, name in enumerate(sources)}
    for key, name in names.items():
        prepared(root / key, sources[name])
    texts = {key: (root / key / "train.py").read_text() for key in names}
    done = subprocess.run(
        [sys.executable, "-c", TOGETHER],
        cwd=root,
        env={**environment(), "PYTHONDONTWRITEBYTECODE": ""},
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {name: read_lines(root / f"notes-{key}") for key, name in names.items()}


def _is_apart(source: str) -> bool:
    return any(word in source for word in _APART)


def read_lines(path: Path) -> list[str]:
    """The lines of a file; none where it is not there."""
    return path.read_text().splitlines() if path.exists() else []


def noted(folder: Path, source: str, notes: str = "notes") -> list[str]:
    """What a recorded run of a script has noted."""
    prepared(folder / "work", source)
    settings = RecordingSettings("records/a.sbr", effects=str(folder / "work" / "records" / notes))
    done = subprocess.run(
        child_command(Target("train.py", None, ())),
        cwd=folder / "work",
        env={**environment(), ENVIRONMENT_NAME: settings.to_json()},
        input="",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 or "EOFError" in done.stderr, done.stderr
    assert "effects" not in done.stderr
    return read_lines(folder / "work" / "records" / notes)


@pytest.mark.parametrize("name", EFFECTS)
def test_an_effect_is_noted_once(tmp_path, noted_together, name):
    lines = noted_together[name] if name in noted_together else noted(tmp_path, EFFECTS[name])
    assert len(lines) == 1
    assert lines not in (["none"], ["unknown"])


@pytest.mark.parametrize("name", NO_EFFECTS)
def test_what_no_other_run_sees_is_none(tmp_path, noted_together, name):
    lines = noted_together[name] if name in noted_together else noted(tmp_path, NO_EFFECTS[name])
    assert lines == ["none"]


@pytest.mark.parametrize("name", ["a file is written", "nothing", "a module is imported and compiled"])
def test_a_run_of_its_own_notes_the_same(tmp_path, noted_together, name):
    assert noted(tmp_path, (EFFECTS | NO_EFFECTS)[name]) == noted_together[name]


def test_a_run_that_is_killed_says_nothing(tmp_path):
    source = "import ctypes, threading; ctypes.CDLL(None)._exit(0)"
    assert noted(tmp_path, source) == []


def test_a_note_that_cannot_be_written_is_no_business_of_the_script(tmp_path):
    """Nor is there a note that there was nothing."""
    assert noted(tmp_path, "open('x', 'w').write('a')", notes="missing/notes") == []
    assert (tmp_path / "work" / "x").read_text() == "a"


def test_nothing_is_looked_for_where_nobody_asks(tmp_path):
    code = (
        "import sys; sys.addaudithook = None\n"
        "from samebits.recording.session import RecordingSession\n"
        "from samebits.recording.settings import RecordingSettings\n"
        "session = RecordingSession(RecordingSettings('a.sbr'), ()); session.start(); session.finish()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=False)
    assert done.returncode == 0
    assert not list(tmp_path.glob("*effects*"))
