"""A seed, a state and a block hold for every generator, whenever its library is imported.

Each program runs in fresh processes that differ in when the libraries are imported, and has to draw the same.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from cli_support import environment

COUNTER = """
from random import Random
_generator = Random.__new__(Random)
def seed(number): _generator.__init__(number)
def draw(): return _generator.random()
def state(): return list(_generator.getstate()[1])
def put(words): _generator.setstate((3, tuple(words), None))
seed(None)
"""
PACKAGES = {
    "cupy/__init__.py": "from cupy import random, cuda\ndef is_available(): return True\n",
    "cupy/random.py": COUNTER,
    "cupy/cuda/__init__.py": (
        "import contextlib\nfrom cupy.cuda import runtime\nDevice = lambda index: contextlib.nullcontext()\n"
    ),
    "cupy/cuda/runtime.py": "def getDeviceCount(): return 1\n",
    "tensorflow/__init__.py": "from tensorflow import random\n",
    "tensorflow/random.py": COUNTER + "set_seed = seed\n",
    "torch_xla/__init__.py": "",
    "torch_xla/core/__init__.py": "",
    "torch_xla/core/xla_model.py": (
        COUNTER
        + "number = 0\ndef set_rng_state(value):\n    global number\n    number = value\n"
        + "def get_rng_state(): return number\n"
        + "def draw():\n    set_rng_state((number * 69069 + 1) % 2**32)\n    return number\n"
    ),
    "dice/__init__.py": "",
    "dice/generator.py": COUNTER,
    "dice/source.py": """
import json, sys
class Dice:
    name = "dice"
    module = "dice.generator"
    def available(self): return self.module in sys.modules
    def seed(self, seed): sys.modules[self.module].seed(seed)
    def get_state(self): return json.dumps(sys.modules[self.module].state()).encode()
    def set_state(self, state): sys.modules[self.module].put(json.loads(state))
    def version(self): return "dice 1.0"
""",
    "dice-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: dice\nVersion: 1.0\n",
    "dice-1.0.dist-info/entry_points.txt": "[samebits.rng_sources]\ndice = dice.source:Dice\n",
    "torch_npu/__init__.py": """
import torch, types
generator = torch.Generator()
npu = types.ModuleType("torch.npu")
npu.is_available, npu.device_count = lambda: True, lambda: 1
npu.manual_seed_all = generator.manual_seed
npu.get_rng_state_all = lambda: [generator.get_state()]
npu.set_rng_state_all = lambda states: generator.set_state(states[0])
torch.npu = npu
""",
}

# The libraries that a program loads: `load` imports, `draw_all` uses what was loaded.
PROLOGUE = """\
import importlib, json, random, sys
import samebits
order, libraries = sys.argv[1], sys.argv[2].split(",")
MODULES = {
    "numpy": "numpy.random", "opencv": "cv2", "cupy": "cupy", "tensorflow": "tensorflow",
    "xla": "torch_xla.core.xla_model", "dice": "dice.generator", "torch": "torch", "npu": "torch_npu",
}
def load(when):
    if when == order:
        for name in libraries:
            importlib.import_module(MODULES[name])
    if when == "before" and order == "lazy":  # the packages without the modules that draw
        import numpy, torch_xla, dice
        assert "numpy.random" not in sys.modules
def draw(name):
    module = sys.modules[MODULES[name]]
    if name in ("numpy", "torch"): return module.rand(2).tolist()
    if name == "opencv":
        import numpy
        return module.randu(numpy.zeros((1, 2), numpy.int32), 0, 10**9).tolist()
    if name == "npu": return sys.modules["torch"].rand(2, generator=module.generator).tolist()
    return getattr(module, "random", module).draw()
def draw_all(): return {"python": random.random(), **{name: draw(name) for name in libraries}}
load("before")
"""

SEEDED = "samebits.seed_all(3)\nload('after'); load('lazy')\nprint(json.dumps(draw_all()))\n"
SEEDED_TWICE = "samebits.seed_all(9)\n" + SEEDED
CONTROLLED = """\
with samebits.deterministic(seed=3):
    load('after'); load('lazy')
    print(json.dumps(draw_all()))
"""
AFTER_CONTROL = """\
with samebits.deterministic(seed=3): pass
load('after'); load('lazy')
print(json.dumps(draw_all()))
"""
SEEDED_IN_CONTROL = """\
with samebits.deterministic(seed=4):
    samebits.seed_all(3)
    load('after'); load('lazy')
    print(json.dumps(draw_all()))
"""
ISOLATED = """\
samebits.seed_all(3)
with samebits.isolated():
    load('inside'); load('lazy')
    if order != 'after': draw_all()
    samebits.seed_all(9)
    with samebits.reseeded("x", seed=1): pass
load('after')
print(json.dumps(draw_all()))
"""
RESEEDED = """\
samebits.seed_all(3)
with samebits.isolated(), samebits.reseeded("a", seed=5):
    load('inside'); load('lazy')
    inside = draw_all()
print(json.dumps([inside, draw_all()]))
"""
SAVED = """\
samebits.seed_all(3)
states = samebits.save_rng_states()
samebits.seed_all(4)
load('after'); load('lazy')
draw_all()
samebits.restore_rng_states(states)
print(json.dumps(draw_all()))
"""
RESTORED_EARLY = """\
load('saving')
samebits.seed_all(3)
states = samebits.save_rng_states()
if order == 'saving':
    open(sys.argv[3], "w").write(json.dumps([[s.source, s.version, s.data.hex()] for s in states]))
    print(json.dumps(draw_all()))
else:
    from samebits.rng.states import SourceState
    samebits.seed_all(8)
    rows = json.load(open(sys.argv[3]))
    samebits.restore_rng_states([SourceState(*row[:2], bytes.fromhex(row[2])) for row in rows])
    load('after'); load('lazy')
    print(json.dumps(draw_all()))
"""

LIGHT = ("numpy", "opencv", "cupy", "tensorflow", "xla", "dice")
UNSAVED = {"opencv", "cupy", "tensorflow"}


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """Libraries that are not installed here, with generators that begin anywhere unless they are seeded."""
    folder = tmp_path_factory.mktemp("packages")
    for name, text in PACKAGES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.fixture
def run(packages, tmp_path):
    """Run a program in a fresh process; gives what it drew."""

    def run_program(text, order, libraries=LIGHT, start=(), extra=()):
        script = tmp_path / "program.py"
        script.write_text(PROLOGUE + text)
        command = [sys.executable, "-W", "ignore", *start, script, order, ",".join(libraries), *extra]
        variables = {**environment(), "PYTHONPATH": str(packages)}
        done = subprocess.run(
            command, env=variables, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run_program


@pytest.mark.parametrize(
    "program",
    [SEEDED, SEEDED_TWICE, CONTROLLED, AFTER_CONTROL, SEEDED_IN_CONTROL],
    ids=["seed_all", "twice", "deterministic", "after control", "seed_all in control"],
)
def test_a_seed_holds_in_every_order(run, program):
    before = run(program, "before")

    assert run(program, "after") == before
    assert run(program, "lazy") == before


def test_torch_and_its_backends_are_seeded_in_every_order(run):
    libraries = ("torch", "npu", "numpy")

    assert run(SEEDED, "before", libraries) == run(SEEDED, "after", libraries)


def test_a_run_with_a_seed_seeds_in_every_order(run, tmp_path):
    """Also where the script seeds anew, and then imports."""
    libraries = (*LIGHT, "torch", "npu")
    start = ("-m", "samebits", "run", "--seed", "5", "--force", "--record", str(tmp_path / "a.sbr"))
    before, after, lazy = (run(SEEDED, order, libraries, start) for order in ("before", "after", "lazy"))

    assert before == after == lazy


WORKERS = """\
import json, sys
import torch, samebits
class Samples(torch.utils.data.Dataset):
    def __len__(self): return 6
    def __getitem__(self, index):
        import cv2, numpy
        from dice import generator
        return [*cv2.randu(numpy.zeros((1, 2)), 0, 1)[0], *numpy.random.rand(1), generator.draw()]
with samebits.deterministic(seed=3, keyed_samples=sys.argv[1] == "keyed"):
    loader = torch.utils.data.DataLoader(Samples(), 3, num_workers=int(sys.argv[2]), collate_fn=list)
    print(json.dumps([row for batch in loader for row in batch]))
"""


def test_libraries_that_a_worker_imports_first_are_seeded_there(packages, tmp_path):
    """A worker has numbers of its own; keyed by sample they are the same in every worker, and in none."""
    (tmp_path / "workers.py").write_text(WORKERS)
    variables = {**environment(), "PYTHONPATH": str(packages)}
    drawn = {}
    for words in (("keyed", "2"), ("keyed", "1"), ("keyed", "0"), ("plain", "2"), ("plain", "2", "again")):
        command = [sys.executable, "-W", "ignore", tmp_path / "workers.py", *words]
        done = subprocess.run(
            command, env=variables, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
        drawn[words] = json.loads(done.stdout)
    by_worker = drawn["plain", "2"]

    assert drawn["keyed", "2"] == drawn["keyed", "1"] == drawn["keyed", "0"]
    assert by_worker == drawn["plain", "2", "again"]
    assert all(a != b for a, b in zip(by_worker[0], by_worker[3], strict=True))


def test_isolated_leaves_no_trace_in_any_order(run):
    expected = run(SEEDED, "before")
    found = {order: run(ISOLATED, order) for order in ("before", "inside", "lazy", "after")}
    for name in UNSAVED:  # there before, they can be seeded, and neither saved nor put back
        found["before"][name] = expected[name]

    assert found == dict.fromkeys(found, expected)


def test_reseeded_draws_the_same_in_any_order(run):
    before, inside, lazy = (run(RESEEDED, order) for order in ("before", "inside", "lazy"))
    for name in UNSAVED:
        for drawn in (*before, inside[0], lazy[0]):
            del drawn[name]
    seeded = run(SEEDED, "before")

    assert inside[0] == lazy[0] == before[0]
    assert inside[1] == lazy[1] == seeded == {**seeded, **before[1]}


def test_states_are_restored_in_every_order(run):
    seeded = run(SEEDED, "before")
    before = run(SAVED, "before")

    assert {**seeded, **before, **{name: seeded[name] for name in UNSAVED}} == seeded
    assert run(SAVED, "after") == run(SAVED, "lazy") == seeded


def test_states_are_restored_before_the_import(run, tmp_path):
    """What another process saved, whose libraries were imported, waits for the import here."""
    libraries = ("numpy", "xla", "dice")
    saved = run(RESTORED_EARLY, "saving", libraries, extra=(tmp_path / "states.json",))

    for order in ("after", "lazy", "before"):
        assert run(RESTORED_EARLY, order, libraries, extra=(tmp_path / "states.json",)) == saved
