"""Faults that `assert_repeatable` finds in fresh processes: step, operation, line and cause are named."""

from __future__ import annotations

import re

import pytest
from pytest_support import line_of, run_pytest

FAULTS = {
    "unseeded-torch": """
        return fit([torch.randn(8, 4)])  # the fault
    """,
    "unseeded-numpy": """
        return fit([torch.from_numpy(np.random.rand(8, 4)).float()])  # the fault
    """,
    "unseeded-python": """
        return fit([torch.full((8, 4), random.random())])  # the fault
    """,
    "hash-order": """
        names = {"alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"}
        return fit([torch.full((8, 4), float(ord(name[0]))) for name in names])  # the fault
    """,
    "wall-clock": """
        return fit([torch.full((8, 4), time.time() % 1)])  # the fault
    """,
}
# No line of this one is the fault: the order in which the threads end is.
RACE = """
    def train():
        done = []
        def work(number):
            for _ in range(40):
                sum(range(3_000))
                time.sleep(0)  # lets another thread go on
            done.append(float(number))
        threads = [threading.Thread(target=work, args=(number,)) for number in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return fit([torch.full((8, 4), value) for value in done])  # uses the order

    def test_training(samebits):
        samebits.assert_repeatable(train)
"""


@pytest.mark.parametrize("cause", FAULTS)
def test_a_fault_is_named(cause, tmp_path):
    source = f"""
    def train():{FAULTS[cause]}
    @pytest.mark.parametrize("rate", [1])
    def test_training(samebits, rate):
        samebits.assert_repeatable(lambda: train())
    """
    done = run_pytest(tmp_path, source)

    assert done.returncode == 1, done.stdout
    assert "first difference: step 0, aten::" in done.stdout
    assert f"test_it.py:{line_of(tmp_path, '# the fault')} in train" in done.stdout
    assert f"cause         {cause}" in done.stdout
    assert "Captured stderr" not in done.stdout or "Traceback" not in done.stdout


def test_a_race_is_named(tmp_path):
    """The line is one that uses the order: where tensors are made of it, or where they are read first.

    Two orders can begin with the same thread, so the step is not always the first.
    """
    done = run_pytest(tmp_path, RACE)

    assert done.returncode == 1, done.stdout
    assert "cause         race" in done.stdout
    assert re.search(r"first difference: step \d+, aten::", done.stdout)
    made = f"test_it.py:{line_of(tmp_path, '# uses the order')} in train"
    read = f"test_it.py:{line_of(tmp_path, 'loss = model(x)')} in fit"
    assert made in done.stdout or read in done.stdout
    assert "depends on which thread or process came first" in done.stdout
