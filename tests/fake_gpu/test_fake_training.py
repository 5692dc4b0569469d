"""Trainings on the fake device: the bits of the CPU, and what samebits says of programs there."""

import os
import subprocess
import sys
import time
from contextlib import nullcontext

import pytest
import torch
from torch import nn
from torch.nn import functional

from samebits.recording.noise import DeviceNoise

pytestmark = pytest.mark.gpu

LINE = """
import sys, torch
from torch import nn
if len(sys.argv) > 1:
    torch.manual_seed(int(sys.argv[1]))
x = torch.arange(8, dtype=torch.float32, device="cuda").unsqueeze(1)
model = nn.Sequential(nn.Linear(1, 100), nn.ReLU(), nn.Linear(100, 1)).cuda()
for step in range(30):
    loss = nn.MSELoss(reduction="sum")(model(x), 10 * x)
    model.zero_grad()
    loss.backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= 1e-4 * parameter.grad
print(loss.item())
"""
MODELS = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed({seed})
class Last(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.out = nn.LSTM(8, 16, 2, batch_first=True), nn.Linear(16, 1)
    def forward(self, x):
        return self.out(self.layer(x.flatten(2).transpose(1, 2)[:, :, :8])[0][:, -1])
class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(64, 16)
        self.layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.1, batch_first=True)
        self.out = nn.Linear(16, 1)
    def forward(self, x):
        x = self.first(x.flatten(2))
        mask = nn.Transformer.generate_square_subsequent_mask(8).cuda()
        return self.out(self.layer(x, src_mask=mask)[:, -1])
layers = nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout(), nn.Flatten(), nn.Linear(288, 1)
cnn = nn.Sequential(*layers)
data = TensorDataset(torch.randn(24, 8, 8, 8), torch.randn(24, 1))
for model in (cnn, Last(), Words()):
    model.cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for x, y in DataLoader(data, 8, shuffle=True, num_workers=2, pin_memory=True):
        loss = (model(x.cuda(non_blocking=True)) - y.cuda(non_blocking=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())
"""
RANKS = """
import torch, torch.distributed as dist
dist.init_process_group("gloo")
torch.cuda.set_device(dist.get_rank())
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1).cuda())
loss = model(torch.randn(8, 4, device="cuda")).square().mean()
loss.backward()
print(loss.item())
dist.destroy_process_group()
"""


def samebits(*words, folder):
    """Run the command on a script."""
    return subprocess.run(
        [sys.executable, "-m", "samebits", *map(str, words)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def cnn():
    """Convolutions both ways, batch norm, pooling. oneDNN may begin a sum with the bias, cuDNN has none."""
    convolution = nn.Conv2d(3, 8, 3, bias=False)
    layers = (convolution, nn.BatchNorm2d(8), nn.ReLU(), nn.ConvTranspose2d(8, 4, 3, bias=False))
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(16, 5)), torch.randn(
        4, 3, 16, 16
    )


def depthwise():
    """A convolution of each channel."""
    return nn.Conv2d(8, 8, 3, groups=8), torch.randn(2, 8, 9, 9)


def transformer():
    """Attention and layer norms."""
    return nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, dropout=0.0), torch.randn(2, 7, 16)


def lstm():
    """Both directions, two layers."""
    return nn.LSTM(8, 16, 2, batch_first=True, bidirectional=True), torch.randn(4, 5, 8)


def gru():
    """One layer."""
    return nn.GRU(8, 16), torch.randn(5, 4, 8)


def trained(make, device):
    """The parameters after three steps."""
    torch.manual_seed(0)
    model, x = make()
    model, x = model.to(device), x.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(3):
        out = model(x)
        (out[0] if isinstance(out, tuple) else out).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return torch.cat([parameter.detach().cpu().reshape(-1) for parameter in model.parameters()])


@pytest.mark.parametrize("make", [cnn, depthwise, transformer, lstm, gru])
def test_a_training_has_the_bits_of_the_cpu(make):
    assert torch.equal(trained(make, "cuda"), trained(make, "cpu"))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_dropout_in_attention_is_the_same_in_the_backward_pass(dtype):
    """Each gradient of the values is a column of the weights that were used."""
    q, k, v = [torch.randn(1, 1, 6, 8, dtype=dtype, device="cuda") for _ in range(3)]
    v = torch.eye(6, 8, dtype=dtype, device="cuda").view(1, 1, 6, 8).requires_grad_()
    out = functional.scaled_dot_product_attention(q, k, v, dropout_p=0.5)
    (gradient,) = torch.autograd.grad(out[..., 0].sum(), v)
    torch.testing.assert_close(gradient[0, 0, :, 0], out.detach()[0, 0].sum(0)[:6], check_device=False)


@pytest.mark.parametrize("affine", [True, False])
def test_gradients_of_rms_norm(affine):
    made = nn.RMSNorm((3, 4), elementwise_affine=affine)
    x = torch.randn(2, 3, 4)
    found = []
    for device in ("cpu", "cuda"):
        norm, given = made.to(device), x.to(device).requires_grad_()
        found.append(torch.autograd.grad(norm(given).exp().sum(), (given, *norm.parameters())))
        found[-1] = [gradient.cpu() for gradient in found[-1]]

    torch.testing.assert_close(*found)


def test_a_scaler_of_gradients_leaves_out_what_overflows():
    weight = torch.ones(3, device="cuda", requires_grad=True)
    optimizer, scaler = torch.optim.SGD([weight], 0.5), torch.amp.GradScaler("cuda", init_scale=4.0)
    for factor in (1.0, float("inf"), 1.0):
        optimizer.zero_grad()
        scaler.scale((weight * factor).sum()).backward()
        scaler.step(optimizer)
        scaler.update()

    assert weight.tolist() == [0.0, 0.0, 0.0]
    assert scaler.get_scale() == 2.0


def test_a_seed_decides_a_program(script, tmp_path):
    path = script(LINE)
    runs = [samebits("run", "--seed", seed, path, folder=tmp_path).stdout for seed in (3, 3, 4)]
    assert runs[0] == runs[1] != runs[2]


def test_a_line_with_a_seed_is_identical(script, tmp_path):
    done = samebits("verify", script(LINE), "3", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_line_without_a_seed_is_explained(script, tmp_path):
    done = samebits("verify", script(LINE), folder=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "cause         unseeded-torch" in done.stdout
    assert "tried         with this change 1 pair of runs was identical" in done.stdout


@pytest.mark.parametrize(("seed", "status"), [(("3",), 0), ((), 1)], ids=["seeded", "unseeded"])
def test_load_on_the_gpu_changes_no_verdict(seed, status, script, tmp_path):
    """With `--stress` each run has other work beside it; none of it is recorded."""
    done = samebits("verify", "--stress", script(LINE), *seed, folder=tmp_path)
    assert done.returncode == status, done.stdout + done.stderr
    assert ("unseeded-torch" in done.stdout) == (status == 1)


def test_stress_has_load_on_the_gpu(script, tmp_path):
    """The memory that the load needs is there soon after the script's."""
    text = """
import time, torch
x = torch.ones(8, device="cuda")
end = time.monotonic() + 60
while torch.cuda.memory_allocated() < 2**24 and time.monotonic() < end:
    time.sleep(0.01)
print("load" if torch.cuda.memory_allocated() >= 2**24 else "none", x.sum().item())
"""
    done = samebits("verify", "--stress", script(text), folder=tmp_path)
    assert (done.returncode, done.stdout.count("load 8.0")) == (0, 2), done.stdout + done.stderr


def test_load_that_cannot_be_given_is_noted(script, tmp_path, monkeypatch):
    """The GPU has room for what the script needs, and not for more."""
    monkeypatch.setenv("FAKE_GPU_MEMORY", str(4 << 20))
    text = "import time, torch\nx = torch.ones(8, device='cuda')\ntime.sleep(3)\nx.sum().item()\n"
    done = samebits("verify", "--stress", script(text), folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the GPU no other work from some moment on (OutOfMemoryError" in " ".join(done.stdout.split())


def test_load_is_on_the_gpus_that_are_used():
    """On a stream of its own, once there is memory of the script's; it ends when it is asked to."""
    noise = DeviceNoise(1, nullcontext())
    noise.start(torch)
    try:
        x = torch.ones(8, device="cuda")
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not (noise._lanes and noise._lanes[0].scratch[0].item() > 3):
            time.sleep(0.01)
        lane = noise._lanes[0]
    finally:
        noise.stop()
    torch.cuda.synchronize()
    before = lane.scratch.sum().item()
    time.sleep(0.1)
    assert lane.scratch.sum().item() == before > 3
    assert lane.stream.stream_id != torch.cuda.current_stream().stream_id
    assert x.tolist() == [1] * 8


@pytest.mark.parametrize(("seed", "status"), [("0", 0), ("torch.seed()", 1)])
def test_models_and_a_loader_are_judged(script, seed, status, tmp_path):
    """Convolutions, recurrent layers and attention, with workers and pinned memory."""
    done = samebits("verify", script(MODELS.replace("{seed}", seed)), folder=tmp_path)
    assert done.returncode == status, done.stdout + done.stderr


@pytest.mark.parametrize("text", [LINE, MODELS.replace("{seed}", "0")], ids=["line", "models"])
def test_portable_programs_have_the_bits_of_the_cpu(text, script, tmp_path):
    """The same program on either device, under control or not."""
    for of_gpu, elsewhere in (
        (".cuda(non_blocking=True)", ".to('{device}')"),
        (".cuda()", ".to('{device}')"),
    ):
        text = text.replace(of_gpu, elsewhere)
    text = text.replace('device="cuda"', "device='{device}'")
    programs = {  # torch imports a package cuda: a script of that name would be taken for it
        device: script(text.replace("{device}", device), f"on_{device}.py") for device in ("cpu", "cuda")
    }
    for seed in (("--seed", "3"), ()):
        of_cpu, of_gpu = (
            samebits("run", "--portable", *seed, program, folder=tmp_path) for program in programs.values()
        )
        assert of_cpu.stdout.strip(), of_cpu
        if seed or "manual_seed(0)" in text:
            assert of_gpu.stdout == of_cpu.stdout, of_gpu


CHECKPOINTS = """
import torch
from torch.utils.checkpoint import checkpoint
torch.manual_seed(0)
layer = torch.nn.Linear(4, 4).to("{device}")
for _ in range(3):
    x = torch.randn(2, 4, device="{device}", requires_grad=True)
    checkpoint(layer, x, use_reentrant=True).square().mean().backward()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter -= 0.1 * parameter.grad
            parameter.grad = None
"""


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_backward_pass_inside_another_is_no_step(device, script, tmp_path):
    """On a GPU a checkpoint calls it in the thread of the device."""
    done = samebits("run", script(CHECKPOINTS.replace("{device}", device)), folder=tmp_path)

    assert "samebits: 3 steps recorded" in done.stderr, done


@pytest.mark.parametrize(
    "words", [("run",), ("run", "--seed", 3), ("run", "--portable"), ("verify",)], ids=str
)
def test_no_device_is_looked_for_before_the_script_does(words, script, tmp_path, monkeypatch):
    """It may choose its devices after it has imported torch, and fork processes that use them."""
    monkeypatch.setenv("FAKE_GPU_FIRST", "say")
    text = "import torch\ntorch.manual_seed(0)\nx = torch.ones(4).sum().item()\n"
    looked = "devices are looked for"
    done = samebits(*words, script(text), folder=tmp_path)
    assert (done.returncode, looked in done.stderr) == (0, False), done.stdout + done.stderr
    assert looked in samebits(*words, script(f"{text}torch.cuda.is_available()\n"), folder=tmp_path).stderr


def test_two_ranks(script, tmp_path):
    words = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script(RANKS))]
    two = {**os.environ, "FAKE_GPU_COUNT": "2"}
    done = subprocess.run(
        [sys.executable, *words], env=two, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    lines = [line for line in done.stdout.splitlines() if line]
    assert done.returncode == 0, done.stderr
    assert len(lines) == 2
    assert lines[0] == lines[1]
