"""Code that is edited while runs are made: what ran is told apart from what is in the file now."""

from __future__ import annotations

import json
import re

import pytest
from cli_support import samebits

from samebits.records.notes import Note, NoteCode
from samebits.records.reader import RecordReader

TRAIN = """
import os
import torch
{imports}
torch.manual_seed(0)
RATE = {rate}
model = torch.nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
for _ in range(4):
    optimizer.zero_grad()
    model(torch.randn(16, 8)).square().mean().backward()
    optimizer.step()
if os.path.exists({once!r}):
    os.rename({once!r}, "done")
    with open({edited!r}) as file:
        text = file.read()
    with open({edited!r}, "w") as file:
        file.write(text.replace("0.25", "0.375"))
"""


def write(folder, edited):
    """A training that edits a file, at its end and once, as somebody might while it runs."""
    if edited == "train.py":
        text = TRAIN.format(imports="", rate="0.25", once="once", edited=edited)
    else:
        (folder / edited).write_text("RATE = 0.25\n")
        text = TRAIN.format(imports="import settings", rate="settings.RATE", once="once", edited=edited)
    (folder / "train.py").write_text(text)
    (folder / "once").touch()


@pytest.mark.parametrize(("edited", "name"), [("train.py", "train.py"), ("settings.py", "settings")])
def test_runs_of_code_that_was_edited_between_them_are_not_judged(tmp_path, edited, name):
    write(tmp_path, edited)

    done = samebits("verify", "--json", "train.py", cwd=tmp_path)
    found = json.loads(done.stdout)

    assert (found["verdict"], done.returncode) == ("not_judged", 2)
    assert f"{name} was changed while the runs of train.py were made" in found["reason"]
    assert json.loads(samebits("verify", "--json", "train.py", cwd=tmp_path).stdout)["verdict"] == "identical"


@pytest.mark.parametrize(("edited", "name"), [("train.py", "train.py"), ("settings.py", "settings")])
def test_a_record_holds_the_code_that_ran_and_says_what_was_edited(tmp_path, edited, name):
    write(tmp_path, edited)
    first = samebits("run", "--record", "a.sbr", "train.py", cwd=tmp_path)
    second = samebits("run", "--record", "b.sbr", "train.py", cwd=tmp_path)
    assert (first.returncode, second.returncode) == (0, 0)

    with RecordReader(tmp_path / "a.sbr") as a, RecordReader(tmp_path / "b.sbr") as b:
        assert Note.of(NoteCode.CODE_CHANGED, name) in a.info.notes
        assert NoteCode.CODE_CHANGED not in {note.code for note in b.info.notes}
        codes = [record.info.environment["code"] for record in (a, b)]
    assert codes[0][name] != codes[1][name]
    assert f"{name} was changed while the run went on" in samebits("show", "a.sbr", cwd=tmp_path).stdout


def test_code_that_is_edited_while_a_difference_is_explained_ends_the_search(tmp_path):
    (tmp_path / "train.py").write_text(
        """
import os, random
import torch
with open("runs", "a") as file:
    file.write(".")
if os.path.getsize("runs") == 3:
    text = open("train.py").read().replace("RATE = 0.25", "RATE = 0.375")
    open("train.py", "w").write(text)
torch.manual_seed(0)
RATE = 0.25
model = torch.nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
for _ in range(4):
    optimizer.zero_grad()
    (random.random() * model(torch.randn(16, 8)).square().mean()).backward()
    optimizer.step()
"""
    )

    done = samebits("verify", "--json", "train.py", cwd=tmp_path)
    found = json.loads(done.stdout)

    assert (found["verdict"], done.returncode) == ("different", 1)
    assert any("train.py changed while the runs were made" in note for note in found["notes"])


def test_a_lock_of_code_that_was_edited_between_its_runs_is_refused(tmp_path):
    write(tmp_path, "settings.py")

    done = samebits("lock", "train.py", cwd=tmp_path)

    assert done.returncode == 2
    assert "settings changed while the runs were made" in done.stderr
    assert not (tmp_path / "samebits.lock").exists()


def test_a_check_does_not_call_an_edit_chance(tmp_path):
    write(tmp_path, "settings.py")
    (tmp_path / "once").unlink()
    assert samebits("lock", "train.py", cwd=tmp_path).returncode == 0
    (tmp_path / "settings.py").write_text("RATE = 0.125 + 0.25\n")
    (tmp_path / "once").touch()

    done = samebits("check", "--json", cwd=tmp_path)
    (entry,) = json.loads(done.stdout)["entries"]

    assert (entry["verdict"], entry["blame"], done.returncode) == ("different", None, 1)
    assert "settings changed while the runs were made" in str(entry)


def test_code_that_a_run_writes_and_then_imports_was_not_edited(tmp_path):
    (tmp_path / "train.py").write_text(
        "import torch\nopen('made.py', 'w').write('X = 3')\nimport made\nprint(torch.ones(2) * made.X)\n"
    )

    assert samebits("run", "--record", "a.sbr", "train.py", cwd=tmp_path).returncode == 0
    with RecordReader(tmp_path / "a.sbr") as a:
        assert a.info.notes == ()
        assert "made" in a.info.environment["code"]


def test_what_samebits_reads_at_the_first_step_is_no_data_of_the_run(tmp_path):
    (tmp_path / "train.py").write_text(TRAIN.format(imports="", rate="0.25", once="never", edited="train.py"))

    for record in ("a.sbr", "b.sbr"):
        done = samebits(
            "run", "--record", record, "train.py", cwd=tmp_path, SAMEBITS_CACHE=str(tmp_path / "cache")
        )
        assert done.returncode == 0

    with RecordReader(tmp_path / "a.sbr") as a, RecordReader(tmp_path / "b.sbr") as b:
        assert a.info.environment["data"]["files"] == b.info.environment["data"]["files"] == {}


STEPS = """
import torch
from net import Net

torch.manual_seed(0)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.25)
for _ in range(2):
    optimizer.zero_grad()
    loss = model(torch.randn(16, 8)).square().mean()
    loss.backward()
    optimizer.step()
    print(loss.item())
"""
NET = """
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(8, 8)
        self.second = torch.nn.Linear(8, 1)

    def forward(self, x):
        x = torch.relu(self.first(x))
        return self.second(x)
"""
FASTER = STEPS.replace("lr=0.25", "lr=0.5")
EDITS = {
    "a line": (FASTER.replace("\nmodel", "\nunused = 1\nmodel"), NET),
    "in a module": (FASTER, NET.replace("\n\nclass", "\n# about\n\n\nclass")),
    "a function": (
        FASTER.replace("for _", "def fit():\n    torch.zeros(1)\n\n\nfor _").replace(
            "Net()", "Net()  # model"
        ),
        NET.replace(
            "        x = torch.relu(self.first(x))", "        x = self.first(x)\n        x = torch.relu(x)"
        ),
    ),
    "a script of functions": (
        FASTER.replace("    ", "        ").replace("for _", "def main():\n    for _") + "\n\nmain()\n",
        NET.replace("Net", "Model") + "\n\nNet = Model\n",
    ),
}


def recorded(folder, name, steps, net):
    """Record each operation of a version of the script."""
    (folder / "train.py").write_text(steps)
    (folder / "net.py").write_text(net)
    done = samebits("run", "--level", "op", "--record", name, "train.py", cwd=folder)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("edit", EDITS)
def test_the_first_difference_of_two_versions_is_the_first_operation_whose_bits_differ(tmp_path, edit):
    recorded(tmp_path, "a.sbr", STEPS, NET)
    recorded(tmp_path, "b.sbr", *EDITS[edit])

    found = json.loads(samebits("compare", "--json", "a.sbr", "b.sbr", cwd=tmp_path).stdout)

    first = found["findings"][0]
    assert (first["op"], first["step"], first["site"]["line"]) == ("aten::add_.Tensor", 0, 12)
    assert [each["op"] for each in found["findings"]] == ["aten::add_.Tensor"]
    here = (tmp_path / "train.py").read_text().splitlines().index
    line = next(text for text in EDITS[edit][0].splitlines() if "optimizer.step" in text)
    assert (first["other_site"] or first["site"])["line"] == here(line) + 1


def test_only_a_line_that_the_run_had_is_shown(tmp_path):
    recorded(tmp_path, "a.sbr", STEPS, NET)
    recorded(tmp_path, "b.sbr", *EDITS["a line"])

    text = samebits("compare", "--html", "page.html", "a.sbr", "b.sbr", cwd=tmp_path).stdout
    page = " ".join(re.sub(r"<[^>]*>", "", (tmp_path / "page.html").read_text()).split())

    assert "train.py:12\n    (the file has changed since this run)" in text
    assert "in run 2 at train.py:13\n    > optimizer.step()" in text
    assert "train.py:12 (the file has changed since this run)" in page
    assert "&gt; 13 optimizer.step()" in page
    assert "4 of 47 operations gave other bits" in page

    (tmp_path / "train.py").write_text("# another file\n" * 40)
    text = samebits("compare", "a.sbr", "b.sbr", cwd=tmp_path).stdout
    assert "another file" not in text
    assert text.count("(the file has changed since this run)") == 2


def test_a_comment_above_is_no_difference(tmp_path):
    recorded(tmp_path, "a.sbr", STEPS, NET)
    recorded(tmp_path, "b.sbr", "# about\n" + STEPS, "# about\n" + NET)

    found = json.loads(samebits("compare", "--json", "a.sbr", "b.sbr", cwd=tmp_path).stdout)

    assert found["verdict"] == "identical"
    assert not [note for note in found["notes"] if "code of" not in note]
