"""`import samebits` imports neither torch nor numpy."""

import subprocess
import sys

HEAVY = ("torch", "numpy")
# What only the end of a command needs; `run` never does.
LATE = ("samebits.comparison", "samebits.interventions", "samebits.rng", "samebits.records")


def heavy_modules_after(statement: str) -> set[str]:
    """Which heavy modules a fresh interpreter holds after that statement."""
    code = f"import sys; {statement}; print(*[name for name in {HEAVY + LATE!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_import_is_light():
    """The package alone pulls in nothing heavy."""
    assert heavy_modules_after("import samebits") == set()


def test_command_line_is_light():
    """So does the command line up to where it starts a script: `samebits --help` must not wait for torch."""
    assert heavy_modules_after("import samebits.cli.main") == set()


def test_version_is_light():
    """Reading a plain attribute does not trigger a late import."""
    assert heavy_modules_after("import samebits; samebits.__version__; dir(samebits)") == set()


def test_the_check_can_fail():
    """A heavy import is noticed."""
    statement = "import samebits.records, numpy"
    assert heavy_modules_after(statement) == {"numpy", "samebits.records"}
