"""The draw log of real scripts: which sources are recorded, at which line, and what stays as it was."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from cli_support import samebits, write

from samebits.comparison import compare_records
from samebits.recording.events import UNUSED
from samebits.recording.store import RecordReader

if TYPE_CHECKING:
    from pathlib import Path

# Each line with a comment draws, from the source that the comment names.
SOURCES = """
    import concurrent.futures, glob, os, pathlib, random, resource, secrets, socket, tempfile, time, uuid
    from datetime import date, datetime
    from multiprocessing.pool import ThreadPool
    from time import perf_counter
    import numpy as np
    random.random()  # random.random
    random.shuffle([1, 2])  # random.shuffle
    random.seed()  # random.seed
    random.Random()  # random.Random
    random.SystemRandom().random()  # SystemRandom.random
    np.random.rand(3)  # numpy.random.rand
    np.random.default_rng()  # numpy.random.SeedSequence
    np.random.RandomState()  # numpy.random.SeedSequence
    np.random.seed()  # numpy.random.SeedSequence
    os.urandom(4)  # os.urandom
    uuid.uuid4()  # uuid.uuid4
    uuid.uuid1()  # uuid.uuid1
    secrets.token_hex(4)  # secrets.token_hex
    secrets.choice([1, 2])  # SystemRandom.choice
    time.time()  # time.time
    perf_counter()  # time.perf_counter
    time.strftime("%Y")  # time.strftime
    datetime.now()  # datetime.datetime.now
    date.today()  # time.time
    os.getpid()  # os.getpid
    tempfile.mktemp()  # tempfile.mktemp
    os.listdir(".")  # os.listdir
    os.stat(".").st_mtime  # os.stat.
    os.path.getmtime(".")  # getmtime.time
    pathlib.Path(".").stat()  # stat.
    resource.getrusage(resource.RUSAGE_SELF)  # resource.getrusage
    socket.socket().getsockname()  # socket.getsockname
    glob.glob("*")  # glob
    list(pathlib.Path(".").iterdir())  # iterdir
    list(os.walk("."))  # os.scandir
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(abs, i) for i in range(3)]
        for future in concurrent.futures.as_completed(futures): future.result()  # as_completed
    with ThreadPool(2) as pool:
        sorted(pool.imap_unordered(abs, range(3)))  # imap_unordered
    class Timed:
        clock = time.monotonic
    Timed().clock()  # time.monotonic
"""

QUIET = """
    import logging, queue, random, tempfile, threading, time
    import numpy as np
    random.seed(3)
    random.Random(3)
    np.random.seed(3)
    np.random.default_rng(3)
    time.strftime("%Y", time.gmtime(0))
    time.sleep(0)
    logging.warning("a line with a time")
    queue.Queue().put(1, timeout=1)
    threading.Event().wait(0.01)
"""

UNTOUCHED = """
    import copy, functools, inspect, os, pickle, random, time, traceback, types
    import numpy as np
    from datetime import datetime
    assert pickle.loads(pickle.dumps(time.time)) is time.time
    assert copy.deepcopy(time.time) is time.time
    assert isinstance(time.time, types.BuiltinFunctionType) and inspect.isbuiltin(os.urandom)
    print(time.time, time.time.__name__, time.time.__module__, os.listdir.__doc__[:20])
    print(inspect.signature(np.random.normal), inspect.signature(random.choice))
    random.seed(7); np.random.seed(7)
    print(random.random(), random.sample(range(99), 5), random.gauss(0, 1))
    print(np.random.rand(), np.random.randint(99), np.random.permutation(4))
    print(type(datetime.now()), type(os.urandom(3)), sorted(os.listdir(".")), isinstance(os.getpid(), int))
    for wrong in (lambda: os.listdir("nowhere"), lambda: random.choice([]), lambda: time.time(3),
                  lambda: os.scandir("nowhere"), lambda: np.random.rand(-1), lambda: datetime.now(3)):
        try:
            wrong()
        except Exception as error:
            print(len(traceback.extract_tb(error.__traceback__)), type(error), error)
    with os.scandir(".") as entries:
        print(sorted(entry.name for entry in entries))
    class Own(random.Random):
        def random(self):
            return 0.25
    print(Own(1).uniform(0, 4), random.Random(1).random())
    print(pickle.loads(pickle.dumps(random.Random(2))).random())
    print([f(0.5) if f is not time.time else 0 for f in (abs, functools.partial(max, 1))])
"""


def recorded(folder: Path, script: Path, name: str = "a.sbr") -> Path:
    """The record of a script."""
    record = folder / name
    result = samebits("run", "--record", record, script, cwd=folder)
    assert result.returncode == 0, result.stderr
    return record


def draws(record: Path) -> list[tuple[int, str]]:
    """Line and source of each draw, in order."""
    with RecordReader(record) as reader:
        assert not reader.info.notes
        return [(event.site.line, event.op) for event in reader.events(("draw",)) if event.site]


def test_every_source_is_recorded_at_its_line(tmp_path):
    """One script that draws from all of them, a line each, and nothing else."""
    script = write(tmp_path, "sources.py", SOURCES)
    lines = script.read_text().splitlines()
    expected = {n: line.partition("# ")[2] for n, line in enumerate(lines, start=1) if "# " in line}
    found = draws(recorded(tmp_path, script))
    assert {line for line, _ in found} == set(expected)
    for line, op in found:
        assert expected[line] in op


def test_housekeeping_is_not_recorded(tmp_path):
    """Seeded generators, times that are given, waits and logs of the standard library."""
    script = write(tmp_path, "quiet.py", QUIET)
    assert draws(recorded(tmp_path, script)) == []


def test_scripts_see_what_they_always_see(tmp_path):
    """Values, types, pickles, signatures and tracebacks are those of bare Python."""
    script = write(tmp_path, "untouched.py", UNTOUCHED)
    folder = tmp_path / "empty"
    folder.mkdir()
    run = samebits("run", "--record", "../a.sbr", script, cwd=folder)
    assert run.returncode == 0, run.stderr
    bare = subprocess.run([sys.executable, script], cwd=folder, capture_output=True, text=True, check=True)
    assert run.stdout == bare.stdout


def test_entropy_that_a_seed_replaces_is_said_to_be_unused(tmp_path):
    """`RandomState(3)` takes entropy, and then puts its seed in place."""
    source = "import numpy as np\nnp.random.RandomState(3)\nnp.random.RandomState()\n"
    record = recorded(tmp_path, write(tmp_path, "legacy.py", source))
    with RecordReader(record) as reader:
        found = [(e.site.line, e.arguments == UNUSED) for e in reader.events(("draw",)) if e.site]
    assert found == [(2, False), (2, True), (3, False)]


def test_many_draws_of_a_line_are_counted(tmp_path):
    """Four events, then one that says how many more; a global generator only once."""
    source = """
        import random, time
        for _ in range(100):
            time.time(); random.random()
    """
    record = recorded(tmp_path, write(tmp_path, "many.py", source))
    with RecordReader(record) as reader:
        found = [(event.op, event.arguments) for event in reader.events(("draw",))]
    assert [op for op, _ in found].count("time.time") == 5
    assert found[-1] == ("time.time", "and 96 more")
    assert [op for op, _ in found].count("random.random") == 1


TRAINED = """
    import os, random, secrets, tempfile, time, uuid
    from concurrent.futures import ThreadPoolExecutor, as_completed
    import numpy as np
    import torch
    torch.manual_seed(0)
    x = torch.randn(6, 4)
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    DRAWN
    for step in range(2):
        started = time.time()
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
        seconds = time.time() - started
"""
# Lines that follow line 8, the cause, and which of them is to blame.
PLANTED = {
    "clock to torch": (
        ["torch.manual_seed(int(time.time() * 1000))", "x = torch.randn(6, 4)"],
        "wall-clock",
        9,
    ),
    "clock to numpy": (
        ["now = time.time_ns()", "np.random.seed(now % 2**32)", "x = x * np.random.rand()"],
        "wall-clock",
        9,
    ),
    "uuid": (["random.seed(uuid.uuid4().int)", "x = x * random.random()"], "os-entropy", 9),
    "numpy": (["x = x + 1", "x = x * np.random.rand()"], "unseeded-numpy", 10),
    "default_rng": (
        ["rng = np.random.default_rng()", "x = x + 1", "x = x * rng.normal()"],
        "unseeded-numpy",
        9,
    ),
    "python": (["x = x + 1", "x = x * random.random()"], "unseeded-python", 10),
    "generator": (
        ["own = torch.Generator()", "own.seed()", "x = x + 1", "x = x * torch.rand(1, generator=own)"],
        "unseeded-torch",
        10,
    ),
    "seed in a fork": (
        ["with torch.random.fork_rng():", "    torch.seed()", "    x = x + torch.rand(6, 4)"],
        "unseeded-torch",
        10,
    ),
    "rows": (
        [
            "rows = [x[0] + i for i in range(99)]",
            "at = random.sample(range(99), 6)",
            "x = torch.stack([rows[i] for i in at])",
        ],
        "unseeded-python",
        10,
    ),
    "branch": (
        [
            "for _ in range(40):",
            "    token = x.argmax() if random.random() < 0.5 else torch.tensor(0)",
            "    x = x * 0.9 + token",
        ],
        "unseeded-python",
        10,
    ),
    "secrets": (
        ["x = secrets.choice([x, x + 1, x + 2, x + 3, x + 4, x + 5, x + 6, x + 7])"],
        "os-entropy",
        9,
    ),
    "pid": (["x = x * (os.getpid() % 9973)"], "environment", 9),
    "listing": (
        [
            "folder = tempfile.mkdtemp()",
            "_ = [open(f'{folder}/{secrets.token_hex(8)}', 'w').close() for _ in range(3)]",
            "first = os.listdir(folder)",
            "x = x * sum(map(ord, first[0]))",
        ],
        "unknown",  # names and listing both differ: two sources, so none is claimed
        12,
    ),
    "completion": (
        [
            "pool = ThreadPoolExecutor(4)",
            "waits = [int.from_bytes(os.urandom(1), 'little') / 500 for _ in range(12)]",
            "fs = [pool.submit(time.sleep, wait) for wait in waits]",
            "order = [fs.index(f) for f in as_completed(fs)]",
            "x = x + torch.tensor([float(i) for i in order[:4]])",
        ],
        "unknown",  # the waits differ and so does the order
        13,
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_line_and_cause_of_planted_draws(name, tmp_path):
    """Two runs with every operation recorded: line and cause where one source differs, else evidence."""
    lines, cause, line = PLANTED[name]
    script = write(tmp_path, "planted.py", TRAINED, DRAWN="\n".join(lines))
    pair = [tmp_path / "a.sbr", tmp_path / "b.sbr"]
    for record in pair:
        result = samebits("run", "--level", "op", "--record", record, script, cwd=tmp_path)
        assert result.returncode == 0, result.stderr
    comparison = compare_records(*pair)
    assert comparison.verdict == "different"
    first = comparison.findings[0]
    assert first.site is not None
    assert (first.cause, first.site.line) == (cause, line), first.evidence
    assert cause != "unknown" or any("gave other values in the two runs" in text for text in first.evidence)
