"""Two runs whose environments differ in one thing: `diff` names it first, or nothing if it cannot matter."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from samebits.records.notes import NoteCode
from samebits.records.reader import RecordReader

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = """\
import argparse, os
import numpy, torch
import model, tiny_package
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--data", default="data.txt")
options = parser.parse_args()
exec(os.environ.get("PAIR_SETUP", ""))
torch.manual_seed(0)
text = open(options.data).read()
layer = model.make()
optimizer = torch.optim.SGD(layer.parameters(), lr=options.lr)
for _ in range(2):
    loss = layer(torch.randn(8, 4, dtype=torch.get_default_dtype())).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item(), len(text))
"""
MODEL = "import torch\ndef make(): return torch.nn.Linear(4, 2)\n"


@dataclass(frozen=True)
class Pair:
    """One change to a project or to the variables of its run, and the fact that must come first.

    Args:
        fact: its path in the JSON; empty where nothing may be claimed.
        variables: of the second run, beside those of the first.
        edit: name and text of a file that is written before the second run.
        options: of `samebits run`.
        arguments: of the script.
        moved: the second run is in a copy of the project in another folder.
    """

    fact: tuple[str, ...]
    variables: dict[str, str] = field(default_factory=dict)
    edit: tuple[str, str] | None = None
    options: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    moved: bool = False


def variable(name: str, value: str) -> Pair:
    return Pair(("variables", name), {name: value})


def setup(path: tuple[str, ...], code: str) -> Pair:
    return Pair(path, {"PAIR_SETUP": code})


PAIRS = {
    "threads": variable("OMP_NUM_THREADS", "1"),
    "mkl-threads": variable("MKL_NUM_THREADS", "1"),
    "capability-avx2": variable("ATEN_CPU_CAPABILITY", "avx2"),
    "capability-default": variable("ATEN_CPU_CAPABILITY", "default"),
    "cbwr-compatible": variable("MKL_CBWR", "COMPATIBLE"),
    "cbwr-avx2": variable("MKL_CBWR", "AVX2"),
    "onednn-avx2": variable("ONEDNN_MAX_CPU_ISA", "AVX2"),
    "dnnl-sse41": variable("DNNL_MAX_CPU_ISA", "SSE41"),
    "mkl-instructions": variable("MKL_ENABLE_INSTRUCTIONS", "AVX2"),
    "omp-dynamic": variable("OMP_DYNAMIC", "TRUE"),
    "mkl-dynamic": variable("MKL_DYNAMIC", "FALSE"),
    "numpy-features": variable("NPY_DISABLE_CPU_FEATURES", "AVX512F"),
    "openblas-core": variable("OPENBLAS_CORETYPE", "Haswell"),
    "openblas-threads": variable("OPENBLAS_NUM_THREADS", "1"),
    "sum-order": variable("PYTORCH_SUM_INNER_TREE", "1"),
    "native-kernels": variable("TORCH_DISABLE_NATIVE_JIT", "1"),
    "hash-seed": variable("PYTHONHASHSEED", "7"),
    "memory-fill": variable("MALLOC_PERTURB_", "85"),
    "glibc": variable("GLIBC_TUNABLES", "glibc.cpu.hwcaps=-AVX2"),
    "optimize": Pair(("python", "optimize"), {"PYTHONOPTIMIZE": "1"}),
    "threads-in-script": setup(("torch", "threads"), "torch.set_num_threads(1)"),
    "deterministic": setup(
        ("switches", "deterministic-algorithms"), "torch.use_deterministic_algorithms(True)"
    ),
    "matmul-precision": setup(
        ("switches", "matmul-precision"), "torch.set_float32_matmul_precision('medium')"
    ),
    "no-onednn": setup(("switches", "mkldnn-enabled"), "torch._C._set_mkldnn_enabled(False)"),
    "onednn-bf16": setup(
        ("switches", "fp32-mkldnn-matmul"), "torch.backends.mkldnn.matmul.fp32_precision='bf16'"
    ),
    "default-dtype": setup(("torch", "default_dtype"), "torch.set_default_dtype(torch.float64)"),
    "math-attention": setup(("switches", "sdpa-flash"), "torch.backends.cuda.enable_flash_sdp(False)"),
    "script-line": Pair(("code", "train.py"), edit=("train.py", SCRIPT.replace("square()", "abs()"))),
    "script-comment": Pair(("code", "train.py"), edit=("train.py", SCRIPT + "# end\n")),
    "module-line": Pair(("code", "model"), edit=("model.py", MODEL.replace("2", "3"))),
    "data-byte": Pair(("data", "files", "data.txt"), edit=("data.txt", "hellp")),
    "data-longer": Pair(("data", "files", "data.txt"), edit=("data.txt", "hello!")),
    "another-data-file": Pair(("arguments",), arguments=("--data", "other.txt")),
    "learning-rate": Pair(("arguments",), arguments=("--lr", "0.2")),
    "seed": Pair(("control", "seed"), options=("--seed", "1")),
    "portable": Pair(("control", "portable"), options=("--portable",)),
    "package-version": Pair(("distributions", "tiny-package"), {"PYTHONPATH": "packages2"}),
    "package-contents": Pair(("distributions", "tiny-package"), {"PYTHONPATH": "packages3"}),
    "package-edited": Pair(("distributions", "tiny-package"), edit=("packages/tiny_package.py", "x = 9\n")),
    "preloaded": Pair(("variables", "LD_PRELOAD"), {"LD_PRELOAD": "libm.so.6"}),
    # Nothing that can change bits.
    "same": Pair(()),
    "host": Pair((), {"HOSTNAME": "elsewhere", "HOST": "elsewhere"}),
    "user": Pair((), {"USER": "other", "LOGNAME": "other", "HOME": "/nowhere"}),
    "time-zone": Pair((), {"TZ": "Asia/Tokyo", "LC_ALL": "C"}),
    "folder": Pair((), moved=True),
    "caches": Pair((), {"TORCH_HOME": "/a", "XDG_CACHE_HOME": "/b", "TORCHINDUCTOR_CACHE_DIR": "/c"}),
    "logs": Pair((), {"NCCL_DEBUG": "INFO", "TORCH_CPP_LOG_LEVEL": "ERROR"}),
    "as-many-threads": Pair((), {"OMP_NUM_THREADS": str(len(os.sched_getaffinity(0)))}),
    "no-gpu-in-use": Pair((), {"CUBLAS_WORKSPACE_CONFIG": ":16:8", "NVIDIA_TF32_OVERRIDE": "0"}),
    "no-collectives": Pair((), {"NCCL_ALGO": "Tree", "NCCL_PROTO": "LL"}),
    "unused-file": Pair((), edit=("unused.py", "x = 1\n")),
    "time-of-data": Pair((), edit=("data.txt", "hello")),
}  # fmt: skip


def make_project(folder: Path) -> Path:
    """Write the project, as a repository, with three builds of a package beside it."""
    folder.mkdir()
    (folder / "train.py").write_text(SCRIPT)
    (folder / "model.py").write_text(MODEL)
    (folder / "unused.py").write_text("")
    (folder / "data.txt").write_text("hello")
    (folder / "other.txt").write_text("other")
    (folder / "copy").mkdir()
    (folder / "copy/data.txt").write_text("hello")
    for name, version, digest in (
        ("packages", "1.0", "a"),
        ("packages2", "1.1", "b"),
        ("packages3", "1.0", "c"),
    ):
        info = folder / name / f"tiny_package-{version}.dist-info"
        info.mkdir(parents=True)
        (folder / name / "tiny_package.py").write_text("x = 1\n")
        (info / "RECORD").write_text(f"tiny_package.py,sha256={digest * 43},6\n")
        os.utime(info / "RECORD", (1_600_000_000, 1_600_000_000) if name == "packages" else None)
    os.utime(folder / "packages/tiny_package.py", (1_500_000_000, 1_500_000_000))
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "."], [*identity, "commit", "-qm", "one"]):
        subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True)
    return folder


def run(folder: Path, record: Path, pair: Pair, cache: Path) -> None:
    given = {name for each in PAIRS.values() for name in each.variables}  # may be set here too
    inherited = {name: value for name, value in os.environ.items() if name not in given}
    environment = {"PYTHONPATH": "packages", **inherited, "SAMEBITS_CACHE": str(cache), **pair.variables}
    command = [sys.executable, "-m", "samebits", "run", "--record", str(record), *pair.options, "train.py"]
    done = subprocess.run(
        [*command, *pair.arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def diff(*words: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "samebits", "diff", "--json", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == (1 if told["differences"] else 0)
    return told


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a record that all pairs share."""
    folder = tmp_path_factory.mktemp("pairs")
    project = make_project(folder / "project")
    run(project, folder / "first.sbr", Pair(()), folder / "cache")
    return folder


@pytest.mark.parametrize("name", PAIRS)
def test_the_one_difference_comes_first(name: str, base: Path, tmp_path: Path) -> None:
    pair = PAIRS[name]
    changed = pair.moved or pair.edit is not None
    project = base / "project"
    if changed:
        project = tmp_path / "elsewhere"
        shutil.copytree(base / "project", project)
    if pair.edit is not None:
        (project / pair.edit[0]).write_text(pair.edit[1])
    run(project, tmp_path / "second.sbr", pair, base / "cache")
    differences = diff(str(base / "first.sbr"), str(tmp_path / "second.sbr"))["differences"]

    told = [tuple(each["fact"]) for each in differences]
    if not pair.fact:
        assert told == []
    else:
        assert told[0][: len(pair.fact)] == pair.fact, told
        assert len(told) == 1 or pair.fact == ("arguments",), told


def test_what_the_record_lacks_of_the_environment_is_said(tmp_path: Path) -> None:
    """The script took the hash function away that the digests of its modules and of its data need."""
    script = """\
import hashlib
import settings
open("data.txt").read()
def broken(*_):
    raise LookupError("no sha256 here")
hashlib.sha256 = broken
"""
    (tmp_path / "train.py").write_text(script)
    (tmp_path / "data.txt").write_text("1")
    (tmp_path / "settings.py").touch()

    command = [sys.executable, "-m", "samebits", "run", "--record", "a.sbr", "train.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=120)

    assert "Traceback" not in done.stderr
    with RecordReader(tmp_path / "a.sbr") as record:
        notes = [(note.code, *note.arguments[:2]) for note in record.info.notes]
    error = "LookupError: no sha256 here"
    assert notes == [
        (NoteCode.NOT_RECORDED, "inventory", error),
        (NoteCode.NOT_RECORDED, "data-files", error),
    ]
