"""`assert_matches_lock` of the pytest plugin, as users call it: written, kept, different, refused."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from cli_support import environment
from pytest_support import again, run_pytest

GOLDEN = """
    import os

    def train():
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=float(os.environ.get("LR", "0.1")))
        for x in torch.linspace(0, 1, 96).reshape(3, 8, 4):
            loss = model(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return model

    def test_golden(samebits, tmp_path):
        (tmp_path / "read").write_text("1")
        assert open(tmp_path / "read").read() == "1"
        assert samebits.assert_matches_lock("golden", train).weight.shape == (2, 4)
"""
ENTRY = re.compile(r'\[run\.golden\]\nchecksum = "\w{16}"\ntest = "test_it\.py::test_golden"\nsteps = 3\n')


@pytest.fixture
def locked(tmp_path):
    """A folder with a test and its lock file."""
    done = run_pytest(tmp_path, GOLDEN, "--samebits-update")
    assert done.returncode == 0, done.stdout
    assert f"golden in {tmp_path}/samebits.lock: written (steps: 3)" in done.stdout
    return tmp_path


def test_without_an_entry_one_line_says_how_to_write_it(tmp_path):
    """And nothing is run in a fresh process, or written."""
    done = run_pytest(tmp_path, GOLDEN)

    assert done.returncode == 1, done.stdout
    assert (
        "has no entry golden, so there is nothing to compare with; `pytest --samebits-update" in done.stdout
    )
    assert "test_it.py::test_golden` writes it" in done.stdout
    assert not (tmp_path / "samebits.lock").exists()


def test_an_entry_is_text_that_is_kept(locked):
    """The test passes, from another folder too; what is the same is not written again."""
    path = locked / "samebits.lock"
    before = path.read_bytes()
    text = before.decode()
    assert ENTRY.search(text), text
    assert re.search(r'\[run\.golden\.digests\]\n0 = "[0-9a-f]{32} - loss=0\.\d+"\n1 = ', text)
    assert re.search(r'\[run\.golden\.environment\.code\]\ntest_it = "\w{16}"\n', text), text
    assert text.rstrip().endswith("[run.golden.environment.data]"), text

    done = again(locked, "--samebits-update", "test_it.py")
    assert "golden in" in done.stdout
    assert "its bits are the same, so it is left as it is" in done.stdout
    (locked / "other").mkdir()
    done = again(locked / "other", "../test_it.py", "-n", "2")
    assert "1 passed" in done.stdout, done.stdout
    assert path.read_bytes() == before


def test_a_mismatch_names_step_value_and_whose_it_is(locked):
    """Nothing that is locked is different; the code is; the platform is, and a setting of the lock helps."""
    path = locked / "samebits.lock"
    before = path.read_bytes()
    unexplained = again(locked, "test_it.py", LR="0.2").stdout
    assert re.search(r"golden  DIFFERENT +from step 0 of 3 on: gradients or state", unexplained), unexplained
    assert "golden: something that the lock does not hold: all runs here agree" in unexplained
    assert re.search(r"step 1: loss 0\.\d+ in the lock, 0\.\d+ here", unexplained)
    assert "if this is wanted: pytest --samebits-update" in unexplained

    test = locked / "test_it.py"
    source = test.read_text()
    test.write_text(source.replace("linspace(0, 1, 96)", "linspace(0, 2, 96)"))
    changed = again(locked, "test_it.py").stdout
    assert "golden: your change: the code differs from that of the lock, and nothing else does" in changed
    assert re.search(r"values +loss 0\.\d+ in the lock, \d\.\d+ here", changed), changed
    assert re.search(r"code of test_it: \w+ and \w+", changed)

    test.write_text(source + "\n# a comment\n")
    assert "1 passed" in again(locked, "test_it.py").stdout
    assert path.read_bytes() == before


def test_the_platform_is_named_and_portable_mode_does_not_depend_on_it(tmp_path):
    """With the number of threads; in portable mode the same sum is the same everywhere."""
    source = """
        def values():
            return torch.rand(1_000_003, generator=torch.Generator().manual_seed(0))

        def test_threads(samebits):
            samebits.assert_matches_lock("threads", lambda: float(values().sum()) * torch.get_num_threads())

        def test_portable(samebits):
            samebits.assert_matches_lock("sum", lambda: float(values().sum()), portable=True, lock="a/b.lock")
    """
    done = run_pytest(tmp_path, source, "--samebits-update", OMP_NUM_THREADS="2", MKL_NUM_THREADS="2")
    assert "2 passed" in done.stdout, done.stdout
    assert 'test = "../test_it.py::test_portable"' in (tmp_path / "a/b.lock").read_text()

    done = again(
        tmp_path, "test_it.py", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", ATEN_CPU_CAPABILITY="default"
    )
    assert "1 failed, 1 passed" in done.stdout, done.stdout
    assert "threads: drift of the platform: with the settings of the lock" in done.stdout
    assert re.search(r"settings +\w+_NUM_THREADS=2", done.stdout)


def test_chance_is_not_locked_and_not_blamed_on_others(locked):
    """A function that gives other bits each time has no entry; one that came to do so is told so."""
    test = locked / "test_it.py"
    test.write_text(test.read_text().replace("torch.manual_seed(0)", "torch.seed()"))
    path = locked / "samebits.lock"
    before = path.read_bytes()

    done = again(locked, "test_it.py", "--samebits-update")
    assert (
        "two runs of the function gave different bits from step 0 on, so there is nothing to lock"
        in done.stdout
    )
    done = again(locked, "test_it.py")
    assert "golden: nondeterminism: two runs of the same code on this machine" in done.stdout
    assert "assert_repeatable says why" in done.stdout
    assert path.read_bytes() == before


CHANCE = """
    import itertools

    def is_otherwise():
        if PROCESS.recording is None:  # the process of the user's pytest
            return False
        for number in itertools.count():
            try:
                os.mkdir(os.path.join(RUNS, str(number)))
                return number in (2, 3, 4)
            except FileExistsError:
                pass
"""


def test_chance_with_two_outcomes_is_told_though_some_runs_agree(tmp_path):
    """Runs 0 and 1 make the entry. The next three agree with each other, and nothing else is different."""
    runs = tmp_path / "runs"
    runs.mkdir()
    head = f"import os\n    from samebits.rng.active import PROCESS\n    RUNS = {str(runs)!r}\n{CHANCE}"
    text = GOLDEN.replace("import os\n", head, 1)
    text = text.replace('float(os.environ.get("LR", "0.1"))', "0.2 if is_otherwise() else 0.1")
    done = run_pytest(tmp_path, text, "--samebits-update")
    assert done.returncode == 0, done.stdout
    assert len(list(runs.iterdir())) == 2
    done = again(tmp_path, "test_it.py")
    assert "golden: nondeterminism: two runs of the same code on this machine" in done.stdout
    assert len(list(runs.iterdir())) == 6


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("version = 1", "version = 2", "is of version 2, and this samebits reads version 1"),
        ("steps = 3", "steps = 4", "does not match its checksum: it was edited"),
        ("version = 1", "version = 1\n<<<<<<<", "is no lock file that samebits wrote"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_and_left(old, new, found, locked):
    """In a line, with and without an update."""
    path = locked / "samebits.lock"
    path.write_text(path.read_text().replace(old, new, 1))
    before = path.read_bytes()
    for options in ((), ("--samebits-update",)):
        done = again(locked, "test_it.py", *options)
        assert done.returncode == 1
        assert found in done.stdout, done.stdout
    assert path.read_bytes() == before


def test_entries_of_other_calls_are_refused(locked):
    """Another test, another seed, a name that is used twice, a bad name; none of them writes."""
    path = locked / "samebits.lock"
    before = path.read_bytes()
    test = locked / "test_it.py"
    test.write_text(
        test.read_text()
        + """
def test_other(samebits):
    samebits.assert_matches_lock("golden", train)

def test_bad(samebits):
    samebits.assert_matches_lock("a b", train)
"""
    )
    done = again(locked, "test_it.py", "--samebits-update", "-k", "other or bad")
    assert "2 failed" in done.stdout, done.stdout
    assert "is of the test test_it.py::test_golden, and not of test_it.py::test_other" in done.stdout
    assert "'a b' cannot name an entry" in done.stdout

    test.write_text(test.read_text().replace('("golden", train)', '("golden", train, seed=3)'))
    done = again(locked, "test_it.py", "-k", "golden")
    assert "was made without a seed, and the test asks for runs with seed 3" in done.stdout
    assert path.read_bytes() == before


def test_a_name_is_used_once_in_a_test(tmp_path):
    """Else one call would overwrite the entry of the other."""
    source = """
        def test_it(samebits):
            samebits.assert_matches_lock("same", clean)
            samebits.assert_matches_lock("same", lambda: clean())
            samebits.assert_matches_lock("more", lambda: clean())
    """
    done = run_pytest(tmp_path, source, "--samebits-update")
    assert "two calls of this test are locked as same" in done.stdout, done.stdout


def test_workers_do_not_write(tmp_path):
    """Several processes would lose what another wrote, so they are refused before anything runs."""
    done = run_pytest(tmp_path, GOLDEN, "--samebits-update", "-n", "2")

    assert done.returncode == 4, done.stdout
    assert "--samebits-update writes lock files, which several processes cannot do at once" in done.stdout
    assert not (tmp_path / "samebits.lock").exists()
    done = again(tmp_path, "test_it.py", "--samebits-update", "-n", "0")
    assert "1 passed" in done.stdout, done.stdout


def test_the_commands_leave_entries_of_tests_to_pytest(locked):
    """`check` says who checks them, and `lock` does not replace them."""

    def samebits(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "samebits", *words], cwd=locked, env=environment(), text=True, check=False,
            capture_output=True, timeout=120,
        )  # fmt: skip

    done = samebits("check", "golden")
    assert done.returncode == 2
    assert "is of the test test_it.py::test_golden; pytest checks it" in done.stderr
    assert "has no entries; expected one of its entries: none" in samebits("check").stderr
    (locked / "train.py").write_text("import torch\n")
    done = samebits("lock", "--name", "golden", "train.py")
    assert done.returncode == 2
    assert "has an entry golden already, of test_it.py::test_golden" in done.stderr
