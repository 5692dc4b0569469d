"""Facts are collected without a trace, and the differences that can change bits are named."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from samebits.environment.packages import collect_packages
from samebits.environment.repository import SourceFacts, collect_source
from samebits.environment.snapshot import Environment, collect
from samebits.environment.torch_build import (
    GpuFacts,
    TorchBuild,
    collect_build,
    collect_release,
    collect_torch,
)

if TYPE_CHECKING:
    from pathlib import Path


def python(code: str, *options: str, **variables: str) -> Any:
    """Run code in a fresh interpreter and return the JSON that it prints."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **variables}
    command = [sys.executable, *options, "-c", f"import json, sys\n{code}"]
    return json.loads(subprocess.run(command, env=environment, check=True, capture_output=True).stdout)


def test_torch_is_not_imported_for_its_facts() -> None:
    """Nor is NumPy; without torch its facts are None."""
    code = "import samebits.environment.snapshot as e; facts = e.collect().to_dict()\n"
    code += "print(json.dumps([facts['torch'], 'torch' in sys.modules, 'numpy' in sys.modules]))"
    assert python(code) == [None, False, False]


def test_torch_as_it_stands() -> None:
    """Build, threads and dtype are those in effect when collect() is called."""
    code = "import torch, samebits.environment.snapshot as e; torch.set_num_threads(1)\n"
    code += "torch.set_default_dtype(torch.float64)\n"
    code += "before = set(sys.modules); facts = e.collect().to_dict()\n"
    code += "print(json.dumps([facts, torch.__version__, torch.backends.cpu.get_cpu_capability(),"
    code += " [name for name in set(sys.modules) - before if name.startswith('torch')],"
    code += " torch.cuda.is_initialized()]))"
    facts, version, capability, imported, cuda = python(code, ATEN_CPU_CAPABILITY="default")

    found = facts["torch"]
    assert (found["version"], found["capability"]) == (version, capability)
    assert found["threads"]["intra-op"] == 1
    assert found["default_dtype"] == "torch.float64"
    assert (found["gpus"], imported, cuda) == ([], [], False)
    assert facts["packages"]["torch"] == version
    assert facts["variables"]["ATEN_CPU_CAPABILITY"] == "default"


def test_the_facts_of_a_start_need_no_torch() -> None:
    """They are those of the end, as far as they go; what may change until then is left out."""
    code = "import samebits.environment.snapshot as e; start = e.collect_at_start()\n"
    code += "early, loaded = start.to_dict(), [name in sys.modules for name in ('torch', 'numpy')]\n"
    code += "import torch\n"
    code += "print(json.dumps([early, loaded, e.with_build(start, torch).to_dict(), e.collect().to_dict()]))"
    early, loaded, later, end = python(code)

    assert (loaded, early.pop("torch")) == ([False, False], None)
    assert early.items() <= later.items()
    build = later.pop("torch")
    assert build.items() <= end["torch"].items()
    assert "switches" not in build
    assert later.pop("taken")
    assert later.items() <= end.items()


def test_facts_are_json() -> None:
    """to_dict() gives what JSON would give back, so facts from a record compare equal."""
    facts = collect().to_dict()
    assert json.loads(json.dumps(facts)) == facts
    assert facts["machine"]["cpus"] >= 1
    assert facts["python"]["version"] == sys.version.split()[0]
    assert facts["packages"]["pytest"] == pytest.__version__


@pytest.mark.parametrize(
    ("options", "seed", "expected"),
    [((), "7", "7"), ((), "0", "0"), ((), "", "random"), (("-E",), "7", "random")],
)
def test_the_hash_seed_in_effect(options: tuple[str, ...], seed: str, expected: str) -> None:
    """A seed that Python ignores is not reported."""
    root = [path for path in sys.path if path]
    code = f"sys.path[:0] = {root!r}\nimport samebits.environment.snapshot as e\n"
    code += "print(json.dumps(e.collect().python.hash_seed))"
    assert python(code, *options, PYTHONHASHSEED=seed) == expected


def test_only_known_variables_are_kept_and_secrets_never(monkeypatch: pytest.MonkeyPatch) -> None:
    """A record is sent to strangers."""
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8" + "x" * 5000)
    monkeypatch.setenv("HF_TOKEN", "hidden treasure")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden treasure")
    monkeypatch.setenv("TORCH_HUB_TOKEN", "hidden treasure")
    monkeypatch.setenv("HOME_SWEET_HOME", "hidden treasure")
    facts = collect()
    assert facts.variables["OMP_NUM_THREADS"] == "3"
    assert facts.variables["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8" + "x" * 5000
    assert facts.variables["TORCH_HUB_TOKEN"].startswith("(")
    assert "treasure" not in json.dumps(facts.to_dict())
    assert not {"HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "HOME_SWEET_HOME", "PATH"} & set(facts.variables)


def test_modules_are_not_run_for_their_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lazy modules, modules without a version and objects that pose as modules are left alone."""

    class Lazy(ModuleType):
        def __getattr__(self, name: str) -> Any:
            raise AssertionError(name)

    monkeypatch.setitem(sys.modules, "lazy", Lazy("lazy"))
    monkeypatch.setitem(sys.modules, "poser", SimpleNamespace(__version__=7))  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "slotted", 5)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "absent", None)  # type: ignore[arg-type]
    assert not {"lazy", "poser", "slotted", "absent"} & set(collect().packages)


def git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    answer = subprocess.run(["git", "-C", str(folder), *identity, *words], check=True, capture_output=True)
    return answer.stdout.decode().strip()


needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@needs_git
def test_a_package_is_left_out_when_asking_for_its_version_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """A script's own `types.py` or the like may stand for a standard module that `metadata` needs."""
    package = ModuleType("package_without_version")
    package.__spec__ = SimpleNamespace()  # type: ignore[assignment]
    monkeypatch.setitem(sys.modules, package.__name__, package)

    def fails(name: str) -> str:
        raise AttributeError(name)

    monkeypatch.setattr("importlib.metadata.version", fails)
    assert package.__name__ not in collect_packages()


def test_the_commit_of_the_script(tmp_path: Path) -> None:
    """Commit and uncommitted changes; an untracked file is no change; the index is left alone."""
    assert collect_source(tmp_path) is None
    git(tmp_path, "init", "-q")
    assert collect_source(tmp_path) is None
    (tmp_path / "train.py").write_text("1")
    git(tmp_path, "add", "train.py")
    git(tmp_path, "commit", "-qm", "one")
    git(tmp_path, "tag", "-a", "v1.0-rc", "-m", "a tag")
    commit = git(tmp_path, "rev-parse", "HEAD")
    (tmp_path / "notes.txt").write_text("untracked")
    (tmp_path / "sub").mkdir()
    assert collect_source(tmp_path / "sub") == SourceFacts(commit, changed=False)

    os.utime(tmp_path / "train.py", (1, 1))
    index = (tmp_path / ".git/index").read_bytes()
    assert collect_source(tmp_path) == SourceFacts(commit, changed=False)
    (tmp_path / "train.py").write_text("2")
    assert collect_source(tmp_path) == SourceFacts(commit, changed=True)
    assert (tmp_path / ".git/index").read_bytes() == index


@needs_git
def test_git_may_be_missing_slow_or_hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """None of it holds up the run, and a monitor that the repository names is not started."""
    git(tmp_path, "init", "-q")
    (tmp_path / "train.py").write_text("1")
    git(tmp_path, "add", "train.py")
    git(tmp_path, "commit", "-qm", "one")
    git(tmp_path, "config", "core.fsmonitor", f"touch {tmp_path}/started; false")
    assert collect_source(tmp_path) is not None
    assert not (tmp_path / "started").exists()

    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert collect_source(tmp_path) is None
    slow = tmp_path / "bin/git"
    slow.write_text("#!/bin/sh\nexec /bin/sleep 30\n")
    slow.chmod(0o755)
    start = time.monotonic()
    assert collect_source(tmp_path) is None
    assert time.monotonic() - start < 5


def fake_torch() -> Any:
    """Return a torch with CUDA in use, of a release that lacks most things and refuses others."""
    torch = SimpleNamespace(__version__="2.6.0+cu124")
    torch.version = SimpleNamespace(git_version="abc", cuda="12.4", hip=None)
    gpu = SimpleNamespace(name="GPU 0", major=9, minor=0, multi_processor_count=132)
    torch.cuda = SimpleNamespace(is_initialized=lambda: True, device_count=lambda: 1)
    torch.cuda.get_device_properties = lambda _: gpu
    torch.backends = SimpleNamespace(cudnn=SimpleNamespace(version=lambda: 90100))
    return torch


def test_a_torch_that_lacks_or_refuses_facts() -> None:
    """What cannot be read is left out; GPUs are described by what their generators depend on."""
    found = collect_torch(fake_torch())
    assert found is not None
    assert (found.version, found.cuda, found.cudnn, found.mkl) == ("2.6.0+cu124", "12.4", "90100", "")
    assert found.gpus == (GpuFacts("GPU 0", "9.0", 132, 0),)
    assert collect_torch(ModuleType("torch")) is not None


def test_torch_is_asked_for_nothing_when_it_is_imported() -> None:
    """The script may still choose devices, threads and instructions by its environment."""
    asked: list[str] = []

    class Watched(ModuleType):
        def __getattr__(self, name: str) -> Any:
            asked.append(name)
            raise AttributeError(name)

    torch: Any = Watched("torch")
    torch.__version__, torch.version = "2.13.0", SimpleNamespace(git_version="abc", cuda=None, hip=None)
    assert collect_release(torch) == TorchBuild("2.13.0", "abc", "")
    assert not asked
    collect_build(torch)
    assert asked


def test_no_device_is_looked_for_to_describe_the_build(monkeypatch: pytest.MonkeyPatch) -> None:
    """`torch.__config__.show` would look for one."""
    torch = pytest.importorskip("torch")
    shown = torch.__config__.show()

    def refuse() -> str:
        raise SystemExit

    monkeypatch.setattr(torch.__config__, "show", refuse)
    build = collect_build(torch)
    assert build.openmp
    assert build.capability
    assert all(value in shown for value in (build.mkl, build.onednn, build.openmp))


def test_it_is_frozen() -> None:
    """Facts are values."""
    with pytest.raises(AttributeError):
        collect().python = None  # type: ignore[misc, assignment]
    assert isinstance(collect(), Environment)
