"""Whatever stands for a function pickles, copies and compares as the function does in bare Python.

The functions are those that samebits has replaced in the process: a new one is covered without a change here.
"""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

IMPORTS = """
import concurrent.futures, copy, functools, gc, inspect, multiprocessing, multiprocessing.pool, os, pickle
import random, re, resource, shutil, socket, sys, tempfile, time, types, uuid
import numpy.random, torch, torch.multiprocessing
"""
NAMES = (
    IMPORTS
    + """
lists = [thing for thing in gc.get_objects() if type(thing).__name__ == "Patches"]
layers = [layer for each in lists for layer in each._layers]
places = {(layer.owner.__name__, layer.name) for layer in layers if isinstance(layer.owner, types.ModuleType)}
places = {place for place in places if place[0] != "torch._C"}  # the user finds them in torch
print("\\n".join(sorted(f"{module} {name}" for module, name in places)))
"""
)
FACTS = (
    IMPORTS
    + """
def tried(function):
    try:
        return str(function())
    except BaseException as error:
        return type(error).__name__

def stable(data):
    return len(data) < 300 and data  # else it holds the state of a generator

for line in open("names"):
    module, name = line.split()
    __import__(module)
    f = getattr(sys.modules[module], name, None)
    if f is None or name.startswith("quantized_"):  # to copy these takes torch for ever, in bare Python too
        continue
    home = sys.modules.get(str(f.__module__))
    facts = [
        tried(lambda: [stable(pickle.dumps(f, protocol)) for protocol in (0, 2, 4, 5)]),
        tried(lambda: pickle.loads(pickle.dumps(f)) is f),
        tried(lambda: pickle.loads(pickle.dumps(functools.partial(f, 1))).func is f),
        tried(lambda: copy.copy(f) is f),
        tried(lambda: copy.deepcopy(f) is f),
        re.sub("0x[0-9a-fA-F]+", "", repr(f)),
        tried(lambda: inspect.signature(f)),
        getattr(home, f.__name__, None) is f,
        isinstance(f, types.FunctionType), isinstance(f, types.BuiltinFunctionType),
        f.__module__, f.__name__, f.__qualname__, f.__doc__ and len(f.__doc__),
    ]
    print(module, name, *facts)
print(os.getpid is sys.modules["posix"].getpid, os.stat in os.supports_fd)
print(shutil.rmtree.avoids_symlink_attacks)
def in_a_pool(pool):
    return pool.apply_async(os.getpid, ()).get() != os.getpid(), len(pool.map(os.urandom, [3, 4]))
if __name__ == "__main__":
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            print(in_a_pool(pool))
    with concurrent.futures.ProcessPoolExecutor(1) as pool:
        print(len(pool.submit(os.listdir, "/").result()) > 1, pool.submit(random.seed, 3).result())
"""
)
WAYS = {
    "recorded": (),
    "controlled": ("--seed", "3", "--reseed"),
    "pinned": ("--pin", "clock", "--pin", "entropy"),
    "op level": ("--level", "op"),
}


def run(folder: Path, source: str, *options: str) -> list[str]:
    (folder / "probe.py").write_text(source)
    way = ["-m", "samebits", "run", "--record", "r.sbr", "--force", *options] if options != ("bare",) else []
    command = [sys.executable, *way, "probe.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("way", WAYS)
def test_replaced_functions_are_as_in_bare_python(tmp_path: Path, way: str) -> None:
    """All that samebits has replaced in modules, in each way to run a script."""
    names = run(tmp_path, NAMES, *WAYS[way])
    assert {"os getpid", "posix getpid", "time time"} <= set(names)
    (tmp_path / "names").write_text("\n".join(names))
    expected = run(tmp_path, FACTS, "bare")
    assert [line for line in run(tmp_path, FACTS, *WAYS[way]) if line not in expected] == []


PATCHING = """
import atexit, multiprocessing, random, time, torch

def patched(owner, name):
    original = getattr(owner, name)
    def users(*args, **kwargs):
        return original(*args, **kwargs)
    setattr(owner, name, users)
    return users

def work(rank=0):
    functions = [(time, "time"), (random, "seed"), (torch, "manual_seed"), (torch.autograd, "backward")]
    standing = [(owner, name, patched(owner, name)) for owner, name in functions]
    torch.ones(1, requires_grad=True).sum().backward()
    torch.manual_seed(3), random.seed(3), time.time()
    # In the end samebits has undone its own, and these are called by what other code does then.
    atexit.register(lambda: print(rank, [getattr(o, n) is users for o, n, users in standing]))

if __name__ == "__main__":
    work()
    for method in ("fork", "spawn"):
        child = multiprocessing.get_context(method).Process(target=work, args=(method,))
        child.start(), child.join()
        print(child.exitcode)
"""


@pytest.mark.parametrize("options", [(), ("--seed", "3"), ("--seed", "3", "--portable")])
def test_nothing_is_said_at_the_end_of_a_script_that_patches_too(tmp_path: Path, options: tuple[str, ...]):
    """A warning would be no use there, and the script's output is its own."""
    (tmp_path / "probe.py").write_text(PATCHING)
    command = [sys.executable, "-m", "samebits", "run", "--record", "r.sbr", *options, "probe.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)

    assert done.stdout.splitlines() == run(tmp_path, PATCHING, "bare")
    assert [line for line in done.stderr.splitlines() if not line.startswith("samebits: ")] == []
