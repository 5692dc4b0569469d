"""The fixture judges what the function does: nothing that is done before it or after it."""

from __future__ import annotations

import pytest
from pytest_support import line_of, run_pytest

# pytest shows the arguments of a test when it ends, and so reads the tensors among them.
AFTER = """
    @pytest.fixture
    def ones():
        return torch.ones(2)

    @pytest.fixture
    def noise():
        return torch.rand(3)

    def test_nothing(samebits, ones):
        samebits.assert_repeatable(lambda: None)

    def test_nothing_portable(samebits, ones):
        samebits.assert_portable(lambda: None)

    def test_nothing_locked(samebits, ones):
        samebits.assert_matches_lock("nothing", lambda: None)

    def test_clean(samebits, noise):
        samebits.assert_repeatable(lambda: fit([torch.ones(8, 4)]))
"""


def test_what_pytest_reads_after_the_call_does_not_count(tmp_path):
    done = run_pytest(tmp_path, AFTER, "--samebits-update", "--samebits-budget=0")

    assert "3 failed, 1 passed" in done.stdout, done.stdout
    assert done.stdout.count("not judged: the function took no step and read no value out of torch") >= 3
    assert "FAILED test_it.py::test_clean" not in done.stdout
    assert not (tmp_path / "samebits.lock").exists()


def test_what_the_function_raises_is_in_the_record(tmp_path):
    source = """
        import os
        def test_it(samebits, tmp_path):
            def train():
                if "SAMEBITS_OF_TEST" in os.environ:
                    raise RuntimeError("not here")
                os.environ["SAMEBITS_OF_TEST"] = "1"
                return clean()
            os.environ.pop("SAMEBITS_OF_TEST", None)
            if os.path.exists("flag"):
                os.environ["SAMEBITS_OF_TEST"] = "1"
            open("flag", "w").close()
            samebits.assert_repeatable(train)
    """
    done = run_pytest(tmp_path, source)

    assert "1 failed" in done.stdout, done.stdout
    said = " ".join(line.removeprefix("E").strip() for line in done.stdout.splitlines())
    assert "the function failed in both runs: RuntimeError: not here" in said


# Values that are read out, a training, an optimizer and a save, none of which the function uses.
BEFORE = """
    import io

    @pytest.fixture
    def prepared():
        print(torch.rand(3))
        model = torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model(torch.rand(4, 2)).sum().backward()
        optimizer.step()
        torch.save(model.state_dict(), io.BytesIO())
        del model, optimizer

    def test_nothing(samebits, prepared):
        samebits.assert_repeatable(lambda: None, fresh={fresh})

    def test_clean(samebits, prepared):
        n = float(torch.rand(()))
        samebits.assert_repeatable(lambda: fit([torch.ones(8, 4)]), fresh={fresh})

    def test_only_read(samebits, prepared):
        samebits.assert_repeatable(lambda: torch.ones(2).sum().item(), fresh={fresh})
"""


@pytest.mark.parametrize("fresh", [True, False])
def test_what_is_done_before_the_call_does_not_decide(fresh, tmp_path):
    done = run_pytest(tmp_path, BEFORE.format(fresh=fresh), "--samebits-budget=0")

    assert "1 failed, 2 passed" in done.stdout, done.stdout
    assert "FAILED test_it.py::test_nothing" in done.stdout
    assert "not judged: the function took no step and read no value out of torch" in done.stdout


def test_what_the_function_uses_of_it_decides_and_is_explained(tmp_path):
    source = """
        def test_value(samebits):
            unused = float(torch.rand(()))
            n = float(torch.rand(()))  # the value
            samebits.assert_repeatable(lambda: fit([torch.full((8, 4), n)]))

        def test_tensor(samebits):
            x = torch.rand(8, 4)  # the tensor
            samebits.assert_repeatable(lambda: fit([x]))

        def test_generator(samebits):
            torch.rand(3)
            samebits.assert_repeatable(lambda: torch.rand(3))  # the draw
    """
    done = run_pytest(tmp_path, source, "--samebits-budget=0")

    assert "3 failed" in done.stdout, done.stdout
    for text in ("# the value", "# the tensor", "# the draw"):
        assert f"test_it.py:{line_of(tmp_path, text)} in test_" in done.stdout
    assert done.stdout.count("likely cause  unseeded-torch") == 3


def test_steps_are_numbered_from_the_call(tmp_path):
    """In reports, in lock files, and for kills."""
    source = """
        def test_lock(samebits):
            clean()
            samebits.assert_repeatable(clean)
            samebits.assert_matches_lock("clean", clean)

        def test_reported(samebits):
            clean()
            samebits.assert_repeatable(lambda: fit(torch.full((8, 4), time.time() % 1) for _ in range(2)))
    """
    done = run_pytest(tmp_path, source, "--samebits-update", "--samebits-budget=0")

    assert "1 failed, 1 passed" in done.stdout, done.stdout
    assert "written (steps: 3)" in done.stdout
    assert "different: the state differs at step 0" in done.stdout
