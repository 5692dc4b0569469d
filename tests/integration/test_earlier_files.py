"""Scripts of which a run reads what the run before it left on disk, and runs in fresh copies."""

from __future__ import annotations

import json

import pytest
from cli_support import samebits

TRAIN = """
m = torch.nn.Linear(4, 1)
opt = torch.optim.SGD(m.parameters(), 0.1)
{before}
for i in range(4):
    loss = m(data).pow(2).mean() + {more}
    opt.zero_grad(); loss.backward(); opt.step()
{after}
"""
CACHE = """import os, random, torch
torch.manual_seed(0)
if os.path.exists("processed.pt"):
    data = torch.load("processed.pt")
else:
    data = torch.randn(64, 4)
    torch.save(data, "processed.pt")
"""
RESUME = """import os, torch
torch.manual_seed(0)
data = torch.randn(64, 4)
"""
LOAD = 'if os.path.exists("last.pt"):\n    m.load_state_dict(torch.load("last.pt"))'
SAVE = 'torch.save(m.state_dict(), "last.pt")'


def verify(folder, text, *words):
    """The object that verify prints, and its exit status."""
    (folder / "train.py").write_text(text)
    done = samebits("verify", "--json", *words, "train.py", cwd=folder)
    return json.loads(done.stdout), done.returncode


def script(head, more="0.0", before="", after=""):
    """A training that begins so."""
    return head + TRAIN.format(more=more, before=before, after=after)


def test_a_cache_that_run_1_wrote_is_named_and_run_3_is_compared_with_run_2(tmp_path):
    found, status = verify(tmp_path, script(CACHE))
    assert (found["verdict"], status) == ("identical", 0)
    (note,) = found["notes"]
    assert "run 2 read what run 1 had written" in note
    assert f"{tmp_path}/processed.pt, read at {tmp_path}/train.py:4" in note
    assert "Run 3 is compared with run 2" in note


def test_what_differs_besides_is_found_between_run_2_and_run_3(tmp_path):
    found, status = verify(tmp_path, script(CACHE, more="random.random() * m.weight.sum()"))
    assert (found["verdict"], status) == ("different", 1)
    first = found["findings"][0]
    assert (first["cause"], first["site"]["line"]) == ("unseeded-python", 13)
    assert "processed.pt" in "".join(found["notes"])


def test_a_training_that_goes_on_where_the_run_before_it_ended_is_blamed_on_its_file(tmp_path):
    found, status = verify(tmp_path, script(RESUME, before=LOAD, after=SAVE))
    assert (found["verdict"], status) == ("different", 1)
    first = found["findings"][0]
    assert (first["cause"], first["site"]["line"]) == ("environment", 8)
    assert "last.pt" in "".join(first["evidence"])
    assert first["remedy"]["text"] == (
        f"remove {tmp_path}/last.pt before each run, or give each run a copy of the folder (`--fresh`)"
    )
    assert "--fresh" in "".join(found["notes"])


@pytest.mark.parametrize("head", [CACHE, RESUME], ids=["cache", "resume"])
def test_in_fresh_copies_every_run_does_the_same_and_the_folder_stays_as_it_is(tmp_path, head):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "data.txt").write_text("3")
    text = script(head, before=LOAD, after=f'{SAVE}\nopen("sub/data.txt", "a").write("more")')
    found, status = verify(tmp_path, text, "--fresh")
    assert (found["verdict"], found["notes"], status) == ("identical", [], 0)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".samebits", "sub", "train.py"]
    assert (tmp_path / "sub" / "data.txt").read_text() == "3"
    assert not (tmp_path / ".samebits" / "train-verify-1" / "folder").exists()


def test_in_fresh_copies_lines_are_those_of_the_users_own_folder(tmp_path):
    (tmp_path / "helper.py").write_text("import random\n\ndef more():\n    return random.random()\n")
    text = script("import helper\n" + RESUME, more="helper.more() * m.weight.sum()", before=LOAD, after=SAVE)
    found, _ = verify(tmp_path, text, "--fresh")
    first = found["findings"][0]
    assert first["site"]["file"] == str(tmp_path / "helper.py")
    assert (first["cause"], first["site"]["line"]) == ("unseeded-python", 4)
    assert first["remedy"]["confirmed"] is True


def test_a_folder_that_is_too_large_is_refused(tmp_path):
    with (tmp_path / "big").open("wb") as file:
        file.truncate(3 << 30)  # sparse
    (tmp_path / "train.py").write_text("import torch\n")
    done = samebits("verify", "--fresh", "train.py", cwd=tmp_path)
    assert done.returncode == 2
    assert "`--share big`" in done.stderr
    done = samebits("verify", "--share", "big", "train.py", cwd=tmp_path)
    assert (done.returncode, "give --fresh too" in done.stderr) == (2, True)


def test_machine_code_that_samebits_keeps_is_no_file_of_the_script(tmp_path, monkeypatch):
    """Where it is compiled on the user's machine, run 1 writes it and run 2 reads it."""
    monkeypatch.setenv("SAMEBITS_CACHE", str(tmp_path / "kept"))
    head = """import torch
from samebits._cuda.kept_code import code_of
from samebits._cuda.units import DIGEST
torch.manual_seed(0)
code_of(DIGEST.program(), (9, 0), "12.1")
data = torch.randn(64, 4)
"""
    found, status = verify(tmp_path, script(head))
    assert (found["verdict"], status, found["notes"]) == ("identical", 0, [])
    assert list((tmp_path / "kept" / "kernels").glob("*.cubin"))
    assert samebits("run", "--record", "run.sbr", "train.py", cwd=tmp_path).returncode == 0
    assert "cubin" not in samebits("show", "--json", "run.sbr", cwd=tmp_path).stdout
