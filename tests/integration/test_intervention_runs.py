"""`--pin NAME`: what differs from run to run is the same with its intervention, and not with another one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from cli_support import complaints, judged, samebits, write

from samebits.interventions import INTERVENTIONS, why_not

if TYPE_CHECKING:
    from pathlib import Path

# intervention, an intervention that is for something else, a script that imports no torch
LIGHT = {
    "seed-python": ("entropy", "import random; print(random.random(), random.Random().random())"),
    "seed-numpy": (
        "entropy",
        """
        import numpy as np
        print(np.random.rand(), np.random.default_rng().random(), np.random.SeedSequence().entropy)
        """,
    ),
    "hash-seed": ("seed-python", "print({str(n) for n in range(20)})"),
    "layout": ("hash-seed", "print([id(object), id([]), hash(object())])"),
    "clock": (
        "entropy",
        "import time, datetime; print(time.time(), datetime.datetime.now(), time.perf_counter_ns())",
    ),
    "entropy": (
        "seed-python",
        "import os, uuid, secrets; print(os.urandom(4), uuid.uuid4(), secrets.randbits(9))",
    ),
    "process": ("clock", "import os, threading; print(os.getpid(), os.getppid())"),
    "ports": (
        "process",
        "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); print(s.getsockname())",
    ),
    "file-times": ("clock", "import os; open('made', 'w').close(); print(os.stat('made').st_mtime_ns)"),
    "inodes": (
        "file-times",
        "import os, uuid; name = uuid.uuid4().hex; open(name, 'w').close(); print(os.stat(name).st_ino)",
    ),
    "memory-load": ("clock", "print(open('/proc/uptime').read(), open('/proc/self/stat').read())"),
    "completion": (
        "hash-seed",
        """
        import random, time
        from concurrent.futures import ThreadPoolExecutor, as_completed
        def work(n):
            time.sleep(random.random() / 20)
            return n
        with ThreadPoolExecutor(8) as pool:
            print([future.result() for future in as_completed([pool.submit(work, n) for n in range(8)])])
        """,
    ),
    "serial-processes": (
        "completion",
        """
        import multiprocessing, os, zlib
        def work(seen, n):
            for _ in range(20):
                zlib.compress(os.urandom(60_000 + os.urandom(1)[0] * 300))
                seen.value = (seen.value * 31 + n) % 1_000_003
        if __name__ == "__main__":
            multiprocessing.set_start_method("fork")
            seen = multiprocessing.Value("q", 1, lock=False)
            started = [multiprocessing.Process(target=work, args=(seen, n)) for n in range(3)]
            for process in started: process.start()
            for process in started: process.join()
            print(seen.value)
        """,
    ),
    "fill": (
        "hash-seed",
        """
        import numpy as np
        kept = [np.full(n, id(object())) for n in range(1, 100)]
        del kept
        print([int(np.empty(n, np.int64).sum()) for n in range(1, 100)])
        """,
    ),
    "serial-threads": (
        "completion",
        """
        import os, threading, zlib
        seen = []
        def work(n):
            for _ in range(4):
                zlib.compress(os.urandom(30_000 + os.urandom(1)[0] * 100))
                seen.append(n)
        threads = [threading.Thread(target=work, args=(n,)) for n in range(5)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        print(seen)
        """,
    ),
}
PINNED_TORCH = """
    import numpy as np, torch
    from torch.utils.data import DataLoader
    print(torch.rand(2), torch.Generator().seed(), torch.get_num_threads())
    torch.set_num_threads(2)
    print(torch.get_num_threads(), torch.are_deterministic_algorithms_enabled())
    loader = DataLoader(range(4), 2, False, None, None, 2, persistent_workers=True, prefetch_factor=3)
    print(loader.num_workers, list(loader))
    print([int(torch.empty(n).count_nonzero() + np.empty(n).any()) for n in (3, 300, 3000)])
    print(torch.compile(lambda x: x + 1)(torch.ones(1)), torch.backends.cudnn.benchmark)
"""


def outputs(folder: Path, source: str, *interventions: str, runs: int = 3) -> list[str]:
    """What runs of a script print; the same record, so that nothing around them differs."""
    (folder / "code").mkdir(exist_ok=True)
    script = write(folder / "code", "script.py", source)
    words = [word for intervention in interventions for word in ("--pin", intervention)]
    record = ("--record", folder / "r.sbr", "--force")
    if not (folder / "r.sbr").exists():
        samebits("run", *record, script, cwd=folder)
    results = [samebits("run", *words, *record, script, cwd=folder) for _ in range(runs)]
    assert [result.returncode for result in results] == [0] * runs, results[0].stderr
    return [result.stdout for result in results]


@pytest.mark.parametrize("intervention", LIGHT)
def test_runs_with_the_intervention_are_the_same_and_with_another_are_not(tmp_path, intervention):
    if why_not(intervention):
        pytest.skip(why_not(intervention))
    other, source = LIGHT[intervention]

    assert len(set(outputs(tmp_path, source, intervention))) == 1
    (before,) = outputs(tmp_path, source, other, runs=1)
    assert any(outputs(tmp_path, source, other, runs=1) != [before] for _ in range(4))


QUEUES = {
    "put and get": ("multiprocessing.Queue()", "queue.put((n, i))", "queue.get()"),
    "get that does not wait": ("multiprocessing.Queue(3)", "queue.put((n, i))", "polled(queue)"),
    "simple": ("multiprocessing.SimpleQueue()", "queue.put((n, i))", "queue.get()"),
    "joinable": ("multiprocessing.JoinableQueue()", "queue.put((n, i))", "queue.get(timeout=50)"),
    "torch": ("torch.multiprocessing.Queue()", "queue.put((n, i))", "queue.get()"),
}
FILLED = """
    import multiprocessing, os, queue as q, sys, zlib
    if "torch" in KIND: import torch
    multiprocessing.set_start_method("fork")
    def fill(queue, n):
        for i in range(12):
            zlib.compress(os.urandom(20_000 + os.urandom(1)[0] * 300))
            PUT
    def polled(queue):
        while True:
            try:
                return queue.get_nowait()
            except q.Empty:
                pass
    queue = eval(KIND)
    started = [multiprocessing.Process(target=fill, args=(queue, n)) for n in range(3)]
    for process in started: process.start()
    print([GET for _ in range(36)])
    for process in started: process.join()
"""


@pytest.mark.parametrize("kind", QUEUES)
def test_queues_that_processes_fill(tmp_path, kind):
    made, put, get = QUEUES[kind]
    source = FILLED.replace("KIND", repr(made)).replace("PUT", put).replace("GET", get)

    (printed,) = set(outputs(tmp_path, source, "completion", runs=2))
    assert printed.startswith("[(0, 0), (1, 0), (2, 0), (0, 1)")


def test_pipes_that_are_waited_for_together(tmp_path):
    source = """
        import multiprocessing, os, zlib
        from multiprocessing.connection import wait
        multiprocessing.set_start_method("fork")
        def send(end, n):
            for i in range(5):
                zlib.compress(os.urandom(20_000 + os.urandom(1)[0] * 300))
                end.send((n, i))
            end.close()
        ends = [multiprocessing.Pipe(duplex=False) for _ in range(3)]
        for n, (_, end) in enumerate(ends):
            multiprocessing.Process(target=send, args=(end, n)).start()
            end.close()
        waiting, seen = [end for end, _ in ends], []
        while waiting:
            for end in wait(waiting):
                try:
                    seen.append(end.recv())
                except EOFError:
                    waiting.remove(end)
        print(seen)
    """
    (printed,) = set(outputs(tmp_path, source, "completion", runs=2))
    assert printed.startswith("[(0, 0), (1, 0), (2, 0), (0, 1)")


def test_interventions_of_torch(tmp_path):
    interventions = (
        "seed-torch",
        "threads",
        "thread-calls",
        "deterministic",
        "workers",
        "fill",
        "eager",
        "autotuning",
    )
    if why_not("fill"):
        pytest.skip(why_not("fill"))

    first, second = outputs(tmp_path, PINNED_TORCH, *interventions, runs=2)

    assert first == second
    lines = first.splitlines()
    assert lines[0].endswith(" 1")
    assert lines[1:] == ["1 True", "0 [tensor([0, 1]), tensor([2, 3])]", "[0, 0, 0]", "tensor([2.]) False"]


def test_children_have_the_interventions(tmp_path):
    source = """
        import multiprocessing, os, sys, time, random
        def told(_):
            return os.getpid(), time.time(), os.urandom(3), random.random()
        if __name__ == "__main__":
            for method in ("fork", "spawn"):
                with multiprocessing.get_context(method).Pool(1) as pool:
                    print(pool.map(told, range(2)))
            print(told(0))
    """
    lines = outputs(tmp_path, source, "clock", "entropy", "process", "seed-python", runs=2)

    assert lines[0] == lines[1]
    forked, spawned, here = lines[0].splitlines()
    assert len({forked, spawned, here}) == 3


def test_verify_with_an_intervention_names_it(tmp_path):
    source = """
        import time, torch
        torch.manual_seed(0)
        model = torch.nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=time.time() % 1)
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
    """
    script = write(tmp_path, "train.py", source)

    result = judged(samebits("verify", "--json", "--pin", "clock", script, cwd=tmp_path))

    assert result["verdict"] == "identical"
    assert "made with the clock frozen (pin clock)" in result["notes"]


def test_the_record_tells_of_the_interventions(tmp_path):
    script = write(tmp_path, "script.py", "import torch; print(torch.ones(1).item())")
    samebits("run", "--pin", "clock", "--pin", "seed-numpy", "--record", "r.sbr", script, cwd=tmp_path)

    shown = samebits("show", "--json", "r.sbr", cwd=tmp_path).stdout

    assert "with the clock frozen (pin clock), with NumPy's generators seeded (pin seed-numpy)" in shown


@pytest.mark.parametrize("command", ["run", "verify"])
def test_an_intervention_that_is_not_there_is_refused_with_the_names(tmp_path, command):
    script = write(tmp_path, "script.py", "print('ran')")

    result = samebits(command, "--pin", "clok", script, cwd=tmp_path)

    assert result.returncode == 2
    assert result.stdout == ""
    (line,) = complaints(result.stderr)
    assert "did you mean clock?" in line
    assert "seed-torch" in line


def test_the_interventions_are_listed(tmp_path):
    result = samebits("verify", "--list-pins", cwd=tmp_path)

    assert result.returncode == 0
    assert [line.split()[0] for line in result.stdout.splitlines()] == [
        intervention.name for intervention in INTERVENTIONS
    ]
