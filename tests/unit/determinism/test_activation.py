"""Control begins, is read back, nests, and leaves nothing behind."""

from __future__ import annotations

import random
import threading
import warnings

import numpy as np
import pytest
import torch
from control_support import line_of, quiet, run

from samebits._runtime.address_layout import can_fix_layout, fixed_layout
from samebits.determinism.activation import Activation
from samebits.determinism.context import deterministic
from samebits.errors import SamebitsError, SamebitsWarning
from samebits.rng.active import PROCESS
from samebits.switches.switch import Control
from samebits.switches.table import switch_named

FLAGS = ("deterministic-algorithms", "cudnn-deterministic", "mkldnn-deterministic", "fill-uninitialized")


def flags():
    return (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
        torch.backends.cudnn.deterministic,
        torch.backends.cudnn.benchmark,
        torch.backends.mkldnn.deterministic,
        torch.utils.deterministic.fill_uninitialized_memory,
    )


ON = (True, False, True, False, True, True)


def test_what_repeatable_needs_is_set_and_read_back_and_put_back():
    before = flags()
    control = quiet(seed=0)
    during, report = flags(), control.report
    control.restore()

    assert during == ON
    assert [report.named(name).state for name in FLAGS] == ["set"] * 4
    assert [report.named(name).now for name in FLAGS] == ["on"] * 4
    assert flags() == before
    assert (PROCESS.innermost, PROCESS.current) == (None, None)


def test_generators_are_seeded_as_by_hand():
    control = quiet(seed=3)
    drawn = random.random(), np.random.rand(), torch.rand(1).item()
    control.restore()
    random.seed(3)
    np.random.seed(3)
    torch.manual_seed(3)

    assert drawn == (random.random(), np.random.rand(), torch.rand(1).item())


def test_without_a_seed_generators_are_left_alone():
    state = torch.get_rng_state()
    with quiet() as control:
        assert torch.equal(torch.get_rng_state(), state)
        assert control.report.seed is None


def test_a_block_restores_after_an_exception():
    before = flags()

    with pytest.raises(KeyError), quiet(seed=0):
        raise KeyError

    assert flags() == before


def test_the_same_object_can_be_entered_twice_and_again():
    before = flags()
    control = quiet(seed=0)
    with control, control:
        assert flags() == ON
    after_first = flags()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with control:
            assert flags() == ON
            drawn = torch.rand(1)
    control.restore()
    control.restore()
    torch.manual_seed(0)

    assert after_first == before
    assert flags() == before
    assert torch.equal(drawn, torch.rand(1))


def test_an_inner_block_exits_and_the_outer_one_goes_on():
    with quiet(seed=0):
        with quiet(all_switches=False, switches={"deterministic-algorithms": False}):
            assert not torch.are_deterministic_algorithms_enabled()
            assert torch.backends.cudnn.deterministic
            assert PROCESS.current.seed == 0
        assert flags() == ON


@pytest.mark.parametrize("first", [0, 1])
def test_two_controls_may_end_in_any_order(first):
    before = flags()
    controls = [quiet(seed=0), quiet(seed=1, switches={"cudnn-benchmark": True})]
    controls[first].restore()
    benchmark, seed = torch.backends.cudnn.benchmark, PROCESS.current.seed
    controls[1 - first].restore()

    assert (benchmark, seed) == ((True, 1) if first == 0 else (False, 0))
    assert flags() == before


def test_it_holds_for_all_threads():
    seen = []
    with quiet(seed=0):
        thread = threading.Thread(target=lambda: seen.append(flags()))
        thread.start()
        thread.join()

    assert seen == [ON]


def test_a_bad_request_leaves_nothing_behind():
    before = flags()
    for arguments in (
        {"switches": {"cudnn-bench": True}},
        {"switches": {"cudnn-benchmark": 3}},
        {"on_drift": "shout"},
    ):
        with pytest.raises(SamebitsError):
            quiet(seed=0, **arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(SamebitsWarning):
            deterministic(seed=0, switches={"cudnn-benchmark-limit": 3})

    assert flags() == before
    assert PROCESS.innermost is None


def test_a_switch_that_this_build_lacks_is_told_when_it_was_asked_for():
    activation = Activation(
        Control(switches=(("cublaslt-grouped-gemm", "on"),), all_switches=False),
        fresh_process=True,
        warn=lambda *_: None,
    )
    activation.start()
    report = activation.report
    activation.stop()

    missing = "this build of torch does not have it"
    assert report.warnings == (
        f"the switch cublaslt-grouped-gemm, which you asked for, cannot be set: {missing}",
    )
    assert report.named("cublaslt-grouped-gemm").state == "missing"


def test_a_choice_that_breaks_the_promise_is_replaced_with_a_warning():
    torch.backends.cudnn.benchmark = True
    try:
        with pytest.warns(SamebitsWarning, match="cudnn-benchmark=on is replaced by off: convolution"):
            control = quiet(seed=0)
        control.restore()
        restored = torch.backends.cudnn.benchmark
    finally:
        torch.backends.cudnn.benchmark = False

    assert restored


def test_setting_one_precision_puts_back_those_that_follow_it():
    def read():
        return [torch.backends.cuda.matmul.fp32_precision, torch.backends.mkldnn.matmul.fp32_precision]

    before = read()
    with quiet(switches={"matmul-precision": "high"}):
        during = read()

    assert during != before
    assert read() == before


@pytest.mark.skipif(not can_fix_layout(), reason="addresses cannot be fixed here")
def test_what_is_too_late_is_one_warning_with_the_remedy(tmp_path):
    source = """
        import torch, warnings
        from samebits.determinism.context import deterministic
        control = deterministic(seed=0)
        print([row.name for row in control.report.switches if row.state == "too-late"])
    """
    late = run(tmp_path, source)
    line = line_of(tmp_path, "deterministic(seed=0)")
    with fixed_layout():
        in_time = run(tmp_path, source, PYTHONHASHSEED="0", OMP_DYNAMIC="FALSE", MKL_DYNAMIC="FALSE")

    assert late.stdout.strip() == "['address-layout', 'PYTHONHASHSEED', 'OMP_DYNAMIC', 'MKL_DYNAMIC']"
    assert late.stderr.count("Warning") == 1
    assert (
        f"script.py:{line}: SamebitsWarning: it is too late in this process to set address-layout"
        in late.stderr
    )
    assert "samebits run --seed N script.py" in late.stderr
    assert (in_time.stdout.strip(), in_time.stderr) == ("[]", "")


def test_control_before_torch_is_imported(tmp_path):
    result = run(
        tmp_path,
        """
        import sys
        from samebits.determinism.context import deterministic
        control = deterministic(seed=5)
        print("torch" in sys.modules, "numpy" in sys.modules)
        print({row.state for row in control.report.switches if row.name.startswith("cudnn")})
        import torch
        import numpy
        print(torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.deterministic)
        drawn = torch.rand(1), numpy.random.rand()
        torch.manual_seed(5), numpy.random.seed(5)
        print(drawn == (torch.rand(1), numpy.random.rand()))
        print("torch._inductor.config" in sys.modules)
        import torch._inductor.config as config
        print(config.deterministic, control.report.named("inductor-deterministic").state)
        torch.use_deterministic_algorithms(False)
        print([drift.what for drift in control.check()])
        control.restore()
        print(torch.are_deterministic_algorithms_enabled(), config.deterministic)
        """,
        PYTHONHASHSEED="0",
        TORCHINDUCTOR_DETERMINISTIC="0",
    )

    assert result.stdout.splitlines() == [
        "False False",
        "{'waiting'}",
        "True True",
        "True",
        "False",
        "True set",
        "['deterministic-algorithms', 'inductor-deterministic']",
        "False True",
    ], result.stderr


def test_cuda_variables_are_too_late_once_cuda_is_used(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "default_generators", ())
    with quiet() as control:
        row = control.report.named("CUBLAS_WORKSPACE_CONFIG")

    assert (row.state, row.why) == ("too-late", "CUDA is in use")


def test_nccl_variables_are_too_late_once_the_group_exists(monkeypatch):
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    with quiet() as control:
        assert control.report.named("NCCL_ALGO").state == "too-late"


def test_training_under_control_works_and_repeats():
    def losses():
        with quiet(seed=1):
            model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(), torch.nn.Linear(8, 1))
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            seen = []
            for _ in range(3):
                loss = model(torch.randn(5, 4)).square().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                seen.append(loss.item())
        return seen

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        first = losses()
        assert [str(warning.message) for warning in told] == []
    assert first == losses()


def test_a_switch_that_cannot_be_put_back_does_not_keep_the_others(monkeypatch):
    """As the number of threads between ops, once work has begun; it is told of."""
    before = flags()
    control = quiet(seed=0)
    handle = type(switch_named("cudnn-deterministic").handle)
    restore = handle.restore

    def refusing(self, value):
        if self is switch_named("cudnn-deterministic").handle:
            raise ValueError("work has begun")
        restore(self, value)

    monkeypatch.setattr(handle, "restore", refusing)
    with pytest.warns(
        SamebitsWarning, match="cudnn-deterministic could not be put back to off and stays on: work"
    ):
        control.restore()
    monkeypatch.undo()
    now = flags()
    switch_named("cudnn-deterministic").handle.restore("off")

    assert now[:2] + now[3:] == before[:2] + before[3:]
    assert (PROCESS.innermost, PROCESS.current) == (None, None)


@pytest.mark.parametrize("given", [[("threads", 1)], "threads", 3])
def test_switches_that_are_no_mapping_are_refused(given):
    with pytest.raises(SamebitsError, match="expected a mapping") as raised:
        deterministic(seed=1, switches=given)
    assert raised.value.slug == "usage"


def test_one_that_ends_below_a_part_of_the_run_is_undone_at_once():
    activation = Activation(Control(seed=3), fresh_process=True, warn=lambda *_: None)
    before = torch.are_deterministic_algorithms_enabled()
    activation.start()
    part = PROCESS.current.fork("part")
    PROCESS.push(part)
    activation.stop()
    try:
        assert torch.are_deterministic_algorithms_enabled() is before
        assert (PROCESS.current, PROCESS.innermost) == (part, None)
    finally:
        PROCESS.drop(part)


def test_one_without_a_seed_governs_only_where_no_other_does():
    outer, seedless = (
        Activation(Control(seed=seed), fresh_process=True, warn=lambda *_: None) for seed in (3, None)
    )
    seedless.start()
    assert PROCESS.run_seed is None
    assert PROCESS.current is not None
    seedless.stop()
    outer.start()
    seedless.start()
    try:
        assert (PROCESS.run_seed, seedless.report.seed) == (3, 3)
        outer.stop()
        assert PROCESS.current is None
    finally:
        seedless.stop()
    assert (PROCESS.innermost, PROCESS.current) == (None, None)
