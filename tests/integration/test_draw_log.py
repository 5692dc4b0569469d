"""The draw log of real scripts: which sources are recorded, at which line, and what stays as it was."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest
from cli_support import samebits, write

from samebits.records.events import UNUSED
from samebits.records.reader import RecordReader

if TYPE_CHECKING:
    from pathlib import Path

# Each line with a comment draws, from the source that the comment names.
SOURCES = """
    import concurrent.futures, ctypes, glob, os, pathlib, random, resource, secrets, socket, tempfile
    import time, uuid
    from datetime import date, datetime
    from multiprocessing.pool import ThreadPool
    from time import perf_counter
    import numpy as np
    import torch
    random.random()  # random.random
    random.shuffle([1, 2])  # random.shuffle
    random.seed()  # random.seed
    random.Random()  # random.Random
    random.SystemRandom().random()  # SystemRandom.random
    np.random.rand(3)  # numpy.random.rand
    np.random.default_rng()  # numpy.random.SeedSequence
    np.random.RandomState()  # numpy.random.SeedSequence
    np.random.seed()  # numpy.random.SeedSequence
    torch.set_num_threads(1)  # torch.set_num_threads
    torch.zeros(1).data_ptr()  # torch.Tensor.data_ptr
    torch.zeros(1).untyped_storage().data_ptr()  # torch.UntypedStorage.data_ptr
    ctypes.addressof(ctypes.c_int())  # ctypes.addressof
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
    open("/proc/loadavg").read()  # /proc/loadavg
    pathlib.Path("/proc/self/stat").read_text()  # read_text
    open("/dev/urandom", "rb").read(4)  # /dev/urandom
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
    open(__file__).read()
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
    assert pickle.loads(pickle.dumps(open)) is open
    assert isinstance(time.time, types.BuiltinFunctionType) and inspect.isbuiltin(os.urandom)
    print(time.time, time.time.__name__, time.time.__module__, os.listdir.__doc__[:20])
    print(inspect.signature(np.random.normal), inspect.signature(random.choice))
    random.seed(7); np.random.seed(7)
    print(random.random(), random.sample(range(99), 5), random.gauss(0, 1))
    print(np.random.rand(), np.random.randint(99), np.random.permutation(4))
    print(type(datetime.now()), type(os.urandom(3)), sorted(os.listdir(".")), isinstance(os.getpid(), int))
    for wrong in (lambda: os.listdir("nowhere"), lambda: random.choice([]), lambda: time.time(3),
                  lambda: os.scandir("nowhere"), lambda: np.random.rand(-1), lambda: datetime.now(3),
                  lambda: open("nowhere")):
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
    own = np.random.RandomState(5)
    print(pickle.loads(pickle.dumps(own.permutation))(4), own.choice(9, size=2), own.rand.__name__)
    print(pickle.loads(pickle.dumps(random._inst)).getstate() == random.getstate(), random.choices([1], k=2))
    try:
        np.random.mtrand._rand.choice(-1)
    except ValueError as error:
        print(len(traceback.extract_tb(error.__traceback__)), error)
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


@pytest.mark.skipif(not find_spec("sklearn"), reason="scikit-learn is not installed")
def test_what_a_library_draws_from_behind_a_global_generator_is_recorded(tmp_path):
    """scikit-learn takes NumPy's object; its signatures say by which parameter it would take a seed."""
    source = """
        import random
        import numpy as np
        from sklearn.cluster import KMeans
        from sklearn.model_selection import train_test_split
        own, other = np.random.RandomState(0), random.Random(0)
        print(own.permutation(3), other.random())
        random.shuffle([1, 2, 3])
        a, b = train_test_split(np.arange(8.0).reshape(8, 1))
        KMeans(2, n_init=1, init="random").fit(np.arange(8.0).reshape(8, 1))
    """
    record = recorded(tmp_path, write(tmp_path, "split.py", source))
    with RecordReader(record) as reader:
        found = [(e.site.line, e.op, e.module) for e in reader.events(("draw",)) if e.site]
    drawn = [each for each in found if each[1] not in ("numpy.empty", "numpy.random.SeedSequence")]
    split = "sklearn.model_selection._split.train_test_split(random_state)"
    assert drawn[:2] == [(7, "random.shuffle", ""), (8, "numpy.random.permutation", split)]
    assert {line for line, *_ in drawn} == {7, 8, 9}
    assert all(call.endswith("KMeans(random_state)") for line, _, call in drawn if line == 9)


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


def test_what_psutil_says_of_a_process_is_recorded(tmp_path):
    """It was made with a number of the process, which alone would be no reason for another batch size."""
    pytest.importorskip("psutil")
    source = """
        import os, psutil
        import torch
        process = psutil.Process(os.getpid())
        limit = process.memory_info().rss
    """
    found = draws(recorded(tmp_path, write(tmp_path, "facts.py", source)))
    assert found == [(3, "os.getpid"), (4, "psutil.Process.memory_info")]
