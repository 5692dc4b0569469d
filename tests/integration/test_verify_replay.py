"""`samebits verify --replay`, and examples whose operations are executed again."""

from __future__ import annotations

import hashlib
import os
import subprocess

import pytest
from cli_support import judged, samebits, write
from test_same_bits import CASES, EXAMPLES, outcome

from samebits.recording.launch import child_command
from samebits.recording.replay_results import ReplaySummary
from samebits.recording.runner import Target
from samebits.recording.settings import ENVIRONMENT_NAME, RecordingSettings
from samebits.records.reader import RecordReader

UNREPEATED = """
    import os
    import torch

    library = torch.library.Library("noisy", "DEF")
    library.define("sum(Tensor x) -> Tensor")
    library.impl("sum", lambda x: x.sum() + int.from_bytes(os.urandom(4), "little"), "CPU")
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.3), torch.nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(6, 4)
    for step in range(3):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
        torch.ops.noisy.sum(x)  # nothing reads it
"""


def test_an_operation_that_does_not_repeat_is_named_though_the_runs_agree(tmp_path):
    """Exit status 0, the operation with its line in front, in text and in JSON."""
    script = write(tmp_path, "train.py", UNREPEATED)
    result = samebits("verify", "--replay", "2", script, cwd=tmp_path)

    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("identical: 2 runs, 3 steps")
    assert "but 1 operation does not repeat" in " ".join(result.stdout.split())
    assert "does not repeat: step 1, noisy::sum.default" in result.stdout
    assert "> torch.ops.noisy.sum(x)  # nothing reads it" in result.stdout
    assert "6 of 6 repetitions" in " ".join(result.stdout.split())

    decoded = judged(samebits("verify", "--replay", "--steps", "2", "--json", script, cwd=tmp_path))
    (found,) = decoded["findings"]
    assert decoded["verdict"] == "identical"
    assert (found["kind"], found["cause"]) == ("replay", "nondeterministic-kernel")
    assert decoded["replay"]["times"] == 1
    assert decoded["replay"]["unrepeated"] == 1


@pytest.mark.parametrize("name", CASES)
def test_examples_give_the_same_bits_when_operations_are_executed_again(name, tmp_path):
    """Output and weights are those of plain Python, and all of torch's operations repeat."""
    script = [str(EXAMPLES / f"{name}.py"), *CASES[name], "--save", "weights.pt"]
    plain = outcome(script, tmp_path)
    settings = RecordingSettings(str(tmp_path / "replay.sbr"), replay=1)
    done = subprocess.run(
        child_command(Target(script=script[0], module=None, arguments=tuple(script[1:]))),
        capture_output=True,
        text=True,
        env={**os.environ, ENVIRONMENT_NAME: settings.to_json()},
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    with RecordReader(tmp_path / "replay.sbr") as reader:
        summary = ReplaySummary.from_dict(reader.info.replay)

    assert done.stdout == plain[0]
    assert hashlib.sha256((tmp_path / "weights.pt").read_bytes()).hexdigest() == plain[1]
    assert summary is not None
    assert summary.calls > 0
    assert [found.op for found in summary.unrepeated] == []
