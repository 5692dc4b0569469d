"""The numeric libraries that a process has loaded: of which build, and of which package."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from library_support import install_library, make_library

from samebits.environment._elf import read_build_id
from samebits.environment.numeric_libraries import LibraryKind, kind_of, nccl_version

linux = pytest.mark.skipif(sys.platform != "linux", reason="loaded libraries are known on Linux only")
CODE = """\
import ctypes, json, os, sys
for path in sys.argv[1:]:
    ctypes.CDLL(path)
if "REMOVED" in os.environ:
    os.rename(os.environ["REMOVED"], sys.argv[1])
from dataclasses import asdict
from samebits.environment.numeric_libraries import collect_libraries
print(json.dumps([asdict(each) for each in collect_libraries(with_packages=True)]))
"""


def loaded(*paths: Path, site: Path, **variables: str) -> list[dict[str, Any]]:
    """Load libraries in a fresh process and return what is known of them."""
    search = os.pathsep.join([str(site), *sys.path])
    environment = {**os.environ, "PYTHONPATH": search, "SAMEBITS_CACHE": str(site / "cache"), **variables}
    command = [sys.executable, "-c", CODE, *map(str, paths)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, timeout=120)
    told: list[dict[str, Any]] = json.loads(done.stdout)
    return told


def notes(*parts: tuple[bytes, int, bytes]) -> bytes:
    """Return notes as a linker writes them."""
    padded = [(name, kind, text, b"\0" * (-len(text) % 4)) for name, kind, text in parts]
    heads = (struct.pack("<III", len(name), len(text), kind) + name for name, kind, text, _ in padded)
    return b"".join(head + text + pad for head, (_, _, text, pad) in zip(heads, padded, strict=True))


def elf(segment: bytes, *, kind: int = 4, magic: bytes = b"\x7fELF\2\1\1", at: int = 120) -> bytes:
    """Return an ELF file of one segment."""
    header = magic.ljust(16, b"\0") + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    return header + struct.pack("<IIQQQQQQ", kind, 4, at, at, at, len(segment), len(segment), 4) + segment


ID = (b"GNU\0", 3, b"\xab" * 20)


def test_the_build_id_is_found_among_other_notes() -> None:
    assert read_build_id(BytesIO(elf(notes((b"stapsdt\0", 3, b"probe"), ID)))) == "ab" * 20


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x7fELF",
        elf(notes((b"GNU\0", 5, b"x"))),
        elf(notes(ID), kind=1),
        elf(notes(ID), magic=b"\x7fELF\1\1\1"),
        elf(notes(ID), at=1 << 62),
        elf(notes(ID), at=(1 << 64) - 1),
        elf(struct.pack("<III", 1 << 31, 1 << 31, 3)),
        elf(notes((b"GNU\0", 3, b"x" * 100))),
        elf(notes(ID))[:100],
        b"MZ" + bytes(200),
    ],
)
def test_a_file_without_a_build_id_has_none(data: bytes) -> None:
    """Damaged files too; none of them ends the run."""
    assert read_build_id(BytesIO(data)) == ""


@linux
@pytest.mark.skipif(shutil.which("readelf") is None, reason="readelf is not installed")
def test_the_build_id_is_that_of_readelf() -> None:
    for path in {
        line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "/lib" in line
    }:
        if ".so" not in path or not os.path.isfile(path):
            continue
        done = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=False)
        lines = [line.split()[-1] for line in done.stdout.splitlines() if "Build ID:" in line]
        with open(path, "rb") as file:
            assert read_build_id(file) == "".join(lines[:1]), path


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        ("libcublas.so.12", LibraryKind.CUBLAS),
        ("libcublasLt.so.13.4.1.3", LibraryKind.CUBLAS),
        ("libcudnn_engines_precompiled.so.9", LibraryKind.CUDNN),
        ("libnccl.so.2", LibraryKind.NCCL),
        ("libcusparseLt.so.0", LibraryKind.CUSPARSELT),
        ("libcusparse.so.12", LibraryKind.CUSPARSE),
        ("libnvrtc-builtins.so.13.2", LibraryKind.NVRTC),
        ("libcuda.so.1", LibraryKind.CUDA_DRIVER),
        ("libcudart-d0da41ae.so.11.0", LibraryKind.CUDA_RUNTIME),
        ("libscipy_openblas64_-ff651d7f.so", LibraryKind.BLAS),
        ("libgomp-a34b3233.so.1.0.0", LibraryKind.OPENMP),
        ("libmkl_avx512.so.2", LibraryKind.MKL),
        ("libcupti.so.13", None),
        ("libtorch_cuda.so", None),
        ("libm.so.6", None),
        ("notlibnccl.so.2", None),
    ],
)
def test_a_library_is_known_by_its_name(file: str, kind: LibraryKind | None) -> None:
    assert kind_of(file) == kind


@linux
def test_a_loaded_library_has_its_build_and_its_package(tmp_path: Path) -> None:
    """Those that only lie about have not; and many packages share the folder `nvidia/cu13/lib`."""
    cublas = install_library(tmp_path, "nvidia_cublas", "13.4.1.3", "nvidia/cu13/lib/libcublas.so.13", "ab")
    install_library(tmp_path, "nvidia_cufft", "12.2.0.57", "nvidia/cu13/lib/libcufft.so.12", "cd")
    make_library(tmp_path / "own/libnccl.so.2.30.7", "ef")

    told = loaded(cublas, tmp_path / "own/libnccl.so.2.30.7", site=tmp_path)
    ours = {each["file"]: each for each in told if each["build"][:2] in ("ab", "cd", "ef")}

    assert list(ours) == ["libcublas.so.13", "libnccl.so.2.30.7"]
    assert ours["libcublas.so.13"] == {
        "file": "libcublas.so.13",
        "build": "ab" * 20,
        "size": cublas.stat().st_size,
        "package": "nvidia-cublas",
        "version": "13.4.1.3",
    }
    assert ours["libnccl.so.2.30.7"]["package"] == ""


@linux
def test_a_package_is_found_through_a_link(tmp_path: Path) -> None:
    """As uv installs with `--link-mode symlink`: the file itself is in a cache."""
    path = install_library(
        tmp_path / "site", "nvidia_nccl_cu13", "2.30.7", "nvidia/nccl/lib/libnccl.so.2", "ab"
    )
    path.rename(tmp_path / "libnccl.so.2")
    path.symlink_to(tmp_path / "libnccl.so.2")

    (told,) = (each for each in loaded(path, site=tmp_path / "site") if each["file"] == "libnccl.so.2")
    assert (told["package"], told["version"]) == ("nvidia-nccl-cu13", "2.30.7")


@linux
def test_a_library_that_was_replaced_meanwhile_is_not_mistaken_for_the_new_one(tmp_path: Path) -> None:
    path = install_library(tmp_path, "nvidia_nccl_cu13", "2.30.7", "nvidia/nccl/lib/libnccl.so.2", "ab")
    make_library(tmp_path / "new", "cd")

    told = loaded(path, site=tmp_path, REMOVED=str(tmp_path / "new"))
    assert [each["build"] for each in told if each["file"] == "libnccl.so.2"] == [""]


@linux
def test_nccl_that_is_not_loaded_has_no_version() -> None:
    """Asking loads nothing."""
    code = "from samebits.environment.numeric_libraries import nccl_version; print(repr(nccl_version()))\n"
    code += "print('nccl' in open('/proc/self/maps').read())"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True)
    assert done.stdout.split() == [b"''", b"False"]


@linux
@pytest.mark.parametrize(("code", "release"), [(23102, "2.31.2"), (21903, "2.19.3"), (2708, "2.7.8")])
def test_nccl_tells_its_version(code: int, release: str, tmp_path: Path) -> None:
    """The library that is loaded, whatever torch was built with."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    (tmp_path / "nccl.c").write_text(f"int ncclGetVersion(int *version) {{ *version = {code}; return 0; }}")
    library = tmp_path / "libnccl.so.2"
    options = ["-shared", "-fPIC", "-Wl,-soname,libnccl.so.2", "-o", str(library)]
    subprocess.run([compiler, *options, str(tmp_path / "nccl.c")], check=True)
    program = "import ctypes, sys; ctypes.CDLL(sys.argv[1])\n"
    program += "from samebits.environment.numeric_libraries import nccl_version; print(nccl_version())"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", program, str(library)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == release


def test_the_version_of_nccl_is_text_here_too() -> None:
    assert isinstance(nccl_version(), str)
