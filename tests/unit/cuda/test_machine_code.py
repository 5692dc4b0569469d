"""The machine code of every kernel, for every architecture that is shipped: each operation as it is written.

The assembler (PTX) has each operation with its rounding. What it becomes is disassembled and counted: a
product and a sum that were fused would be missing among the sums, and too many among the fused ones.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import zipfile
from collections import Counter
from pathlib import Path

import pytest

from samebits._cuda.nvrtc import MAIN, Program
from samebits._cuda.shipped_code import CAPABILITIES, member
from samebits._cuda.tile_shapes import SHAPES
from samebits._cuda.units import all_units

ROOT = Path(__file__).resolve().parents[3]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the compilers are packages for Linux")

# Written as what becomes of it: operations of the assembler, those of the machine; `.FTZ` is a division's.
FAMILIES = {
    "sums f32": ({"add.rn.f32", "sub.rn.f32"}, r"U?FADD(?!.*FTZ)"),
    "products f32": ({"mul.rn.f32"}, r"U?FMUL(?!.*FTZ)"),
    "fused f32": ({"fma.rn.f32"}, r"U?FFMA"),
    "sums f64": ({"add.rn.f64", "sub.rn.f64"}, r"DADD"),
    "products f64": ({"mul.rn.f64"}, r"DMUL"),
    "fused f64": ({"fma.rn.f64"}, r"DFMA"),
}
# Each of these is a sequence of machine operations, fused ones among them.
DIVISIONS = re.compile(r"(div|rcp|sqrt)\.rn\.f(32|64)")
# What else the assembler may do with numbers: nothing of it rounds, but for conversions.
EXACT = re.compile(
    r"(mov|neg|abs|selp|max|min|ld|st)\.[a-z0-9.]*f(32|64)|setp\.[a-z]+\.f(32|64)|set\.[a-z0-9.]*f(32|64)"
    r"|cvt\.f64\.f32|cvt\.rn\.f(32|64)\.[a-z]\d+|cvt\.rzi\.[a-z]\d+\.f(32|64)"
)
TENSOR_CORES = re.compile(r"(H|I|D|Q|O|B)G?MMA|.*(GMMA|TCGEN|UTC).*MMA")
TILE_THAT_SPILLS, MOST_SPILLED = "gemm_shared_01", 64  # bytes
# What a thread block can have there at most; elsewhere it is more than any tile wants ("Technical
# Specifications per Compute Capability" in NVIDIA's CUDA programming guide).
SHARED_BYTES = dict.fromkeys([(8, 6), (8, 9), (12, 0)], 99 << 10)


def load(path: Path):
    """A program of the repository as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def compiling():
    """native/cuda/compile.py."""
    return load(ROOT / "native/cuda/compile.py")


def written(text: str) -> dict[str, Counter[str]]:
    """The operations on numbers of each kernel, as the assembler has them."""
    found = {}
    for kernel in re.finditer(r"\.entry (\w+)\((.*?)\n}\n", text, re.DOTALL):
        words = re.findall(r"^\s*(?:@!?%p\d+ )?([a-z][a-z0-9_.]*)", kernel[2], re.MULTILINE)
        found[kernel[1]] = Counter(word for word in words if re.search(r"\bf(16|32|64)", word))
    return found


def made(compiling, folder: Path, code: bytes) -> dict[str, list[str]]:
    """The instructions of each kernel, with the labels between them."""
    path = folder / "unit.cubin"
    path.write_bytes(code)
    words = [compiling.tool("cu13", "nvdisasm"), "--print-code", str(path)]
    text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    found = {}
    for section in re.split(r"(?m)^\s*\.section\s+\.text\.", text)[1:]:
        lines = re.findall(
            r"(?m)^\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\d+ )?\s*([A-Z][A-Z0-9_.]*)|^(\.L\w+):", section
        )
        found[re.match(r"\w+", section)[0]] = [operation or "label" for operation, _ in lines]
    return found


def count(operations, pattern: str) -> int:
    """How many match a pattern."""
    return sum(re.match(pattern, each) is not None for each in operations)


def complaints_of(asked: Counter[str], done: list[str]) -> list[str]:
    """What the machine code of a kernel does otherwise than it is written."""
    divides = any(DIVISIONS.fullmatch(each) for each in asked)
    found = []
    for family, (names, pattern) in FAMILIES.items():
        of_text, of_code = sum(asked[name] for name in names), count(done, pattern)
        is_exact = family.startswith("fused") and not divides
        # A loop that is unrolled has its operations more than once.
        if of_code < of_text or (is_exact and of_code != of_text):
            found.append(f"{family}: {of_code} instead of {of_text}")
    flushing = [each for each in done if ".FTZ" in each and "F2I" not in each]  # F2I: a division of integers
    if flushing and not divides:
        found.append(f"subnormal numbers are flushed: {sorted(set(flushing))}")
    found += [
        f"approximate: {each}" for each in done if re.match(r"MUFU\.(?!RCP|RSQ64H)", each) and not divides
    ]
    found += [f"approximate: {each}" for each in done if re.match(r"MUFU\.(?!RCP|RSQ)", each)]
    found += [f"tensor cores: {each}" for each in done if TENSOR_CORES.match(each) and each != "HFMA2.MMA"]
    return found


def inner_spills(done: list[str]) -> int:
    """Values that are spilled or filled again between many fused operations, without a jump."""
    most, spills, fused = 0, 0, 0
    for each in done:
        if each == "label" or each.startswith("BRA"):
            spills = fused = 0
        fused += each.startswith("FFMA")
        spills += each.startswith(("LDL", "STL"))
        if fused > 128:
            most = max(most, spills)
    return most


def name_of(unit) -> str:
    """The file and what tells its parts apart."""
    macros = dict(unit.macros)
    parts = [macros[name] for name in ("PART", "GEMM_NAME", "CONV_ROWS") if name in macros]
    return "-".join(map(str, (unit.file, *parts)))


@pytest.mark.parametrize("unit", list(all_units()), ids=name_of)
def test_each_operation_is_done_as_written(unit, compiling, tmp_path):
    """For every architecture: each rounds to the nearest, none is fused, flushed, approximated or spilled."""
    text = compiling.assembler_of(unit.program())
    asked = written(text.decode())
    assert asked
    assert loose_operations(text.decode()) == []
    for capability in CAPABILITIES:
        assembled = compiling.assemble(text, capability)
        done = made(compiling, tmp_path, assembled.code)
        assert done.keys() >= asked.keys(), capability
        found = {name: complaints_of(asked[name], done[name]) for name in asked}
        assert {name: each for name, each in found.items() if each} == {}, capability
        if can_run(unit, capability):
            assert spills(assembled.report, done) == [], capability


def can_run(unit, capability: tuple[int, int]) -> bool:
    """Whether a tile fits into shared memory; where it does not, another one is chosen."""
    name = dict(unit.macros).get("GEMM_NAME", "")
    wanted = [each.shared_bytes(b_along_k=True) for each in SHAPES if name.startswith(f"gemm_{each.name}_")]
    return all(each <= SHARED_BYTES.get(capability, each) for each in wanted)


def test_tiles_that_cannot_run_everywhere():
    """The largest one; there is another for each device."""
    found = {name_of(unit) for unit in all_units() for each in SHARED_BYTES if not can_run(unit, each)}

    assert {name.rpartition("_")[0] for name in found} == {"gemm.cu-gemm_shared"}


def loose_operations(text: str) -> list[str]:
    """What the assembler leaves to others: operations that do not say that they round to the nearest."""
    known = set().union(*(names for names, _ in FAMILIES.values()))
    used = {name for operations in written(text).values() for name in operations} - known
    other = [name for name in used if not DIVISIONS.fullmatch(name) and not EXACT.fullmatch(name)]
    return other + re.findall(r"\.(?:ftz|approx|sat|f16|bf16|tf32)\b|\bcall\b", text)


def spills(report: str, done: dict[str, list[str]]) -> list[str]:
    """Kernels whose values do not fit into registers; a tile may spill some where its edges are copied."""
    found = []
    for name, spilled in re.findall(r"properties for (\w+)\n.* (\d+) bytes spill stores", report):
        if int(spilled) > (MOST_SPILLED if name == TILE_THAT_SPILLS else 0) or inner_spills(done[name]):
            found.append(f"{name}: {spilled} bytes")
    assert report.count("spill stores") == len(re.findall("Compiling entry function", report)) > 0
    return found


def kernel(compiling, body: str, bounds: str = "") -> tuple[Counter[str], bytes]:
    """The operations of a kernel with a body, and its assembler."""
    source = f'extern "C" __global__ void {bounds} one(const float *x, float *out) {{ {body} }}'
    text = compiling.assembler_of(Program(MAIN, {MAIN: source}))
    return written(text.decode())["one"], text


def test_what_is_fused_is_seen(compiling, tmp_path):
    """The comparison can fail: without rounding modes the assembler fuses."""
    asked, text = kernel(compiling, "out[0] = x[0] * x[1] + x[2];")
    loose = text.replace(b"mul.rn.f32", b"mul.f32").replace(b"add.rn.f32", b"add.f32")
    fusing = compiling.tool("cuda_nvcc", "ptxas")
    (tmp_path / "loose.ptx").write_bytes(loose)
    subprocess.run(
        [fusing, "-arch=sm_90", str(tmp_path / "loose.ptx"), "-o", str(tmp_path / "loose.cubin")], check=True
    )
    done = made(compiling, tmp_path, (tmp_path / "loose.cubin").read_bytes())["one"]
    as_written = made(compiling, tmp_path, compiling.assemble(text, (9, 0)).code)["one"]

    assert complaints_of(asked, as_written) == []
    assert complaints_of(asked, done) == [
        "sums f32: 0 instead of 1", "products f32: 0 instead of 1", "fused f32: 1 instead of 0",
    ]  # fmt: skip


def test_what_is_spilled_is_seen(compiling, tmp_path):
    """A kernel that wants more registers than a block of its size leaves it."""
    each = "for (int i = 0; i < 96; i++)"
    body = f"""float v[96]; {each} v[i] = x[i]; __syncthreads();
        {each} for (int j = 0; j < 96; j++) v[i] = fmaf(v[j], v[i], v[i]);
        {each} out[i] = v[i];"""
    _, text = kernel(compiling, body, "__launch_bounds__(1024)")
    assembled = compiling.assemble(text, (9, 0))
    done = made(compiling, tmp_path, assembled.code)

    assert inner_spills(done["one"]) > 0
    assert len(spills(assembled.report, done)) == 1


def test_what_is_approximate_is_seen(compiling, tmp_path):
    """A fast function."""
    asked, text = kernel(compiling, "out[0] = __expf(x[0]);")
    done = made(compiling, tmp_path, compiling.assemble(text, (9, 0)).code)["one"]

    assert "approximate: MUFU.EX2" in complaints_of(asked, done)


def test_the_archive_is_the_same_again(compiling, tmp_path, monkeypatch):
    """Byte for byte, with a file for each architecture and the assembler."""
    units = list(all_units())[:1]
    monkeypatch.setattr(compiling, "all_units", lambda: units)
    for name in ("one.zip", "other.zip"):
        compiling.main([str(tmp_path / name)])
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "other.zip").read_bytes()

    key = units[0].program().key
    with zipfile.ZipFile(tmp_path / "one.zip") as held:
        assert set(held.namelist()) == {member(key, each) for each in (*CAPABILITIES, None)}


def test_a_compiler_that_is_missing(compiling, monkeypatch):
    """Says how it is installed."""
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(SystemExit, match=r"ptxas is not installed; run: pip install --group cuda-compiler"):
        compiling.tool("cuda_nvcc", "ptxas")
