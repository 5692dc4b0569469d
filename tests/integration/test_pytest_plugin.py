"""The pytest plugin where no fresh process makes a call again: options, control, same process, batches."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from cli_support import environment
from pytest_support import again, line_of, run_pytest

FAULTS = {
    "unseeded-torch": "fit([torch.randn(8, 4)])",
    "unseeded-numpy": "fit(torch.from_numpy(np.random.rand(8, 4)).float() for _ in range(3))",
    "unseeded-python": "fit(torch.full((8, 4), random.random()) for _ in range(3))",
    "wall-clock": "fit(torch.full((8, 4), time.time() % 1) for _ in range(3))",
}


@pytest.mark.parametrize("cause", FAULTS)
def test_a_fault_is_named_in_the_same_process(cause, tmp_path):
    source = f"""
        def train():
            return {FAULTS[cause]}  # the fault

        def test_training(samebits):
            samebits.assert_repeatable(train, fresh=False)
    """
    done = run_pytest(tmp_path, source)

    assert done.returncode == 1, done.stdout
    assert "first difference: step 0, aten::" in done.stdout
    assert f"test_it.py:{line_of(tmp_path, '# the fault')} in train" in done.stdout
    assert f"cause         {cause}" in done.stdout


def test_a_generator_of_the_module_is_not_put_back_between_calls(tmp_path):
    """It gives other numbers in each process, so it must not pass here."""
    source = """
        generator = np.random.default_rng()

        def test_it(samebits):
            samebits.assert_repeatable(lambda: fit([torch.full((8, 4), generator.random())]), fresh=False)
    """
    done = run_pytest(tmp_path, source)

    assert "1 failed" in done.stdout, done.stdout
    assert "different: " in done.stdout
    assert "first difference: step 0, aten::" in done.stdout
    assert f"test_it.py:{line_of(tmp_path, 'generator.random()')} in" in done.stdout


def test_nothing_compared_is_no_pass(tmp_path):
    source = """
        def test_it(samebits):
            samebits.assert_repeatable(lambda: object(), fresh=False)
    """
    done = run_pytest(tmp_path, source)
    assert "1 failed" in done.stdout, done.stdout
    assert "nothing to compare" in done.stdout


def test_clean_functions_pass_in_the_same_process(tmp_path):
    source = """
        class TestClean:
            def test_method(self, samebits):
                model = samebits.assert_repeatable(clean, fresh=False, runs=3)
                assert model.weight.shape == (2, 4)

        @pytest.mark.parametrize("rate", [0.1, 0.2])
        def test_closure(samebits, rate):
            samebits.assert_repeatable(lambda: fit(torch.full((8, 4), rate) for _ in range(2)), fresh=False)

        def test_seed_of_control(samebits):
            samebits.assert_repeatable(lambda: fit([torch.rand(8, 4) + random.random()]), fresh=False, seed=3)

        def test_results_of_all_kinds(samebits):
            result = {"loss": 0.5, "names": ["a", "b"], "set": {"x", "y"}, "array": np.arange(3), "n": 2**70,
                      "none": None, "model": clean(), "object": object()}
            samebits.assert_repeatable(lambda: (clean(), result), fresh=False)

        def test_generators_are_put_back(samebits):
            torch.manual_seed(5); random.seed(5); np.random.seed(5)
            samebits.assert_repeatable(clean, fresh=False)
            drawn = torch.rand(()).item(), random.random(), np.random.rand()
            torch.manual_seed(5); random.seed(5); np.random.seed(5)
            assert drawn == (torch.rand(()).item(), random.random(), np.random.rand())
    """
    done = run_pytest(tmp_path, source)

    assert done.returncode == 0, done.stdout
    assert "6 passed" in done.stdout
    assert not (tmp_path / ".samebits").exists()


def test_what_differs_in_the_result_counts(tmp_path):
    source = """
        def test_time(samebits):
            samebits.assert_repeatable(lambda: (clean(), time.time()), fresh=False)

        def test_text(samebits):
            samebits.assert_repeatable(lambda: (clean(), str(time.time_ns())), fresh=False)
    """
    done = run_pytest(tmp_path, source)

    assert "2 failed" in done.stdout, done.stdout
    for name in ("time.time", "time.time_ns"):
        line = line_of(tmp_path, f"{name}()")
        assert f"- {name} at test_it.py:{line} gave different values" in done.stdout


def test_what_the_function_returns_is_called_that(tmp_path):
    """And the line of a plain value is shown once, though its caller is another function."""
    source = """
        def test_alone(samebits):
            samebits.assert_repeatable(lambda: time.time_ns(), fresh=False)  # alone

        def test_after_training(samebits):
            samebits.assert_repeatable(lambda: (clean(), time.time_ns()), fresh=False)  # after
    """
    done = run_pytest(tmp_path, source)

    assert "2 failed" in done.stdout, done.stdout
    said = [line for line in done.stdout.splitlines() if line.startswith("E ")]
    verdict = "AssertionError: different: what the function returned differs"
    assert [line.partition(verdict)[2] for line in said if verdict in line] == [
        "",
        "; the 3 steps before it are identical",
    ]
    assert [sum(text in line for line in said) for text in ("# alone", "# after")] == [1, 1]
    assert not any("entered at" in line for line in said)


def test_a_value_that_is_only_read_may_be_left_out_as_a_test_says_it(tmp_path):
    """The hint names the argument of the call, and no option of the command line; and the argument works."""
    source = """
        def train():
            clean()
            return None if torch.tensor(time.time_ns()).item() else 1

        def test_read(samebits):
            samebits.assert_repeatable(train, fresh=False)

        def test_left_out(samebits):
            samebits.assert_repeatable(train, fresh=False, state_only=True)
    """
    done = run_pytest(tmp_path, source)

    assert "1 failed, 1 passed" in done.stdout, done.stdout
    assert "FAILED test_it.py::test_read" in done.stdout
    assert "With state_only=True the assertion passes." in " ".join(done.stdout.split())
    assert not re.search(r"--(state-only|verbose|json|keep)", done.stdout)


def test_the_function_s_own_error_is_the_test_s(tmp_path):
    source = """
        def test_broken(samebits):
            samebits.assert_repeatable(lambda: 1 / 0)

        def test_skipped(samebits):
            samebits.assert_repeatable(lambda: pytest.skip("no data here"), fresh=False)
    """
    done = run_pytest(tmp_path, source)

    assert "1 failed, 1 skipped" in done.stdout, done.stdout
    assert "FAILED test_it.py::test_broken - ZeroDivisionError: division by zero" in done.stdout
    assert not (tmp_path / ".samebits").exists()  # it was called here, and nowhere else


@pytest.mark.parametrize(
    ("call", "found"),
    [
        ("assert_repeatable(clean, runs=1)", "runs is 1; expected a whole number from 2"),
        ("assert_repeatable(clean, seed=-1)", "seed is -1; expected"),
        ("assert_portable(clean, threads=(1,))", "threads is (1,); expected at least two numbers"),
        (
            "assert_resumable(lambda folder: None, kill_at=[0])",
            "kill_at has 0; expected whole numbers from 1",
        ),
        (
            "assert_batch_invariant(clean, torch.rand(1, 4))",
            "the batch has 1 sample; expected tensors whose first dimension counts at least 2",
        ),
        (
            "assert_batch_invariant(clean, [torch.rand(2, 4), torch.rand(3, 4)])",
            "the batch has these numbers of samples: 2, 3; expected",
        ),
        (
            "assert_batch_invariant(lambda x: x.sum(), torch.rand(3, 4))",
            "a batch of 3 samples gave output ()",
        ),
    ],
)
def test_bad_arguments_are_refused(call, found, tmp_path):
    done = run_pytest(tmp_path, f"def test_it(samebits):\n    samebits.{call}\n")

    assert "1 failed" in done.stdout, done.stdout
    assert re.search(rf"^E +samebits\.errors\.SamebitsError: .*{re.escape(found)}", done.stdout, re.MULTILINE)


def test_batches(tmp_path):
    source = """
        def test_elementwise(samebits):
            samebits.assert_batch_invariant(torch.nn.ReLU(), torch.randn(5, 3))

        def test_dictionaries(samebits):
            def model(batch):
                return {"both": batch["a"] * batch["scale"] + batch["b"], "list": [batch["a"]]}
            batch = {"a": torch.randn(4, 3), "b": torch.randn(4, 1), "scale": 2.0}
            samebits.assert_batch_invariant(model, batch)

        def test_portable(samebits):
            import samebits as package
            model = torch.nn.Sequential(torch.nn.Linear(512, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4))
            with package.portable():
                samebits.assert_batch_invariant(model, torch.randn(16, 512))

        def test_averages_in_eval(samebits):
            model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.BatchNorm1d(8)).eval()
            samebits.assert_batch_invariant(model, torch.randn(4, 8))

        class Twice(torch.nn.Module):
            def forward(self, x):
                return torch.stack([x, x + 1], dim=2)

        def test_buffers_are_put_back(samebits):
            model = torch.nn.BatchNorm1d(8)
            with pytest.raises(AssertionError):
                samebits.assert_batch_invariant(torch.nn.Sequential(Twice(), model), torch.randn(4, 8))
            assert model.num_batches_tracked.item() == 0 and model.running_mean.eq(0).all()
    """
    done = run_pytest(tmp_path, source)

    assert "5 passed" in done.stdout, done.stdout


@pytest.mark.parametrize(
    ("model", "cause", "op", "place"),
    [
        ("torch.nn.Dropout()", "random", "aten.bernoulli_", "assert_batch_invariant"),
        ("lambda x: x - x.mean(0)", "other-samples", "aten.sub", "lambda x"),
        ("lambda x: x * torch.rand(len(x), 1)", "random", "aten.rand", "lambda x"),
    ],
)
def test_a_batch_that_matters_is_explained(model, cause, op, place, tmp_path):
    source = f"""
        def test_it(samebits):
            model = {model}
            samebits.assert_batch_invariant(model, torch.randn(6, 3))
    """
    done = run_pytest(tmp_path, source)

    assert "1 failed" in done.stdout, done.stdout
    assert f"cause         {cause}:" in done.stdout
    assert re.search(rf"first difference: sample \d, {re.escape(op)}", done.stdout)
    assert f"  test_it.py:{line_of(tmp_path, place)} in " in done.stdout


@pytest.mark.parametrize("n", [2, 3, 4])
def test_a_model_that_computes_no_sample_alone_is_explained(n, tmp_path):
    """Batch normalisation in training refuses a batch of one."""
    source = f"""
        def test_it(samebits):
            samebits.assert_batch_invariant(torch.nn.BatchNorm1d(4), torch.rand({n}, 4))
    """
    done = run_pytest(tmp_path, source)

    assert "1 failed" in done.stdout, done.stdout
    assert "different: sample 0 has other bits in a batch of itself twice than in the batch" in done.stdout
    assert "cause         other-samples:" in done.stdout
    assert "alone         the model computes no sample alone: ValueError: Expected more than 1" in done.stdout
    assert "Traceback" not in done.stdout


def test_an_error_for_one_sample_that_shows_no_difference_is_told(tmp_path):
    source = """
        def model(x):
            if len(x) == 1:
                raise ValueError("give me more")
            return x * 2

        def test_it(samebits):
            samebits.assert_batch_invariant(model, torch.rand(4, 3))

        def test_own_error(samebits):
            samebits.assert_batch_invariant(lambda x: 1 / 0, torch.rand(4, 3))
    """
    done = run_pytest(tmp_path, source)

    assert "2 failed" in done.stdout, done.stdout
    assert "not judged: the model computes no sample alone (ValueError: give me" in done.stdout
    assert "FAILED test_it.py::test_own_error - ZeroDivisionError" in done.stdout


def test_the_module_of_a_variant_operation_is_named(tmp_path):
    source = """
        class Centred(torch.nn.Module):
            def forward(self, x):
                return x - x.mean(0)

        def test_it(samebits):
            net = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Sequential(torch.nn.Tanh(), Centred()))
            samebits.assert_batch_invariant(net, torch.randn(6, 3))
    """
    done = run_pytest(tmp_path, source)

    assert "1 failed" in done.stdout, done.stdout
    assert "module        1.1" in done.stdout
    assert f"test_it.py:{line_of(tmp_path, 'x - x.mean(0)')} in Centred.forward" in done.stdout


# --samebits

SEEDS = """
    def test_drawn():
        print("drawn", torch.rand(()).item(), random.random(), np.random.rand())

    def test_other():
        print("drawn", torch.rand(()).item(), random.random(), np.random.rand())

    def test_flags():
        assert torch.are_deterministic_algorithms_enabled()

    def test_flags_are_set_again():
        torch.use_deterministic_algorithms(False)

    def test_flags_after_that():
        assert torch.are_deterministic_algorithms_enabled()

    def test_hash_seed():
        import sys
        assert sys.flags.hash_randomization == 0
"""


def drawn_in(output: str) -> list[str]:
    """The lines of draws that tests printed."""
    return sorted(re.findall(r"drawn [\d.e -]+\d", output))


def drawn_by_source(lines: list[str]) -> list[set[str]]:
    """The numbers that torch, Python and NumPy gave."""
    return [set(numbers) for numbers in zip(*(line.split()[1:] for line in lines), strict=True)]


def test_each_test_is_seeded_from_its_node_id(tmp_path):
    first = run_pytest(tmp_path, SEEDS, "-s", "--samebits")
    reversed_ = again(tmp_path, "-s", "--samebits", "test_it.py::test_other", "test_it.py::test_drawn")
    other = again(tmp_path, "-s", "--samebits", "--samebits-seed", "1", "-k", "drawn or other")

    assert first.returncode == 0, first.stdout
    assert "samebits: each test under control, seed 0" in first.stdout
    assert len(set(drawn_in(first.stdout))) == 2
    assert drawn_in(first.stdout) == drawn_in(reversed_.stdout)
    assert len(set(drawn_in(other.stdout))) == 2
    each = [drawn_by_source(drawn_in(run.stdout)) for run in (first, other)]
    assert not any(a & b for a, b in zip(*each, strict=True))  # no source of the three kept its numbers


def test_control_holds_in_workers_of_xdist(tmp_path):
    alone = run_pytest(tmp_path, SEEDS, "-s", "--samebits")
    spread = again(tmp_path, "-rP", "--samebits", "-n", "2")

    assert spread.returncode == 0, spread.stdout
    assert drawn_in(alone.stdout) == drawn_in(spread.stdout)
    assert len(drawn_in(spread.stdout)) == 2


def test_an_ini_option_switches_it_on(tmp_path):
    (tmp_path / "pytest.ini").write_text("[pytest]\nsamebits = true\nsamebits_seed = 1\n")
    by_ini = run_pytest(tmp_path, SEEDS, "-s")
    (tmp_path / "pytest.ini").unlink()
    by_option = again(tmp_path, "-s", "--samebits", "--samebits-seed=1")

    assert by_ini.returncode == 0, by_ini.stdout
    assert drawn_in(by_ini.stdout) == drawn_in(by_option.stdout) != []


def test_control_begins_before_user_code_is_imported(tmp_path):
    (tmp_path / "conftest.py").write_text("import random\nprint('conftest drew', random.random())\n")
    runs = [run_pytest(tmp_path, "def test_it(): pass", "-s", "--samebits").stdout for _ in range(2)]

    lines = [[line for line in text.splitlines() if line.startswith("conftest drew")] for text in runs]
    assert [len(each) for each in lines] == [1, 1]
    assert lines[0] == lines[1]


def test_too_late_is_refused(tmp_path):
    (tmp_path / "test_it.py").write_text("def test_it(): pass\n")
    code = "import pytest, sys; sys.exit(pytest.main(['--samebits']))"
    variables = environment()
    variables.pop("PYTHONHASHSEED", None)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=variables, capture_output=True, text=True, check=False
    )

    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "--samebits: too late: " in done.stderr
    assert "PYTHONHASHSEED" in done.stderr


def test_a_bad_seed_is_refused(tmp_path):
    done = run_pytest(tmp_path, "def test_it(): pass", "--samebits", "--samebits-seed", "x")

    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert re.search(r"^ERROR: --samebits: .*seed.*'x'", done.stdout, re.MULTILINE), done.stdout
    assert "Traceback" not in done.stdout


def test_a_bad_budget_is_refused(tmp_path):
    done = run_pytest(tmp_path, "def test_it(samebits): pass", "--samebits-budget", "soon")

    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "--samebits-budget soon: expected a number of seconds from 0" in done.stdout


RANDOMLY = ("-s", "--samebits", "-p", "pytest_randomly")


def test_generators_follow_the_seed_beside_pytest_randomly(tmp_path):
    """It seeds Python and NumPy before each phase of a test, and before test files are imported."""
    source = """
        print("drawn", torch.rand(()).item(), random.random(), np.random.rand())

        @pytest.fixture
        def drawn():
            return torch.rand(()).item(), random.random(), np.random.rand()

        def test_fixture(drawn):
            print("drawn", *drawn)

        def test_drawn():
            print("drawn", torch.rand(()).item(), random.random(), np.random.rand())
    """
    alone = drawn_in(run_pytest(tmp_path, source, "-s", "--samebits").stdout)
    beside = [drawn_in(again(tmp_path, *RANDOMLY, f"--randomly-seed={seed}").stdout) for seed in (1, 2)]
    other = drawn_in(again(tmp_path, *RANDOMLY, "--randomly-seed=1", "--samebits-seed=1").stdout)

    assert len(alone) == 3
    assert beside == [alone, alone]
    assert not any(a & b for a, b in zip(drawn_by_source(alone), drawn_by_source(other), strict=True))


def test_pytest_randomly_orders_tests_by_another_seed_each_time(tmp_path):
    runs = [run_pytest(tmp_path, "def test_it(): pass", *RANDOMLY).stdout for _ in range(2)]

    seeds = [re.findall(r"--randomly-seed=(\d+)", text) for text in runs]
    assert [len(each) for each in seeds] == [1, 1], runs
    assert seeds[0] != seeds[1]


def test_pytest_randomly_still_seeds_what_control_does_not_know(tmp_path):
    """Before each test: a generator of its entry points, here one that a test stands in for."""
    source = """
        import pytest_randomly
        SEEDS = []
        pytest_randomly.entrypoint_reseeds = [SEEDS.append]

        def test_a():
            assert len(SEEDS) == 1

        def test_b():
            assert len(SEEDS) == 2 and SEEDS[0] != SEEDS[1]
    """
    done = run_pytest(tmp_path, source, *RANDOMLY, "--randomly-dont-reorganize")
    left_alone = again(tmp_path, *RANDOMLY, "--randomly-dont-reorganize", "--randomly-dont-reset-seed")

    assert "2 passed" in done.stdout, done.stdout
    assert "2 failed" in left_alone.stdout, left_alone.stdout


# The plugin in sessions of people who do not use it

NOT_LOADED = (
    "torch",
    "numpy",
    "samebits.verification",
    "samebits.recording",
    "samebits.pytest_plugin.fixture",
)


def test_an_unused_plugin_imports_nothing(tmp_path):
    source = f"""
        import sys
        def test_it():
            assert "samebits.pytest_plugin.plugin" in sys.modules
            assert [name for name in {NOT_LOADED!r} if name in sys.modules] == []
    """
    (tmp_path / "test_light.py").write_text("\n".join(line[8:] for line in source.splitlines()))
    done = again(tmp_path, "test_light.py")

    assert done.returncode == 0, done.stdout


def test_the_plugin_can_be_blocked(tmp_path):
    (tmp_path / "test_it.py").write_text("def test_it(): pass\n")
    done = again(tmp_path, "-p", "no:samebits")

    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout
    assert "unrecognized arguments: --samebits" in again(tmp_path, "-p", "no:samebits", "--samebits").stdout


def test_options_are_explained():
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--help"], capture_output=True, text=True, check=False
    )

    assert all(name in done.stdout for name in ("--samebits ", "--samebits-seed=N", "--samebits-budget="))
