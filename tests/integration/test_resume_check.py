"""`samebits resume-check` as a user runs it."""

from __future__ import annotations

import json
import os

import pytest
from cli_support import complaints, judged, samebits, write
from resume_scripts import (
    ACCELERATE,
    BY_ITSELF,
    LIBRARY_PARTS,
    LIGHTNING,
    NOT_REPEATABLE,
    TRAINER,
)


def check(cwd, *words, resume="", **extra):
    """Run the check quietly, with JSON."""
    return samebits(
        "resume-check", "--quiet", "--json", "--resume-args", resume, *words, cwd=cwd, timeout=600, **extra
    )


def kinds(found):
    """What was not restored after the first kill."""
    return {omission["what"]: omission["text"] for omission in found["kills"][0]["not_restored"]}


def test_a_script_that_resumes_by_itself(tmp_path):
    """It goes on from its last checkpoint, not from where it was killed; the folder is left alone."""
    write(tmp_path, "train.py", BY_ITSELF, EVERY=3)

    result = check(tmp_path, "--kill-at", "5,2", "train.py")

    found = judged(result)
    assert (result.returncode, found["verdict"], found["steps"]) == (0, "identical", 10), result.stderr
    assert [(k["after"], k["resumed_at"], k["began_anew"]) for k in found["kills"]] == [
        (2, 0, True),
        (5, 3, False),
    ]
    assert found["kills"][1]["identical_steps"] == 7
    assert found["kills"][1]["written"] == ["last.pt"]
    assert found["final_digest"][0] == found["final_digest"][1] != ""
    assert sorted(os.listdir(tmp_path)) == [".samebits", "train.py"]
    assert not (tmp_path / ".samebits" / "train-resume-1" / "working-copy").exists()


def test_nothing_was_resumed(tmp_path):
    """The same bits from step 0 on say nothing of resuming."""
    write(tmp_path, "train.py", BY_ITSELF, EVERY=2)

    result = check(tmp_path, "--kill-at", "5", "train.py", "--never")

    found = judged(result)
    assert (result.returncode, found["verdict"]) == (2, "not_judged")
    assert "nothing was resumed" in found["reason"]
    assert "last.pt" in found["reason"]


ROW = ["4", "steps", "step", "3", "0", "steps", "different"]  # from which step on, the headline says


def test_text_and_newest(tmp_path):
    """The report fits a terminal, shows the line, and says what is not restored; exit status 1."""
    source = BY_ITSELF.replace('"last.pt"', 'f"ck-{step}.pt"', 1)
    source = source.replace('os.replace("part", "last.pt")', 'os.replace("part", f"ck-{step}.pt")')
    source = source.replace(
        'if os.path.exists(f"ck-{step}.pt") and "--never" not in sys.argv:', "if sys.argv[1:]:"
    )
    source = source.replace('torch.load("last.pt")', "torch.load(sys.argv[1])").replace(
        'step = c["step"]', "pass"
    )
    write(tmp_path, "train.py", source, EVERY=1)

    result = samebits(
        "resume-check", "--quiet", "--resume-args", "{newest:ck-*.pt}", "--kill-at", "4", "train.py",
        cwd=tmp_path, COLUMNS="80",
    )  # fmt: skip

    assert result.returncode == 1, result.stderr
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0] == "different: resumed after 4 steps, it differs from step 3 on: the loss"
    assert any(line.split() == ROW for line in lines)
    assert "    > model(x).square().mean().backward()" in lines
    assert "`step` is 0 as at the start, not 3" in " ".join(result.stdout.split())
    assert "tensor `x` has other contents: it is as before step 0" in " ".join(result.stdout.split())
    assert "samebits: resumed: ck-3.pt" in complaints(result.stderr)


def test_a_script_that_does_not_repeat(tmp_path):
    """Nothing is said about resuming; verify is named."""
    write(tmp_path, "train.py", NOT_REPEATABLE)

    result = check(tmp_path, "--kill-at", "3", "train.py")

    found = judged(result)
    assert (result.returncode, found["verdict"]) == (2, "not_judged")
    assert "does not repeat" in found["reason"]
    assert "samebits verify" in found["reason"]
    assert len(found["kills"]) == 1


def test_refusals(tmp_path):
    """What cannot be asked for: one line, exit status 2."""
    write(tmp_path, "train.py", BY_ITSELF, EVERY=1)
    cases = [
        (["--resume-args", "", "--kill-at", "10", "train.py"], "resume-kill-late", "expected 1 to 9"),
        (["train.py"], "usage", "--resume-args"),
        (["--resume-args", "'", "train.py"], "usage", "No closing quotation"),
        (["--resume-args", "", "--kill-at", "0", "train.py"], "usage", "at least 1"),
        (["--resume-args", "", "--kill-at", "3", "--kills", "2", "train.py"], "usage", "both"),
        (["--resume-args", "", "--share", "../data", "train.py"], "resume-share", "found none"),
        (["--resume-args", "", "nothing.py"], "script-missing", "nothing.py"),
    ]
    for words, slug, text in cases:
        result = samebits("resume-check", *words, cwd=tmp_path)

        assert result.returncode == 2, words
        assert "Traceback" not in result.stderr
        assert text in result.stderr
        assert f"docs/reference/messages.md#{slug}" in result.stderr


@pytest.mark.parametrize(
    ("resume", "words"),
    [("--resume {newest:ck/*.pt}", "there is no file ck/*.pt"), ("--oops", "failed: ValueError: oops")],
)
def test_a_resumed_run_that_cannot_be(tmp_path, resume, words):
    """No file, or a script that fails."""
    write(
        tmp_path,
        "train.py",
        BY_ITSELF + '    if "--oops" in sys.argv:\n        raise ValueError("oops")\n',
        EVERY=1,
    )

    result = check(tmp_path, "--kill-at", "3", "train.py", resume=resume)

    assert result.returncode == 2
    assert words in json.loads(result.stdout)["reason"]


@pytest.fixture
def parts(tmp_path):
    """A data set that draws from three generators, and a model."""
    write(tmp_path, "parts.py", LIBRARY_PARTS)
    return tmp_path


def test_trainer(parts):
    """transformers: the right samples, generators restored too late. Exact where nothing is drawn."""
    write(parts, "train.py", TRAINER)

    drawing = judged(check(parts, "--kill-at", "5", "train.py", resume="resume"))
    plain = check(parts, "--kill-at", "13", "train.py", "plain", resume="resume")

    assert drawing["kills"][0]["resumed_at"] == 3
    assert set(kinds(drawing)) == {"augmentation", "generator"}
    assert "restored too late" in kinds(drawing)["generator"]
    assert plain.returncode == 0, plain.stdout
    assert judged(plain)["kills"][0]["resumed_at"] == 12


def test_lightning(parts):
    """Lightning: in epoch 1 it replays epoch 0 from batch 0; no generator is saved."""
    write(parts, "train.py", LIGHTNING)

    found = judged(check(parts, "--kill-at", "13", "train.py", resume="resume"))

    assert (found["verdict"], found["kills"][0]["resumed_at"]) == ("different", 12)
    assert set(kinds(found)) == {"data", "generator"}
    assert "that of step 0 again (batch 0 of pass 0), where batch 4 of pass 1 was due" in kinds(found)["data"]
    assert "torch's CPU generator" in kinds(found)["generator"]


def test_accelerate(parts):
    """accelerate: another order by default; with its seedable sampler only the dropout is wrong."""
    write(parts, "train.py", ACCELERATE)

    default = judged(check(parts, "--kill-at", "5", "train.py", "plain", resume="resume"))
    seedable = judged(check(parts, "--kill-at", "5", "train.py", "plain", "seedable", resume="resume"))

    assert default["kills"][0]["resumed_at"] == seedable["kills"][0]["resumed_at"] == 3
    assert "the order is different" in kinds(default)["data"]
    assert set(kinds(seedable)) == {"generator"}
    assert "torch's CPU generator: not restored" in kinds(seedable)["generator"]


TWO_OPTIMIZERS = """
import os, torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 1))
optimizers = [torch.optim.Adam(layer.parameters(), 0.1) for layer in model]
start = 0
if os.path.exists("last.pt"):
    saved = torch.load("last.pt")
    model.load_state_dict(saved["model"])
    for optimizer, state in zip(optimizers, saved["optimizers"]):
        optimizer.load_state_dict(state)
    start = saved["step"]
for step in range(start, 8):
    model(torch.full((2, 3), float(step))).square().mean().backward()
    for optimizer in optimizers:
        optimizer.step()
        optimizer.zero_grad()
    torch.save({"model": model.state_dict(), "optimizers": [o.state_dict() for o in optimizers],
                "step": step + 1}, "part")
    os.replace("part", "last.pt")
"""


def test_optimizers_that_follow_one_backward_pass(tmp_path):
    """They make one step together, and a run is killed after the last of them."""
    write(tmp_path, "train.py", TWO_OPTIMIZERS)

    result = check(tmp_path, "--kill-at", "5", "train.py")

    found = judged(result)
    assert (found["verdict"], found["steps"]) == ("identical", 8), result.stderr
    assert [(k["after"], k["resumed_at"]) for k in found["kills"]] == [(5, 4)]
