"""Autocast on a CUDA device in portable mode: it converts what it converts on the CPU, and gives its bits."""

from __future__ import annotations

import threading

import pytest
import torch
from cast_support import GIVEN, converted, seen_below
from torch import nn
from torch.nn import functional

import samebits
from samebits._torch.autocast_kernels import CPU_CASTS, GPU_CASTS, cast_ops
from samebits.errors import SamebitsError

pytestmark = pytest.mark.gpu

ON_CPU, ON_GPU = cast_ops(CPU_CASTS), cast_ops(GPU_CASTS)
REFUSED = {"_addmm_activation", "_native_multi_head_attention", "mkldnn_rnn_layer"}
OF_NAMED_TENSORS = {name for name in ON_CPU | ON_GPU if name.lower().endswith("dimname")}
"""They want names of dimensions, which torch 2.11 still has."""
CONVERTED_LATER = {"conv1d.padding", "conv2d.padding", "conv3d.padding"}


@pytest.fixture(scope="module", autouse=True)
def _started():
    """Torch keeps what it learns of devices, which is no test's doing."""
    torch.cuda.init()
    torch.cuda.device_count()


@pytest.mark.parametrize("given", GIVEN)
def test_arguments_are_converted_as_on_the_cpu(given):
    """Of each op that either list has."""
    names = (ON_CPU | ON_GPU) - REFUSED - CONVERTED_LATER - OF_NAMED_TENSORS
    seen = {}
    for device in ("cpu", "cuda"):
        with samebits.portable(), seen_below(names, device):
            seen[device] = {name: converted(name, GIVEN[given], device) for name in sorted(names)}

    assert None not in seen["cpu"].values()
    assert {name: seen["cuda"][name] for name in names if seen["cuda"][name] != seen["cpu"][name]} == {}


@pytest.mark.parametrize("name", sorted(REFUSED & ON_CPU))
def test_what_has_no_policy_on_a_gpu_is_refused(name):
    """An op of a short cut for layers, which only C++ code calls."""
    with samebits.portable(), pytest.raises(SamebitsError, match="under autocast on a GPU"):
        converted(name, (torch.float32,), "cuda")


class Pictures(nn.Module):
    """Convolutions that pad by themselves, one of them used twice; norms; attention; a recurrent layer."""

    def __init__(self):
        super().__init__()
        self.twice = nn.Conv2d(3, 3, 3, padding="same")
        self.even = nn.Conv2d(3, 4, (2, 4), padding="same")
        self.norms = nn.ModuleList([nn.BatchNorm2d(3), nn.GroupNorm(2, 4), nn.LayerNorm(8), nn.RMSNorm(8)])
        self.encoder = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.1)
        self.layers = nn.ModuleList([nn.LSTM(8, 8, batch_first=True), nn.GRU(8, 8, batch_first=True)])
        self.cell = nn.LSTMCell(8, 6)

    def forward(self, x):
        """Of pictures of 8 columns."""
        x = self.norms[0](self.twice(functional.relu(self.twice(x))))
        x = self.norms[1](functional.elu(self.even(x)))
        x = functional.interpolate(functional.avg_pool2d(x, 2), scale_factor=2, mode="bilinear")
        rows = self.norms[2](x.flatten(1, 2))
        rows = self.norms[3](self.encoder(rows))
        for layer in self.layers:
            rows = layer(rows)[0]
        state = self.cell(rows.mean(1))
        return torch.cat([*state, rows.amax(1).float()], 1).softmax(1).cumsum(1)


def trained(device, dtype, *, scaled):
    """The weights after some steps."""
    torch.manual_seed(0)
    model = Pictures()
    x, y = torch.randn(4, 3, 6, 8), torch.randint(0, 20, (4,))
    model, x, y = model.to(device), x.to(device), y.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler(device, init_scale=2.0**10, enabled=scaled)
    with samebits.portable():
        for _ in range(3):
            optimizer.zero_grad()
            with torch.autocast(device, dtype=dtype):
                out = model(x)
                loss = functional.cross_entropy(out, y) + functional.l1_loss(out, -out)
                loss = loss + out.pow(2).sum().log()
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
    return [loss.detach(), *(each.detach().cpu() for each in model.state_dict().values())]


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_a_training(dtype, scaled):
    """Of layers that torch computes in other dtypes on a GPU; with a scaler too."""
    expected, found = (trained(device, dtype, scaled=scaled) for device in ("cpu", "cuda"))
    assert all(each.isfinite().all() for each in expected)
    assert [str(samebits.digest(each.cpu())) for each in found] == [
        str(samebits.digest(each)) for each in expected
    ]


def test_the_cache_of_weights_is_used():
    """A weight that is used twice is converted once, so its gradients are added in the low dtype."""

    def gradient(device, *, cached):
        torch.manual_seed(1)
        x, weight = torch.randn(2, 3, 5), torch.randn(3, 3, 3)
        x, weight = x.to(device), weight.to(device).requires_grad_()
        with samebits.portable():
            with torch.autocast(device, dtype=torch.bfloat16, cache_enabled=cached):
                out = functional.conv1d(functional.conv1d(x, weight, padding="same"), weight, padding="valid")
            return str(samebits.digest(torch.autograd.grad(out.float().square().sum(), weight)[0].cpu()))

    assert gradient("cuda", cached=True) == gradient("cpu", cached=True)
    assert gradient("cuda", cached=False) == gradient("cpu", cached=False)
    assert gradient("cpu", cached=True) != gradient("cpu", cached=False)


def test_other_threads_have_torchs_autocast():
    """A thread that is not in portable mode, meanwhile and afterwards."""
    x = torch.ones(2, 4, device="cuda", dtype=torch.bfloat16)
    found = []

    def run():
        with torch.autocast("cuda", dtype=torch.bfloat16):
            torch.stack([x, x.float()])  # torch has no kernel of autocast for it
            found.append(functional.layer_norm(x, (4,)).dtype)

    entered, go_on = threading.Event(), threading.Event()
    other = threading.Thread(target=lambda: (entered.wait(), run(), go_on.set()))
    other.start()  # before portable mode begins, which new threads take over
    with samebits.portable():
        entered.set()
        go_on.wait()
        run()
    other.join()
    run()
    assert found == [torch.float32, torch.bfloat16, torch.float32]


def test_a_loss_that_a_gpu_refuses():
    """`binary_cross_entropy` under autocast is an error there, and computed in float32 on the CPU."""
    with samebits.portable():
        found = []
        for device in ("cpu", "cuda"):
            with torch.autocast(device, dtype=torch.bfloat16):
                x = torch.tensor([0.2, 0.7], device=device, dtype=torch.bfloat16)
                found.append(functional.binary_cross_entropy(x, x).item())
    assert found[0] == found[1]
