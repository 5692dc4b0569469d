"""The fixture where fresh processes make its call again: clean tests pass, with other plugins too."""

from __future__ import annotations

import pytest
from pytest_support import line_of, run_pytest

CLEAN = """
    @pytest.fixture
    def inputs(tmp_path):
        (tmp_path / "data").write_text("0.5")
        return [torch.full((8, 4), float((tmp_path / "data").read_text()))] * 3

    class TestTraining:
        @pytest.mark.parametrize("scale", [1.0, 2.0], ids=["a b", "c::[d]/e"])
        def test_it(self, samebits, inputs, scale, monkeypatch, capsys):
            monkeypatch.chdir("/")
            monkeypatch.setenv("OF_TEST", "1")
            print("printed")
            first = samebits.assert_repeatable(lambda: fit(x * scale for x in inputs))
            assert capsys.readouterr().out == "printed\\n"
            assert first.weight.shape == (2, 4)
"""


@pytest.mark.parametrize(
    "options",
    [
        ("-n", "2"),
        ("--cov=.", "--cov-report=term", "--cov-fail-under=50"),
        ("-p", "no:cacheprovider", "-x", "-k", "it", "--junitxml=out.xml", "--basetemp=temporary"),
        ("--samebits", "-W", "error"),
    ],
    ids=["xdist", "coverage", "options", "control"],
)
def test_clean_tests_pass(options, tmp_path):
    done = run_pytest(tmp_path, CLEAN, *options)

    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout
    records = tmp_path / ".samebits"
    assert [path.name for path in records.iterdir()] == [".gitignore"]


def test_files_of_this_session_are_left_to_it(tmp_path):
    """A fresh process neither empties the log that pytest writes nor its cache."""
    source = """
        import logging

        def test_first(request):
            logging.getLogger().warning("said first")
            request.config.cache.set("own/value", 1)

        def test_it(samebits):
            samebits.assert_repeatable(clean)
            logging.getLogger().warning("said last")
    """
    done = run_pytest(tmp_path, source, "--log-file=of.log", "--cache-clear")

    assert done.returncode == 0, done.stdout
    log = (tmp_path / "of.log").read_text()
    assert [line.split()[-1] for line in log.splitlines()] == ["first", "last"]
    assert (tmp_path / ".pytest_cache/v/own/value").exists()


def test_a_folder_with_brackets(tmp_path):
    """On its command line pytest takes no path with a bracket, but it runs what is in the folder."""
    folder = tmp_path / "runs[1]"
    folder.mkdir()
    source = """
        @pytest.mark.parametrize("other", [1, 2])
        def test_it(samebits, other):
            samebits.assert_repeatable(clean)
    """
    done = run_pytest(folder, source, "-k", "test_it[2]")

    assert "1 passed, 1 deselected" in done.stdout, done.stdout


def test_a_call_within_a_call(tmp_path):
    source = """
        def test_clean(samebits):
            samebits.assert_repeatable(lambda: samebits.assert_repeatable(clean))

        def test_inner(samebits):
            samebits.assert_repeatable(
                lambda: samebits.assert_repeatable(lambda: torch.rand(1))  # the fault
            )
    """
    done = run_pytest(tmp_path, source, "--samebits-budget=0")

    assert "1 failed, 1 passed" in done.stdout, done.stdout
    assert "unseeded-torch" in done.stdout
    assert f"test_it.py:{line_of(tmp_path, '# the fault')}" in done.stdout


def test_pytest_randomly_seeds_nothing_in_fresh_processes(tmp_path):
    source = """
        def test_it(samebits):
            samebits.assert_repeatable(lambda: fit([torch.full((8, 4), random.random())]))  # the fault
    """
    options = ("-p", "pytest_randomly", "--randomly-seed=1", "--samebits-budget=0")
    done = run_pytest(tmp_path, source, *options)

    assert "--randomly-seed=1" in done.stdout, done.stdout
    assert "1 failed" in done.stdout, done.stdout
    assert "unseeded-python" in done.stdout
    assert f"test_it.py:{line_of(tmp_path, '# the fault')}" in done.stdout


def test_earlier_calls_leave_nothing_when_a_later_one_is_made_again(tmp_path):
    """The training of an earlier `assert_resumable` runs in a folder of its own then."""
    source = """
        def train(folder):
            torch.manual_seed(0)
            model = torch.nn.Linear(4, 2)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            saved, first = folder / "last.pt", 0
            if saved.exists():
                state = torch.load(saved)
                model.load_state_dict(state["model"])
                first = state["step"]
            for step in range(first, 6):
                optimizer.zero_grad()
                model(torch.ones(8, 4) * step).square().sum().backward()
                optimizer.step()
                torch.save({"model": model.state_dict(), "step": step + 1}, saved)

        def test_it(samebits):
            samebits.assert_resumable(train, kill_at=[3])
            samebits.assert_repeatable(clean)
    """
    done = run_pytest(tmp_path, source, "--samebits-budget=0")

    assert "1 passed" in done.stdout, done.stdout
    assert not list(tmp_path.glob("**/last.pt"))
    assert [path.name for path in (tmp_path / ".samebits").iterdir()] == [".gitignore"]


def test_what_only_a_fresh_process_lacks_is_explained(tmp_path):
    source = """
        import os
        def test_it(samebits):
            if os.path.exists("flag"):
                raise RuntimeError("was here before")
            open("flag", "w").close()
            samebits.assert_repeatable(clean)
    """
    done = run_pytest(tmp_path, source)

    assert "1 failed" in done.stdout, done.stdout
    assert "not judged: " in done.stdout
    assert "RuntimeError: was here before" in done.stdout


def test_the_second_call_of_a_test_is_found(tmp_path):
    source = """
        def test_it(samebits):
            samebits.assert_repeatable(clean)
            names = {"alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"}
            samebits.assert_repeatable(lambda: (clean(), list(names)))  # the fault
    """
    done = run_pytest(tmp_path, source, "--samebits-budget=0")

    assert "1 failed" in done.stdout, done.stdout
    assert f"test_it.py:{line_of(tmp_path, '# the fault')}: AssertionError" in done.stdout
    assert "AssertionError: different: what the function returned differs" in done.stdout


RESUMING = """
    def train(folder, *, whole):
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        file, start = folder / "last.pt", 0
        if file.exists():
            saved = torch.load(file)
            start = saved["step"]
            model.load_state_dict(saved["model"])
            if whole:
                optimizer.load_state_dict(saved["optimizer"])
                torch.set_rng_state(saved["rng"])
        for step in range(start, 6):
            loss = model(torch.randn(8, 4)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            torch.save({"step": step + 1, "model": model.state_dict(), "optimizer": optimizer.state_dict(),
                        "rng": torch.get_rng_state()}, file)

    def test_whole(samebits):
        samebits.assert_resumable(lambda folder: train(folder, whole=True), kill_at=[4])

    def test_part(samebits):
        samebits.assert_resumable(lambda folder: train(folder, whole=False), kill_at=[4])
"""


def test_resuming(tmp_path):
    done = run_pytest(tmp_path, RESUMING)

    assert "1 failed, 1 passed" in done.stdout, done.stdout
    assert "FAILED test_it.py::test_part" in done.stdout
    assert "(kill_at=[4])" in done.stdout
    assert "--kill-at" not in done.stdout
    assert "- optimizer: " in done.stdout
    assert "- generator: torch's CPU generator" in done.stdout


PORTABLE = """
    def test_covered(samebits):
        samebits.assert_portable(lambda: fit(torch.linspace(0, 1, 64).reshape(16, 4) for _ in range(2)))

    def test_threads(samebits):
        samebits.assert_portable(lambda: fit([torch.ones(8, 4) * torch.get_num_threads()]))  # the fault

    def test_uncovered(samebits):
        samebits.assert_portable(lambda: torch.igamma(torch.ones(8), torch.ones(8)))  # not covered
"""


def test_portable_mode(tmp_path):
    done = run_pytest(tmp_path, PORTABLE)

    assert "2 failed, 1 passed" in done.stdout, done.stdout
    assert f"test_it.py:{line_of(tmp_path, '# the fault')} in test_threads" in done.stdout
    assert "OMP_NUM_THREADS: 1 and " in done.stdout
    assert f"aten.igamma.default at {tmp_path}/test_it.py:{line_of(tmp_path, '# not covered')}" in done.stdout


def test_a_kill_beyond_the_last_step_names_the_argument(tmp_path):
    """As the test wrote it, and not as the command line has it."""
    source = (
        RESUMING.partition("    def test_whole")[0]
        + """
    def test_late(samebits):
        samebits.assert_resumable(lambda folder: train(folder, whole=True), kill_at=[9])
"""
    )
    done = run_pytest(tmp_path, source)

    assert "1 failed" in done.stdout, done.stdout
    assert "kill_at=[9]: the whole run made 6 optimizer steps; expected 1 to 5" in done.stdout
    assert "--kill-at" not in done.stdout
