"""Portable mode on a CUDA device: the bits of the CPU, of kernels, ops with their gradients, trainings."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from device_bits import listed, other_bits
from torch import nn
from torch.nn import functional

import samebits
from samebits.errors import SamebitsError
from samebits.portable import device_exactness
from samebits.portable.backends import backend_of, cuda_chains, cuda_layers, cuda_products
from samebits.portable.kernels import activations, attention, elementwise, norms, reductions
from samebits.portable.kernels import random as drawing
from samebits.portable.kernels.attention import Heads

pytestmark = pytest.mark.gpu

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
DTYPES = [torch.float32, torch.float64]


@pytest.fixture(scope="module", autouse=True)
def _started():
    """Torch keeps what it learns of devices, which is no test's doing."""
    torch.cuda.init()
    torch.cuda.device_count()


def with_gradients(run):
    """The same function, and the gradients of all its inputs."""

    def both(*inputs):
        inputs = [x.requires_grad_(x.is_floating_point()) for x in inputs]
        outs = listed(run(*inputs))
        loss = sum((out.abs() if out.is_complex() else out).cos().sum() for out in outs)
        wanted = [x for x in inputs if x.requires_grad]
        return [*outs, *torch.autograd.grad(loss, wanted)]

    return both


SHAPES = {
    "rows": ((5, 700), (1,)),
    "columns": ((700, 5), (0,)),
    "middle": ((3, 300, 4), (1,)),
    "outer and inner": ((3, 300, 4), (0, 2)),
    "all": ((70_000,), (0,)),
    "every other": ((2, 3, 4, 5, 6), (0, 2, 4)),
}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", SHAPES)
def test_reductions(name, dtype):
    """Every kind, over axes of every place; one chunk and many, and a tree of several launches."""
    shape, dims = SHAPES[name]
    x, b = torch.randn(shape, dtype=dtype), torch.randn(shape, dtype=dtype)

    def all_kinds(x, b):
        mean = reductions.mean_over(x, dims)
        return [
            mean,
            reductions.sum_squares_over(x, dims),
            reductions.sum_products_over(x, b, dims),
            reductions.sum_deviations_over(x, mean, dims),
            reductions.sum_cross_over(x, mean, b, dims),
            reductions.sum_magnitudes_over(x.transpose(0, -1), dims[:1]),
            reductions.product_over(x, dims),
        ]

    assert other_bits(all_kinds, x, b) == []


def test_a_reduction_of_more_axes_than_a_launch_takes():
    """None of which is part of another."""
    x, b = torch.randn((2,) * 18), torch.randn((2,) * 18)

    def run(x, b):
        x, b = (each.permute(*range(17, -1, -1)) for each in (x, b))
        return [reductions.sum_over(x, (3,)), reductions.sum_products_over(x, b, tuple(range(0, 18, 2)))]

    assert other_bits(run, x, b) == []


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_norms_and_softmax(dtype):
    """Forward and backward, with weights and without."""
    x, g, w = (
        torch.randn(4, 6, 300, dtype=dtype),
        torch.randn(4, 6, 300, dtype=dtype),
        torch.randn(6, dtype=dtype),
    )
    row = torch.randn(300, dtype=dtype)

    def rows(x, g, row):
        x, g = x.view(24, 300), g.view(24, 300)
        out, mean, rstd = norms.layer_norm(x, row, None, 24, 1e-5)
        gradient = norms.layer_norm_gradient(g, x, mean, rstd, row)
        found = [out, mean, rstd, gradient, *norms.layer_norm_weight_gradients(g, x, mean, rstd)]
        for log in (False, True):
            y = attention.softmax(x, 1, log)
            found += [y, attention.softmax_gradient(g, y, 1, log)]
        return found

    def channels(x, g, w):
        grouped = norms.group_norm(x, w, w, 3, 1e-5)
        batch = norms.batch_norm(x, w, w, (None, None), (1e-5, 0.1))
        given = g, x, batch[1:], w
        return [
            *grouped,
            *norms.group_norm_gradient(g, x, *grouped[1:], w),
            *norms.group_norm_gradient(g, x, *grouped[1:], None),
            *batch,
            *norms.batch_norm_gradient(*given, training=True),
            *norms.batch_norm_gradient(*given, training=False),
        ]

    assert other_bits(rows, x, g, row) == []
    assert other_bits(channels, x, g, w) == []


@pytest.mark.parametrize("at_a_time", [None, 5, 3, 1])
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_attention(dtype, is_causal, at_a_time, monkeypatch):
    """With a mask that hides some queries altogether, and heads that share keys; some heads at a time."""
    if at_a_time is not None:
        monkeypatch.setattr(cuda_layers, "_MOST_BYTES", at_a_time * 13 * 17 * dtype.itemsize)
    query, gradient = torch.randn(2, 4, 13, 8, dtype=dtype), torch.randn(2, 4, 13, 5, dtype=dtype)
    key, value = torch.randn(2, 2, 17, 8, dtype=dtype), torch.randn(2, 2, 17, 5, dtype=dtype)
    mask = torch.randn(2, 4, 13, 17, dtype=dtype)
    mask[0, 1, 3:5] = -torch.inf

    def attend(query, key, value, mask, gradient):
        heads, plain = Heads(query, key, value, mask, is_causal), Heads(query, key, value, None, is_causal)
        return [
            *attention.attend(heads),
            *attention.attend_backward(heads, gradient),
            *attention.attend(plain),
            *attention.attend_backward(plain, gradient),
        ]

    assert other_bits(attend, query, key, value, mask, gradient) == []


@pytest.mark.parametrize("kind", reductions.KINDS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_accumulation(dtype, kind):
    """Indices that meet, negative ones among them."""
    out, src = torch.randn(2, 9, 4, dtype=dtype), torch.randn(2, 30, 4, dtype=dtype)
    index = torch.randint(-9, 9, (2, 30, 4))

    assert other_bits(lambda o, i, s: reductions.accumulate_(o, i, s, kind), out, index, src) == []


def test_an_index_that_is_no_row():
    """It is told, and the device goes on."""
    out, index = torch.zeros(1, 3, 2, device="cuda"), torch.full((1, 2, 2), 3, device="cuda")
    with pytest.raises(IndexError):
        reductions.accumulate_(out, index, out[:, :2], "add")
    assert (out + 1).sum() == 6


LAYOUTS = {
    "rows": lambda x: x,
    "columns": lambda x: x.t().contiguous().t(),
    "steps": lambda x: x.repeat(2, 2)[::2, ::2],
}


@pytest.mark.parametrize("shape", [*cuda_products.SHAPES, cuda_products.SPLIT], ids=lambda shape: shape.name)
@pytest.mark.parametrize("first", LAYOUTS)
@pytest.mark.parametrize("second", LAYOUTS)
def test_large_products(first, second, shape, monkeypatch):
    """Tile by tile, with each layout of the operands and what comes after the product; a batch of them."""
    is_split = shape is cuda_products.SPLIT
    monkeypatch.setattr(cuda_products, "SHAPES", cuda_products.SHAPES if is_split else (shape,))
    monkeypatch.setattr(cuda_products, "are_few", lambda tiles, processors: is_split)
    monkeypatch.setattr(cuda_products, "_LEAST_WORK", 1)
    a, b, c = torch.randn(70, 300), torch.randn(300, 131), torch.randn(131)

    def run(a, b, c):
        a, b = LAYOUTS[first](a), LAYOUTS[second](b)
        with samebits.portable():
            return [
                a @ b,
                torch.addmm(c, a, b),
                torch.addmm(c, a, b, beta=0.5, alpha=2),
                torch.stack([a, -a]) @ b,
                torch.stack([b.t(), b.t()]) @ a.t().expand(2, -1, -1),
            ]

    assert other_bits(run, a, b, c) == []


def test_chains_in_portions(monkeypatch):
    """The sum goes on where the last portion ended; long products of few outputs have many chains."""
    monkeypatch.setattr(cuda_chains, "_MOST_BYTES", 64)
    a, b = torch.randn(2, 3, 2000), torch.randn(2, 2000, 5)

    def run(a, b):
        with samebits.portable():
            return [a @ b, a[0, 0] @ b[0, :, 0], a[1] @ b[0, :, 1]]

    assert other_bits(run, a, b) == []


@pytest.mark.parametrize("first", LAYOUTS)
def test_more_rows_than_a_grid_has(first, monkeypatch):
    """They are launched in portions, of two rows of blocks here; a batch of them too."""
    monkeypatch.setattr(cuda_products, "MOST_BLOCKS", 2)
    monkeypatch.setattr(cuda_products, "are_few", lambda tiles, processors: False)
    monkeypatch.setattr(cuda_products, "_LEAST_WORK", 1)
    a, b, c = torch.randn(600, 40), torch.randn(40, 3), torch.randn(3)

    def run(a, b, c):
        a = LAYOUTS[first](a)
        with samebits.portable():
            return [a @ b, torch.addmm(c, a, b, alpha=2), torch.stack([a, -a, a]) @ b]

    assert other_bits(run, a, b, c) == []


@pytest.mark.parametrize(
    "shapes", [((0, 2000), (2000, 5)), ((5, 2000), (2000, 0)), ((3, 0, 2000), (3, 2000, 2))]
)
def test_long_products_of_no_outputs(shapes):
    """There is nothing to launch."""

    def run(a, b):
        with samebits.portable():
            return [a @ b]

    assert other_bits(run, *map(torch.randn, shapes)) == []


@pytest.mark.parametrize("count", [1, 2, 3, 1001])
def test_random_values(count):
    """Every kind; numbers of them that leave a part of the last block."""
    key = 2**63 + 12345

    def draw(like):
        outs = [
            torch.empty(count, dtype=dtype, device=like.device)
            for dtype in (*DTYPES, torch.uint8, torch.int64)
        ]
        for out in outs[:2]:
            drawing.uniform_into(out, key, -1.0, 2.0, out.dtype)
        found = [out.clone() for out in outs[:2]]
        for out in outs[:2]:
            drawing.normal_into(out, key, 0.5, 2.0)
        found += [out.clone() for out in outs[:2]]
        drawing.bernoulli_into(outs[0], key, 0.3)
        drawing.bernoulli_into(outs[2], key, 0.3)
        drawing.integers_into(outs[3], key, -3, 2**40)
        drawing.exponential_into(outs[1], key, 2.0)
        return [*found, *outs]

    assert other_bits(draw, torch.ones(1)) == []


def test_a_kernel_refuses_tensors_of_the_cpu():
    """Their addresses mean nothing there."""
    x = torch.ones(3, device="cuda")
    with pytest.raises(RuntimeError, match="kernel of cuda:0 got a tensor on cpu"):
        backend_of(x).binary("pow", x, torch.ones(3), x)


def spectrum(x):
    """Transforms of complex and of real numbers."""
    return [torch.fft.rfft(x), torch.fft.ifft(torch.complex(x, x)).real]


OPS = {
    "arithmetic": lambda x, y: [
        x / 3,
        x.div(0.7, rounding_mode="floor"),
        y.div(0.3, rounding_mode="trunc"),
        x + 2 * y,
        x / y.abs(),
    ],
    "scaled": lambda x, y: [x.add(y, alpha=0.3), x.lerp(y, 0.3), x.lerp(y, 0.7), x.addcdiv(x, y, value=0.1)],
    "functions": lambda x, y: [x.exp(), x.sigmoid(), x.tanh(), functional.gelu(y), x.abs().pow(0.7), x**3],
    "reductions": lambda x, y: [
        x.mean(),
        y.std(1),
        x.logsumexp(0),
        x.cumsum(1),
        y.norm(3),
        x.prod(1),
        x.var(),
    ],
    "products": lambda x, y: [
        x @ y.t(),
        torch.einsum("ij,ij->i", x, y),
        functional.linear(x, y, x[:, 0].sum()),
    ],
    "order": lambda x, y: [x.sort(0).values, y.topk(3, 1).values, x.median(1).values, x.max(1).values],
    "indices": lambda x, y: [
        x.index_add(0, torch.arange(6, device=x.device) // 2, y),
        x[[1, 1, 0]],
        x.flip(0),
    ],
    "places": lambda x, y: [
        x.scatter(0, torch.arange(60, device=x.device).view(6, 10) % 4, y),
        x.scatter(1, x.argsort(1) // 2, y),
    ],
    "windows": lambda x, y: [functional.avg_pool1d(x[None], 3, 2), functional.max_pool1d(y[None], 2)],
    "images": lambda x, y: [
        functional.interpolate(x[None, None], scale_factor=1.7, mode="bilinear"),
        functional.pad(y[None, None], (2, 1, 1, 2), mode="reflect"),
    ],
    "losses": lambda x, y: [
        functional.huber_loss(x, y),
        functional.binary_cross_entropy_with_logits(x, y.sigmoid()),
        functional.cross_entropy(x, torch.arange(6, device=x.device), label_smoothing=0.1),
        functional.kl_div(x.log_softmax(1), y.softmax(1), reduction="batchmean"),
    ],
    "linear algebra": lambda x, y: [
        torch.linalg.cholesky(x @ x.t() + 5 * torch.eye(6, dtype=x.dtype, device=x.device)),
        torch.linalg.solve(x[:, :6] + 5 * torch.eye(6, dtype=x.dtype, device=x.device), y),
        torch.linalg.svdvals(y),
        torch.linalg.qr(y.t()).R,
    ],
    "numbers": lambda x, y: [
        x + 0.1,
        0.1 - x,
        y * 0.1,
        torch.tensor(0.1) * x,
        y / torch.tensor(0.3),
        x - y[0, 0],
    ],
    "given tensors": lambda x, y: [torch.div(x.detach(), 3, out=torch.empty_like(x)) + x * y],
    "indices of the CPU": lambda x, y: [x[torch.tensor([0, 0, 2])], y.index_put((torch.tensor([1]),), x[:1])],
    "neighbours": lambda x, y: [
        functional.interpolate(x[None, None], scale_factor=2.1, mode="nearest"),
        functional.interpolate(y[None], size=23, mode="nearest-exact"),
    ],
    "transforms": lambda x, y: spectrum(x) + spectrum(y),
    "scalars": lambda x, y: [
        x * torch.tensor(0.3, dtype=x.dtype) + y,
        torch.where(x > 0, x, torch.tensor(0.1, dtype=x.dtype)),
    ],
}


@pytest.mark.parametrize("dtype", [*DTYPES, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", OPS)
def test_ops(name, dtype):
    """With their gradients."""
    if dtype == torch.bfloat16 and name in {"linear algebra", "transforms"}:
        pytest.skip("torch has none of that dtype")
    x, y = torch.randn(6, 10, dtype=dtype), torch.randn(6, 10, dtype=dtype)

    def run(*inputs):
        with samebits.portable():
            return with_gradients(OPS[name])(*inputs)

    assert other_bits(run, x, y) == []


LAYERS = {
    "conv": (lambda: nn.Conv2d(6, 4, 3, 2, 1, groups=2), (2, 6, 9, 8)),
    "dilated": (lambda: nn.Conv2d(4, 4, (3, 2), 1, (2, 1), 2, groups=4), (2, 4, 9, 8)),
    "transposed": (lambda: nn.ConvTranspose2d(6, 8, 3, 2, 1, 1, groups=2), (2, 6, 5, 4)),
    "volume": (lambda: nn.Conv3d(2, 3, 2), (2, 2, 4, 5, 4)),
    "lstm": (lambda: nn.LSTM(5, 6, 2, bidirectional=True, dropout=0.2), (4, 3, 5)),
    "projected": (lambda: nn.LSTM(5, 6, proj_size=3), (4, 3, 5)),
    "gru": (lambda: nn.GRU(5, 6, 2, dropout=0.2), (4, 3, 5)),
    "rnn": (lambda: nn.RNN(5, 6, nonlinearity="relu"), (4, 3, 5)),
    "rms": (lambda: nn.RMSNorm(7), (4, 3, 7)),
    "batch": (lambda: nn.BatchNorm1d(3), (5, 3, 40)),
    "encoder": (lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), (2, 5, 8)),
}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", LAYERS)
def test_layers(name, dtype):
    """A layer draws its dropout, gives results and gradients of all parameters."""
    make, shape = LAYERS[name]

    def run(x):
        torch.manual_seed(3)
        with samebits.portable():
            layer = make().to(x)
            out = layer(x)
            out = out[0] if isinstance(out, tuple) else out
            return [out, *torch.autograd.grad(out.sin().sum(), list(layer.parameters()))]

    assert other_bits(run, torch.randn(shape, dtype=dtype)) == []


def packed(x):
    """Recurrent layers of sequences of several lengths, and the gradients of their weights."""
    torch.manual_seed(3)
    layers = nn.LSTM(4, 5).to(x.device), nn.GRU(4, 5, 2, bidirectional=True).to(x.device)
    given = nn.utils.rnn.pack_padded_sequence(x, [5, 3, 2])
    outs = [nn.utils.rnn.pad_packed_sequence(layer(given)[0])[0] for layer in layers]
    weights = [weight for layer in layers for weight in layer.parameters()]
    return [*outs, *torch.autograd.grad(sum(out.sin().sum() for out in outs), weights)]


def test_packed_sequences():
    """Their lengths are in CPU memory, as torch wants them."""

    def run(x):
        with samebits.portable():
            return packed(x)

    assert other_bits(run, torch.randn(5, 3, 4)) == []


@pytest.mark.parametrize("foreach", [None, True])
def test_clipping(foreach):
    """Of norms and of values, as it comes and with the many at a time."""

    def run(*inputs):
        with samebits.portable():
            parameters = [nn.Parameter(x) for x in inputs]
            for each in parameters:
                each.grad = each.detach().sin()
            norm = nn.utils.clip_grad_norm_(parameters, 0.5, foreach=foreach)
            nn.utils.clip_grad_value_(parameters, 0.2, foreach=foreach)
            return [norm, *(each.grad for each in parameters)]

    assert other_bits(run, torch.randn(5), torch.randn(3, 4)) == []


FRESH = """
import torch, samebits
from torch.nn import functional
x = torch.randn(1, 2, 5, 4)
with samebits.portable():
    found = [functional.scaled_dot_product_attention(y, y, y).cpu() for y in (x, x.cuda())]
    half = [functional.softmax(y.half(), -1, dtype=torch.float32).cpu() for y in (x, x.cuda())]
print(torch.equal(*found), torch.equal(*half))
"""


def test_a_fresh_process(tmp_path):
    """What has been imported decides how arguments are checked."""
    (tmp_path / "fresh.py").write_text(FRESH)
    done = subprocess.run(
        [sys.executable, "fresh.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["True", "True"], done.stderr


WRONG = {
    "in place": lambda x: x.long().div_(3),
    "index": lambda x: functional.embedding(torch.tensor([9], device=x.device), x),
    "places": lambda x: x.scatter(0, torch.zeros(1, 1, dtype=torch.int64, device=x.device), x.double()),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_of_the_cpu(name):
    """The kind of error that the CPU raises, and the device goes on."""
    for device in ("cpu", "cuda"):
        x = torch.randn(3, 4, device=device)
        with samebits.portable(), pytest.raises((RuntimeError, IndexError)):
            WRONG[name](x)
        assert x.isfinite().all()


OPTIMIZERS = [
    "Adadelta",
    "Adagrad",
    "Adam",
    "Adamax",
    "AdamW",
    "ASGD",
    "NAdam",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SGD",
]


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32, torch.int64], ids=str)
@pytest.mark.parametrize("bounds", [(0, 7), (2, 5), (0, 0)])
def test_a_histogram_of_integers(dtype, bounds):
    """Which the CPU refuses, also in portable mode. Mixtures of experts count tokens so."""
    tokens = torch.arange(100) ** 2 % 11 % 8
    expected = torch.histc(tokens.double(), 4, *bounds).to(dtype)
    with samebits.portable():
        found = torch.histc(tokens.to(dtype).cuda(), 4, *bounds)
        with pytest.raises(NotImplementedError):
            torch.histc(tokens.to(dtype), 4, *bounds)

    assert torch.equal(found.cpu(), expected)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(name, dtype):
    """As they come, which is tensor by tensor on the CPU; more tensors than a launch takes."""

    def run(*inputs):
        with samebits.portable():
            parameters = [nn.Parameter(x) for x in inputs]
            optimizer = getattr(torch.optim, name)(parameters, lr=0.1)
            for step in range(3):
                for each in parameters:
                    each.grad = (each.detach() * (step + 1)).sin()
                optimizer.step()
            return parameters

    assert other_bits(run, *(torch.randn(3, size, dtype=dtype) for size in range(1, 20))) == []


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("SGD", {"momentum": 0.9, "nesterov": True}),
        ("SGD", {"fused": True, "weight_decay": 0.1}),
        ("Adam", {"fused": True, "amsgrad": True, "weight_decay": 0.1}),
        ("AdamW", {"fused": True, "maximize": True}),
    ],
    ids=str,
)
def test_options_of_optimizers(name, options, dtype):
    """With momentum, and in one op."""

    def run(x):
        with samebits.portable():
            weight = nn.Parameter(x)
            optimizer = getattr(torch.optim, name)([weight], lr=0.1, **options)
            for _ in range(3):
                weight.grad = weight.detach().sin()
                optimizer.step()
            return weight

    assert other_bits(run, torch.randn(50, dtype=dtype)) == []


def test_another_stream():
    """Kernels are queued on torch's current stream, and gradients on that of the forward pass."""

    def run(x):
        stream = torch.cuda.Stream() if x.is_cuda else None
        with samebits.portable(), torch.cuda.stream(stream):
            if stream is not None:
                stream.wait_stream(torch.cuda.default_stream())
            found = with_gradients(lambda x: (x @ x).exp().softmax(0))(x)
        torch.cuda.synchronize()
        return found

    assert other_bits(run, torch.randn(40, 40) / 10) == []


def test_divisions_by_numbers_divide(monkeypatch):
    """A GPU of itself multiplies by 1 / number, in torch's own ops and in those that kernels are made of."""
    seen = []
    on = device_exactness._on
    monkeypatch.setattr(device_exactness, "_on", lambda *args: seen.append(args) or on(*args))
    x = torch.randn(5, device="cuda")
    forms = (
        lambda: x / 3,
        lambda: x.clone().div_(3),
        lambda: x // 3,
        x.mean,
        lambda: torch.div(x, 3, out=torch.empty_like(x)),
        lambda: torch.floor_divide(x, 3, out=torch.empty_like(x)),
    )
    with samebits.portable():
        for run in forms:
            before = len(seen)
            run()
            assert len(seen) > before
    before = len(seen)
    x / 3
    assert len(seen) == before


def test_the_seed_of_the_device_has_no_effect():
    """Keys come from the CPU's generator."""

    def draw(seed):
        torch.manual_seed(5)
        torch.cuda.manual_seed(seed)
        with samebits.portable():
            return torch.randn(20, device="cuda")

    assert torch.equal(draw(1), draw(2))


def test_a_thread_of_its_own():
    """One that has not used the device before."""
    x = torch.randn(30, 30, device="cuda")

    def run():
        with samebits.portable():
            return x.exp().sum(0)

    with ThreadPoolExecutor(1) as pool:
        assert torch.equal(pool.submit(run).result(), run())


REFUSED = {
    "two devices": (lambda x: x @ x.cpu().t(), (RuntimeError, SamebitsError), "device|on cpu and cuda"),
    "generator": (lambda x: x.normal_(generator=torch.Generator("cuda")), SamebitsError, "generator of cuda"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    """With torch's own error where it has one: the fake device, whose ops are the CPU's, has none."""
    run, error, text = REFUSED[name]
    x = torch.randn(3, 4, device="cuda")
    with samebits.portable(), pytest.raises(error, match=text):
        run(x)


@pytest.fixture(scope="module")
def models():
    """The golden trainings."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(GOLDEN))
        yield importlib.import_module("portable_models")


DIGESTS = json.loads((GOLDEN / "portable.json").read_text())["digests"]
TRAININGS = [name for name in DIGESTS if not name.startswith("example_")]


@pytest.mark.parametrize("name", TRAININGS)
def test_golden_trainings(name, models):
    """The digest of the CPU, from the same file."""
    assert set(models.TRAININGS) == set(TRAININGS)
    torch.set_default_device("cuda")
    try:
        with samebits.portable():
            trained = models.train(name)
    finally:
        torch.set_default_device(None)

    assert str(samebits.digest(trained)) == DIGESTS[name]


def test_functions_are_numbered_alike():
    """A mistake there would show as other bits for some functions only."""
    x = torch.rand(40) + 0.5
    for name in elementwise.UNARY:
        assert other_bits(lambda x, n=name: elementwise.unary(n, x), x) == [], name
    for name in activations.NAMES:
        run = lambda x, n=name: activations.pointwise(n, x, x, x[:1], params=(1.2, 0.4, 0.3, 0.2))  # noqa: E731
        assert other_bits(run, x) == [], name
