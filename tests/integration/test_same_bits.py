"""Recording does not change numbers: every example, and compiled code, with and without it."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from sentence_support import notes_of

from samebits.records.reader import RecordReader

EXAMPLES = Path(__file__).parents[2] / "examples"
# Script and arguments: short, for two cores.
CASES = {
    "line_fit": ["--seed", "3", "--steps", "40"],
    "cifar10": ["--images", "160"],
    "digits": ["--epochs", "1"],
    "char_gpt": ["--steps", "3"],
}
COMPILED = """
import sys
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Dropout(0.1), torch.nn.Linear(16, 4)
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

@torch.compile
def loss_of(x):
    y = model(x)
    if y.sum() > 0:
        y = y * 2
    return y.pow(2).mean()

for _ in range(3):
    optimizer.zero_grad()
    loss = loss_of(torch.arange(32.0).reshape(4, 8))
    loss.backward()
    optimizer.step()
    print(loss.item())
torch.save(model.state_dict(), sys.argv[1])
from torch._dynamo.utils import counters
print("graphs", counters["stats"]["unique_graphs"])
"""


def run(command: list[str], folder: Path) -> str:
    """Run a program that must succeed; return what it printed."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONHASHSEED"}
    done = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, env=environment, cwd=folder, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def outcome(command: list[str], folder: Path) -> tuple[str, str]:
    """What a program printed, and a hash of the weights that it saved."""
    output = run(command, folder)
    return output, hashlib.sha256((folder / "weights.pt").read_bytes()).hexdigest()


@pytest.mark.parametrize("name", CASES)
def test_examples_give_the_same_bits_recorded_and_not(name, tmp_path):
    """Output and weights are those of plain Python, at step level and at op level."""
    script = [str(EXAMPLES / f"{name}.py"), *CASES[name], "--save", "weights.pt"]
    plain = outcome(script, tmp_path)
    for level in ("step", "op"):
        record = f"{level}.sbr"
        recorded = outcome(["-m", "samebits", "run", "--level", level, "--record", record, *script], tmp_path)

        assert recorded == plain
        with RecordReader(tmp_path / record) as reader:
            assert reader.info.status == "finished"
            assert reader.info.steps > 0


def test_compiled_code_is_recorded_without_a_change_to_its_graphs(tmp_path):
    """Step level: the same output, weights and number of graphs. Op level runs eager, and says so."""
    script = tmp_path / "compiled.py"
    script.write_text(COMPILED)
    plain = outcome([str(script), "weights.pt"], tmp_path)
    command = ["-m", "samebits", "run", "--record", "step.sbr", str(script), "weights.pt"]
    recorded = outcome(command, tmp_path)
    run(["-m", "samebits", "run", "--level", "op", "--record", "op.sbr", str(script), "weights.pt"], tmp_path)

    assert recorded == plain
    with RecordReader(tmp_path / "step.sbr") as reader:
        assert reader.info.steps == 3
        assert any("torch.compile made" in note for note in notes_of(reader.info))
    with RecordReader(tmp_path / "op.sbr") as reader:
        assert any("switched off" in note for note in notes_of(reader.info))
        assert any("addmm" in event.op for event in reader.events(kinds=("op",)))
