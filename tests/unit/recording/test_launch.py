"""Starting the child, its options, and the signals that are meant for it."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
from process_support import heed_signals, is_gone, is_in_state

import samebits
from samebits._runtime.processes import children
from samebits.errors import SamebitsError
from samebits.recording import launch as launch_module
from samebits.recording import supervision
from samebits.recording.launch import (
    Launch,
    Outcome,
    child_command,
    interpreter_options,
    launch,
    replace_process,
)
from samebits.recording.runner import Target

SOURCE = str(Path(samebits.__file__).absolute().parent.parent)

# Launches a script without recording it, and says how it ended.
DRIVER = f"""\
import sys
sys.path.append({SOURCE!r})
from samebits.recording import launch as module
from samebits.recording.runner import Target
module.BOOTSTRAP = module.BOOTSTRAP.replace(
    "from samebits.recording.child import main",
    '''
from samebits.recording.runner import Target, run_target
def main(words):
    import os
    os.environ["SETTINGS"] = os.environ.pop("SAMEBITS_SETTINGS")
    return run_target(Target(words[0], None, tuple(words[1:]))).exit_status
''')
target = Target(sys.argv[1], None, tuple(sys.argv[3:]))
print(module.launch(module.Launch(target, "settings", {{"EXTRA": "1"}}, sys.argv[2])), flush=True)
"""

IGNORING = "signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"

# Counts the interrupts that reach it within half a second after the first.
COUNTER = """\
import signal, sys, time
count = 0
def handler(number, frame):
    global count
    count += 1
for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD, signal.SIGTSTP}:
    signal.signal(number, handler)
print("ready", flush=True)
patience = time.monotonic() + 20
while not count and time.monotonic() < patience:
    time.sleep(0.01)
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    time.sleep(0.01)
print("count", count, flush=True)
"""


@pytest.fixture
def driver(tmp_path: Path) -> Path:
    """A program that launches a script."""
    path = tmp_path / "driver.py"
    path.write_text(DRIVER)
    return path


def script(driver: Path, source: str) -> str:
    """Write a script beside the driver."""
    path = driver.parent / "script.py"
    path.write_text(source)
    return str(path)


def start(driver: Path, path: str, *words: str, **fields: object) -> subprocess.Popen[bytes]:
    """Run the driver, in a session of its own: no terminal, and no signals of ours, ignored ones neither."""
    fields.setdefault("preexec_fn", heed_signals)
    return subprocess.Popen(  # type: ignore[call-overload,no-any-return]
        [sys.executable, str(driver), path, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        **fields,
    )


def ended(process: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    """The rest of its output."""
    return process.communicate(timeout=30)


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("python -m samebits run a.py", ""),
        ("python /usr/bin/samebits run -m x", ""),
        ("python -u -B -X dev -m samebits run", "-u -B -X dev"),
        (
            "python -OO -Xutf8 -W error -Wignore::UserWarning -I a.py -B",
            "-OO -Xutf8 -W error -Wignore::UserWarning -I",
        ),
        ("python -sPm samebits", "-sP"),
        ("python -ic pass", ""),
        ("python -iB a.py", "-B"),
        ("python -BX dev a.py", "-BX dev"),
        ("python -bbW error a.py", "-bbW error"),
        ("python --check-hash-based-pycs never -S a.py", "--check-hash-based-pycs never -S"),
        ("python - -B", ""),
        ("python -- -B", ""),
        ("python", ""),
    ],
)
def test_interpreter_options(command: str, options: str) -> None:
    """What was typed before the program is typed again; what follows is not for the interpreter."""
    assert interpreter_options(command.split()) == options.split()


def test_options_are_understood_by_python() -> None:
    """The options that are kept from a real command line set the same flags."""
    options = ["-bbW", "error", "-OX", "dev", "-Es"]
    command = [sys.executable, *interpreter_options([sys.executable, *options, "-c", "0"])]
    code = ["-c", "import sys; print(sys.flags, sys.warnoptions, sys._xoptions)"]
    expected = subprocess.check_output([sys.executable, *options, *code])
    assert subprocess.check_output([*command, *code]) == expected


def test_child_command() -> None:
    """The target comes last, as it was given."""
    assert child_command(Target("a.py", None, ("-m", "x")))[-3:] == ["a.py", "-m", "x"]
    assert child_command(Target(None, "a.b", ("x",)))[-3:] == ["-m", "a.b", "x"]


def test_no_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    """An embedded Python without an executable is refused."""
    monkeypatch.setattr(sys, "executable", "")
    with pytest.raises(SamebitsError, match=r"sys\.executable is empty") as caught:
        child_command(Target("a.py", None, ()))
    assert caught.value.slug == "no-interpreter"


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("nothing.py", "script-missing"),
        ("file.txt/x.py", "script-missing"),
        ("loop", "script-unreadable"),
        ("x" * 300, "script-unreadable"),
        ("empty", "script-no-main"),
    ],
)
def test_nothing_to_run(name: str, slug: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused before a child is started, in one line."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file.txt").write_text("")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "empty").mkdir()
    with pytest.raises(SamebitsError, match="expected") as caught:
        launch(Launch(Target(name, None, ()), "", {}))
    assert caught.value.slug == slug
    assert "\n" not in str(caught.value)


def test_status_and_environment(driver: Path) -> None:
    """The settings and the extra variables reach the child; its status comes back."""
    path = script(driver, "import os, sys\nprint(os.environ['SETTINGS'], os.environ['EXTRA'])\nsys.exit(7)\n")
    out, err = ended(start(driver, path, "inherit"))
    assert out.decode().splitlines() == ["settings 1", str(Outcome(7, None))]
    assert err == b""


def test_output_to_stderr(driver: Path) -> None:
    """Also what subprocesses of the script print."""
    path = script(driver, "import os\nprint('script', flush=True)\nos.system('echo shell')\n")
    out, err = ended(start(driver, path, "stderr"))
    assert out.decode().splitlines() == [str(Outcome(0, None))]
    assert err == b"script\nshell\n"


def test_inherited_files(driver: Path) -> None:
    """What a shell opened for the script is there."""
    reading, writing = os.pipe()
    os.write(writing, b"hello")
    os.close(writing)
    path = script(driver, "import os, sys\nprint(os.read(int(sys.argv[1]), 9))\n")
    process = start(driver, path, "inherit", str(reading), pass_fds=(reading,))
    os.close(reading)
    assert b"b'hello'" in ended(process)[0]


PASSED_ON = ("TERM", "HUP", "USR1", "USR2", "INT", "ALRM", "QUIT", "XCPU", "WINCH", "CONT", "VTALRM", "RTMIN")


@pytest.mark.parametrize("name", PASSED_ON)
def test_signal_to_the_parent_is_passed_on(driver: Path, name: str) -> None:
    """Exactly once, and the parent waits for what the script makes of it."""
    number = getattr(signal, f"SIG{name}")
    process = start(driver, script(driver, COUNTER), "inherit", "0.2")
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(number)
    told = 2 if number == signal.SIGINT else None
    assert ended(process)[0].decode().splitlines() == ["count 1", str(Outcome(0, None, told=told))]


def test_killed_by_a_signal(driver: Path) -> None:
    """The outcome names the signal."""
    path = script(driver, "import time\nprint('ready', flush=True)\ntime.sleep(30)\n")
    process = start(driver, path, "inherit")
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGTERM)
    assert ended(process)[0].decode().splitlines() == [str(Outcome(143, 15))]


def test_ignored_signals_stay_ignored(driver: Path) -> None:
    """As under `nohup`: neither the parent nor the script gets the signal."""
    source = "import signal, time\nprint(signal.getsignal(1) == 1, flush=True)\ntime.sleep(0.2)\n"
    process = start(
        driver,
        script(driver, source),
        "inherit",
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"True\n"
    process.send_signal(signal.SIGHUP)
    assert ended(process)[0].decode().splitlines() == [str(Outcome(0, None))]


def on_terminal(driver: Path, seconds: str) -> tuple[subprocess.Popen[bytes], int]:
    """The driver with a counter as the foreground job of a terminal; gives the terminal's other end."""
    ours, theirs = pty.openpty()
    process = start(
        driver,
        script(driver, COUNTER),
        "inherit",
        seconds,
        stdin=theirs,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(theirs)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process, ours


def test_ctrl_c_on_a_terminal(driver: Path) -> None:
    """The terminal interrupts the script; the parent does not do it again."""
    process, terminal = on_terminal(driver, "0.3")
    os.write(terminal, b"\x03")
    told = Outcome(0, None, told=2)
    assert ended(process)[0].decode().splitlines() == ["count 1", str(told)]
    os.close(terminal)


@pytest.mark.parametrize(("place", "sent"), [("foreground", []), ("elsewhere", [signal.SIGINT])])
def test_interrupt_is_sent_once(place: str, sent: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """By the terminal, or by us; also when a group and its leader get it both."""

    class Child:
        def __init__(self) -> None:
            self.sent: list[int] = []

        def send_signal(self, number: int) -> None:
            self.sent.append(number)

    monkeypatch.setattr(supervision, "_in_foreground", lambda: place == "foreground")
    signals, child = supervision.Supervision(), Child()
    signals._receive(signal.SIGINT, None)
    signals.begin(child)  # type: ignore[arg-type]
    signals._receive(signal.SIGINT, None)
    assert child.sent == sent


def test_second_ctrl_c_kills(driver: Path) -> None:
    """A script that does not end is ended."""
    process, terminal = on_terminal(driver, "30")
    os.write(terminal, b"\x03")
    time.sleep(0.7)
    os.write(terminal, b"\x03")
    assert ended(process)[0].decode().splitlines() == [str(Outcome(137, 9, told=2))]
    os.close(terminal)


def test_handlers_are_put_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the run the process handles signals as before."""
    (tmp_path / "a.py").write_text("")
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    monkeypatch.setattr("samebits.recording.launch.BOOTSTRAP", "import sys; sys.exit(4)")
    assert launch(Launch(Target(str(tmp_path / "a.py"), None, ()), "", {})) == Outcome(4, None)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)] == before


@pytest.mark.parametrize("source", ["import time; time.sleep(60)", "import signal, time\n" + IGNORING])
def test_a_run_is_ended_at_its_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    """By SIGTERM; by SIGKILL if that is ignored."""
    (tmp_path / "a.py").write_text("")
    monkeypatch.setattr(launch_module, "BOOTSTRAP", source)
    monkeypatch.setattr(launch_module, "_GRACE_S", 0.1)
    request = Launch(Target(str(tmp_path / "a.py"), None, ()), "", {}, limit_s=1)
    expected = signal.SIGKILL if "SIG_IGN" in source else signal.SIGTERM
    assert launch(request) == Outcome(128 + expected, expected, timed_out=True)


# Starts a child of its own, and neither of them lets itself be ended.
STUBBORN = """\
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
below = subprocess.Popen([sys.executable, "-c", "import signal, time; time.sleep(60)"])
print(os.getpid(), below.pid, flush=True)
time.sleep(60)
"""


# A job of its own in a session that has another: as a shell with job control starts it.
JOB = "import os, subprocess, sys; subprocess.run(sys.argv[1:], preexec_fn=lambda: os.setpgid(0, 0))"


def test_a_child_ends_with_its_parent(driver: Path) -> None:
    """Also when the parent is killed; what the script has started is as under bare Python."""
    process = start(driver, script(driver, STUBBORN), "inherit")
    assert process.stdout is not None
    pid, below = map(int, process.stdout.readline().split())
    process.kill()
    try:
        assert is_gone(pid)
    finally:
        os.kill(below, signal.SIGKILL)
    process.communicate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_child_has_its_grace(driver: Path, number: int) -> None:
    """Where the caller says so, one that does not end is killed, with all that it has started."""
    driver.write_text(driver.read_text().replace(", sys.argv[2])", ", sys.argv[2], grace_s=0.3)"))
    process = start(driver, script(driver, STUBBORN), "inherit")
    assert process.stdout is not None
    pid, below = map(int, process.stdout.readline().split())
    process.send_signal(number)
    expected = Outcome(137, 9, told=15) if number == signal.SIGTERM else Outcome(129, 1, told=1)
    assert ended(process)[0].decode().splitlines() == [str(expected)]
    assert is_gone(pid)
    assert is_gone(below)


def test_a_second_signal_ends_at_once(driver: Path) -> None:
    """The parent, by that signal, and the child."""
    driver.write_text(driver.read_text().replace(", sys.argv[2])", ", sys.argv[2], grace_s=50)"))
    process = start(driver, script(driver, STUBBORN), "inherit")
    assert process.stdout is not None
    pid, below = map(int, process.stdout.readline().split())
    process.send_signal(signal.SIGTERM)
    time.sleep(0.3)
    process.send_signal(signal.SIGTERM)
    try:
        ended_by = process.wait(30)
        assert ended_by == -signal.SIGTERM
        assert is_gone(pid)
    finally:
        os.kill(below, signal.SIGKILL)
    process.communicate()


def test_stopping_and_going_on(driver: Path) -> None:
    """What stops the parent alone stops the child too, and both go on together."""
    # A shell between them: the group of a session's leader is nobody's job, and SIGTSTP would be ignored.
    path = script(driver, COUNTER)
    shell = f"{sys.executable} {driver} {path} inherit 0.2"
    process = subprocess.Popen(
        [sys.executable, "-c", JOB, *shell.split()], stdout=subprocess.PIPE, start_new_session=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    (parent,) = children(process.pid)
    (child,) = children(parent.number)
    os.kill(parent.number, signal.SIGTSTP)
    assert all(is_in_state(number, "T") for number in (parent.number, child.number))
    os.kill(parent.number, signal.SIGCONT)
    assert ended(process)[0].decode().splitlines() == ["count 1", str(Outcome(0, None))]


def test_an_interpreter_that_cannot_be_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was executed, the system's reason, and what to do."""
    (tmp_path / "a.py").write_text("")
    foreign = tmp_path / "python"
    foreign.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(64))
    request = Launch(Target(str(tmp_path / "a.py"), None, ()), "", {})
    monkeypatch.setattr(sys, "executable", str(foreign))
    for mode, words in ((0o644, "Permission denied"), (0o755, "Exec format error")):
        foreign.chmod(mode)
        for start_it in (launch, replace_process):
            with pytest.raises(SamebitsError, match=words) as caught:
                start_it(request)
            assert caught.value.slug == "child-start"
            assert str(foreign) in str(caught.value)
            assert "expected" in str(caught.value)
