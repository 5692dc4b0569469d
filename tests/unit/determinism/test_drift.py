"""Changes of switches and generators are noticed at the next boundary, with the line that did it."""

from __future__ import annotations

import contextlib
import importlib
import os
import random
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from control_support import line_of, quiet, run

from samebits._runtime.imports import PostImport
from samebits._runtime.package import FOLDER
from samebits.determinism import _drift
from samebits.determinism._drift import DriftWatch
from samebits.determinism.setter_wrappers import CONTROL
from samebits.errors import SamebitsError, SamebitsWarning
from samebits.rng.sources.numpy_global import NumpyGlobal
from samebits.rng.sources.source import StateFunction
from samebits.switches import vector_math

HERE = os.path.abspath(__file__)


def here():
    """The line of the caller."""
    return sys._getframe(1).f_lineno


@contextlib.contextmanager
def watching(**arguments):
    """Control without a word, and its boundaries."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamebitsWarning)
        with quiet(**arguments) as control:
            yield control


@contextlib.contextmanager
def library(tmp_path, source):
    """A module that counts as installed."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    path = folder / "sw_library.py"
    path.write_text(source)
    sys.path.insert(0, str(folder))
    try:
        import sw_library

        yield sw_library, str(path)
    finally:
        sys.path.remove(str(folder))
        del sys.modules["sw_library"]


def test_a_switch_that_control_set_and_the_script_changed():
    with watching(seed=0) as control:
        assert control.check() == ()
        torch.backends.cudnn.benchmark, line = True, here()
        (drift,) = control.check(7)
        assert control.check() == ()
        torch.backends.cudnn.benchmark = False
        assert control.check() == ()
        torch.backends.cudnn.benchmark = True
        assert len(control.check()) == 1

    assert (drift.step, drift.what, drift.before, drift.now) == (7, "cudnn-benchmark", "off", "on")
    assert (drift.site.file, drift.site.line, drift.by, drift.lasting) == (HERE, line, None, True)


@pytest.mark.parametrize(
    ("name", "change", "undo"),
    [
        ("cudnn-deterministic", "torch.backends.cudnn.deterministic = False", ""),
        ("cudnn-deterministic", "torch.backends.cudnn.set_flags(_deterministic=False)", ""),
        ("deterministic-algorithms", "torch.use_deterministic_algorithms(True, warn_only=True)", ""),
        ("deterministic-algorithms", "torch.set_deterministic_debug_mode('default')", ""),
        ("fill-uninitialized", "torch.utils.deterministic.fill_uninitialized_memory = False", ""),
        ("mkldnn-deterministic", "torch.backends.mkldnn.deterministic = False", ""),
        ("threads", "torch.set_num_threads(1)", "torch.set_num_threads({threads})"),
        (
            "matmul-fp16-reduction",
            "torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False",
            "torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = True",
        ),
        (
            "sdpa-flash",
            "torch.backends.cuda.enable_flash_sdp(False)",
            "torch.backends.cuda.enable_flash_sdp(True)",
        ),
        ("PYTORCH_TUNABLEOP_ENABLED", "os.environ['PYTORCH_TUNABLEOP_ENABLED'] = '1'", ""),
        ("NCCL_NVLS_ENABLE", "del os.environ['NCCL_NVLS_ENABLE']", ""),
        ("MKL_CBWR", "os.environ.update(MKL_CBWR='AVX2')", "del os.environ['MKL_CBWR']"),
    ],
)
def test_every_way_to_write_has_a_site(name, change, undo):
    threads = torch.get_num_threads()
    if threads == 1 and name == "threads":
        pytest.skip("this machine has one thread")
    with watching(seed=0) as control:
        control.check()
        exec(compile(change, "/code/train.py", "exec"), {"torch": torch, "os": os})  # noqa: S102
        drifts = {drift.what: drift for drift in control.check()}
        exec(undo.format(threads=threads), {"torch": torch, "os": os})  # noqa: S102

    assert (drifts[name].site.file, drifts[name].site.line) == ("/code/train.py", 1)


def test_a_reset_that_is_undone_within_a_step_is_noticed_once():
    with watching(seed=0) as control:
        for step in range(3):
            with torch.backends.cudnn.flags(enabled=True):
                line = here() - 1
            drifts = control.check()
            if step == 0:
                (drift,) = drifts
            else:
                assert drifts == ()

    assert (drift.what, drift.before, drift.now, drift.lasting) == ("cudnn-deterministic", "on", "off", False)
    assert (drift.site.file, drift.site.line) == (HERE, line)
    assert "changed temporarily" in drift.text()


def test_a_held_switch_may_be_chosen_before_the_first_boundary_only():
    threads = torch.get_num_threads()
    with watching(seed=0) as control:
        torch.backends.cuda.matmul.allow_tf32 = True
        assert control.check() == ()
        torch.backends.cuda.matmul.allow_tf32 = False
        late = {drift.what for drift in control.check()}
    torch.set_float32_matmul_precision("highest")
    torch.backends.cuda.matmul.fp32_precision = torch.backends.mkldnn.matmul.fp32_precision = "none"

    assert late >= {"matmul-allow-tf32"}
    assert torch.get_num_threads() == threads


def test_a_default_that_torch_writes_down_itself_is_no_drift(tmp_path, monkeypatch):

    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "x")
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR")
    source = (
        "import os\n"
        "from torch._inductor.runtime.cache_dir_utils import cache_dir\n"
        "def use():\n    return inner()\n"
        "def inner():\n    return cache_dir()\n"
        "def choose():\n    os.environ['TORCHINDUCTOR_CACHE_DIR'] = '/elsewhere'\n"
    )
    with library(tmp_path, source) as (module, path), watching(seed=0) as control:
        module.use()
        assert os.environ["TORCHINDUCTOR_CACHE_DIR"]
        assert control.check() == ()
        module.choose()
        (drift,) = control.check()

    assert (drift.what, drift.now, drift.by.file) == ("TORCHINDUCTOR_CACHE_DIR", "/elsewhere", path)


def test_a_variable_that_torch_writes_while_control_sets_a_switch_is_no_drift(monkeypatch):
    """What control calls may import torch's compiler."""
    from torch._inductor.runtime.cache_dir_utils import cache_dir

    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "x")
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR")
    monkeypatch.setattr(vector_math, "_call_each", cache_dir)

    with watching(seed=0) as control:
        vector_math.VectorMath().write("on")
        assert os.environ["TORCHINDUCTOR_CACHE_DIR"]
        assert control.check() == ()


def test_a_library_that_changes_a_held_switch_is_named_even_before(tmp_path):
    source = "import torch\ndef setup():\n    inner()\n"
    source += "def inner():\n    torch.set_float32_matmul_precision('high')\n"
    with library(tmp_path, source) as (module, path), watching(seed=0) as control:
        module.setup()
        line = here() - 1
        drifts = {drift.what: drift for drift in control.check()}
    torch.set_float32_matmul_precision("highest")
    torch.backends.cuda.matmul.fp32_precision = torch.backends.mkldnn.matmul.fp32_precision = "none"

    drift = drifts["matmul-precision"]
    assert (drift.site.file, drift.site.line) == (HERE, line)
    assert (drift.by.file, drift.by.line) == (path, 5)
    assert f"through {path}:5" in drift.text()


def test_what_the_users_value_keeps_is_no_drift():
    with watching(seed=0) as control:
        control.check()
        os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":16:8"
        os.environ["SOMETHING_ELSE"] = "1"
        drifts = control.check()
        del os.environ["SOMETHING_ELSE"]

    assert drifts == ()
    assert "CUBLAS_WORKSPACE_CONFIG" not in os.environ


def test_a_change_past_all_wrappers_is_noticed_without_a_site():
    setter = torch._C._set_cudnn_benchmark  # taken before control, as C++ code would
    with watching(seed=0) as control:
        setter(True)
        (drift,) = control.check()

    assert (drift.what, drift.site) == ("cudnn-benchmark", None)
    assert "not written by Python code" in drift.text()


def test_on_drift_error_raises_at_the_boundary_with_the_site():
    with watching(seed=0, on_drift="error") as control:
        torch.backends.cudnn.benchmark = True
        with pytest.raises(SamebitsError, match=r"cudnn-benchmark changed: .*test_drift\.py") as caught:
            control.check()

    assert caught.value.slug == "drift"
    assert not torch.backends.cudnn.benchmark


def test_on_drift_restore_sets_it_back_and_warns():
    with quiet(seed=0, on_drift="restore") as control:
        torch.backends.cudnn.benchmark = True
        os.environ["NCCL_ALGO"] = "NVLS"
        with pytest.warns(SamebitsWarning, match="cudnn-benchmark changed.*samebits has set it to off again"):
            control.check()
        assert (torch.backends.cudnn.benchmark, os.environ["NCCL_ALGO"]) == (False, "Ring")
        assert control.check() == ()


def test_on_drift_ignore_says_nothing():
    with quiet(seed=0, on_drift="ignore") as control, warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.backends.cudnn.benchmark = True
        assert control.check() == ()


def test_a_step_of_any_optimizer_is_a_boundary():
    weight = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    weight.sum().backward()
    with quiet(seed=0):
        torch.backends.cudnn.benchmark, line = True, here()
        with pytest.warns(SamebitsWarning) as told:
            optimizer.step()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            optimizer.step()

    assert (told[0].filename, told[0].lineno) == (HERE, line)
    assert f"{HERE}:{line}" in str(told[0].message)


def test_an_inner_control_is_no_drift_of_the_outer_one():
    with watching(seed=0) as outer:
        outer.check()
        torch.rand(3)
        with watching(seed=0, switches={"cudnn-benchmark": True}) as inner:
            assert outer.check() == ()
            assert inner.check() == ()
        assert outer.check() == ()


def train(control, steps=1):
    """Some draws from all generators, and a boundary after each."""
    found = []
    for _ in range(steps):
        torch.rand(3), np.random.rand(2), random.random()
        found += control.check()
    return found


def test_ordinary_draws_are_no_drift():
    with watching(seed=0) as control:
        torch.manual_seed(7)  # the script's own seed
        random.seed(7)
        np.random.seed(7)
        for _ in range(5):
            assert train(control) == []
            torch.rand(2000), np.random.rand(1000), [random.random() for _ in range(700)]
            with torch.random.fork_rng():
                torch.manual_seed(7)
                torch.rand(10)
            state = random.getstate()
            random.random()
            random.setstate(state)


def test_the_scripts_own_seeding_wins_even_when_it_repeats():
    with watching(seed=0) as control:
        for _ in range(3):
            torch.manual_seed(7)
            assert train(control) == []


LIBRARY = """
import random, numpy, torch
def setup(seed):
    _reset(seed)
def _reset(seed):
    random.seed(seed); numpy.random.seed(seed); torch.manual_seed(seed)
def rewind():
    generator = torch.default_generator
    return _back(generator)
def _back(generator):
    generator.manual_seed(generator.initial_seed())
def keep():
    return torch.get_rng_state()
def put(state):
    _put(state)
def _put(state):
    torch.set_rng_state(state)
"""


def test_a_strategy_that_rewinds_before_training_is_noticed(tmp_path):
    with library(tmp_path, LIBRARY) as (module, path), watching(seed=4) as control:
        torch.nn.Linear(3, 3)
        random.random(), np.random.rand()
        module.setup(4)
        line = here() - 1
        drifts = train(control)

    assert {drift.what for drift in drifts} == {"torch generator", "python generator", "numpy generator"}
    assert {(drift.site.file, drift.site.line) for drift in drifts} == {(HERE, line)}
    assert {(drift.by.file, drift.by.line) for drift in drifts} == {(path, 6)}


class _Tiny(NumpyGlobal):
    """A source of a library that no module of control names; of NumPy's it keeps only that it has a state."""

    name, module = "tiny", "sw_tiny"
    functions = (StateFunction(("",), "seed", "sw_tiny.seed"),)

    def position_reader(self):
        return lambda: {"tiny": (0, sys.modules["sw_tiny"].drawn)} if "sw_tiny" in sys.modules else {}


def test_a_source_says_all_that_the_watch_needs(tmp_path, monkeypatch):
    """Its module, the functions that seed, its position: a script's own seeding is no drift, a jump is."""
    monkeypatch.setattr(_drift, "BUILT_IN", (*_drift.BUILT_IN, _Tiny()))
    (tmp_path / "sw_tiny.py").write_text("drawn = 0\ndef seed(value):\n    global drawn\n    drawn = value\n")
    monkeypatch.syspath_prepend(tmp_path)
    with watching(seed=4) as control:
        tiny = importlib.import_module("sw_tiny")
        assert control.check() == ()
        tiny.drawn = 7
        assert control.check() == ()
        tiny.seed(0)
        assert control.check() == ()
        tiny.drawn = 9
        assert control.check() == ()
        tiny.drawn = 8
        drifts = control.check()
    del sys.modules["sw_tiny"]

    assert [drift.what for drift in drifts] == ["tiny generator"]


def test_a_library_that_seeds_what_was_not_drawn_from_is_no_drift(tmp_path):
    with library(tmp_path, LIBRARY) as (module, _), watching(seed=4) as control:
        module.setup(4)
        assert train(control) == []


def test_a_library_that_reseeds_in_the_middle_is_noticed(tmp_path):
    with library(tmp_path, LIBRARY) as (module, path), watching(seed=4) as control:
        assert train(control) == []
        module.setup(99)
        drifts = train(control)

    assert {drift.now for drift in drifts} == {"seeded again"}
    assert {(drift.by.file, drift.by.line) for drift in drifts} == {(path, 6)}


@pytest.mark.parametrize("kept", ["torch", "python"])
def test_a_library_that_seeds_for_a_while_and_puts_back_is_no_drift(tmp_path, kept):
    """As `torchvision.datasets.FakeData` draws a sample; what it does not put back is drift."""
    with library(tmp_path, LIBRARY) as (module, _), watching(seed=4) as control:
        for _ in range(3):
            assert train(control) == []
            state, own = module.keep(), random.getstate()
            module.setup(99)
            torch.rand(3)
            module.put(state)
            if kept == "python":
                random.setstate(own)
            drifts = train(control)
            assert {drift.what for drift in drifts} == {
                "numpy generator", *([] if kept == "python" else ["python generator"])
            }  # fmt: skip


def test_a_loader_that_rewinds_the_default_generator_is_noticed(tmp_path):
    """The lines of `monai.data.DataLoader.__init__` (monai/data/dataloader.py:79, 1.6.1)."""
    with library(tmp_path, LIBRARY) as (module, path), watching(seed=4) as control:
        torch.nn.Linear(3, 3)
        module.rewind()
        (drift,) = train(control)

    assert (drift.what, drift.by.line, drift.by.file) == ("torch generator", 11, path)
    assert "the start of control" in drift.now or "seeding" in drift.now


def test_a_state_that_a_library_puts_back_is_noticed_at_the_boundary(tmp_path):
    with library(tmp_path, LIBRARY) as (module, path), watching(seed=4) as control:
        train(control)
        state = module.keep()
        train(control, 2)
        module.put(state)
        (drift,) = control.check()

    assert (drift.what, drift.by.file, drift.by.line) == ("torch generator", path, 17)


def test_a_resumed_training_can_say_so(tmp_path):
    with library(tmp_path, LIBRARY) as (module, _), watching(seed=4) as control:
        train(control)
        state = module.keep()
        train(control, 2)
        module.put(state)
        control.rebase()
        assert control.check() == ()


def test_nothing_is_wrapped_after_the_end():
    before = [
        torch._C._set_cudnn_benchmark,
        random.seed,
        np.random.seed,
        os.putenv,
        torch.Generator.manual_seed,
    ]
    watch = DriftWatch(rng=True)
    imports = PostImport()
    imports.install()
    watch.install(imports)
    watch.install_torch(torch)
    watch.remove()
    imports.remove()

    after = [
        torch._C._set_cudnn_benchmark,
        random.seed,
        np.random.seed,
        os.putenv,
        torch.Generator.manual_seed,
    ]
    assert all(old is new or old == new for old, new in zip(before, after, strict=True))


def test_generators_of_ones_own_still_seed_as_they_did():
    with watching(seed=0) as control:
        generator = torch.Generator()
        assert generator.manual_seed(3) is generator
        drawn = torch.rand(2, generator=generator)
        generator.manual_seed(3)
        assert torch.equal(torch.rand(2, generator=generator), drawn)
        assert control.check() == ()


def test_compiled_code_that_writes_switches_still_compiles(tmp_path):
    result = run(
        tmp_path,
        """
        import torch
        from samebits.determinism.context import deterministic
        control = deterministic(seed=0, on_drift="error")
        def attend(q):
            with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
                return torch.nn.functional.scaled_dot_product_attention(q, q, q)
        q = torch.randn(1, 2, 4, 8)
        compiled = torch.compile(attend, backend="aot_eager")
        print(torch.allclose(compiled(q), attend(q)))
        weight = torch.nn.Parameter(torch.ones(2))
        optimizer = torch.optim.SGD([weight], lr=0.1)
        torch.compile(lambda: weight.sum(), backend="aot_eager")().backward()
        optimizer.step()
        print(control.report.named("inductor-deterministic").state)
        """,
    )

    assert result.stdout.split() == ["True", "set"], result.stderr
    assert line_of(tmp_path, "sdpa_kernel") > 0


def test_the_modules_whose_writes_are_control_exist():
    """A module that is moved would be taken for the script, and its writes for drift."""
    assert [path for path in CONTROL if not (Path(FOLDER) / path).exists()] == []
