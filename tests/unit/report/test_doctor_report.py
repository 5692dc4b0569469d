"""How threats are shown."""

import dataclasses
import json
import re

from samebits.commands.doctor.environment import (
    Cpus,
    DigestCheck,
    EnvironmentSnapshot,
    Interpreter,
    RecordFolder,
    SwitchView,
    Torch,
)
from samebits.commands.doctor.threat import BREAKS, MAY_BREAK, NOTE, PROMISES, Threat
from samebits.report.doctor import Request, render_error, render_json, render_text
from samebits.report.style import Style

OFF = SwitchView(
    name="deterministic-algorithms",
    now="off",
    wanted="on",
    fits=False,
    problem="",
    missing="",
    is_variable=False,
    when="at any time",
    promises=("repeatable",),
    why="ops that add with atomics run",
    source="PyTorch notes",
)
HELD = dataclasses.replace(OFF, name="sdp", wanted=None, fits=True)
ALL = (
    OFF,
    HELD,
    dataclasses.replace(OFF, name="NCCL_ALGO", now="", when="before the process group is made"),
    dataclasses.replace(OFF, name="cudnn", missing="not in this build", fits=True),
    dataclasses.replace(OFF, name="MKL_CBWR", now="x", wanted=None, fits=True, problem="a branch"),
)
HERE = EnvironmentSnapshot(
    interpreter=Interpreter("3.11.7", "random"),
    cpus=Cpus("A Processor", "x86_64", usable=1),
    torch=Torch(version="2.13.0", threads=1),
    digest=DigestCheck(library=True, backend="avx2"),
    record_folder=RecordFolder("/code/.samebits", "", 10**9, "clean"),
    switches=(OFF, HELD),
)
THREATS = (
    Threat("repeatable", "a", "first found", "because", "do this", "a page", BREAKS),
    Threat("repeatable", "b", "second found", "because", "do that", "a page", MAY_BREAK),
    Threat("proven", "c", "third found", "because", "do more", "a page", NOTE),
)


def text(threats=THREATS, style=Style(width=80), **request):  # noqa: B008
    return render_text(HERE, threats, Request(**{"promises": PROMISES, **request}), style)


def test_layout():
    """One line found, one line of remedy, under the promise; what differs last."""
    assert (
        text()
        == """\
torch 2.13.0, Python 3.11.7, 1 CPU (A Processor)

repeatable: the same script here gives the same bits, run after run
  breaks     first found
             > do this
  may break  second found
             > do that

resumable: stopped and continued, the same bits as never stopped
  nothing found

portable: the same bits on other machines and installations
  nothing found

proven: a second run can show it
  note       third found
             > do more

switches that control would set: name, value now -> wanted, until when
  deterministic-algorithms  off -> on, at any time

1 breaks a promise; 1 may break one; 1 note
why, and sources: samebits doctor --why"""
    )


def test_why():
    """Reasons and sources are shown when they are asked for."""
    shown = text(why=True)

    assert "             > do this\n             because [a page]\n" in shown
    assert "      ops that add with atomics run [PyTorch notes]\n" in shown
    assert "--why" not in shown


def test_all_switches():
    """Those that fit too, and what becomes of them."""
    here = dataclasses.replace(HERE, switches=ALL)
    shown = render_text(here, THREATS, Request(PROMISES, all_switches=True), Style(width=80))

    assert "  deterministic-algorithms  off -> on\n      at any time; ops that add" in shown
    assert "  sdp                       off (kept as it is)\n" in shown
    assert "  NCCL_ALGO                 not set -> on (not needed here)\n" in shown
    assert "  cudnn                     missing: not in this build\n" in shown
    assert "  MKL_CBWR                  x (expected a branch)\n" in shown


def test_nothing_breaks():
    """The summary is what a person reads first."""
    assert "nothing breaks a promise; 0 may break one; 0 notes" in text(threats=())


def test_it_fits_and_has_no_control_characters():
    """Long words of an error wrap, and cannot move the cursor."""
    long = Threat("every", "torch", "cannot \x1b[2J be imported " + "very " * 40, "w", "r " * 60, "s", BREAKS)
    shown = text(threats=(long,), why=True, all_switches=True)

    assert "\x1b" not in shown
    assert all(len(line) <= 80 for line in shown.splitlines())
    assert "every promise\n  breaks     cannot" in shown


def test_colour():
    """Only where it is asked for; the text is the same."""
    coloured = text(style=Style(colour=True, width=80))

    assert "\x1b[31;1m  breaks     \x1b[0mfirst found" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == text()


def test_json():
    """One object with all that the text says, and the switches."""
    decoded = json.loads(render_json(HERE, THREATS))

    assert decoded["schema"] == 1
    assert decoded["error"] is None
    assert decoded["counts"] == {"breaks": 1, "may_break": 1, "note": 1}
    assert decoded["threats"][0] == {
        "promise": "repeatable",
        "subject": "a",
        "found": "first found",
        "why": "because",
        "remedy": "do this",
        "source": "a page",
        "level": "breaks",
    }
    assert [(view["name"], view["differs"]) for view in decoded["switches"]] == [
        ("deterministic-algorithms", True),
        ("sdp", False),
    ]


def test_json_of_an_error():
    """The same keys, so that a reader need not look twice."""
    assert json.loads(render_error("no")).keys() == json.loads(render_json(HERE, ())).keys()
    assert json.loads(render_error("no"))["error"] == "no"
