"""No control character out of names, arguments, values and exceptions reaches a stream or breaks a format.

Every command runs on a script, a record and a repository whose texts are full of them. What the script
itself prints is its own.
"""

from __future__ import annotations

import html.parser
import json
import os
import pty
import re
import subprocess
import sys
from xml.etree import ElementTree as ET

import pytest
from cli_support import environment

from samebits.cli.registry import COMMANDS

HOSTILE = "\x1b[31m\x9b\r\u202e\nFORGED"
SCRIPT = """
import sys
import torch
import samebits

HOSTILE = {hostile!r}
torch.manual_seed(0)
model = torch.nn.Sequential()
model.add_module("layer" + HOSTILE, torch.nn.Linear(3, 2))
if "noise" in sys.argv:
    torch.seed()
open("data" + HOSTILE + ".csv").read()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(8):
    optimizer.zero_grad()
    loss = model(torch.randn(4, 3)).square().mean()
    loss.backward()
    optimizer.step()
    samebits.tap("tap" + HOSTILE, loss.detach())
print("loss", loss.item())
if "fail" in sys.argv:
    raise ValueError("failed" + HOSTILE)
if "save" in sys.argv:
    torch.save({{"tensor" + HOSTILE: loss}}, "saved" + HOSTILE)
"""
NAME = f"train{HOSTILE}.py"
A, B, FAILED = (f"{name}{HOSTILE}.sbr" for name in ("a", "b", "failed"))
WORD = f"word{HOSTILE}"
PAGE = f"page{HOSTILE}.html"

# By command; the first of each works, so that its longest output is looked at.
CALLS = {
    "run": (["--force", "--record", f"new{HOSTILE}.sbr", NAME, WORD], ["-m", WORD], ["--pin", WORD, NAME]),
    "verify": (
        ["--fix", "--html", PAGE, NAME, "noise"], ["--json", NAME, "noise"], ["--json", NAME, "fail"], [WORD],
    ),
    "compare": (
        [A, B], ["--json", A, B], ["--align", "names", A, B], [A, FAILED], ["--json", A, FAILED], [WORD, A],
    ),
    "lock": (["--lock", f"l{HOSTILE}.lock", NAME], ["--name", WORD, NAME], ["--lock", WORD + "/x", NAME]),
    "check": (
        [A], ["--json", A], ["--lock", f"ours{HOSTILE}.lock", "--junit", "j.xml", "--sarif", "s.json"],
        ["--lock", f"ours{HOSTILE}.lock", "--json"], ["--lock", "bad.lock"], [WORD],
    ),
    "diff": ([A], ["--json", A], [A, B], ["--json", A, B], [WORD]),
    "rebuild": ([A, "--into", f"again{HOSTILE}"], [A, "--into", NAME], [WORD]),
    "show": (
        [A], ["--json", A], [FAILED], ["--json", FAILED], [A, "--events", "op", "--step", "0"], [WORD],
        ["bad.sbr"],
    ),
    "report": (
        [A, "--output", PAGE], [A, B, "--output", f"two{HOSTILE}.html"], [FAILED, "--output", "f.html"],
    ),
    "cost": (["--rounds", "1", NAME, WORD], ["--rounds", "1", "--json", NAME, WORD]),
    "doctor": ([], ["--json"], [NAME]),
    "spread": (["--seeds", "0,1", "--json", NAME, WORD], ["--seeds", "0,1", NAME, WORD]),
    "resume-check": (["--resume-args", WORD, NAME], ["--json", "--resume-args", WORD, NAME]),
    "portable-ops": ([WORD], ["add"]),
    "explain": ([WORD],),
    "clean": ([], [WORD]),
    "completion": ([WORD],),
}  # fmt: skip
VALUES = {"CUDA_NOTE": f"value{HOSTILE}", "SAMEBITS_SEEED": HOSTILE}


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("escapes") / f"work{HOSTILE}"
    folder.mkdir()
    (folder / NAME).write_text(SCRIPT.format(hostile=HOSTILE))
    (folder / f"data{HOSTILE}.csv").write_text("1")
    (folder / "bad.sbr").write_text(HOSTILE)
    (folder / "bad.lock").write_text(HOSTILE)
    author = f"user.name=a{HOSTILE}".replace("\n", "")
    git = ["git", "-C", str(folder), "-c", author, "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", f"subject{HOSTILE}"]):
        subprocess.run([*git, *words], check=True, capture_output=True)
    said(folder, "lock", "--lock", f"ours{HOSTILE}.lock", NAME)
    assert (folder / f"ours{HOSTILE}.lock").exists()
    with (folder / NAME).open("a") as script:
        script.write("TEXT = '\x1b[31m\u202e'\n")
    for record, *words in ((A, "x"), (B, "x"), (FAILED, "fail")):
        said(folder, "run", "--record", record, NAME, *words)
        assert (folder / record).exists()
    return folder


def said(folder, *words):
    """What a command says on its streams, but for the traceback that Python shows."""
    done = subprocess.run(
        [sys.executable, "-m", "samebits", *words],
        cwd=folder, env=environment(**VALUES), capture_output=True, timeout=280, check=False,
    )  # fmt: skip
    assert done.returncode in (0, 1, 2), done.stderr
    stderr = re.sub(r"(?s)Traceback \(most recent call last\):.*?FORGED\n", "", done.stderr.decode())
    return done.stdout.decode(), stderr


def check_harmless(text):
    """Nothing but printable characters in lines, and no line that a name has made."""
    assert [line for line in text.split("\n") if not line.isprintable()] == []
    assert [line for line in text.splitlines() if line.startswith("FORGED")] == []


def test_every_command_is_called():
    assert set(CALLS) == set(COMMANDS)


@pytest.mark.parametrize(
    ("command", "number"), [(name, number) for name, calls in CALLS.items() for number in range(len(calls))]
)
def test_no_control_character_reaches_a_stream(project, command, number):
    words = CALLS[command][number]
    stdout, stderr = said(project, command, *words)
    check_harmless(stdout)
    check_harmless(stderr)
    if "--json" in words and stdout:
        json.loads(stdout)


@pytest.mark.parametrize(
    "words", [["show", A], ["compare", A, B], ["check", A], ["verify", NAME], ["diff", A]]
)
def test_nor_a_terminal(project, words):
    """Only our own colours and the row at the bottom are escapes there."""
    text = on_terminal(project, words)
    assert text
    for mark in ("\x9b", "\u202e", "\r\nFORGED"):
        assert mark not in text
    assert "\x1b[31m" not in text.replace("\x1b[31m-", "")


def on_terminal(folder, words):
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        variables = {**environment(**VALUES), "TERM": "xterm"}
        os.execve(sys.executable, [sys.executable, "-m", "samebits", *words], variables)  # noqa: S606
    data = b""
    while True:
        try:
            part = os.read(terminal, 1 << 16)
        except OSError:  # as Linux says that the other side is closed
            break
        if not part:
            break
        data += part
    os.waitpid(pid, 0)
    os.close(terminal)
    return data.decode()


def test_files_for_other_programs_are_well_formed(project):
    said(project, "check", "--lock", f"ours{HOSTILE}.lock", "--junit", "j2.xml", "--sarif", "s2.json")
    ET.parse(project / "j2.xml")  # noqa: S314 our own
    json.loads((project / "s2.json").read_text())
    said(project, "report", A, FAILED, "--output", "two.html")
    said(project, "verify", "--fix", "--html", "verified.html", NAME, "noise")
    for page in ("two.html", "verified.html"):
        text = (project / page).read_text()
        assert [character for character in ("\x1b", "\x9b", "\r") if character in text] == []
        html.parser.HTMLParser().feed(text)
        for drawing in re.findall(r"(?s)<svg.*?</svg>", text):
            ET.fromstring(drawing)  # noqa: S314 our own


def test_a_patch_names_its_file_as_git_does(project):
    """Else a line end in the name ends its line, and no program can apply the patch."""
    said(project, "verify", "--fix", NAME, "noise")
    patches = sorted((project / ".samebits").rglob("fix.diff"))
    assert patches
    done = subprocess.run(
        ["git", "-C", str(project), "apply", "--check", str(patches[-1])], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
