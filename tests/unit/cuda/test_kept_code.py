"""Machine code for GPUs that is kept: compiled once, and again where something is other or damaged."""

import pytest

from samebits._cuda import kept_code, nvrtc
from samebits._cuda.nvrtc import MAIN, Program

SOURCES = {MAIN: "a", "b.h": "b"}


@pytest.fixture
def compiled(tmp_path, monkeypatch):
    """The calls of the compiler, which gives a file's name in capitals."""
    calls = []

    def compile_program(program, target, cuda):
        calls.append((target, cuda))
        return program.file.upper().encode() * 100

    monkeypatch.setattr(kept_code, "compile_program", compile_program)
    monkeypatch.setenv("SAMEBITS_CACHE", str(tmp_path / "cache"))
    return calls


def ask(sources=SOURCES, capability=(9, 0), cuda="13.0"):
    """The code of one file."""
    return kept_code.code_of(Program("a.cu", sources), capability, cuda)


def test_it_is_compiled_once(compiled):
    assert ask() == ask() == b"A.CU" * 100
    assert len(compiled) == 1


@pytest.mark.parametrize(
    "other", [{"sources": SOURCES | {"b.h": "c"}}, {"capability": (8, 0)}, {"cuda": "12.9"}], ids=str
)
def test_other_code_is_compiled(compiled, other):
    """A header that changed, another device, another release of CUDA."""
    ask()
    ask(**other)
    assert len(compiled) == 2


@pytest.mark.parametrize("damage", [b"", b"x" * 40, None])
def test_a_damaged_file_costs_time_only(compiled, tmp_path, damage):
    """Cut off, of other contents, or a folder."""
    ask()
    (path,) = (tmp_path / "cache" / "kernels").iterdir()
    path.unlink()
    if damage is None:
        path.mkdir()
    else:
        path.write_bytes(damage)
    assert ask() == b"A.CU" * 100
    assert len(compiled) == 2


def test_a_folder_that_cannot_be_written(compiled, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SAMEBITS_CACHE", str(tmp_path / "file" / "cache"))
    assert ask() == ask() == b"A.CU" * 100
    assert len(compiled) == 2


def test_other_options_are_other_code(compiled, monkeypatch):
    """They decide the bits: a product and a sum may be fused."""
    ask()
    monkeypatch.setattr(nvrtc, "OPTIONS", ("--fmad=true",))
    ask()
    assert len(compiled) == 2
