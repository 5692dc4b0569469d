"""Other text than a file's own is run under its name, and nothing is left behind."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import subprocess
import sys
from dataclasses import replace
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest

from samebits.recording._overlay import Overlay
from samebits.recording.settings import RecordingSettings


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module `overlaid` whose text stands elsewhere."""
    path, text = tmp_path / "overlaid.py", tmp_path / "text"
    path.write_text("def value():\n    return 1\n")
    text.write_text("# a line more\ndef value():\n    return 2\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield path, text
    sys.modules.pop("overlaid", None)


def load():
    sys.modules.pop("overlaid", None)
    importlib.invalidate_caches()
    return importlib.import_module("overlaid")


def test_a_module_has_the_other_text_and_its_own_name(module):
    path, text = module
    overlay = Overlay(((str(path), str(text)),))
    overlay.install()
    try:
        found = load()
        assert found.value() == 2
        assert found.__file__ == str(path)
        assert found.value.__code__.co_filename == str(path)
        assert "return 2" in inspect.getsource(found.value)
    finally:
        overlay.remove()
    assert load().value() == 1


def test_no_byte_code_of_it_is_read_or_written(module, monkeypatch):
    path, text = module
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    assert load().value() == 1  # writes the byte code of the file itself
    compiled = Path(importlib.util.cache_from_source(str(path)))
    before = compiled.read_bytes()
    overlay = Overlay(((str(path), str(text)),))
    overlay.install()
    try:
        assert load().value() == 2
    finally:
        overlay.remove()
    assert compiled.read_bytes() == before


def test_an_empty_overlay_changes_nothing():
    before, finders = SourceFileLoader.get_code, list(sys.meta_path)
    overlay = Overlay(())
    overlay.install()
    assert SourceFileLoader.get_code is before
    assert sys.meta_path == finders
    overlay.remove()


def test_the_settings_carry_it():
    settings = RecordingSettings(record="a", overlay=(("/code/a.py", "/code/b"),))
    assert RecordingSettings.from_json(settings.to_json()) == settings
    assert json.loads(replace(settings, overlay=()).to_json())["overlay"] == []


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_child_processes_have_it_too(tmp_path, method):
    script, other = tmp_path / "main.py", tmp_path / "other"
    text = f"""
import multiprocessing
from helper import helped
def value():
    return 1, helped()
if __name__ == "__main__":
    with multiprocessing.get_context("{method}").Pool(1) as pool:
        print(value(), pool.apply(value))
"""
    script.write_text(text)
    other.write_text(text.replace("return 1", "return 2"))
    helper, helped = tmp_path / "helper.py", tmp_path / "helped"
    helper.write_text("def helped():\n    return 'a'\n")
    helped.write_text("def helped():\n    return 'b'\n")
    pairs = ((str(script), str(other)), (str(helper), str(helped)))
    settings = RecordingSettings(record=str(tmp_path / "a.sbr"), overlay=pairs)
    code = (
        "import sys; from samebits.recording.launch import Launch, launch;"
        "from samebits.recording.runner import Target;"
        "launch(Launch(Target(sys.argv[1], None, ()), sys.argv[2], {}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(script), settings.to_json()],
        capture_output=True, text=True, check=True, env=dict(os.environ),
    )  # fmt: skip
    assert done.stdout == "(2, 'b') (2, 'b')\n", done.stderr
