"""`samebits run --seed`: an unmodified script under control, from the command line."""

from __future__ import annotations

import json
import sqlite3
import sys
from pathlib import Path

import pytest
from address_order_scripts import PLAIN, RACING
from cli_support import complaints, judged, samebits, write

from samebits._runtime.address_layout import can_fix_layout
from samebits.comparison import compare_records

EXAMPLES = Path(__file__).parents[2] / "examples"
# Draws from everything that a script may draw from without a seed.
UNSEEDED = """
    import random
    import numpy as np
    import torch
    generator = np.random.default_rng()
    own = random.Random()
    words = list({"a", "b", "c", "d", "e", "f", "g", "h"})
    model = torch.nn.Linear(8, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(3):
        x = torch.tensor(generator.random((2, 8)), dtype=torch.float32) + np.random.rand()
        x = torch.nn.functional.dropout(x * random.random() * own.random() * (1 + words.index("a")))
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
    print(f"{loss.item():.9f}")
"""
SELF_SEEDED = """
    import torch
    torch.manual_seed(42)
    model = torch.nn.Linear(8, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss = model(torch.randn(2, 8)).square().mean()
    loss.backward()
    optimizer.step()
"""
DRIFTS = """
    import torch
    model = torch.nn.Linear(8, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(4):
        if step == 2:
            torch.backends.cudnn.benchmark = True  # the culprit
        optimizer.zero_grad()
        model(torch.randn(2, 8)).square().mean().backward()
        optimizer.step()
"""
THROWS = """
    import torch
    x = torch.quantize_per_tensor(torch.ones(4), 0.1, 0, torch.qint8)
    x.resize_(8)  # the culprit
"""


def control_of(record: Path) -> dict[str, object]:
    """What a record says of the control that its run was under."""
    with sqlite3.connect(record) as connection:
        (text,) = connection.execute("SELECT control FROM run").fetchone()
    return json.loads(text)


def line_of(script: Path) -> int:
    """The line that is marked in a script."""
    lines = script.read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.endswith("# the culprit"))


def test_one_seed_one_result_two_seeds_two(tmp_path):
    """A script that seeds nothing differs without control and with two seeds, not with one."""
    script = write(tmp_path, "unseeded.py", UNSEEDED)
    outputs = [samebits("run", "--seed", seed, script, cwd=tmp_path).stdout for seed in (3, 3, 4)]
    plain = [samebits("run", script, cwd=tmp_path).stdout for _ in range(2)]

    assert (outputs[0] == outputs[1], outputs[1] != outputs[2]) == (True, True)
    assert plain[0] != plain[1]


def test_verify_under_control_is_identical(tmp_path):
    """`verify --seed` answers whether control is enough."""
    script = write(tmp_path, "unseeded.py", UNSEEDED)

    assert judged(samebits("verify", "--json", "--seed", 3, script, cwd=tmp_path))["verdict"] == "identical"
    assert (
        judged(samebits("verify", "--json", "--no-localise", script, cwd=tmp_path))["verdict"] == "different"
    )


def test_a_small_seed_is_that_of_the_libraries(tmp_path):
    """`--seed 3` gives what `torch.manual_seed(3)`, `numpy.random.seed(3)` and `random.seed(3)` give."""
    source = (
        "import random, numpy, torch\nprint(random.random(), numpy.random.rand(), torch.rand(1).item())\n"
    )
    seeds = "import random, numpy, torch\nrandom.seed(3); numpy.random.seed(3); torch.manual_seed(3)\n"
    ours = samebits("run", "--seed", 3, write(tmp_path, "a.py", source), cwd=tmp_path).stdout
    theirs = samebits("run", write(tmp_path, "b.py", seeds + source), cwd=tmp_path).stdout

    assert ours == theirs != ""


def test_a_script_that_seeds_itself_is_told_so(tmp_path):
    """Its own seed wins, which is said; `--reseed` lets the run seed decide."""
    script = write(tmp_path, "own.py", SELF_SEEDED)
    results = []
    for number, words in enumerate(
        [("--seed", 3), ("--seed", 4), ("--seed", 3, "--reseed"), ("--seed", 4, "--reseed")]
    ):
        results.append(samebits("run", *words, "--record", f"{number}.sbr", script, cwd=tmp_path))
    verdicts = [
        compare_records(tmp_path / f"{a}.sbr", tmp_path / f"{b}.sbr").verdict for a, b in ((0, 1), (2, 3))
    ]

    assert verdicts == ["identical", "different"]
    assert [line for line in complaints(results[0].stderr) if "own.py:2" in line and "--reseed" in line]
    assert not [line for line in complaints(results[2].stderr) if "seeds itself" in line]


FORKING = """\
import multiprocessing, os, random, sys, torch
def draw(queue): queue.put(random.random())
class Seeded(torch.utils.data.Dataset):
    def __len__(self): return 2
    def __getitem__(self, index):
        with torch.random.fork_rng():
            torch.manual_seed(index)
            return torch.randn(3)
if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=draw, args=(queue,))
    process.start()
    print(queue.get())
    process.join()
    for batch in torch.utils.data.DataLoader(Seeded(), num_workers=1):
        print(batch)
    for batch in torch.utils.data.DataLoader(Seeded(), shuffle=True):
        print(batch)
    sys.stdout.flush()
    child = os.fork()
    status = os.waitpid(child, 0)[1] if child else 0
    print(random.random())
    sys.exit(status)
"""


def test_a_script_whose_seeds_others_set_is_not_told_that_it_seeds_itself(tmp_path):
    """Python in a forked child, torch in workers; and a seed that is put back is not in force."""
    script = write(tmp_path, "forking.py", FORKING)
    ways = ((), (), ("--reseed",))
    results = [samebits("run", "--seed", 3, *words, script, cwd=tmp_path) for words in ways]

    assert [result.returncode for result in results] == [0, 0, 0], results[0].stderr
    assert results[0].stdout == results[1].stdout
    assert not [result.stderr for result in results if " seeds " in result.stderr]


@pytest.mark.skipif(not can_fix_layout(), reason="addresses cannot be fixed here")
def test_order_by_address_is_the_same_in_every_run_or_said_not_to_be(tmp_path):
    """`test_address_order.py` has forty scripts; with the switch left alone the order is another one."""
    quiet, racing = write(tmp_path, "quiet.py", PLAIN["set of objects"]), write(
        tmp_path, "racing.py", RACING["a pool of threads"]
    )  # fmt: skip
    held = [samebits("run", "--seed", 3, quiet, cwd=tmp_path) for _ in range(3)]
    loose = samebits("run", "--seed", 3, "--leave", "address-layout", quiet, cwd=tmp_path)
    told = samebits("run", "--seed", 3, "--record", "a.sbr", racing, cwd=tmp_path)

    assert {run.stdout for run in held} == {held[0].stdout}
    assert loose.stdout != held[0].stdout
    assert "not held" not in held[0].stderr
    assert "racing.py:7" in told.stderr
    assert "not held" in told.stderr
    assert control_of(tmp_path / "a.sbr")["results"]["address-layout"]["now"] == "fixed"


def test_the_record_keeps_what_was_asked_and_what_came_of_it(tmp_path):
    """Seed, switches and their outcome."""
    script = write(tmp_path, "own.py", SELF_SEEDED)
    samebits("run", "--seed", 3, "--leave", "mkldnn-deterministic", "--record", "a.sbr", script, cwd=tmp_path)
    control = control_of(tmp_path / "a.sbr")
    results = control["results"]

    assert (control["seed"], control["run_seed"]) == (3, 3)
    assert results["deterministic-algorithms"]["state"] == "set"
    assert results["PYTHONHASHSEED"]["now"] == "0"
    assert "mkldnn-deterministic" not in results
    assert control["script_seeds"][0]["function"] == "torch.manual_seed"


@pytest.mark.parametrize(("reaction", "status"), [("warn", 0), ("restore", 0), ("error", 2), ("ignore", 0)])
def test_drift_is_reported_with_its_line(tmp_path, reaction, status):
    """A switch that changes later: told with the line, an error when asked for, or ignored."""
    script = write(tmp_path, "drifts.py", DRIFTS)
    done = samebits("run", "--seed", 3, "--on-drift", reaction, "--record", "a.sbr", script, cwd=tmp_path)
    told = [line for line in complaints(done.stderr) if "cudnn-benchmark" in line]

    assert done.returncode == status, done.stderr
    assert bool(told) == (reaction != "ignore")
    assert all(f"drifts.py:{line_of(script)}" in line for line in told)
    assert bool(control_of(tmp_path / "a.sbr")["drifts"]) == (reaction in ("warn", "restore"))
    assert "Traceback" not in done.stderr


def test_an_op_that_throws_is_explained(tmp_path):
    """The traceback is torch's; one line of ours names the op, the line and what to use instead."""
    script = write(tmp_path, "throws.py", THROWS)
    done = samebits("run", "--seed", 3, script, cwd=tmp_path)
    told = [line for line in complaints(done.stderr) if f"throws.py:{line_of(script)}" in line]

    assert done.returncode == 1
    assert len(told) == 1
    assert "resize_" in told[0]
    assert "instead" in told[0]


BAD = [
    (("--seed", "-1"), "expected a whole number from 0"),
    (("--seed", str(2**64)), "expected a whole number from 0"),
    (("--seed", "1.5"), "expected a whole number from 0"),
    (("--seed", "three"), "expected a whole number from 0"),
    (("--seed", "٣"), "expected a whole number from 0"),
    (("--seed", "3", "--set", "cudnn-benchmrk=on"), "cudnn-benchmark"),
    (("--seed", "3", "--set", "cudnn-benchmark=maybe"), "cannot be 'maybe'"),
    (("--seed", "3", "--set", "cudnn-benchmark"), "expected SWITCH=VALUE"),
    (("--set", "cudnn-benchmark=on"), "--seed N or --deterministic"),
    (("--per-rank-seeds", "--deterministic"), "--seed N"),
    (("--reseed",), "--seed N"),
]


@pytest.mark.parametrize(
    ("words", "said"), BAD, ids=lambda value: " ".join(value) if isinstance(value, tuple) else ""
)
def test_bad_input_is_one_line_and_status_2(tmp_path, words, said):
    """What cannot be is refused before anything runs."""
    script = write(tmp_path, "a.py", "print('ran')\n")
    done = samebits("run", *words, script, cwd=tmp_path)

    assert (done.returncode, done.stdout) == (2, "")
    assert said in complaints(done.stderr)[0]
    assert len(done.stderr.splitlines()) == 2


def test_a_variable_that_breaks_the_promise_is_replaced_and_told(tmp_path):
    """Values that keep the promise stay."""
    script = write(
        tmp_path,
        "a.py",
        "import os\nprint(os.environ['CUBLAS_WORKSPACE_CONFIG'], os.environ['PYTHONHASHSEED'])\n",
    )
    bad = samebits(
        "run", "--seed", 3, script, cwd=tmp_path, CUBLAS_WORKSPACE_CONFIG=":1:x", PYTHONHASHSEED="7"
    )

    assert bad.stdout == ":4096:8 7\n"
    assert "CUBLAS_WORKSPACE_CONFIG=:1:x is replaced" in complaints(bad.stderr)[0]


def test_per_rank_seeds(tmp_path):
    """Rank 0 keeps the seed, the others have their own."""
    script = write(tmp_path, "a.py", "import random\nprint(random.random())\n")
    words = ("run", "--seed", 3, "--per-rank-seeds", script)
    outputs = [samebits(*words, cwd=tmp_path, RANK=rank).stdout for rank in ("0", "1", "1", "2")]
    plain = samebits("run", "--seed", 3, script, cwd=tmp_path).stdout

    assert outputs[0] == plain
    assert outputs[1] == outputs[2]
    assert len(set(outputs)) == 3


def test_the_compiler_is_not_imported_for_scripts_that_do_not_compile(tmp_path):
    """Its configuration alone takes more than a second to import."""
    source = "import sys, torch\nprint('torch._inductor.config' in sys.modules)\n"
    done = samebits("run", "--seed", 3, write(tmp_path, "a.py", source), cwd=tmp_path)

    assert done.stdout == "False\n", sys.version
