"""Installed packages: versions, contents, what is imported, and what was edited in place."""

from __future__ import annotations

import base64
import hashlib
import os
import sys
from typing import TYPE_CHECKING

import pytest

from samebits.environment.packages import collect_distributions

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of packages, alone on the path beside this process's own."""
    monkeypatch.setenv("SAMEBITS_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    return folder


def recorded(data: bytes) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def install(site: Path, name: str, version: str, files: dict[str, str], installer: str = "pip") -> None:
    """Write files and the list that an installer makes of them."""
    info = f"{name}-{version}.dist-info"
    rows = []
    for path, text in {**files, f"{info}/METADATA": f"Name: {name}"}.items():
        target = site / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        rows.append(f"{path},{recorded(text.encode())},{len(text)}")
    rows += [f"../../bin/{name},{recorded(str(site).encode())},9", f"{info}/RECORD,,"]
    rows += [f"{info}/INSTALLER,{recorded(installer.encode())},3", f"{next(iter(files))}c,,"]
    (site / info / "RECORD").write_text("\n".join(rows) + "\n")


def test_a_package_has_its_version_and_contents(site: Path) -> None:
    install(site, "My_Package", "1.5", {"my_package/__init__.py": "x = 1\n"})
    package = collect_distributions()["my-package"]

    assert (package.version, len(package.contents), package.imported, package.edited) == (
        "1.5",
        32,
        False,
        (),
    )


def test_contents_tell_what_was_installed_not_how(site: Path, tmp_path: Path) -> None:
    """Another installer, another folder, another interpreter: the same package."""
    install(site, "same", "1", {"same/a.py": "1", "same/b.py": "2"})
    first = collect_distributions()["same"].contents
    other = tmp_path / "other"
    install(other, "same", "1", {"same/b.py": "2", "same/a.py": "1"}, installer="uv")
    (site / "same-1.dist-info").rename(tmp_path / "away")
    sys.path.insert(0, str(other))
    try:
        assert collect_distributions()["same"].contents == first
        (other / "same-1.dist-info").rename(tmp_path / "gone")
        install(other, "same", "1", {"same/a.py": "1", "same/b.py": "3"})
        assert collect_distributions()["same"].contents not in ("", first)
    finally:
        sys.path.remove(str(other))


def test_imported_packages_are_told_apart_also_below_a_shared_name(site: Path) -> None:
    """Many packages install below `nvidia`; only the imported one counts."""
    install(site, "vendor-a", "1", {"vendor_test/a/__init__.py": ""})
    install(site, "vendor-b", "1", {"vendor_test/b/__init__.py": ""})
    import vendor_test.a  # type: ignore[import-not-found]

    try:
        packages = collect_distributions()
        assert (packages["vendor-a"].imported, packages["vendor-b"].imported) == (True, False)
    finally:
        for name in ("vendor_test.a", "vendor_test"):
            del sys.modules[name]
    assert vendor_test is not None


def test_a_module_that_was_edited_in_place_is_named(site: Path) -> None:
    install(site, "edited-test", "1", {"edited_test.py": "x = 1\n", "other_test_module.py": "y = 1\n"})
    os.utime(site / "edited-test-1.dist-info/RECORD", (1_600_000_000, 1_600_000_000))
    import edited_test  # type: ignore[import-not-found]

    try:
        assert collect_distributions()["edited-test"].edited == ()
        (site / "edited_test.py").write_text("x = 2\n")
        digest = hashlib.sha256(b"x = 2\n").hexdigest()
        assert collect_distributions()["edited-test"].edited == (f"edited_test.py {digest}",)
    finally:
        del sys.modules["edited_test"]
    assert edited_test.x == 1


@pytest.mark.parametrize("text", [None, "", "no,list", "\udcff,sha256=a,1", "a,b,c,d\n" * 9, "x" * 100_000])
def test_a_list_that_is_missing_or_damaged_leaves_the_version(site: Path, text: str | None) -> None:
    info = site / "odd-2.0.dist-info"
    info.mkdir()
    if text is not None:
        (info / "RECORD").write_bytes(text.encode(errors="surrogateescape"))
    (site / "nothing.dist-info").mkdir()

    assert collect_distributions()["odd"].version == "2.0"


def test_the_packages_of_this_process() -> None:
    packages = collect_distributions()
    assert packages["pytest"].version == pytest.__version__
    assert packages["pytest"].imported
    assert packages["torch"].contents
