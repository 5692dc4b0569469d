"""Code of compilers on the stack, and the folders in which they keep what they made."""

from __future__ import annotations

import importlib
import os
import sys

import pytest

from samebits._runtime.frames import OWN, USER, FrameRanks, is_of_compiler
from samebits._torch.compiler import kernel_caches


def called_from(module, within="__main__"):
    """What is told of a call that a function of one module makes for a function of another."""
    inner = {"__name__": module, "ask": lambda: is_of_compiler(sys._getframe(1))}
    exec("def start():\n    return ask()\n", inner)  # noqa: S102
    outer = {"__name__": within, "start": inner["start"]}
    exec("def call():\n    return start()\n", outer)  # noqa: S102
    return outer["call"]()


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        ("torch._inductor.async_compile", True),
        ("triton.compiler.compiler", True),
        ("triton", True),
        ("torch.utils.cpp_extension", True),
        ("triton_train", False),
        ("tritonclient.http", False),
        ("torch.utils.data", False),
        ("train", False),
    ],
)
def test_whose_call_is_that_of_a_compiler(module, expected):
    assert called_from(module) is expected
    assert called_from("subprocess", within=module) is expected


@pytest.fixture
def caches(monkeypatch, tmp_path):
    """Set the variables of the caches, in a script's own folder, and return the caches then."""
    importlib.import_module("torch._inductor")  # which keeps something from then on
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setattr(
        sys.modules["__main__"], "__file__", str(tmp_path / "project" / "train.py"), raising=False
    )

    def with_variables(**variables):
        for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "TRITON_HOME"):
            monkeypatch.delenv(name, raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, str(value))
        return kernel_caches()

    return with_variables


def test_the_folders_of_the_variables_and_the_usual_one(caches, tmp_path):
    found = caches(TORCHINDUCTOR_CACHE_DIR=tmp_path / "a", TRITON_CACHE_DIR=f"{tmp_path}/b/")
    assert found == (f"{tmp_path}/a/", f"{tmp_path}/b/")
    assert caches() == (os.path.expanduser("~/.triton/"),)


@pytest.mark.parametrize("folder", ["/", "{}", "{}/project", "{}/project/", "/tmp", "~"])  # noqa: S108
def test_a_folder_with_the_script_or_all_else_is_no_cache(caches, tmp_path, folder):
    place = os.path.expanduser(folder.format(tmp_path))
    assert caches(TORCHINDUCTOR_CACHE_DIR=place, TRITON_CACHE_DIR=place) == ()


def test_generated_code_is_nobodys_line(caches, tmp_path):
    caches(TORCHINDUCTOR_CACHE_DIR=tmp_path / "project" / "cache")
    ranks = FrameRanks()
    assert ranks.rank_of_file(str(tmp_path / "project" / "cache" / "ab" / "cab.py")) == OWN
    assert ranks.rank_of_file(str(tmp_path / "project" / "train.py")) == USER
