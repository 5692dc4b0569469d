"""The C code by itself: other compilers, sanitizers, another processor. What is not there is skipped."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FLAGS = ["-O2", "-g", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-pthread"]
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
# What the last line of isa_check.c says on every machine.
EVERYWHERE = "1047 6182112a65f7e69bec5524e9cca8bb46"


def check(folder, compiler, *flags, under=()):
    """Builds isa_check.c with the library's sources, runs it, and returns its line."""
    for tool in (compiler, *under[:1]):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not on this machine")
    program = folder / "isa_check"
    sources = [*sorted((ROOT / "native").glob("digest*.c")), Path(__file__).with_name("isa_check.c")]
    subprocess.run([compiler, *FLAGS, *flags, "-I", ROOT / "native", *sources, "-o", program], check=True)
    done = subprocess.run([*under, program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where programs are built."""
    return tmp_path_factory.mktemp("isa")


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("optimize", ["-O3", "-O0"])
def test_instruction_sets_agree(folder, compiler, optimize):
    assert check(folder, compiler, optimize).endswith(EVERYWHERE)


def test_sanitizers(folder):
    assert check(folder, "gcc", *SANITIZERS).endswith(EVERYWHERE)


def test_threads_do_not_race(folder):
    assert check(folder, "gcc", "-fsanitize=thread").endswith(EVERYWHERE)


def test_arm(folder):
    line = check(folder, "aarch64-linux-gnu-gcc", "-static", under=("qemu-aarch64",))
    assert "neon" in line
    assert line.endswith(EVERYWHERE)
