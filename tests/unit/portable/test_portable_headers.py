"""The scalar mathematics as other languages include it: C++, and CUDA C++ without a GPU."""

from __future__ import annotations

import ctypes
import importlib.util
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from samebits._cuda.nvrtc import _same_locale
from samebits.portable.kernels.elementwise import BINARY, UNARY, binary, unary

if TYPE_CHECKING:
    from collections.abc import Sequence

NATIVE = Path(__file__).resolve().parents[3] / "native" / "portable"
OF_TWO = [name for name in BINARY if not name.endswith("_backward")]
COMPILER = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
# As activation_kernel.h includes them.
ACTIVATIONS = """
#define T {type}
#define F(name) sba_##name##_{suffix}
#define M(name) sbm_##name##_{suffix}
#include "math_activation.h"
#undef T
#undef F
#undef M
"""
TYPES = (("float", "f32"), ("double", "f64"))
HEADERS = '#include "philox.h"\n#include "math_normal.h"\n' + "".join(
    ACTIVATIONS.format(type=kind, suffix=suffix) for kind, suffix in TYPES
)
# What the compiler of CUDA C++ finds in its own headers.
CUDA_HEADERS = {
    "math.h": "#define INFINITY __int_as_float(0x7f800000)\n#define NAN __int_as_float(0x7fffffff)\n",
    "string.h": "",
    "stdint.h": "typedef signed int int32_t; typedef unsigned int uint32_t;\n"
    "typedef long long int64_t; typedef unsigned long long uint64_t;\n",
}


def _cases(qualifier: str) -> str:
    """A function for each type that gives value number `code` of one or two numbers."""
    made = []
    for kind, suffix in TYPES:
        of_one = [f"case {i}: return sbm_{name}_{suffix}(x);" for i, name in enumerate(UNARY)]
        of_two = [
            f"case {len(UNARY) + i}: return sbm_{name}_{suffix}(x, y);" for i, name in enumerate(OF_TWO)
        ]
        head = f"{qualifier} {kind} value_{suffix}(int code, {kind} x, {kind} y)"
        made.append(f"{head} {{ switch (code) {{ {' '.join([*of_one, *of_two])} }} return 0; }}")
    return "\n".join(made)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The headers in a library of C++, optimised as little as a debug build."""
    if COMPILER is None:
        pytest.skip("no C++ compiler")
    folder = tmp_path_factory.mktemp("headers")
    loops = "".join(
        f'extern "C" void run_{suffix}(int code, long n, const {kind} *x, const {kind} *y, {kind} *out) {{'
        f" for (long i = 0; i < n; i++) out[i] = value_{suffix}(code, x[i], y[i]); }}\n"
        for kind, suffix in TYPES
    )
    source = folder / "headers.cpp"
    source.write_text("#define SBP_FUNCTION static inline\n" + HEADERS + _cases("static") + "\n" + loops)
    options = ["-std=c++17", "-O1", "-ffp-contract=off", "-fPIC", "-shared", "-I", NATIVE]
    subprocess.run([COMPILER, *options, source, "-o", folder / "headers.so"], check=True)
    return ctypes.CDLL(str(folder / "headers.so"))


def _values(dtype: type, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    whole = np.uint32 if dtype is np.float32 else np.uint64
    any_bits = rng.integers(0, np.iinfo(whole).max, 100, dtype=whole).view(dtype)
    parts = [
        any_bits,
        rng.normal(size=100).astype(dtype),
        np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1], dtype),
    ]
    return np.concatenate(parts)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_cpp_gives_the_bits_of_the_kernels(library: ctypes.CDLL, dtype: type) -> None:
    x, y = _values(dtype, 1), _values(dtype, 2)
    run = library.run_f32 if dtype is np.float32 else library.run_f64
    one, other = torch.from_numpy(x), torch.from_numpy(y)
    expected = [unary(name, one) for name in UNARY] + [binary(name, one, other) for name in OF_TWO]
    for code, kernel in enumerate(expected):
        out = np.empty_like(x)
        run(code, ctypes.c_long(len(x)), *(ctypes.c_void_p(array.ctypes.data) for array in (x, y, out)))
        whole = np.int32 if dtype is np.float32 else np.int64
        same = (out.view(whole) == kernel.numpy().view(whole)) | (np.isnan(out) & np.isnan(kernel.numpy()))
        assert same.all(), ([*UNARY, *OF_TWO][code], x[~same], y[~same])


@pytest.fixture(scope="module")
def nvrtc() -> ctypes.CDLL:
    """NVIDIA's compiler as a library (the group `cuda-compiler`), which needs no GPU."""
    try:
        found = importlib.util.find_spec("nvidia.cuda_nvrtc")
    except ModuleNotFoundError:
        found = None
    folders = list(found.submodule_search_locations or []) if found is not None else []
    paths = [path for folder in folders for path in Path(folder, "lib").glob("libnvrtc.so.*")]
    if not paths:
        pytest.skip("no NVRTC; make test-portable installs it")
    return ctypes.CDLL(str(paths[0]))


def _compile_cuda(nvrtc: ctypes.CDLL, source: str, options: Sequence[str]) -> tuple[str, str]:
    """The messages, and the assembler; empty if there were errors."""
    headers = {path.name: path.read_text() for path in [*NATIVE.glob("math_*.h"), NATIVE / "philox.h"]}
    headers |= CUDA_HEADERS
    texts, names = (
        (ctypes.c_char_p * len(headers))(*(text.encode() for text in each))
        for each in (headers.values(), headers)
    )
    program = ctypes.c_void_p()
    assert not nvrtc.nvrtcCreateProgram(
        ctypes.byref(program), source.encode(), b"headers.cu", len(headers), texts, names
    )
    given = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    with _same_locale():
        failed = nvrtc.nvrtcCompileProgram(program, len(options), given)
    log = _text(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program)
    return log, "" if failed else _text(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, program)


def _text(size_of: ctypes._FuncPointer, copy: ctypes._FuncPointer, program: ctypes.c_void_p) -> str:
    size = ctypes.c_size_t()
    size_of(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    copy(program, text)
    return text.value.decode()


def test_cuda_compiles_the_headers_as_they_are(nvrtc: ctypes.CDLL) -> None:
    kernels = "".join(
        f'extern "C" __global__ void run_{suffix}(int code, const {kind} *x, const {kind} *y, {kind} *out) {{'
        f" const int i = threadIdx.x; out[i] = value_{suffix}(code, x[i], y[i]); }}\n"
        for kind, suffix in TYPES
    )
    qualifier = "static __device__ __forceinline__"
    source = f"#define SBP_FUNCTION {qualifier}\n{HEADERS}{_cases(qualifier)}\n{kernels}"
    options = ["--gpu-architecture=compute_80", "--fmad=false", "--std=c++17", "--device-int128"]
    log, assembler = _compile_cuda(nvrtc, source, options)
    assert assembler, log
    floats = re.findall(r"\b(?:add|sub|mul|fma|div|sqrt)\.[a-z.]*f(?:32|64)", assembler)
    assert {"fma.rn.f32", "fma.rn.f64", "div.rn.f32", "div.rn.f64"} <= set(floats)
    # Each operation rounds to nearest and keeps subnormal numbers, as the numerics ask.
    rounded = re.compile(r"(add|sub|mul)\.f(32|64)|.*\.rn\..*")
    assert [name for name in floats if not rounded.fullmatch(name)] == []
