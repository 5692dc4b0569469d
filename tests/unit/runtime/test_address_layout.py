"""Modules and metadata of packages are found in a folder whose names are not looked through."""

from __future__ import annotations

import importlib
import os
import sys
from importlib import metadata

import pytest

from samebits._runtime.address_layout import UnlistedFinder, UnlistedFolder, metadata_names


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An entry of `sys.path` that is not listed, and whose modules are forgotten afterwards."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(tmp_path))
    unlisted = UnlistedFolder(str(tmp_path))
    unlisted.install()
    yield tmp_path
    unlisted.remove()
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_modules_packages_and_namespaces_are_found(folder):
    (folder / "alone_here.py").write_text("value = 1")
    (folder / "package_here").mkdir()
    (folder / "package_here/__init__.py").write_text("value = 2")
    (folder / "package_here/inner.py").write_text("value = 3")
    (folder / "namespace_here").mkdir()
    (folder / "namespace_here/inner.py").write_text("value = 4")
    names = ("alone_here", "package_here", "package_here.inner", "namespace_here.inner")
    assert [importlib.import_module(name).value for name in names] == [1, 2, 3, 4]
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("nothing_here")


def test_a_module_that_is_written_later_is_found(folder):
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("later_here")
    (folder / "later_here.py").write_text("value = 1")
    assert importlib.import_module("later_here").value == 1


def test_no_name_is_held(folder, monkeypatch):
    (folder / "alone_here.py").write_text("value = 1")

    def refuse(*_):
        raise AssertionError("the folder was listed")

    with monkeypatch.context() as patch:
        patch.setattr("os.listdir", refuse)
        patch.setattr("posix.listdir", refuse)
        importlib.import_module("alone_here")
        metadata.entry_points(group="nothing")
    assert isinstance(sys.path_importer_cache[str(folder)], UnlistedFinder)


def test_metadata_is_found(folder):
    (folder / "thing.egg-info").mkdir()
    (folder / "thing.egg-info/PKG-INFO").write_text("Metadata-Version: 2.1\nName: thing\nVersion: 4.2\n")
    (folder / "thing.txt").touch()
    assert list(metadata_names(str(folder))) == ["thing.egg-info"]
    assert metadata.version("thing") == "4.2"


def test_a_folder_that_is_gone_is_no_error(folder):
    metadata.entry_points(group="nothing")
    folder.rmdir()
    with pytest.raises(metadata.PackageNotFoundError):
        metadata.version("thing-of-nowhere")


def test_an_archive_is_left_alone(tmp_path):
    archive = tmp_path / "code.zip"
    archive.write_bytes(b"PK\x05\x06" + bytes(18))
    unlisted = UnlistedFolder(str(archive))
    unlisted.install()
    assert not isinstance(sys.path_importer_cache.get(str(archive)), UnlistedFinder)
    unlisted.remove()
    assert os.path.exists(archive)
