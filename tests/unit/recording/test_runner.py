"""What `run_target` says of a run, and its tracebacks. From outside: tests/integration/test_fidelity.py."""

from __future__ import annotations

import subprocess
import sys
import traceback
from pathlib import Path

import pytest

import samebits
from samebits.errors import SamebitsError
from samebits.recording.launch import BOOTSTRAP
from samebits.recording.runner import clean_tracebacks
from samebits.records.reader import RecordReader

SOURCE = str(Path(samebits.__file__).absolute().parent.parent)
PROGRAM = BOOTSTRAP.replace(
    "from samebits.recording.child import main",
    """\
from samebits.recording.runner import Target, run_target
def main(words):
    is_module = words[0] == "-m"
    result = run_target(Target(None if is_module else words[0], words[1] if is_module else None, ()))
    print("result", result.exit_status, result.stopped, result.failure)
    return result.exit_status
""",
)


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a target in a child that prints the result."""
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, SOURCE, *command],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def result(folder: Path, source: str) -> str:
    """The result of a script."""
    (folder / "a.py").write_text(source)
    done = run(folder, "a.py")
    last = done.stdout.splitlines()[-1]
    assert last.startswith("result "), done.stderr
    return last.removeprefix("result ").rstrip()


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("", "0 False"),
        ("import sys\nsys.exit(3)\n", "3 False"),
        ("import sys\nsys.exit(2**70)\n", "255 False"),
        ("import sys\nsys.exit('no data\\nat all')\n", "1 False SystemExit: no data"),
        ("1 / 0\n", "1 False ZeroDivisionError: division by zero"),
        ("raise ValueError('two\\nlines')\n", "1 False ValueError: two"),
        ("class Odd(Exception): pass\nraise Odd\n", "1 False Odd"),
        (
            "import json\njson.loads('')\n",
            "1 False json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
        ),
        ("x = = 1\n", "1 False SyntaxError: invalid syntax"),
        ("raise KeyboardInterrupt\n", "130 False KeyboardInterrupt"),
        (
            "import sys\nsys.excepthook = lambda *_: sys.exit(4)\n1 / 0\n",
            "4 False ZeroDivisionError: division by zero",
        ),
        (
            "class E(Exception):\n    def __str__(self): 1 / 0\nraise E\n",
            "1 False E: <exception str() failed>",
        ),
    ],
)
def test_result(source: str, expected: str, tmp_path: Path) -> None:
    """Status and last line of the traceback."""
    assert result(tmp_path, source) == expected


@pytest.mark.parametrize(
    ("command", "slug", "found"),
    [
        (("nothing.py",), "script-missing", "nothing.py"),
        (("folder",), "script-no-main", "folder"),
        (("archive.zip",), "script-no-main", "archive.zip"),
        (("-m", "nothing"), "module-missing", "No module named nothing"),
        (("-m", "folder"), "module-missing", "folder"),
        (("-m", "json.nothing"), "module-missing", "json.nothing"),
        (("-m", "nothing.at.all"), "module-missing", "nothing.at.all"),
    ],
)
def test_nothing_to_run(command: tuple[str, ...], slug: str, found: str, tmp_path: Path) -> None:
    """One line that says what was looked for, the slug, and status 2."""
    import zipfile

    (tmp_path / "folder").mkdir()
    with zipfile.ZipFile(tmp_path / "archive.zip", "w") as archive:
        archive.writestr("a.py", "")
    done = run(tmp_path, *command)
    message, link = done.stderr.splitlines()
    assert message.startswith("samebits: ")
    assert found in message
    assert link.endswith(f" {slug}")
    assert (done.stdout, done.returncode) == ("", 2)


def test_exit_of_a_script_named_like_runpy_is_its_own(tmp_path: Path) -> None:
    """A module that itself runs `runpy` in vain and exits is not mistaken for a missing one."""
    source = "try:\n    runpy._run_module_as_main('nothing')\nexcept SystemExit:\n    sys.exit('mine')\n"
    (tmp_path / "a.py").write_text("import runpy, sys\n" + source)
    done = run(tmp_path, "-m", "a")
    assert (done.stderr, done.returncode) == ("mine\n", 1)


def test_own_modules_go_on_working_behind_a_shadow(tmp_path: Path) -> None:
    """With a `samebits.py` beside the script, late imports within samebits still find samebits."""
    (tmp_path / "samebits.py").write_text("VALUE = 7\n")
    (tmp_path / "types.py").write_text("VALUE = 8\n")
    source = (
        "import samebits, types\nprint(samebits.VALUE, types.VALUE)\n"
        "from samebits.recording import terminal_row\nprint(terminal_row.__name__)\n"
    )
    (tmp_path / "a.py").write_text(source)
    done = run(tmp_path, "a.py")
    assert done.stdout.splitlines() == ["7 8", "samebits.recording.terminal_row", "result 0 False "]


def test_script_beside_samebits_itself(tmp_path: Path) -> None:
    """A link to this very package is no shadow: there is one samebits."""
    (tmp_path / "samebits").symlink_to(Path(samebits.__file__).parent, target_is_directory=True)
    (tmp_path / "a.py").write_text(
        "import sys\nbefore = sys.modules['samebits']\nimport samebits\nprint(before is samebits)\n"
    )
    assert run(tmp_path, "a.py").stdout.splitlines()[0] == "True"


def test_module_written_by_the_script(tmp_path: Path) -> None:
    """A module that the script writes beside itself is found, even if the folder looks as old as before."""
    (tmp_path / "a.py").write_text(
        "import os\nbefore = os.stat('.')\nopen('made.py', 'w').write('VALUE = 5')\n"
        "os.utime('.', ns=(before.st_atime_ns, before.st_mtime_ns))\nimport made\nprint(made.VALUE)\n"
    )
    assert run(tmp_path, "a.py").stdout.splitlines()[0] == "5"


def test_interrupted_whatever_runs_at_exit(tmp_path: Path) -> None:
    """The process ends by SIGINT also if an exit function evaluates text (bare Python ends with 1 then)."""
    source = "import atexit\natexit.register(lambda: print(eval('2 + 2')))\nraise KeyboardInterrupt\n"
    (tmp_path / "a.py").write_text(source)
    done = run(tmp_path, "a.py")
    assert (done.stdout.splitlines()[-1], done.returncode) == ("4", -2)


def functions(error):
    return [frame.name for frame in traceback.extract_tb(error.__traceback__)]


def test_an_error_that_samebits_raises_keeps_its_frames(tmp_path):
    """The user is to see which call of samebits it was."""
    with pytest.raises(SamebitsError) as caught:
        RecordReader(tmp_path / "missing.sbr")
    before = functions(caught.value)
    clean_tracebacks(caught.value)

    assert functions(caught.value) == before
    assert "__init__" in before


def test_a_mistake_in_samebits_keeps_its_frames():
    """Frames that are no wrapper's stay where they are innermost: they say what broke."""
    with pytest.raises(AttributeError) as caught:
        clean_tracebacks(3)  # type: ignore[arg-type]
    clean_tracebacks(caught.value)

    assert functions(caught.value)[-1] == "clean_tracebacks"


def test_an_error_that_is_its_own_context_ends():
    """A ring of causes is walked once."""
    first, second = ValueError(1), ValueError(2)
    first.__cause__, second.__cause__ = second, first
    clean_tracebacks(first)

    assert functions(first) == []
