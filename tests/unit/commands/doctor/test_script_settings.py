"""The switches that a script sets: read from its source, and judged."""

from __future__ import annotations

import pytest
import torch
from snapshot_builder import healthy

from samebits.commands.doctor.checks import examine
from samebits.commands.doctor.environment import Setting
from samebits.commands.doctor.imports import own_modules
from samebits.commands.doctor.script_settings import settings_in
from samebits.switches.spellings import ENVIRON, switches_by_spelling
from samebits.switches.table import switch_named

HEAD = "import os\nimport torch\nfrom torch.backends import cudnn\n"


def settings(tmp_path, text):
    (tmp_path / "train.py").write_text(HEAD + text)
    return [(found.switch, found.value) for found in settings_in([tmp_path / "train.py"], tmp_path)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("cudnn.benchmark = True", [("cudnn-benchmark", "on")]),
        ("torch.backends.cudnn.benchmark = cudnn.deterministic = a.fast",
         [("cudnn-benchmark", ""), ("cudnn-deterministic", "")]),
        ("with cudnn.flags(benchmark=True): pass", [("cudnn-benchmark", "on")]),
        ("os.environ['CUBLAS_WORKSPACE_CONFIG'] = ':0:0'", [("CUBLAS_WORKSPACE_CONFIG", ":0:0")]),
        ("os.environ.setdefault('NCCL_ALGO', 'Tree')", [("NCCL_ALGO", "Tree")]),
        ("os.environ['HOME'] = '/'", []),
        ("torch.use_deterministic_algorithms(True)", [("deterministic-algorithms", "on")]),
        ("torch.use_deterministic_algorithms(mode=False)", [("deterministic-algorithms", "off")]),
        ("torch.use_deterministic_algorithms(True, warn_only=True)", [("deterministic-algorithms", "warn")]),
        ("torch.set_float32_matmul_precision('high')", [("matmul-precision", "high")]),
        ("torch.backends.cuda.matmul.fp32_precision = 'tf32'", [("fp32-cuda-matmul", "tf32")]),
        ("m = torch.compile(m, mode='max-autotune-no-cudagraphs')", [("inductor-max-autotune", "on")]),
        ("m.compile(mode='max-autotune')", [("inductor-max-autotune", "on")]),
        ("m = torch.compile(m, mode='reduce-overhead')", []),
        ("@torch.compile(options={'triton.multi_kernel': 1})\ndef f(x): return x",
         [("inductor-triton-multi-kernel", "1")]),
        ("torch._inductor.config.benchmark_fusion = True", [("inductor-benchmark-fusion", "on")]),
        ("torch.set_num_threads(n)", [("threads", "")]),
        ("x = cudnn.benchmark", []),
        ("cudnn.benchmark, cudnn.deterministic = True, False",
         [("cudnn-benchmark", "on"), ("cudnn-deterministic", "off")]),
        ("cudnn.benchmark: bool = True", [("cudnn-benchmark", "on")]),
        ("setattr(cudnn, 'benchmark', True)", [("cudnn-benchmark", "on")]),
        ("os.environ.update({'NCCL_ALGO': 'Tree'}, NCCL_PROTO='LL')",
         [("NCCL_PROTO", "LL"), ("NCCL_ALGO", "Tree")]),
        ("os.putenv('NCCL_ALGO', 'Tree')", [("NCCL_ALGO", "Tree")]),
        ("cudnn.flags(True, True)", [("cudnn-enabled", "on"), ("cudnn-benchmark", "on")]),
        ("with torch._inductor.config.patch(max_autotune=True): pass", [("inductor-max-autotune", "on")]),
        ("torch._inductor.config.patch({'max_autotune': 1})", [("inductor-max-autotune", "on")]),
        ("m = torch.compile(m, options=dict(max_autotune=True))", [("inductor-max-autotune", "on")]),
        ("m = torch.compile(m, options={'max-autotune': True})", [("inductor-max-autotune", "on")]),
        ("torch._inductor.config.triton.multi_kernel = False", [("inductor-triton-multi-kernel", "0")]),
        ("torch.use_deterministic_algorithms(warn_only=False, mode=True)",
         [("deterministic-algorithms", "on")]),
        ("m = torch.compile(m, mode='max-autotune', backend='eager')", []),
        ("import re\nre.compile('x', mode='max-autotune')", []),
        ("torch.set_num_threads(0x" + "f" * 4000 + ")", [("threads", "")]),
        ("os.environ[0x" + "f" * 4000 + "] = 1", []),
        ("os.environ.update(**given)", []),
    ],
)  # fmt: skip
def test_what_a_line_sets(tmp_path, text, found):
    assert settings(tmp_path, text) == found


def test_the_modules_beside_the_script_are_read_too(tmp_path):
    (tmp_path / "train.py").write_text("import parts.fast\n")
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "fast.py").write_text("import torch\n\ntorch.backends.cudnn.benchmark = True\n")
    files = own_modules(tmp_path / "train.py", tmp_path)
    assert settings_in(files, tmp_path) == (Setting("cudnn-benchmark", "on", "parts/fast.py", 3),)


@pytest.mark.parametrize("text", ["def (", "\0", "x = '\udcff'", "# coding: rot13\n", "# coding: none\n"])
def test_a_file_that_cannot_be_read_sets_nothing(tmp_path, text):
    (tmp_path / "train.py").write_bytes(text.encode(errors="surrogateescape"))
    assert settings_in([tmp_path / "train.py", tmp_path / "none.py"], tmp_path) == ()


def threats(*found):
    return {
        (threat.promise, threat.subject): threat
        for threat in examine(healthy(settings=found))
        if threat.subject in {setting.switch for setting in found}
    }


def test_a_setting_against_the_promise_is_told_with_its_lines():
    on = [Setting("cudnn-benchmark", "on", "train.py", line) for line in (3, 9)]
    [threat] = threats(*on).values()
    assert threat.found == "train.py:3 and 1 more line set cudnn-benchmark to on"
    assert threat.level == "may break"
    assert "back to off" in threat.remedy


@pytest.mark.parametrize(
    ("name", "value", "promises"),
    [
        ("cudnn-benchmark", "off", []),
        ("cudnn-benchmark", "", []),
        ("inductor-max-autotune", "on", ["repeatable"]),
        ("inductor-max-autotune", "off", []),
        ("CUBLAS_WORKSPACE_CONFIG", ":16:8", []),
        ("CUBLAS_WORKSPACE_CONFIG", ":0:0", ["repeatable"]),
        ("matmul-precision", "highest", []),
        ("matmul-precision", "medium", ["portable"]),
        ("fp32-cudnn-conv", "tf32", ["portable"]),
        ("threads", "4", []),
    ],
)
def test_which_promise_a_setting_threatens(name, value, promises):
    assert [promise for promise, _ in threats(Setting(name, value, "train.py", 1))] == promises


@pytest.mark.parametrize(
    ("name", "narrow"), [("matmul-precision", "high"), ("cudnn-allow-tf32", "on"), ("fp32-cudnn", "tf32")]
)
def test_what_is_advised_against_narrow_floats_is_not_narrow(name, narrow):
    [threat] = threats(Setting(name, narrow, "train.py", 1)).values()
    advised = threat.remedy.split()[3]
    assert switch_named(name).handle.problem(advised) == ""
    assert threats(Setting(name, advised, "train.py", 1)) == {}


def test_every_name_that_a_script_may_write_is_one_of_torch():
    """Entries of the compiler's configuration are tested with the switches."""
    for spelling in switches_by_spelling():
        if spelling.startswith((ENVIRON, "torch._inductor.config")):
            continue
        owner = torch
        for part in spelling.split(".")[1:]:
            assert hasattr(owner, part), spelling
            owner = getattr(owner, part)
