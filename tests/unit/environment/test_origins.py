"""What an installed package came from, as its installer told it."""

from __future__ import annotations

import json
import os
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from samebits.environment.origins import Origin, OriginKind
from samebits.environment.packages import collect_distributions
from samebits.environment.repository import root_of

if TYPE_CHECKING:
    from pathlib import Path

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of packages on the path; the home folder is its parent."""
    monkeypatch.setenv("SAMEBITS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / "site-packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    return folder


def install(site: Path, told: Any = None, installer: str = "pip") -> None:
    """Write what an installer leaves of a package."""
    info = site / "thing-1.0.dist-info"
    info.mkdir()
    (info / "INSTALLER").write_text(f"{installer}\n")
    (info / "RECORD").write_text("thing.py,sha256=abc,3\n__editable___thing_finder.py,sha256=def,3\n")
    if told is not None:
        (info / "direct_url.json").write_text(told if isinstance(told, str) else json.dumps(told))


def origin(root: Path | None = None) -> Origin | None:
    """Return the origin, asked twice, the second time from the cache."""
    first, second = (collect_distributions(root and str(root))["thing"] for _ in range(2))
    assert first == second
    return first.origin


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (None, None),
        ("{damaged", None),
        ('["no table"]', None),
        (
            {
                "url": "https://user:pa55word99@example.org/thing.git",
                "vcs_info": {"vcs": "git", "commit_id": COMMIT},
                "subdirectory": "python",
            },
            Origin(
                OriginKind.REPOSITORY, "git+https://user:***@example.org/thing.git", COMMIT, "python"
            ),
        ),
        (
            {"url": "https://example.org/thing-1.0.zip", "archive_info": {"hashes": {"sha256": "ab" * 32}}},
            Origin(OriginKind.ARCHIVE, "https://example.org/thing-1.0.zip", sha256="ab" * 32),
        ),
        (
            {"url": "file:///home/a/thing%20-1.0.zip", "archive_info": {"hash": "sha256=" + "ab" * 32}},
            Origin(OriginKind.ARCHIVE, "thing -1.0.zip", sha256="ab" * 32),
        ),
    ],
)  # fmt: skip
def test_an_origin_is_what_the_installer_told(site: Path, told: Any, expected: Origin | None) -> None:
    install(site, told)
    assert origin() == expected


def test_conda_is_known_by_the_installer(site: Path) -> None:
    """Its packages name a folder of the machine that built them."""
    install(site, {"url": "file:///home/conda/feedstock_root/build", "dir_info": {}}, installer="conda")
    assert origin() == Origin(OriginKind.CONDA)


def test_a_folder_is_named_from_the_repository_or_the_home_folder(site: Path, tmp_path: Path) -> None:
    folder = tmp_path / "src/re po"
    (folder / ".git").mkdir(parents=True)
    (folder / "packages/thing").mkdir(parents=True)
    install(site, {"url": (folder / "packages/thing").as_uri(), "dir_info": {}})
    assert root_of(folder / "packages") == str(folder)
    assert origin(folder) == Origin(OriginKind.FOLDER, "packages/thing")
    assert origin(folder / "packages/thing") == Origin(OriginKind.FOLDER, ".")
    assert origin(tmp_path / "src/re") == Origin(OriginKind.FOLDER, "~/src/re po/packages/thing")
    assert origin() == Origin(OriginKind.FOLDER, "~/src/re po/packages/thing")


def test_an_editable_package_is_used_if_a_module_of_its_folder_is(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its modules are code of the run, and the installer's list is about where they are."""
    folder = tmp_path / "own"
    folder.mkdir()
    install(site, {"url": folder.as_uri(), "dir_info": {"editable": True}})
    package = collect_distributions(str(tmp_path))["thing"]
    assert (package.imported, package.contents) == (False, "")
    assert package.origin == Origin(OriginKind.EDITABLE, "own")
    module = ModuleType("thing_module")
    module.__file__ = os.path.join(folder, "thing_module.py")
    monkeypatch.setitem(sys.modules, "thing_module", module)
    assert collect_distributions()["thing"].imported


def test_a_development_installation_is_editable(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`setup.py develop` puts the folder of the source on the path; Debian's packages look alike."""
    (tmp_path / "own").mkdir()
    for folder, name in ((tmp_path / "own", "mine-1.0.egg-info"), (site, "system-2.0.egg-info")):
        (folder / name).mkdir()
        monkeypatch.syspath_prepend(str(folder))
    packages = collect_distributions(str(tmp_path))
    assert packages["mine"].origin == Origin(OriginKind.EDITABLE, "own")
    assert packages["system"].origin is None
