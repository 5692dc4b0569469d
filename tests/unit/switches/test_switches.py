"""The table of switches: complete, explained, and every row works where this build has it."""

from __future__ import annotations

import importlib
import subprocess
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import pytest
import torch

from samebits._runtime.address_layout import can_fix_layout
from samebits._runtime.imports import PostImport
from samebits._torch.compiler import has_config_entry
from samebits._torch.core import COMPILER_CONFIG
from samebits.determinism._drift import DriftWatch
from samebits.determinism.activation import Activation
from samebits.errors import SamebitsError
from samebits.switches._compiler import COMPILER, CompilerFlag
from samebits.switches.startup import HashSeed
from samebits.switches.switch import Control, When
from samebits.switches.table import TABLE, environment_for, holds_layout, switch_named, wanted_by
from samebits.switches.variables import Variable

NAMES = [switch.name for switch in TABLE]

# Section 3 of the survey of settings (PyTorch 2.15, twelve other projects): what a complete system handles.
KNOBS = """
PYTHONHASHSEED deterministic-algorithms fill-uninitialized cudnn-deterministic cudnn-benchmark
cudnn-benchmark-limit cudnn-enabled cudnn-allow-tf32 cudnn-depthwise-kernel fp32-cudnn fp32-cudnn-conv
fp32-cudnn-rnn fp32-generic CUBLAS_WORKSPACE_CONFIG CUBLASLT_WORKSPACE_SIZE
TORCH_CUBLASLT_UNIFIED_WORKSPACE TORCH_CUBLAS_WORKSPACE_CACHE CUDA_LAUNCH_BLOCKING matmul-allow-tf32
fp32-cuda-matmul matmul-fp16-reduction matmul-bf16-reduction matmul-fp16-accumulation matmul-precision
TORCH_ALLOW_TF32_CUBLAS_OVERRIDE NVIDIA_TF32_OVERRIDE blas-library linalg-library
CUBLAS_EMULATE_SINGLE_PRECISION CUBLAS_EMULATE_DOUBLE_PRECISION CUBLAS_EMULATION_STRATEGY
TORCH_BLAS_PREFER_CUBLASLT TORCH_LINALG_PREFER_CUSOLVER DISABLE_ADDMM_CUDA_LT cublaslt-grouped-gemm
sm-carveout PYTORCH_TUNABLEOP_ENABLED PYTORCH_TUNABLEOP_TUNING PYTORCH_TUNABLEOP_FILENAME
TORCH_CUDNN_USE_HEURISTIC_MODE_B TORCH_CUDNN_V8_API_DISABLED TORCH_CUDNN_V8_API_LRU_CACHE_LIMIT
TORCH_CUDNN_SDPA_ENABLED TORCH_CUDNN_SDPA_DEPRIORITIZED sdpa-flash sdpa-mem-efficient sdpa-math sdpa-cudnn
sdpa-order sdpa-fa3 sdpa-math-reduction FLASH_ATTENTION_DETERMINISTIC NVTE_ALLOW_NONDETERMINISTIC_ALGO
MAMBA_DETERMINISTIC CAUSAL_CONV1D_DETERMINISTIC TRITON_CACHE_AUTOTUNING TRITON_CACHE_DIR
inductor-deterministic inductor-batch-invariant inductor-numerics inductor-max-autotune
inductor-max-autotune-gemm inductor-max-autotune-pointwise inductor-coordinate-descent
inductor-fallback-random inductor-align-random inductor-precision-casts inductor-split-reductions
inductor-use-fast-math inductor-dynamic-scale-rblock inductor-benchmark-fusion
inductor-benchmark-template-fusion inductor-benchmark-combo-kernel inductor-shape-padding
inductor-combo-kernels inductor-triton-multi-kernel inductor-triton-cooperative-reductions
inductor-triton-mix-order-reduction inductor-cpp-simdlen
TORCHINDUCTOR_DETERMINISTIC TORCHINDUCTOR_BATCH_INVARIANT TORCHINDUCTOR_NUMERICS TORCHINDUCTOR_CACHE_DIR
TORCH_DISABLE_NATIVE_JIT TORCH_DISABLE_NATIVE_AOT TORCH_PYTHON_NATIVE_USER_GRAPH_ORDER_FN
PYTORCH_SUM_INNER_TREE native-kernels NCCL_ALGO NCCL_PROTO NCCL_NVLS_ENABLE NCCL_COLLNET_ENABLE
NCCL_MIN_NCHANNELS NCCL_MAX_NCHANNELS NCCL_NTHREADS NCCL_SOCKET_NTHREADS NCCL_LAUNCH_MODE
NCCL_P2P_NET_DISABLE NCCL_TOPO_FILE NCCL_TUNER_PLUGIN NCCL_CONF_FILE NCCL_PAT_ENABLE
HCCL_DETERMINISTIC HOROVOD_FUSION_THRESHOLD threads interop-threads
OMP_NUM_THREADS MKL_NUM_THREADS OMP_DYNAMIC MKL_DYNAMIC ATEN_CPU_CAPABILITY ONEDNN_MAX_CPU_ISA MKL_CBWR
MKL_ENABLE_INSTRUCTIONS mkldnn-enabled mkldnn-deterministic fp32-mkldnn fp32-mkldnn-matmul
fp32-mkldnn-conv fp32-mkldnn-rnn prepare-vector-math
"""

# Another value than the one that this build starts with.
OTHER = {
    "threads": "1",
    "cudnn-depthwise-kernel": "cudnn",
    "matmul-precision": "high",
    "blas-library": "cublaslt",
    "linalg-library": "magma",
    "sm-carveout": "3",
    "sdpa-order": "2,1,0,3,4",
    "native-kernels": "triton",
    "inductor-numerics": "eager",
    "inductor-max-autotune-gemm-backends": "ATEN",
    "inductor-max-autotune-conv-backends": "ATEN",
    "inductor-max-autotune-gemm-search-space": "EXHAUSTIVE",
}
ONCE = {
    "interop-threads",
    "PYTHONHASHSEED",
    "prepare-vector-math",
    "address-layout",
}  # cannot be set in a process that runs


def present(switch):
    """Import the module of the switch; skip the test where this build does not have the switch."""
    if switch.handle.module:
        importlib.import_module(switch.handle.module)
    if switch.handle.missing():
        pytest.skip(switch.handle.missing())
    return switch.handle


def another(switch, now):
    """A value that the switch does not have now."""
    if switch.name in OTHER:
        return OTHER[switch.name]
    for value in ("on", "off", "ieee", "1", "0", ":16:8", "TRUE", "word"):
        if value != now and not switch.handle.problem(value):
            return value
    raise AssertionError(f"no other value for {switch.name}")


def test_names_are_unique():
    assert len(set(NAMES)) == len(NAMES)


@pytest.mark.parametrize("name", KNOBS.split())
def test_every_known_setting_is_in_the_table(name):
    assert name in NAMES


@pytest.mark.parametrize("switch", TABLE, ids=NAMES)
def test_every_row_says_why_with_a_source(switch):
    assert len(switch.why) > 15
    assert len(switch.source) > 5
    assert "portable" in switch.promises
    assert ("repeatable" in switch.promises) == (switch.value is not None)
    assert switch.value is None or not switch.handle.problem(switch.value)


@pytest.mark.parametrize("switch", [s for s in TABLE if s.name not in ONCE], ids=lambda s: s.name)
def test_a_row_can_be_set_read_back_watched_and_restored(switch):
    handle = present(switch)
    before = handle.read()
    watch = DriftWatch(rng=False)
    try:
        watch.watch(switch, before, fixed=False)
        watch.install(PostImport())
        watch.install_torch(torch)
        assert watch.check(1) == ()
        value = another(switch, before)
        try:
            handle.write(value)
        except ValueError as error:
            pytest.skip(f"this build: {error}")
        assert handle.read() == value
        drifts = watch.check(2)
        assert [(d.step, d.what, d.before, d.now) for d in drifts] == [(2, switch.name, before, value)]
        assert watch.check(3) == ()
    finally:
        watch.remove()
        handle.restore(before)
        for other in TABLE:  # the legacy precision settings change the new ones
            if other.name.startswith("fp32") and not other.handle.missing():
                other.handle.restore(
                    "tf32" if other.name in {"fp32-cudnn-conv", "fp32-cudnn-rnn"} else "none"
                )
    assert handle.read() == before


def test_what_can_be_set_only_once_says_so():
    handle = switch_named("interop-threads").handle
    now = handle.read()

    with pytest.raises(ValueError, match="interop"):
        [handle.write(now) for _ in range(2)]


def test_the_hash_seed_is_what_the_interpreter_started_with(monkeypatch):
    monkeypatch.setenv("PYTHONHASHSEED", "123")

    assert HashSeed("PYTHONHASHSEED").read() != "123"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("cudnn_benchmark", "cudnn-benchmark"),
        ("tf32", "allow-tf32"),
        ("pythonhashsed", "PYTHONHASHSEED"),
        ("CUBLAS_WORKSPACE", "CUBLAS_WORKSPACE_CONFIG"),
        ("a", "docs/reference/switches.md"),
        ("xyzzy", "docs/reference/switches.md"),
    ],
)
def test_an_unknown_name_gets_the_nearest(name, hint):
    with pytest.raises(SamebitsError, match=hint) as caught:
        switch_named(name)

    assert caught.value.slug == "switch-unknown"


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("cudnn-benchmark", "maybe", "`on` or `off`"),
        ("threads", "0", "a whole number from 1"),
        ("threads", "-2", "a whole number from 1"),
        ("deterministic-algorithms", "true", "`warn`"),
        ("CUBLAS_WORKSPACE_CONFIG", "4096:8", ":4096:8"),
        ("PYTHONHASHSEED", "random", "4294967295"),
        ("PYTHONHASHSEED", "4294967296", "4294967295"),
        ("fp32-generic", "fp8", "`tf32`"),
        ("NCCL_NVLS_ENABLE", "yes", "`0`"),
    ],
)
def test_an_impossible_value_is_refused(name, value, expected):
    with pytest.raises(SamebitsError) as caught:
        wanted_by(Control(switches=((name, value),)))

    assert caught.value.slug == "switch-value"
    assert repr(value) in str(caught.value)
    assert expected in str(caught.value)


def test_a_value_that_this_build_does_not_have_is_told():
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        activation = Activation(
            Control(switches=(("blas-library", "nosuch"),), all_switches=False), fresh_process=False
        )
        activation.start()
        activation.stop()

    assert any("could not be set to nosuch: expected one of" in str(warning.message) for warning in told)


def test_a_control_can_leave_switches_alone_or_name_all_it_wants():
    everything = wanted_by(Control(switches=(("threads", "leave"),)))
    one = wanted_by(Control(switches=(("threads", "4"),), all_switches=False))

    assert {row.switch.name for row in everything} == set(NAMES) - {"threads"}
    assert [(row.switch.name, row.value, row.explicit) for row in one] == [("threads", "4", True)]


def test_a_fresh_process_gets_what_the_table_wants():
    plan = environment_for(Control(), {"HOME": "/code", "PYTHONDONTWRITEBYTECODE": "1"})
    wanted = {s.name: s.value for s in TABLE if isinstance(s.handle, Variable) and s.value is not None}

    assert plan.variables == wanted
    assert plan.warnings == (() if can_fix_layout() else plan.warnings[:1])
    assert plan.variables["PYTHONHASHSEED"] == "0"


@pytest.mark.parametrize("possible", [True, False])
def test_addresses_that_cannot_be_fixed_are_told_of_unless_they_are_left_alone(monkeypatch, possible):
    refusal = "" if possible else "personality is refused"
    monkeypatch.setattr("samebits.switches.startup.layout_is_fixed", lambda: False)
    monkeypatch.setattr("samebits.switches.startup.why_layout_cannot_be_fixed", lambda: refusal)
    left = Control(switches=(("address-layout", "leave"),))
    random = Control(switches=(("address-layout", "random"),))
    told = environment_for(Control(), {}).warnings

    assert [refusal in line and "may differ" in line for line in told] == [True] * (not possible)
    assert environment_for(left, {}).warnings == environment_for(random, {}).warnings == ()
    assert [holds_layout(control) for control in (Control(), left, random, None)] == [
        True,
        False,
        False,
        False,
    ]


def test_modules_are_not_compiled_in_the_first_run_only(monkeypatch):
    """Else the first run would allocate other things than the next; torch is not compiled each time."""
    for compiled, expected in ((True, "1"), (False, None)):
        monkeypatch.setattr("samebits.switches.startup._torch_is_compiled", lambda: compiled)  # noqa: B023
        assert environment_for(Control(), {}).variables.get("PYTHONDONTWRITEBYTECODE") == expected


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PYTHONHASHSEED", "7"),
        ("CUBLAS_WORKSPACE_CONFIG", ":16:8"),
        ("CUBLAS_WORKSPACE_CONFIG", ":4096:2:16:8"),
        ("NCCL_ALGO", "Tree"),
        ("NCCL_ALGO", "^NVLS"),
        ("HCCL_DETERMINISTIC", "strict"),
        ("OMP_DYNAMIC", "false"),
        ("OMP_NUM_THREADS", "3"),
    ],
)
def test_a_value_of_the_users_that_keeps_the_promise_stays(name, value):
    plan = environment_for(Control(), {name: value})

    assert name not in plan.variables
    assert plan.warnings == ()


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("PYTHONHASHSEED", "random", "a whole number"),
        ("CUBLAS_WORKSPACE_CONFIG", "4096:8", "pairs of a size"),
        ("CUBLAS_WORKSPACE_CONFIG", ":0:0", "pairs of a size"),
        ("CUBLAS_WORKSPACE_CONFIG", ":0:8", "share a workspace"),
        ("PYTORCH_TUNABLEOP_ENABLED", "1", "timing"),
        ("NCCL_ALGO", "NVLS", "order"),
        ("NVTE_ALLOW_NONDETERMINISTIC_ALGO", "1", "atomics"),
    ],
)
def test_a_value_that_breaks_it_is_replaced_with_the_reason(name, value, reason):
    plan = environment_for(Control(), {name: value})

    assert plan.variables[name] == switch_named(name).value
    assert len(plan.warnings) == 1
    assert plan.warnings[0].startswith(f"{name}={value} is replaced by {plan.variables[name]}: ")
    assert reason in plan.warnings[0]


def test_a_held_value_that_cannot_be_right_is_told():
    plan = environment_for(Control(), {"OMP_NUM_THREADS": "many"})

    assert "OMP_NUM_THREADS" not in plan.variables
    assert plan.warnings == (
        "OMP_NUM_THREADS=many is not a possible value (expected a whole number from 1); it is left as it is",
    )


def test_what_is_asked_for_by_name_wins():
    control = Control(switches=(("PYTHONHASHSEED", "5"), ("MKL_CBWR", "COMPATIBLE"), ("NCCL_ALGO", "leave")))
    plan = environment_for(control, {"PYTHONHASHSEED": "7"})

    assert (plan.variables["PYTHONHASHSEED"], plan.variables["MKL_CBWR"]) == ("5", "COMPATIBLE")
    assert "NCCL_ALGO" not in plan.variables
    assert plan.warnings == ("PYTHONHASHSEED=7 is replaced by 5, as you asked",)


def test_the_table_needs_no_torch():
    """`samebits run` reads it before the script has said which torch it wants."""
    code = "import sys, samebits.switches.table; print('torch' in sys.modules, 'numpy' in sys.modules)"

    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert result.stdout.split() == ["False", "False"]


def test_moments_are_those_of_the_handles():
    assert switch_named("PYTHONHASHSEED").when is When.PROCESS
    assert switch_named("CUBLAS_WORKSPACE_CONFIG").when is When.CUDA
    assert switch_named("NCCL_ALGO").when is When.GROUP
    assert switch_named("OMP_DYNAMIC").when is When.IMPORT


def test_the_page_shows_the_table():
    page = (Path(__file__).parents[3] / "docs" / "reference" / "switches.md").read_text()
    shown = [line.split(" | ") for line in page.splitlines() if line.startswith("| `")]

    assert shown == [
        [
            f"| `{s.name}`",
            "held" if s.value is None else f"`{s.value}`",
            s.when.value,
            f"{s.why} (cost: {s.cost})" if s.cost else s.why,
            f"{s.source} |",
        ]
        for s in TABLE
    ]


@pytest.mark.parametrize("switch", COMPILER, ids=lambda s: s.name)
def test_a_setting_of_the_compiler_keeps_its_type(switch):
    """Inductor compares numbers, and hands words to the C++ compiler."""
    present(switch)
    config = importlib.import_module(COMPILER_CONFIG)
    name = next(name for name in switch.handle.names if has_config_entry(config, name))
    before = getattr(config, name)
    text = switch.handle.read()
    try:
        switch.handle.write(another(switch, text))
        switch.handle.write(text)
        after = getattr(config, name)
        assert (type(after), after) == (type(before), before)
    finally:
        setattr(config, name, before)


def test_a_word_of_the_compiler_that_reads_like_a_flag_stays_a_word():
    switch = switch_named("inductor-cpp-enable-floating-point-contract-flag")
    config = importlib.import_module(COMPILER_CONFIG)
    before = config.cpp.enable_floating_point_contract_flag
    try:
        for word in ("on", "fast", "off"):
            switch.handle.write(word)
            assert config.cpp.enable_floating_point_contract_flag == word
    finally:
        config.cpp.enable_floating_point_contract_flag = before


def test_a_deprecated_name_of_an_entry_is_not_read(monkeypatch):
    """It would warn, where the script itself does not (torch 2.15)."""

    class Config:
        _config: ClassVar = {
            "old": SimpleNamespace(deprecated=True),
            "new": SimpleNamespace(deprecated=False),
        }
        new = True

        def __getattr__(self, name):
            if name == "old":
                warnings.warn("old is deprecated", FutureWarning, stacklevel=2)
                return True
            raise AttributeError(name)

    monkeypatch.setitem(sys.modules, COMPILER_CONFIG, Config())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        flag = CompilerFlag("new", earlier="old")
        assert (flag.missing(), flag.read()) == ("", "on")
        assert CompilerFlag("old").missing() != ""
