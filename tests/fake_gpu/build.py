"""Builds the fake device for the CUDA build of torch that is installed.

python tests/fake_gpu/build.py FOLDER

Makes `libcuda.so.1` (runtime and driver) and `libkernels.so` (the kernels of samebits, built for the host).
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import importlib.util
import json
import os
import subprocess
import tempfile
from pathlib import Path

from samebits._cuda.units import all_units

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
# What builds a unit for the host: by the beginning of its file's name.
HOSTS = {"digest": "host_digest.cpp", "gemm": "host_gemm.cpp", "portable": "host_portable.cpp"}
NOT_SUPPORTED = 801  # cudaErrorNotSupported, CUDA_ERROR_NOT_SUPPORTED
# The parts of the runtime and the driver.
RUNTIME = (
    "access",
    "driver",
    "faults",
    "launches",
    "machine_code",
    "memory",
    "queues",
    "runtime",
    "streams",
)
# Each access of a kernel becomes a call of native/access.cpp.
CHECKED = (
    "-DFAKE_GPU_CHECKED",
    "-fsanitize=kernel-address",
    "--param=asan-instrumentation-with-call-threshold=0",
    "--param=asan-stack=0",
    "--param=asan-globals=0",
)
# Each access of a kernel becomes a call of native/races.cpp. The sanitizer's own library is not linked.
WATCHED = ("-DHOST_GRID_WATCHED", "-fsanitize=thread")
HERE_ONLY = ("-O3", "-march=native")  # a library that is used on this machine only
# Several libraries of a process have variables of the same name (-fno-gnu-unique).
FLAGS = ["-O1", "-g", "-fPIC", "-pthread", "-ffp-contract=off", "-fno-strict-aliasing", "-fno-gnu-unique"]


def torch_folder() -> Path:
    """Where torch is installed; it is not imported."""
    found = importlib.util.find_spec("torch")
    if found is None or found.origin is None:
        raise SystemExit("torch is not installed")
    return Path(found.origin).parent


def needed_symbols(torch: Path) -> set[str]:
    """The functions of CUDA that torch's libraries leave undefined."""
    files = [torch / "lib" / f"lib{name}.so" for name in LIBRARIES]
    names = {name for file in files if file.exists() for name in symbols(file, "-D", "--undefined-only")}
    return {name for name in names if is_of_cuda(name)}


def is_of_cuda(name: str) -> bool:
    """Of its runtime or driver, and of no library such as cuFile."""
    if name.startswith("cuda"):
        return name[4:5].isupper()
    return name.startswith("cu") and name[2:3].isupper() and not name.startswith("cuFile")


def symbols(file: Path, *which: str) -> set[str]:
    """The symbols of a library or an object file."""
    printed = subprocess.run(["nm", *which, file], capture_output=True, text=True, check=True)
    return {line.split()[-1].partition("@")[0] for line in printed.stdout.splitlines()}


def write_rest(path: Path, names: set[str]) -> None:
    """What nobody wrote by hand is not supported, and says so."""
    lines = [f"int {name}(void) {{ return {NOT_SUPPORTED}; }}" for name in sorted(names)]
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")


def write_errors(path: Path, runtime: Path) -> None:
    """NVIDIA's words for errors. Its own functions would look for a driver, and end where this one is."""
    library = ctypes.CDLL(str(runtime))
    texts = []
    for function in ("cudaGetErrorString", "cudaGetErrorName"):
        words = getattr(library, function)
        words.restype = ctypes.c_char_p
        cases = [f"case {code}: return {json.dumps(words(code).decode())};" for code in range(1000)]
        texts += [f"const char *{function}(int error) {{ switch (error) {{", *cases, '} return "unknown"; }']
    path.write_text("\n".join([*texts, ""]), encoding="utf-8")


def compiled(source: Path, target: Path, *options: str) -> Path:
    """The object file of a source; a product and a sum are fused only where that is written."""
    language = ["gcc"] if source.suffix == ".c" else ["g++", "-std=c++17"]
    subprocess.run([*language, *FLAGS, *options, "-c", str(source), "-o", str(target)], check=True)
    return target


def link(target: Path, objects: list[Path], *options: str) -> None:
    """A shared library."""
    words = ["g++", "-shared", "-pthread", *options, *map(str, objects), "-o", str(target), "-ldl"]
    subprocess.run(words, check=True)


def build(folder: Path) -> None:
    """Both libraries, where they are older than what they are made of."""
    folder.mkdir(parents=True, exist_ok=True)
    torch = torch_folder()
    made_of = [Path(__file__), torch / "version.py", *SOURCES.glob("*"), *NATIVE.rglob("*.[ch]*")]
    stamp = folder / "built"
    if not stamp.exists() or stamp.stat().st_mtime < max(each.stat().st_mtime for each in made_of):
        build_runtime(folder, torch)
        build_kernels(folder, *CHECKED)
        stamp.touch()


def build_runtime(folder: Path, torch: Path) -> None:
    """CUDA's runtime and driver: what is written, and the rest that torch needs."""
    toolkit = torch.parent / "nvidia" / "cu13"
    headers = f"-I{toolkit / 'include'}"
    written = [compiled(SOURCES / f"{name}.cpp", folder / f"{name}.o", headers) for name in RUNTIME]
    errors, rest = folder / "errors.c", folder / "rest.c"
    write_errors(errors, toolkit / "lib" / "libcudart.so.13")
    written.append(compiled(errors, folder / "errors.o"))
    found = {name for each in written for name in symbols(each, "--defined-only")}
    write_rest(rest, needed_symbols(torch) - found)
    link(folder / "libcuda.so.1", [*written, compiled(rest, folder / "rest.o")], "-Wl,-soname,libcuda.so.1")


def build_kernels(folder: Path, *options: str, is_watched: bool = False) -> Path:
    """The kernels of samebits, unit by unit, compiled and linked with further options.

    Args:
        folder: where to.
        options: of g++.
        is_watched: whether `races_found` of the library tells of races (native/races.h).
    """
    watched, helpers = (WATCHED, ("host_call", "races")) if is_watched else ((), ("host_call",))
    paths = [f"-I{path}" for path in (NATIVE, NATIVE / "cuda", NATIVE / "portable", SOURCES)]
    objects = []
    for number, unit in enumerate(all_units()):
        macros = [f'-DSOURCE="{unit.file}"', *(f"-D{name}={value}" for name, value in unit.macros)]
        host = next(file for start, file in HOSTS.items() if unit.file.startswith(start))
        target = folder / f"unit_{number}.o"
        objects.append(compiled(SOURCES / host, target, *paths, *macros, *options, *watched))
    objects += [compiled(SOURCES / f"{name}.cpp", folder / f"{name}.o", *paths, *options) for name in helpers]
    library = folder / "libkernels.so"
    link(library, objects, *options)
    return library


def build_text(text: str, kernels: list[str], includes: list[str]) -> Path:
    """The library of the kernels of a text, built for this processor unless it is there already.

    Their accesses are checked, unless FAKE_GPU_UNCHECKED is set: kernels that compute much are four times
    faster then.

    Args:
        text: CUDA C++.
        kernels: their names.
        includes: folders that it includes from.

    Raises:
        RuntimeError: it is no text for the host, with what g++ says.
    """
    launches = "".join(f"HOST_KERNEL({name})\n" for name in kernels)
    checked = () if "FAKE_GPU_UNCHECKED" in os.environ else CHECKED
    whole = f'// {checked}\n#include "host_launch.h"\n{text}\n{launches}'
    folder = Path(os.environ["FAKE_GPU_KERNELS"]).parent / "compiled"
    folder.mkdir(exist_ok=True)
    library = folder / f"{digest_of(whole)}.so"
    if library.exists():
        return library
    with tempfile.TemporaryDirectory(dir=folder) as made:
        source, target = Path(made, "source.cpp"), Path(made, library.name)
        source.write_text(whole, encoding="utf-8")
        paths = [f"-I{SOURCES}", f"-I{NATIVE / 'cuda'}", *(f"-idirafter{each}" for each in includes)]
        options = [*FLAGS, *HERE_ONLY, *checked, *paths, "-shared"]
        words = ["g++", "-std=c++17", *options, str(source), "-o", str(target)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"the fake device cannot run this kernel: {done.stderr}")
        target.replace(library)
    return library


def digest_of(text: str) -> str:
    """A name of a text and of all that it may include here."""
    known = hashlib.sha256(text.encode())
    for file in sorted([*SOURCES.glob("*.h"), *NATIVE.rglob("*.[ch]*"), Path(__file__)]):
        known.update(file.read_bytes())
    return known.hexdigest()[:32]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    build(parser.parse_args().folder)
