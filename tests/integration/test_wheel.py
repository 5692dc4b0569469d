"""The wheels that users install: built, installed in an empty folder, and used from there.

The variable `SAMEBITS_WHEELS` names a folder with wheels that were built before, to test those.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from samebits._cuda.shipped_code import CAPABILITIES, member
from samebits._cuda.units import DIGEST, all_units

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")
BUILT = os.environ.get("SAMEBITS_WHEELS")
LIBRARIES = {"_native", "_reader"} | (set() if sys.platform == "win32" else {"_ops", "_portable"})
OLD_PYTHON_ONLY = ("tomli",) if sys.version_info < (3, 11) else ()
GOLDEN = json.loads((ROOT / "tests/golden/portable.json").read_text())["digests"]


NEWCOMERS_SCRIPT = """\
import torch
torch.manual_seed(0)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(6, 4)
for step in range(5):
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.6f}")
"""


@dataclass(frozen=True)
class Installed:
    """A wheel, and the folder with its contents."""

    wheel: Path
    folder: Path

    @property
    def is_pure(self) -> bool:
        """Whether nothing in it was compiled."""
        return self.wheel.name.endswith("-py3-none-any.whl")

    def python(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run Python with the wheel, away from the source."""
        return subprocess.run(
            [sys.executable, *words],
            cwd=self.folder.parent,
            env={**os.environ, "PYTHONPATH": str(self.folder), **variables},
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
        )

    def samebits(self, *words: str) -> subprocess.CompletedProcess[str]:
        """`python -m samebits` of the wheel."""
        return self.python("-m", "samebits", *words)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the project, without what was built there."""
    folder = tmp_path_factory.mktemp("source")
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in filter(None, names.stdout.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes((ROOT / name).read_bytes())
    return folder


def wheel_of(kind: str, folder: Path, request: pytest.FixtureRequest) -> Path:
    """Return a wheel that was built before, or build it."""
    if BUILT:
        wheels = [path for path in Path(BUILT).glob("*.whl") if ("none-any" in path.name) == (kind == "pure")]
        if not wheels:
            pytest.skip(f"no {kind} wheel in {BUILT}")
    else:
        wheels = [build(kind, request.getfixturevalue("source"), folder)]
    (wheel,) = wheels
    return wheel


def build(kind: str, source: Path, folder: Path) -> Path:
    """Build a wheel into a folder."""
    shutil.rmtree(source / "build", ignore_errors=True)
    subprocess.run(
        [*PIP, "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, source],
        env={**os.environ, "SAMEBITS_BUILD": kind},
        check=True,
    )
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheels(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The wheel of a kind, built once."""
    return functools.cache(lambda kind: wheel_of(kind, tmp_path_factory.mktemp(f"{kind}-wheel"), request))


@pytest.fixture(scope="module", params=["native", "pure"])
def installed(request, wheels, tmp_path_factory) -> Installed:
    """A wheel, installed."""
    wheel = wheels(request.param)
    target = tmp_path_factory.mktemp(request.param) / "installed"
    subprocess.run([*PIP, "install", "--quiet", "--no-deps", "--target", target, wheel], check=True)
    return Installed(wheel, target)


def test_its_name_says_where_it_works(installed):
    """The limited API of Python 3.10 serves all later releases; a pure one works everywhere."""
    tags = installed.wheel.stem.split("-")[2:4]

    assert tags == (["py3", "none"] if installed.is_pure else ["cp310", "abi3"])
    with zipfile.ZipFile(installed.wheel) as wheel:
        libraries = {Path(name).name for name in wheel.namelist() if re.search(r"\.(so|pyd)$", name)}
    assert {name.partition(".")[0] for name in libraries} == (set() if installed.is_pure else LIBRARIES)
    assert all(".abi3.so" in name or name.endswith(".pyd") for name in libraries)


# Machines, by the tag that pip takes; which of our wheels it chooses there.
CHOSEN = {
    "manylinux_2_28_x86_64": "native",
    "musllinux_1_2_x86_64": "pure",
    "musllinux_1_2_aarch64": "pure",
    "macosx_13_0_x86_64": "pure",
    "manylinux_2_28_i686": "pure",
}


@pytest.fixture(scope="module")
def published(wheels, tmp_path_factory) -> Path:
    """A folder with the wheels as a package index has them; the compiled one has the name of a release."""
    folder = tmp_path_factory.mktemp("published")
    for kind in ("native", "pure"):
        wheel = wheels(kind)
        parts = [*wheel.stem.split("-")[:4], "any" if kind == "pure" else "manylinux_2_28_x86_64"]
        shutil.copy(wheel, folder / f"{'-'.join(parts)}.whl")
    return folder


@pytest.mark.parametrize("machine", CHOSEN)
def test_pip_chooses_a_wheel_for_each_machine(published, machine, tmp_path):
    """Where nothing is compiled for a machine, it gets the pure wheel and no error."""
    options = ["--no-index", "--find-links", published, "--no-deps", "--only-binary", ":all:"]
    subprocess.run(
        [*PIP, "download", "--quiet", *options, "--platform", machine, "--dest", tmp_path, "samebits"],
        check=True,
    )

    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.endswith("-none-any.whl" if CHOSEN[machine] == "pure" else "-manylinux_2_28_x86_64.whl")


def test_the_kernels_of_a_gpu_are_in_it(installed):
    """A compiler finds the texts of the checkout, all that it includes."""
    code = "from samebits._cuda.units import all_units\nprint(*(unit.program().key for unit in all_units()))"
    assert installed.python("-c", code).stdout.split() == [unit.program().key for unit in all_units()]


@pytest.mark.skipif(bool(BUILT), reason="it builds a wheel")
def test_compiled_kernels_are_carried(source, tmp_path):
    """Where they were made before, an installation finds them under the keys of its sources."""
    copy = tmp_path / "source"
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns("build"))
    with zipfile.ZipFile(copy / "src/samebits/_cuda/kernels.zip", "w") as archive:
        archive.writestr(member(DIGEST.program().key, (9, 0)), b"code")
    wheel = build("pure", copy, tmp_path)
    target = tmp_path / "installed"
    subprocess.run([*PIP, "install", "--quiet", "--no-deps", "--target", target, wheel], check=True)
    code = (
        "from samebits._cuda.shipped_code import shipped_code\nfrom samebits._cuda.units import DIGEST\n"
        "print(list(shipped_code(DIGEST.program().key, (9, 0))))"
    )

    assert Installed(wheel, target).python("-c", code).stdout == "[b'code']\n"


@pytest.mark.skipif(not BUILT or sys.platform == "darwin", reason="only wheels of a release have them")
def test_a_release_has_machine_code_of_every_kernel(installed):
    """For every architecture, made from the sources that it carries, and not too large."""
    archive = installed.folder / "samebits/_cuda/kernels.zip"
    keys = [unit.program().key for unit in all_units()]
    with zipfile.ZipFile(archive) as held:
        assert set(held.namelist()) == {member(key, each) for key in keys for each in (*CAPABILITIES, None)}
    assert archive.stat().st_size < 15e6


def test_the_pages_of_messages_are_in_it(installed):
    page = (ROOT / "docs/reference/messages.md").read_text(encoding="utf-8")
    slugs = [line.removeprefix("## ").strip() for line in page.splitlines() if line.startswith("## ")]
    assert (installed.folder / "samebits/messages.md").read_text(encoding="utf-8") == page

    shown = installed.samebits("explain")
    assert shown.returncode == 0, shown.stderr
    assert slugs
    assert all(slug in shown.stdout for slug in slugs)


def test_an_error_leads_to_what_is_installed(installed):
    result = installed.samebits("show", "nothing.sbr")

    assert result.returncode == 2
    assert "docs/reference" not in result.stderr
    assert result.stderr.endswith("samebits explain record-missing\n")


def test_the_compiled_parts_are_used(installed):
    code = (
        "import samebits\nfrom samebits.digest import native\n"
        "from samebits.portable.backends.library import load\n"
        "print(samebits.__file__)\nprint(bool(native.load()), native.load_module() is not None, bool(load()))"
    )

    found = installed.python("-c", code)

    there, parts = found.stdout.splitlines()
    assert there == str(installed.folder / "samebits/__init__.py")
    has = [name in LIBRARIES and not installed.is_pure for name in ("_native", "_reader", "_portable")]
    assert parts.split() == list(map(str, has))


def test_it_verifies_a_script(installed):
    (installed.folder.parent / "train.py").write_text("import torch\nprint(torch.rand(2).sum().item())\n")

    result = installed.samebits("verify", "train.py")

    assert result.returncode == 1, result.stderr
    assert "torch.manual_seed(0)" in result.stdout


def test_a_portable_run_gives_the_golden_digests(installed):
    """With compiled kernels and with the reference, on whatever instruction set this processor has."""
    computed = installed.python(str(ROOT / "tests/golden/compute.py"), "line_fit")

    assert computed.returncode == 0, computed.stderr
    assert json.loads(computed.stdout)["digests"]["line_fit"] == GOLDEN["line_fit"]


def test_a_portable_run_is_recorded(installed):
    shutil.copy(ROOT / "examples/line_fit.py", installed.folder.parent)

    result = installed.samebits("run", "--portable", "--seed", "3", "line_fit.py", "--steps", "3")

    assert result.returncode == 0, result.stderr
    assert "3 steps recorded" in result.stderr


@dataclass(frozen=True)
class Venv:
    """A new virtual environment with a wheel in it, and an empty folder."""

    path: Path
    folder: Path

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a program in the folder, with the commands of the environment first on the path."""
        names = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        own = self.path / ("Scripts" if sys.platform == "win32" else "bin")
        identity = {"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "A"}
        variables = {**names, **identity, "GIT_COMMITTER_EMAIL": "a@b", "OMP_NUM_THREADS": "1"}
        program = shutil.which(words[0], path=os.pathsep.join((str(own), os.environ["PATH"])))
        assert program is not None
        return subprocess.run(
            [program, *words[1:]],
            cwd=self.folder,
            env={**variables, "PATH": os.pathsep.join((str(own), os.environ["PATH"]))},
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
        )


def find_uv(name: str) -> str:
    """Return the path of `uv` or `uvx`, which the group dev installs beside this Python."""
    scripts = os.pathsep.join((sysconfig.get_path("scripts"), os.environ["PATH"]))
    found = shutil.which(name, path=scripts)
    if found is None:
        pytest.skip(f"{name} is not installed: {sys.executable} -m pip install uv")
    return found


@pytest.fixture(params=["pip", "uv"])
def venv(request, installed, tmp_path):
    """What `pip install` or `uv pip install` makes of the wheel; torch is that of the tests."""
    path, folder = tmp_path / "venv", tmp_path / "project"
    folder.mkdir()
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", path], check=True)
    (packages,) = [*path.glob("lib/python*/site-packages"), *path.glob("Lib/site-packages")]
    places = (sysconfig.get_path("purelib"), os.path.dirname(np.__path__[0]))
    (packages / "torch.pth").write_text("\n".join(places))
    if request.param == "uv":
        words = [find_uv("uv"), "pip", "install", "--quiet", "--no-deps", "--python", path, installed.wheel]
    else:
        words = [*PIP, "--python", path, "install", "--quiet", "--no-deps", installed.wheel]
    subprocess.run(words, check=True)
    return Venv(path, folder)


def test_its_command_verifies_a_script_in_an_empty_folder(venv):
    """The console script, as `uvx --from WHEEL samebits verify train.py` starts it."""
    (venv.folder / "train.py").write_text("import torch\nprint(torch.rand(2).sum().item())\n")

    result = venv.run("samebits", "verify", "train.py")

    assert result.returncode == 1, result.stderr
    assert "torch.manual_seed(0)" in result.stdout
    place = venv.run("python", "-c", "import samebits; print(samebits.__file__)").stdout
    assert place.startswith(str(venv.path))


def write_stand_in(folder: Path, name: str) -> None:
    """Write a wheel with the name and version of an installed package, that leads to those of the tests."""
    stem = f"{name.replace('-', '_')}-{metadata.version(name).partition('+')[0]}"
    own = f"{stem}.dist-info"
    places = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), os.path.dirname(np.__path__[0])}
    files = {
        f"{name}_place.pth": "\n".join(sorted(places)),
        f"{own}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {stem.rpartition('-')[2]}\n",
        f"{own}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{own}/RECORD"] = "".join(f"{path},,\n" for path in (*files, f"{own}/RECORD"))
    with zipfile.ZipFile(folder / f"{stem}-py3-none-any.whl", "w") as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)


def test_uvx_runs_it_from_the_wheel(installed, tmp_path):
    """`uvx samebits verify train.py` resolves what the wheel asks for, in an environment of its own.

    The packages that it asks for lead to those of the tests: nothing is downloaded.
    """
    index = tmp_path / "index"
    index.mkdir()
    for name in ("torch", "numpy", "safetensors", "jinja2", "tomli-w", *OLD_PYTHON_ONLY):
        write_stand_in(index, name)
    (tmp_path / "train.py").write_text("import torch\nprint(torch.rand(2).sum().item())\n")
    uv = ["--offline", "--no-index", "--find-links", index, "--python", sys.executable]
    names = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}

    result = subprocess.run(
        [find_uv("uvx"), *uv, "--from", installed.wheel, "samebits", "verify", "train.py"],
        cwd=tmp_path,
        env={**names, "UV_CACHE_DIR": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )

    assert result.returncode == 1, result.stderr
    assert "torch.manual_seed(0)" in result.stdout


def test_the_first_hour_of_a_newcomer(venv):
    """A repository, a lock, a changed line: the check names it as the user's own, and CI gets its reports."""
    (venv.folder / "train.py").write_text(NEWCOMERS_SCRIPT)
    (venv.folder / ".gitignore").write_text(".samebits/\n")
    steps = [
        ("git", "init", "--quiet"),
        ("samebits", "lock", "train.py"),
        ("git", "add", "--all"),
        ("git", "commit", "--quiet", "--message", "The first lock"),
        ("samebits", "check"),
    ]
    for words in steps:
        done = venv.run(*words)
        assert done.returncode == 0, (words, done.stderr)
    (venv.folder / "train.py").write_text(NEWCOMERS_SCRIPT.replace("lr=0.1", "lr=0.2"))
    assert venv.run("git", "commit", "--quiet", "--all", "--message", "A faster start").returncode == 0

    checked = venv.run("samebits", "check", "--junit", "junit.xml", "--sarif", "samebits.sarif")

    assert checked.returncode == 1, checked.stderr
    assert "your change" in checked.stdout
    assert "train.py:4" in checked.stdout
    assert "lr=0.2" in checked.stdout
    junit = ET.parse(venv.folder / "junit.xml").getroot()  # noqa: S314 - our own file
    assert junit.find(".//failure") is not None
    (run,) = json.loads((venv.folder / "samebits.sarif").read_text())["runs"]
    (place,) = run["results"][0]["locations"]
    assert place["physicalLocation"]["artifactLocation"]["uri"] == "train.py"
    assert place["physicalLocation"]["region"]["startLine"] == 4


@pytest.mark.skipif(BUILT is not None, reason="builds a wheel")
def test_a_build_that_must_compile_fails_without_a_compiler(source, tmp_path):
    """Any other build goes on without compiled code."""
    shutil.rmtree(source / "build", ignore_errors=True)
    words = [*PIP, "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path, source]
    variables = {**os.environ, "CC": "/nowhere/cc", "SAMEBITS_BUILD": "native"}

    assert subprocess.run(words, env=variables, capture_output=True, check=False).returncode != 0
    assert not list(tmp_path.glob("*.whl"))
    del variables["SAMEBITS_BUILD"]
    assert subprocess.run(words, env=variables, capture_output=True, check=False).returncode == 0
    assert list(tmp_path.glob("*.whl"))
