"""Examples and an LSTM on the fake device: verified, seeded, with the CPU's bits in portable mode."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from samebits import digest

pytestmark = pytest.mark.gpu

EXAMPLES = Path(__file__).parents[2] / "examples"
LSTM = """
import argparse, torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--device", default="cpu")
parser.add_argument("--save")
args = parser.parse_args()
torch.manual_seed(args.seed)
x = torch.randn(16, 12, 8).to(args.device)
y = x.sum((1, 2)).unsqueeze(1)
layer = nn.LSTM(8, 16, 2, batch_first=True).to(args.device)
out = nn.Sequential(nn.Dropout(0.2), nn.Linear(16, 1)).to(args.device)
optimizer = torch.optim.Adam([*layer.parameters(), *out.parameters()], lr=0.01)
for step in range(6):
    loss = (out(layer(x)[0][:, -1]) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step}  loss {loss.item():.6f}")
if args.save:
    torch.save({**layer.state_dict(), **out.state_dict()}, args.save)
"""
SCRIPTS = {
    "line_fit": ["--steps", "20"],
    "cifar10": ["--images", "40", "--workers", "1"],
    "char_gpt": ["--steps", "3", "--layers", "2"],
    "lstm": [],
}


@pytest.fixture(params=SCRIPTS)
def words(request, tmp_path):
    """The script with its arguments."""
    path = EXAMPLES / f"{request.param}.py"
    if request.param == "lstm":
        path = tmp_path / "lstm.py"
        path.write_text(LSTM)
    return [path, *SCRIPTS[request.param]]


def samebits(*words, folder):
    """What the command printed; it must succeed."""
    done = subprocess.run(
        [sys.executable, "-m", "samebits", *map(str, words)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def trained(*words, folder):
    """What a run printed, and the digest of the weights that it saved."""
    printed = samebits("run", *words, "--save", "weights.pt", folder=folder)
    return printed, digest(torch.load(folder / "weights.pt", map_location="cpu"))


def test_it_is_verified(words, tmp_path):
    """The script sets a seed itself."""
    printed = samebits("verify", *words, "--seed", 3, "--device", "cuda", folder=tmp_path)
    assert "identical: 2 runs" in printed


def test_it_is_seeded(words, tmp_path):
    """Two runs are the same, and another seed is another run."""
    first, again, other = (
        trained("--seed", seed, "--reseed", *words, "--device", "cuda", folder=tmp_path) for seed in (3, 3, 4)
    )
    assert first == again
    assert first[1] != other[1]


def test_it_has_the_bits_of_the_cpu_in_portable_mode(words, tmp_path):
    """The same command on either device."""
    on_gpu, on_cpu = (
        trained("--portable", *words, "--seed", 3, "--device", device, folder=tmp_path)
        for device in ("cuda", "cpu")
    )
    assert on_gpu == on_cpu
