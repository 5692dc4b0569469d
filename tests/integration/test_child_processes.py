"""Control reaches the processes that a script starts, whichever way it starts them."""

from __future__ import annotations

import multiprocessing.spawn
import os
import random
import sys

import pytest
import torch
from child_support import found, run_script

from samebits.determinism.processes import ChildProcesses
from samebits.rng.active import PROCESS, Active
from samebits.rng.seeds import derive, fit
from samebits.switches.switch import Control

START = """
    from samebits.determinism.activation import Activation
    from samebits.switches.switch import Control
    import sys
    if __name__ == "__main__":
        Activation(Control(seed=int(sys.argv[1]), all_switches=False), fresh_process=True).start()
"""

CHILDREN = (
    START
    + """
    import concurrent.futures, json, multiprocessing, os, random
    import numpy as np
    from joblib.externals.loky import get_reusable_executor

    rng = np.random.default_rng()
    MADE = rng.random()

    def draws(pipe=None):
        from samebits.rng.active import PROCESS
        values = [MADE, np.random.default_rng().random(), random.random(), np.random.rand()]
        values.append(multiprocessing.current_process().name)
        if pipe is None:
            return values
        pipe.send(values)

    def nested(pipe):
        child = multiprocessing.get_context("fork").Process(target=draws, args=(pipe,))
        child.start()
        child.join()

    def of_process(context, target=draws, **arguments):
        ours, theirs = multiprocessing.Pipe()
        process = context.Process(target=target, args=(theirs,), **arguments)
        process.start()
        theirs.close()  # a child that fails ends the wait
        values = ours.recv()
        process.join()
        return values

    def of_fork():
        out, into = os.pipe()
        if os.fork() == 0:
            os.write(into, json.dumps(draws()).encode())
            os._exit(0)
        os.wait()
        return json.loads(os.read(out, 10_000))

    if __name__ == "__main__":
        main = [MADE, rng.random(), random.random(), np.random.rand(), "main"]
        found = {"main": main}
        for method in ("fork", "spawn", "forkserver"):
            context = multiprocessing.get_context(method)
            found[method] = of_process(context)
            found[method + " 2"] = of_process(context, name="ignore")
        found["nested"] = of_process(multiprocessing.get_context("fork"), nested)
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            found["pool"] = pool.apply(draws)
        context = multiprocessing.get_context("fork")
        with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as executor:
            found["executor"] = executor.submit(draws).result()
        found["os.fork"], found["os.fork 2"] = of_fork(), of_fork()
        found["loky"] = get_reusable_executor(1).submit(draws).result()
        print(json.dumps(found))
"""
)


def test_children_of_all_kinds(tmp_path):
    first = found(run_script(tmp_path, CHILDREN, "3"))
    again = found(run_script(tmp_path, CHILDREN, "3"))

    assert first == again
    fresh = ("spawn", "spawn 2", "forkserver", "forkserver 2", "pool")
    forked = ("fork", "fork 2", "nested", "executor", "os.fork", "os.fork 2")
    assert set(first) == {"main", "loky", *fresh, *forked}
    # Module level code ran again, under control, or was inherited.
    assert {first[name][0] for name in forked} == {first["main"][0]}
    assert len({first[name][0] for name in ("main", *fresh)}) == 1 + len(fresh)
    # Generators made without a seed, and Python's own, differ in each process.
    for column in (1, 2):
        assert len({values[column] for values in first.values()}) == len(first)
    # NumPy's state is inherited by fork, and a new one in new processes.
    assert len({first[name][3] for name in forked}) == 1
    assert len({first[name][3] for name in ("main", "loky", *fresh)}) == 2 + len(fresh)

    other = found(run_script(tmp_path, CHILDREN, "4"))
    for column in range(4):
        mine, theirs = ({values[column] for values in run.values()} for run in (first, other))
        assert mine.isdisjoint(theirs)


SPAWNED_BY_TORCH = (
    START
    + """
    import json, torch

    def rank(index, folder):
        values = [index, torch.rand(1).item()]
        with open(f"{folder}/{index}", "w") as file:
            json.dump(values, file)

    if __name__ == "__main__":
        torch.multiprocessing.spawn(rank, args=(sys.argv[2],), nprocs=2)
        print(json.dumps({str(index): json.load(open(f"{sys.argv[2]}/{index}")) for index in range(2)}))
"""
)


def test_torch_multiprocessing_spawn(tmp_path):
    ranks = found(run_script(tmp_path, SPAWNED_BY_TORCH, "3", str(tmp_path)))

    for number in range(2):
        seed = fit(derive(3, "process", "", number), "torch")
        expected = torch.rand(1, generator=torch.Generator().manual_seed(seed)).item()
        assert ranks[str(number)] == [number, expected]


UNREACHED = (
    START
    + """
    import multiprocessing, os
    def work():
        print("worked", flush=True)

    if __name__ == "__main__":
        from samebits._runtime import child_bootstrap
        child_bootstrap.FOLDER = sys.argv[2]
        context = multiprocessing.get_context("spawn")
        for _ in range(2):
            process = context.Process(target=work)
            process.start()
            process.join()
            assert process.exitcode == 0
"""
)


def test_a_child_that_cannot_import_samebits_runs_and_one_says_so(tmp_path):
    result = run_script(tmp_path, UNREACHED, "3", str(tmp_path / "nowhere"))

    assert result.returncode == 0, result.stderr
    assert result.stdout.count("worked") == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith("samebits: warning: no control in child processes (")


def test_the_scripts_own_samebits_is_not_taken_for_this_one(tmp_path):
    """In a child, the working directory is searched first while preparations are read."""
    script = (
        START
        + """
    import multiprocessing, random
    def work():
        print(random.random(), flush=True)

    if __name__ == "__main__":
        process = multiprocessing.get_context("spawn").Process(target=work)
        process.start()
        process.join()
"""
    )
    expected = run_script(tmp_path, script, "3")
    (tmp_path / "samebits.py").write_text("raise ImportError('this is not it')\n")
    # The script's folder is searched before PYTHONPATH, so it must say where the package is.
    moved = script.replace(
        "    from samebits.determinism.activation",
        "    import sys; sys.path.insert(0, sys.path[1])\n    from samebits.determinism.activation",
        1,
    )
    result = run_script(tmp_path, moved, "3")

    assert (result.stdout, result.stderr) == (expected.stdout, "")
    assert len(expected.stdout) > 5


@pytest.fixture
def children():
    active = Active(Control(seed=3), 3)
    children = ChildProcesses(active)
    children.install()
    yield children
    children.remove()


def test_installing_leaves_nothing_behind(children):
    assert os.fork.__module__ != "posix" or hasattr(os.fork, "__wrapped__")
    children.remove()

    assert not hasattr(os.fork, "__wrapped__")
    assert not hasattr(multiprocessing.spawn.get_preparation_data, "__wrapped__")


def test_the_fork_server_itself_does_not_import_the_script(children, monkeypatch):
    """Newer Pythons would let it; then there would be no control over what the script does on import."""
    monkeypatch.setattr(sys.modules["__main__"], "__file__", "train.py", raising=False)
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", None)
    asked = {"__name__": "multiprocessing.forkserver", "ask": multiprocessing.spawn.get_preparation_data}
    exec("data = ask('ignore')", asked)  # noqa: S102

    assert not {"init_main_from_path", "main_path", "samebits"} & set(asked["data"])
    data = multiprocessing.spawn.get_preparation_data("ignore")
    assert next(iter(data)) == "samebits"
    assert "init_main_from_path" in data


def test_a_forked_child_has_a_scope_and_the_parent_none():
    active = Active(Control(seed=3), 3)
    children = ChildProcesses(active)
    children.install()
    PROCESS.push(active)
    try:
        random.seed(1)
        out, into = os.pipe()
        for _ in range(2):
            if os.fork() == 0:
                os.write(into, repr((active.scope, random.random())).encode() + b"\n")
                os._exit(0)
            os.wait()
    finally:
        PROCESS.drop(active)
        children.remove()
    lines = os.read(out, 10_000).decode().splitlines()

    assert active.scope == ()
    assert lines[0].startswith("(('process', '', 0), 0.")
    assert lines[1].startswith("(('process', '', 1), 0.")
    assert lines[0][-12:] != lines[1][-12:]
