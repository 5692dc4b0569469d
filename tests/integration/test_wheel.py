"""The wheel that users install: built, installed in an empty folder, and used from there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the contents of the wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in filter(None, names.stdout.split("\0")):
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    target = folder / "installed"
    subprocess.run([*pip, "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, source], check=True)
    (wheel,) = folder.glob("samebits-*.whl")
    subprocess.run([*pip, "install", "--quiet", "--no-deps", "--target", target, wheel], check=True)
    return target


def run(installed: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """`python -m samebits` of the wheel, away from the source."""
    return subprocess.run(
        [sys.executable, "-m", "samebits", *words],
        cwd=installed.parent,
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_the_pages_of_messages_are_in_it(installed):
    page = (ROOT / "docs/reference/messages.md").read_text()
    slugs = [line.removeprefix("## ").strip() for line in page.splitlines() if line.startswith("## ")]
    assert (installed / "samebits/messages.md").read_text() == page

    shown = run(installed, "explain")
    assert shown.returncode == 0, shown.stderr
    assert slugs
    assert all(slug in shown.stdout for slug in slugs)


def test_the_compiled_parts_are_in_it_and_are_used(installed):
    for part in ("_native", "_reader", "_portable"):
        assert list((installed / "samebits").glob(f"{part}*.so"))
    code = (
        "import samebits\nfrom samebits.portable.backends.library import load\n"
        "print(samebits.__file__, bool(load()))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code],
        cwd=installed.parent,
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.split() == [str(installed / "samebits/__init__.py"), "True"]


def test_it_verifies_a_script(installed):
    (installed.parent / "train.py").write_text("import torch\nprint(torch.rand(2).sum().item())\n")

    result = run(installed, "verify", "train.py")

    assert result.returncode == 1
    assert "torch.manual_seed(0)" in result.stdout
