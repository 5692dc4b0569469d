"""What needs a CUDA device: digests of its tensors, and a verdict on a training that runs there."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from samebits.digest import digest

pytestmark = pytest.mark.gpu

PLANTED = Path(__file__).resolve().parents[2] / "bench" / "planted" / "cuda" / "nondeterministic-kernel"
DTYPES = [torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.uint8, torch.bool]
TRAINING = """
import torch
torch.manual_seed({seed})
model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1)).cuda()
optimizer = torch.optim.Adam(model.parameters())
for _ in range(5):
    optimizer.zero_grad()
    loss = model(torch.randn(8, 16, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
print(loss.item())
"""


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_tensor_has_one_digest_on_both_devices(dtype):
    """Contents decide, not where they are; views too."""
    tensor = torch.arange(5000).reshape(50, 100).to(dtype)

    assert digest(tensor.cuda()) == digest(tensor)
    assert digest(tensor.cuda().T) == digest(tensor.T)


@pytest.mark.parametrize(("seed", "status"), [("0", 0), ("torch.seed()", 1)])
def test_a_training_is_judged(seed, status, tmp_path):
    """A seeded training on the device is identical, an unseeded one is not."""
    script = tmp_path / "train.py"
    script.write_text(TRAINING.format(seed=seed))

    done = subprocess.run(
        [sys.executable, "-m", "samebits", "verify", str(script)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == status, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["spatial_transformer", "speech_loss", "unpooling"])
def test_what_torch_refuses_is_identical_under_control(name, tmp_path):
    """Deterministic kernels compute `grid_sample`, the CTC loss and unpooling."""
    done = subprocess.run(
        [sys.executable, "-m", "samebits", "verify", "--seed", "3", str(PLANTED / f"cuda_{name}.py")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
