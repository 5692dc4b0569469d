"""Two runs whose environments differ in one thing: `diff` names it first, or nothing if it cannot matter."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
import torch
from library_support import install_library

from samebits.records.notes import NoteCode
from samebits.records.reader import RecordReader

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SCRIPT = """\
import argparse, ctypes, glob, os
import numpy, torch
import model, tiny_package
for library in glob.glob(os.path.join(os.path.dirname(tiny_package.__file__), "nvidia", "*", "lib", "*")):
    ctypes.CDLL(library)
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
        host: the second run is on a host of that name; empty for the same.
        loaded: another process is busy beside the second run.
    """

    fact: tuple[str, ...]
    variables: dict[str, str] = field(default_factory=dict)
    edit: tuple[str, str] | None = None
    options: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    moved: bool = False
    host: str = ""
    loaded: bool = False


def variable(name: str, value: str) -> Pair:
    return Pair(("variables", name), {name: value})


def setup(path: tuple[str, ...], code: str) -> Pair:
    return Pair(path, {"PAIR_SETUP": code})


# Kind and file of each library, and the folder that has another build of it.
LIBRARIES = (
    ("dnnl", "libdnnl.so.3", "packages4"),
    ("cublas", "libcublas.so.12", "packages5"),
    ("nccl", "libnccl.so.2", "packages5"),
)
IN_OWN_HOST = ("unshare", "--uts", "sh", "-c")  # a command follows
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
    "library-of-another-build": Pair(("libraries", "onednn"), {"PYTHONPATH": "packages4"}),
    "preloaded": Pair(("variables", "LD_PRELOAD"), {"LD_PRELOAD": "libm.so.6"}),
    # Nothing that can change bits.
    "same": Pair(()),
    "host": Pair((), {"HOSTNAME": "elsewhere", "HOST": "elsewhere"}, host="elsewhere"),
    "load": Pair((), loaded=True),
    "user": Pair((), {"USER": "other", "LOGNAME": "other", "HOME": "/nowhere"}),
    "time-zone": Pair((), {"TZ": "Asia/Tokyo", "LC_ALL": "C"}),
    "folder": Pair((), moved=True),
    "caches": Pair((), {"TORCH_HOME": "/a", "XDG_CACHE_HOME": "/b", "TORCHINDUCTOR_CACHE_DIR": "/c"}),
    "logs": Pair((), {"NCCL_DEBUG": "INFO", "TORCH_CPP_LOG_LEVEL": "ERROR"}),
    "as-many-threads": Pair((), {"OMP_NUM_THREADS": str(len(os.sched_getaffinity(0)))}),
    "no-gpu-in-use": Pair((), {"CUBLAS_WORKSPACE_CONFIG": ":16:8", "NVIDIA_TF32_OVERRIDE": "0"}),
    "unused-gpu-libraries": Pair((), {"PYTHONPATH": "packages5"}),
    "no-collectives": Pair((), {"NCCL_ALGO": "Tree", "NCCL_PROTO": "LL"}),
    "unused-file": Pair((), edit=("unused.py", "x = 1\n")),
    "time-of-data": Pair((), edit=("data.txt", "hello")),
}  # fmt: skip


def make_project(folder: Path) -> Path:
    """Write the project, as a repository, with three builds of a package beside it, and libraries."""
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
        ("packages4", "1.0", "a"),
        ("packages5", "1.0", "a"),
    ):
        info = folder / name / f"tiny_package-{version}.dist-info"
        info.mkdir(parents=True)
        (folder / name / "tiny_package.py").write_text("x = 1\n")
        (info / "RECORD").write_text(f"tiny_package.py,sha256={digest * 43},6\n")
        os.utime(info / "RECORD", (1_600_000_000, 1_600_000_000) if name == "packages" else None)
        for kind, file, changed in LIBRARIES:
            release, build = ("2.0", "bb") if name == changed else ("1.0", "aa")
            install_library(folder / name, f"vendor_{kind}", release, f"nvidia/{kind}/lib/{file}", build)
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
    command += pair.arguments
    if pair.host:
        command = [*IN_OWN_HOST, f'hostname {pair.host} && exec "$@"', "sh", *command]
    with load() if pair.loaded else contextlib.nullcontext():
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, done.stderr


@contextlib.contextmanager
def load() -> Iterator[None]:
    """Keep a processor busy."""
    spinning = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        spinning.kill()
        spinning.wait()


def may_name_hosts() -> bool:
    """Tell whether a process may have a host name of its own here."""
    command = [*IN_OWN_HOST, "hostname elsewhere && hostname"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return False
    return done.stdout == "elsewhere\n"


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
    if pair.host and not may_name_hosts():
        pytest.skip("no process may have a host name of its own here")
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
    if not pair.fact or (name == "capability-avx2" and torch.backends.cpu.get_cpu_capability() == "AVX2"):
        assert told == []
    else:
        assert told[0][: len(pair.fact)] == pair.fact, told
        assert len(told) == 1 or pair.fact == ("arguments",), told


# As torch 2.15.0 loads them, of two releases of the wheels. The files of cuBLAS are of the same size.
CUBLAS = (
    {"file": "libcublas.so.13", "build": "9bdb7ed2e04aecd0f3d0240abb5f225bd858ec5e", "size": 54198912},
    {"file": "libcublasLt.so.13", "build": "f1eee934dd4075302bc41a63bd089c7c7b4fe208", "size": 508260928},
)
NEWER_CUBLAS = (
    {"file": "libcublas.so.13", "build": "0b6d01e03f306c319b70540bb091be0ce65c2420", "size": 54198912},
    {"file": "libcublasLt.so.13", "build": "1c23e69f137b1cfe0ff69da1bdbb23a86912695d", "size": 508260928},
)
NCCL = {"file": "libnccl.so.2", "build": "a2c825116a308c48453d420d773412cbe513df0a", "size": 252204648}
NEWER_NCCL = {"file": "libnccl.so.2", "build": "6e40ffcd33f4cecef8f34c132805e0ef2d2af6c9", "size": 299259704}


def on_gpus(record: Path, copied: Path, nccl: str, libraries: list[dict[str, Any]]) -> str:
    """Write a record of the same run on one of two GPUs, and return its path."""
    shutil.copy(record, copied)
    connection = sqlite3.connect(copied)
    (text,) = connection.execute("SELECT environment FROM run").fetchone()
    environment = json.loads(text)
    gpu = {"name": "H100", "capability": "9.0", "multiprocessors": 132, "threads_per_multiprocessor": 2048}
    environment["torch"] |= {"gpus": [gpu], "cudnn": "92600", "nccl": nccl}
    environment["ranks"] = {"rank": 0, "world_size": 2, "local_rank": 0, "restart": 0, "launch": "a"}
    environment["libraries"] = libraries
    connection.execute("UPDATE run SET environment = ?", (json.dumps(environment),))
    connection.commit()
    connection.close()
    return str(copied)


def test_libraries_of_the_gpu_are_named_by_their_wheels(base: Path, tmp_path: Path) -> None:
    """NCCL, of which nobody knows the package here, by the version that it tells."""
    wheel = {"package": "nvidia-cublas"}
    old = [*({**each, **wheel, "version": "13.4.1.3"} for each in CUBLAS), NCCL]
    new = [*({**each, **wheel, "version": "13.4.2.4"} for each in NEWER_CUBLAS), NEWER_NCCL]
    a = on_gpus(base / "first.sbr", tmp_path / "a.sbr", "2.30.7", old)
    b = on_gpus(base / "first.sbr", tmp_path / "b.sbr", "2.31.2", new)

    nccl, cublas = diff(a, b)["differences"]
    assert (nccl["fact"], nccl["first"], nccl["second"]) == (["torch", "nccl"], "2.30.7", "2.31.2")
    assert nccl["can_change"] == ["collectives"]
    assert [each["fact"] for each in nccl["with_it"]] == [["libraries", "nccl"]]
    assert (cublas["fact"], cublas["name"]) == (["libraries", "cublas"], "loaded library cuBLAS")
    assert (cublas["first"], cublas["second"]) == ("nvidia-cublas 13.4.1.3", "nvidia-cublas 13.4.2.4")
    assert cublas["can_change"] == ["products", "decompositions", "attention"]


def test_the_first_records_had_names_of_libraries_only(base: Path, tmp_path: Path) -> None:
    names: list[Any] = [each["file"] for each in (*CUBLAS, NCCL)]
    old = on_gpus(base / "first.sbr", tmp_path / "a.sbr", "2.30.7", names)
    new = on_gpus(base / "first.sbr", tmp_path / "b.sbr", "2.30.7", [*NEWER_CUBLAS, NCCL])
    older = on_gpus(base / "first.sbr", tmp_path / "c.sbr", "2.30.7", ["libcublas.so.12", "libnccl.so.2"])

    assert diff(old, new)["differences"] == []
    (cublas,) = diff(older, new)["differences"]
    assert (cublas["first"], cublas["second"]) == ("libcublas.so.12", "libcublas.so.13, libcublasLt.so.13")


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
