"""Builds the fake device for the CUDA build of torch that is installed.

python tests/fake_gpu/build.py FOLDER

Makes `libcuda.so.1` (runtime and driver) and `libkernels.so` (the kernels of samebits, built for the host).
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCES = HERE / "native"
NATIVE = HERE.parents[1] / "native"
LIBRARIES = (
    "c10_cuda",
    "torch_cuda",
    "torch_cuda_linalg",
    "torch_python",
    "torch_cpu",
    "caffe2_nvrtc",
    "torch_nvshmem",
)
# These need no device: NVIDIA's own library answers.
KEPT = frozenset(("cudaGetErrorString", "cudaGetErrorName", "cudaRuntimeGetVersion"))
MATH_PARTS = 7  # of native/cuda/math.cu
NOT_SUPPORTED = 801  # cudaErrorNotSupported, CUDA_ERROR_NOT_SUPPORTED
FLAGS = ["-std=c++17", "-O1", "-g", "-fPIC", "-shared", "-pthread"]


def torch_folder() -> Path:
    """Where torch is installed; it is not imported."""
    found = importlib.util.find_spec("torch")
    if found is None or found.origin is None:
        raise SystemExit("torch is not installed")
    return Path(found.origin).parent


def needed_symbols(torch: Path) -> set[str]:
    """The functions of CUDA that torch's libraries leave undefined."""
    files = [torch / "lib" / f"lib{name}.so" for name in LIBRARIES]
    names = {name for file in files if file.exists() for name in symbols(file, "--undefined-only")}
    return {name for name in names if is_of_cuda(name)} - KEPT


def is_of_cuda(name: str) -> bool:
    """Of its runtime or driver, and of no library such as cuFile."""
    if name.startswith("cuda"):
        return name[4:5].isupper()
    return name.startswith("cu") and name[2:3].isupper() and not name.startswith("cuFile")


def symbols(file: Path, which: str) -> set[str]:
    """The dynamic symbols of a library."""
    printed = subprocess.run(["nm", "-D", which, file], capture_output=True, text=True, check=True)
    return {line.split()[-1].partition("@")[0] for line in printed.stdout.splitlines()}


def write_rest(path: Path, names: set[str]) -> None:
    """What nobody wrote by hand is not supported, and says so."""
    lines = [f"int {name}(void) {{ return {NOT_SUPPORTED}; }}" for name in sorted(names)]
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")


def compile_library(target: Path, files: list[Path], *options: str) -> None:
    """By g++; C files as C."""
    subprocess.run(["g++", *FLAGS, *options, *map(str, files), "-o", str(target), "-ldl"], check=True)


def build(folder: Path) -> None:
    """Both libraries."""
    folder.mkdir(parents=True, exist_ok=True)
    torch = torch_folder()
    headers = f"-I{torch.parent / 'nvidia' / 'cu13' / 'include'}"
    own = [SOURCES / name for name in ("streams.cpp", "memory.cpp", "runtime.cpp", "driver.cpp")]
    written = folder / "written.so"
    compile_library(written, own, headers)
    rest = folder / "rest.c"
    write_rest(rest, needed_symbols(torch) - symbols(written, "--defined-only"))
    others = folder / "rest.o"
    subprocess.run(["gcc", "-fPIC", "-c", rest, "-o", others], check=True)
    compile_library(folder / "libcuda.so.1", [*own, others], headers, "-Wl,-soname,libcuda.so.1")
    kernels = [f"-I{NATIVE}", f"-I{NATIVE / 'cuda'}", f"-I{NATIVE / 'portable'}", f"-I{SOURCES}"]
    build_kernels(folder, kernels)


def build_kernels(folder: Path, paths: list[str]) -> None:
    """The kernels, one share after another; a product and a sum are fused only where that is written."""
    options = ["-c", "-std=c++17", "-O1", "-fPIC", "-ffp-contract=off", "-fno-strict-aliasing", *paths]
    shares = {
        f"math_{part}": (SOURCES / "host_math.cpp", f"-DMATH_PART={part}") for part in range(MATH_PARTS)
    }
    shares["digest"] = (SOURCES / "host_digest.cpp", "-DDIGEST")
    for name, (source, option) in shares.items():
        subprocess.run(["g++", *options, option, str(source), "-o", str(folder / f"{name}.o")], check=True)
    compile_library(folder / "libkernels.so", [folder / f"{name}.o" for name in shares])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    build(parser.parse_args().folder)
