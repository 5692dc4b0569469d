"""Compiles the kernels for GPUs before a wheel is built: machine code for each architecture, and PTX.

python native/cuda/compile.py [ARCHIVE]

Makes `kernels.zip` in the package, which wheels carry. It needs no GPU: the compilers are those of the group
`cuda-compiler`. The assembler's text (PTX) is of CUDA 12.1, so that drivers from then on take it. It is made
once, and all machine code from it: only NVIDIA's last step differs from one architecture to another.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from samebits._cuda.nvrtc import assembler, compile_program
from samebits._cuda.shipped_code import ARCHIVE, ASSEMBLER_FROM, CAPABILITIES, member
from samebits._cuda.units import all_units

if TYPE_CHECKING:
    from collections.abc import Sequence

    from samebits._cuda.nvrtc import Program

CUDA = "12.1"
# A product and a sum stay two operations; what the registers hold and what is spilled is reported.
OPTIONS = ("--fmad=false", "--verbose")


@dataclass(frozen=True)
class Assembled:
    """Machine code for one architecture.

    Args:
        code: a cubin.
        report: what the assembler printed of registers, stack and spills.
    """

    code: bytes
    report: str


def tool(package: str, name: str) -> str:
    """Return the path of a program of NVIDIA's packages.

    Args:
        package: the folder in `nvidia`.
        name: of the program.

    Raises:
        SystemExit: it is not installed.
    """
    for entry in sys.path:
        path = Path(entry, "nvidia", package, "bin", name)
        if path.exists():
            return str(path)
    raise SystemExit(f"{name} is not installed; run: pip install --group cuda-compiler -c constraints.txt")


def assembler_of(program: Program) -> bytes:
    """Return the assembler of a program.

    Raises:
        CompileError: NVRTC is not there, or it refuses the source.
    """
    return compile_program(program, assembler(ASSEMBLER_FROM), CUDA).rstrip(b"\0")


def assemble(text: bytes, capability: tuple[int, int]) -> Assembled:
    """Return the machine code of assembler.

    Args:
        text: the assembler.
        capability: of the devices.

    Raises:
        SystemExit: the program that does it is not installed, or it refuses the text.
    """
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "unit.ptx"), Path(folder, "unit.cubin")
        source.write_bytes(text)
        words = [tool("cuda_nvcc", "ptxas"), *OPTIONS, f"-arch=sm_{capability[0]}{capability[1]}"]
        done = subprocess.run(
            [*words, str(source), "-o", str(target)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(f"ptxas: {done.stderr.strip()}")
        return Assembled(target.read_bytes(), done.stderr)


def members(program: Program) -> dict[str, bytes]:
    """Return what an archive holds of a program, by name."""
    text = assembler_of(program)
    found = {member(program.key, each): assemble(text, each).code for each in CAPABILITIES}
    return {member(program.key, None): text, **found}


def write(archive: Path, files: dict[str, bytes]) -> None:
    """Write an archive, byte for byte the same for the same files."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as held:
        for name, contents in sorted(files.items()):
            entry = zipfile.ZipInfo(name)  # of 1980
            entry.compress_type = zipfile.ZIP_DEFLATED
            held.writestr(entry, contents)


def main(words: Sequence[str] | None = None) -> None:
    """Compile all units side by side and write the archive."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("archive", type=Path, nargs="?", default=Path(ARCHIVE))
    archive = parser.parse_args(words).archive
    programs = [unit.program() for unit in all_units()]
    files: dict[str, bytes] = {}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for number, found in enumerate(pool.map(members, programs), start=1):
            files.update(found)
            print(f"\r{number} of {len(programs)} units compiled", end="", file=sys.stderr, flush=True)
    write(archive, files)
    print(f"\n{archive}: {len(files)} files, {archive.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
