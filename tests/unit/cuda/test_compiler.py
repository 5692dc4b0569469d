"""NVRTC, as the library finds and calls it; `pip install --group cuda-compiler` brings one."""

import contextlib
import locale

import pytest

from samebits._cuda import nvrtc
from samebits._cuda.nvrtc import MAIN, CompileError, Program, assembler, compile_program, machine_code
from samebits._cuda.units import DIGEST
from samebits.digest import _cuda_backend


def test_without_the_compiler():
    """One error, which names the release of CUDA."""
    with pytest.raises(CompileError, match=r"no NVRTC for CUDA 3\.1"):
        compile_program(DIGEST.program(), machine_code((9, 0)), "3.1")


def test_a_source_that_is_missing():
    """An installation without its sources is told apart from a compiler that refuses them."""
    with pytest.raises(CompileError, match=r"digest\.cu is missing"):
        compile_program(Program("digest.cu", {}), machine_code((9, 0)), "13.0")


@pytest.fixture
def compiler():
    """The release of the NVRTC that is installed here."""
    for cuda in ("13.0", "12.1"):
        try:
            nvrtc._open(cuda)
        except CompileError:
            continue
        return cuda
    pytest.skip("no NVRTC: it is a package for Linux only")


@pytest.mark.parametrize("capability", [(8, 0), (9, 0)])
def test_it_compiles_for(capability, compiler):
    """Machine code of the kernels that the backend loads, without a GPU."""
    code = compile_program(DIGEST.program(), machine_code(capability), compiler)
    assert all(name.encode() in code for name in _cuda_backend._KERNELS)


def test_assembler_is_text(compiler):
    """For a capability and all higher ones."""
    text = compile_program(DIGEST.program(), assembler((8, 0)), compiler).decode()
    assert ".target sm_80" in text
    assert ".entry digest_finish(" in text


def test_a_device_that_the_compiler_does_not_know(compiler):
    """Its message is passed on."""
    with pytest.raises(CompileError, match="arch"):
        compile_program(DIGEST.program(), machine_code((1, 0)), compiler)


def test_a_source_with_an_error(compiler):
    """With its line."""
    with pytest.raises(CompileError, match=r"unit\.cu\(1\): error"):
        compile_program(Program(MAIN, {MAIN: "int f() { return missing; }"}), machine_code((9, 0)), compiler)


@pytest.fixture
def locale_of_utf8():
    """The locale of most users, also where the tests are started without one."""
    before = locale.setlocale(locale.LC_ALL)
    yield locale.setlocale(locale.LC_ALL, "C.UTF-8")
    locale.setlocale(locale.LC_ALL, before)


@pytest.mark.parametrize("text", ["", "int f() { return missing; }"])
def test_the_locale_stays_as_it_was(compiler, locale_of_utf8, tmp_path, text):
    """NVRTC sets that of its process and that of its thread, so files with an accent could not be read."""
    (tmp_path / "notes.txt").write_text("é")
    with contextlib.suppress(CompileError):
        compile_program(Program(MAIN, {MAIN: text}), machine_code((9, 0)), compiler)
    assert locale.setlocale(locale.LC_ALL) == locale_of_utf8
    assert (tmp_path / "notes.txt").read_text() == "é"
