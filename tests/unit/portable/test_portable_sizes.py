"""Values and gradients of layers at random sizes, about the kernels' blocks and beyond, beside float64.

Torch's own samples of inputs are small; what a kernel does between two blocks shows at these sizes only.
`SAMEBITS_TEST_SEEDS=20` asks for as many times more cases.
"""

from __future__ import annotations

import math
import os
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - its usual name

import samebits
from samebits.portable.backends.library import load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from samebits.portable.backends.library import Kernels

CASES = 60
SEEDS = int(os.environ.get("SAMEBITS_TEST_SEEDS", "1"))
Draw = random.Random
EDGES = (1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 47, 48, 49, 64, 96, 100, 127, 128, 129, 130, 255, 257, 300)


@dataclass(frozen=True)
class Case:
    """One call.

    Args:
        name: for the message.
        call: of the tensors.
        tensors: what gradients are asked for, if they are floats.
    """

    name: str
    call: Callable[..., Any]
    tensors: Sequence[Tensor]


def shaped(draw: Draw, *sizes: int) -> Tensor:
    """Normal values, in memory as a tensor may lie: in order, turned, or a part of a larger one."""
    kind = draw.randrange(4)
    if kind == 1 and len(sizes) > 1:
        order = draw.sample(range(len(sizes)), len(sizes))
        back = [order.index(i) for i in range(len(sizes))]
        return torch.randn([sizes[i] for i in order]).permute(back)
    if kind == 2:
        return torch.randn(*sizes[:-1], 2 * sizes[-1])[..., ::2]
    if kind == 3:
        return torch.randn(sizes[0] + 1, *sizes[1:])[1:]
    return torch.randn(sizes)


def products(draw: Draw) -> Case:
    """Matrices, vectors, batches of them, and what is added."""
    m, n, k = (draw.choice((*EDGES, 511, 513, 700)) for _ in range(3))
    kind = draw.choice(("mm", "linear", "addmm", "bmm", "mv", "einsum"))
    if kind == "linear":
        return Case(
            f"{kind} {m} {n} {k}", F.linear, [shaped(draw, m, k), shaped(draw, n, k), shaped(draw, n)]
        )
    if kind == "addmm":
        scales = {"alpha": draw.choice((1, 0.5)), "beta": draw.choice((1, 0.3, 0))}
        tensors = [shaped(draw, draw.choice((1, m)), n), shaped(draw, m, k), shaped(draw, k, n)]
        return Case(f"{kind} {m} {n} {k} {scales}", lambda *given: torch.addmm(*given, **scales), tensors)
    if kind in {"bmm", "einsum"}:
        m, n, k, batch = min(m, 130), min(n, 130), min(k, 300), draw.choice((1, 2, 3, 7))
        tensors = [shaped(draw, batch, m, k), shaped(draw, batch, k, n)]
        call = torch.bmm if kind == "bmm" else lambda a, b: torch.einsum("bmk,bkn->nbm", a, b)
        return Case(f"{kind} {batch} {m} {n} {k}", call, tensors)
    right = shaped(draw, k) if kind == "mv" else shaped(draw, k, n)
    return Case(f"{kind} {m} {n} {k}", torch.matmul, [shaped(draw, m, k), right])


def convolutions(draw: Draw) -> Case:
    """One to three dimensions, groups, depthwise, transposed."""
    dims, groups = draw.choice((1, 2, 2, 2, 3)), draw.choice((1, 1, 1, 2, 3, 8, 16))
    depth, rows = (draw.choice((1, 1, 2, 3, 5, 8, 16, 20, 32, 64)) for _ in range(2))
    if groups > 3:
        depth, rows = min(depth, 8), min(rows, 8)
    kernel = [draw.choice((1, 2, 3, 3, 4, 5, 7)) for _ in range(dims)]
    stride, dilation = ([draw.choice((1, 1, 1, 2, 3)) for _ in range(dims)] for _ in range(2))
    padding = [draw.choice((0, 1, k // 2, k)) for k in kernel]
    least = [max(1, d * (k - 1) + 1 - 2 * p) for k, d, p in zip(kernel, dilation, padding, strict=True)]
    most = 7 if dims == 3 else 32
    sizes = [max(low, draw.choice((1, 3, 7, 8, 14, 16, 17, most))) for low in least]
    image = shaped(
        draw,
        draw.choice((1, 2, 3, 8)),
        groups * depth,
        *(min(s, max(most, low)) for s, low in zip(sizes, least, strict=True)),
    )
    transposed = draw.random() < 0.35
    name = f"{transposed=} {tuple(image.shape)} {kernel=} {stride=} {dilation=} {padding=} {groups=} {rows=}"
    if transposed:
        function = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[dims - 1]
        padding = [min(p, (d * (k - 1)) // 2) for p, k, d in zip(padding, kernel, dilation, strict=True)]
        more = [draw.randrange(max(s, d)) for s, d in zip(stride, dilation, strict=True)]
        weight = shaped(draw, groups * depth, rows, *kernel)
        call = lambda x, w, b: function(x, w, b, stride, padding, more, groups, dilation)  # noqa: E731
    else:
        plain = (F.conv1d, F.conv2d, F.conv3d)[dims - 1]
        weight = shaped(draw, groups * rows, depth, *kernel)
        call = lambda x, w, b: plain(x, w, b, stride, padding, dilation, groups)  # noqa: E731
    return Case(name, call, [image, weight, shaped(draw, groups * rows)])


def reductions(draw: Draw) -> Case:
    """Sums and what is made of them, running ones too."""
    sizes = [draw.choice(EDGES) for _ in range(draw.choice((1, 2, 2, 3)))]
    if draw.random() < 0.3:
        sizes = [draw.choice((1000, 4097, 40000))] + [draw.choice((1, 3, 17))] * (len(sizes) - 1)
    if math.prod(sizes) > 400_000:
        sizes = sizes[:2]
    dims = draw.sample(range(len(sizes)), draw.randint(1, len(sizes)))
    kinds: dict[str, Callable[[Tensor], Tensor]] = {
        "sum": lambda x: x.sum(dims),
        "mean": lambda x: x.mean(dims, keepdim=True),
        "var": lambda x: x.var(dims, correction=0),
        "norm": lambda x: torch.linalg.vector_norm(x, 2, dims),
        "norm 3": lambda x: torch.linalg.vector_norm(x, 3, dims),
        "logsumexp": lambda x: x.logsumexp(dims),
        "amax": lambda x: x.amax(dims),
        "cumsum": lambda x: x.cumsum(dims[0]),
        "softmax": lambda x: x.softmax(dims[0]),
        "log_softmax": lambda x: x.log_softmax(dims[0]),
        "normalize": lambda x: F.normalize(x, dim=dims[0]),
    }
    kind = draw.choice(sorted(kinds))
    return Case(f"{kind} {sizes} {dims}", kinds[kind], [shaped(draw, *sizes)])


def norms(draw: Draw) -> Case:
    """Layer, group, batch, instance and RMS."""
    samples, channels = draw.choice((2, 3, 8, 17)), draw.choice((1, 2, 4, 12, 16, 48, 100))
    sizes = draw.choice(([], [7], [33], [14, 14], [5, 9], [3, 4, 5], [300]))
    kind = draw.choice(("layer", "group", "batch", "eval", "instance", "rms"))
    if kind == "layer":
        channels = max(channels, 4)  # of two values the gradient is what is left of what cancels out
    weights = [shaped(draw, channels), shaped(draw, channels)]
    if kind in {"layer", "rms"}:
        x = shaped(draw, samples, *sizes, channels)
        if kind == "rms":
            return Case(
                f"{kind} {tuple(x.shape)}", lambda x, w: F.rms_norm(x, (channels,), w), [x, weights[0]]
            )
        return Case(
            f"{kind} {tuple(x.shape)}", lambda x, w, b: F.layer_norm(x, (channels,), w, b), [x, *weights]
        )
    x = shaped(draw, samples, channels, *(sizes or [6]))
    groups = draw.choice([g for g in (1, 2, 4, channels) if channels % g == 0])
    mean, variance = torch.randn(channels), torch.rand(channels) + 0.5

    def call(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        if kind == "group":
            return F.group_norm(x, groups, w, b)
        if kind == "instance":
            return F.instance_norm(x, weight=w, bias=b)
        statistics = mean.to(x.dtype).clone(), variance.to(x.dtype).clone()
        return F.batch_norm(x, *statistics, w, b, training=kind == "batch")

    return Case(f"{kind} {tuple(x.shape)} {groups=}", call, [x, *weights])


def turned_grid(x: Tensor) -> Tensor:
    """Where to look for 6 x 7 pixels of images that are turned and moved a little."""
    turn = x.new_tensor([[[0.9, 0.2, 0.1], [-0.3, 1.1, 0.0]]]).expand(len(x), 2, 3)
    return F.affine_grid(turn, [len(x), 1, 6, 7], align_corners=False)


def images(draw: Draw) -> Case:
    """Pooling, interpolation, padding, unfolding."""
    x = shaped(
        draw,
        draw.choice((1, 3)),
        draw.choice((1, 3, 16, 33)),
        draw.choice((7, 8, 14, 31)),
        draw.choice((5, 8, 16, 29)),
    )
    kinds: dict[str, Callable[[Tensor], Tensor]] = {
        "max": lambda x: F.max_pool2d(x, 3, 2, 1),
        "avg": lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False),
        "lp": lambda x: F.lp_pool2d(x.abs() + 0.1, 2, 2),
        "adaptive avg": lambda x: F.adaptive_avg_pool2d(x, (3, 4)),
        "adaptive max": lambda x: F.adaptive_max_pool2d(x, (2, 3)),
        "bilinear": lambda x: F.interpolate(x, scale_factor=1.7, mode="bilinear", align_corners=False),
        "bilinear down": lambda x: F.interpolate(x, (4, 3), mode="bilinear", antialias=True),
        "bicubic": lambda x: F.interpolate(x, (9, 40), mode="bicubic", align_corners=True),
        "nearest": lambda x: F.interpolate(x, scale_factor=2),
        "reflect": lambda x: F.pad(x, (2, 3, 1, 4), mode="reflect"),
        "unfold": lambda x: F.unfold(x, 3, padding=1, stride=2),
        "grid": lambda x: F.grid_sample(x, turned_grid(x), align_corners=False),
        "shuffle": lambda x: F.pixel_unshuffle(F.interpolate(x, (8, 6)), 2),
    }
    kind = draw.choice(sorted(kinds))
    return Case(f"{kind} {tuple(x.shape)}", kinds[kind], [x])


def places(draw: Draw) -> Case:
    """Sums in the places that indices say, many of them in one."""
    rows, width, count = draw.choice(EDGES), draw.choice((1, 3, 16, 33, 130)), draw.choice((1, 5, 64, 1000))
    index = torch.tensor([draw.randrange(rows) for _ in range(count)])
    offsets = torch.tensor(sorted({0, *(draw.randrange(count) for _ in range(4))}))
    table, values = shaped(draw, rows, width), shaped(draw, count, width)
    kind = draw.choice(
        ("embedding", "bag", "index_add", "scatter_add", "index_put", "gather", "index_reduce")
    )
    wide = index[:, None].expand(count, width)
    calls: dict[str, tuple[Callable[..., Tensor], list[Tensor]]] = {
        "embedding": (lambda t: F.embedding(index, t), [table]),
        "bag": (lambda t: F.embedding_bag(index, t, offsets, mode="mean"), [table]),
        "index_add": (lambda t, v: t.index_add(0, index, v, alpha=0.7), [table, values]),
        "scatter_add": (lambda t, v: t.scatter_add(0, wide, v), [table, values]),
        "index_put": (lambda t, v: t.index_put((index,), v, accumulate=True), [table, values]),
        "gather": (lambda t: t.gather(0, wide), [table]),
        "index_reduce": (lambda t, v: t.scatter_reduce(0, wide, v, "mean"), [table, values]),
    }
    call, tensors = calls[kind]
    return Case(f"{kind} {rows} {width} {count}", call, tensors)


def attention(draw: Draw) -> Case:
    """With masks, causal, with fewer keys' heads."""
    batch, heads, size = draw.choice((1, 2)), draw.choice((1, 2, 4)), draw.choice((8, 16, 33, 64))
    queries, keys = (draw.choice((1, 7, 16, 33, 64, 100, 129, 200)) for _ in range(2))
    masked, causal = draw.random() < 0.3, draw.random() < 0.4
    groups = draw.choice([g for g in (1, 2) if heads % g == 0])
    mask = torch.randn(queries, keys) if masked else None
    if causal and not masked:
        keys = queries
    tensors = [shaped(draw, batch, heads, queries, size)]
    tensors += [shaped(draw, batch, heads // groups, keys, size) for _ in range(2)]

    def call(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        given = mask.to(q.dtype) if mask is not None else None
        return F.scaled_dot_product_attention(
            q, k, v, given, is_causal=causal and not masked, enable_gqa=groups > 1
        )

    return Case(f"{batch} {heads} {queries} {keys} {size} {masked=} {causal=} {groups=}", call, tensors)


def recurrent(draw: Draw) -> Case:
    """LSTM, GRU and RNN, some of them both ways and packed."""
    kind = draw.choice((nn.LSTM, nn.GRU, nn.RNN))
    inputs, hidden = draw.choice((1, 5, 32, 65)), draw.choice((1, 8, 33, 64))
    options = {"num_layers": draw.choice((1, 2)), "bidirectional": draw.random() < 0.4, "batch_first": True}
    batch, length = draw.choice((1, 3, 9)), draw.choice((1, 6, 13))
    lengths = sorted((draw.randint(1, length) for _ in range(batch)), reverse=True)
    model = kind(inputs, hidden, **options)
    names = [name for name, _ in model.named_parameters()]
    packed = draw.random() < 0.4

    def call(x: Tensor, *weights: Tensor) -> Tensor:
        if packed:
            x = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)  # type: ignore[assignment]
        found = torch.func.functional_call(model, dict(zip(names, weights, strict=True)), (x,))[0]
        result: Tensor = found.data if packed else found
        return result

    weights = [parameter.detach() for parameter in model.parameters()]
    name = f"{kind.__name__} {inputs} {hidden} {options} {batch} {length} {packed=}"
    return Case(name, call, [shaped(draw, batch, length, inputs), *weights])


def losses(draw: Draw) -> Case:
    """Of classes, and of values."""
    rows, classes = draw.choice(EDGES), draw.choice((2, 10, 17, 130, 1000))
    x, y = shaped(draw, rows, classes), shaped(draw, rows, classes)
    labels = torch.tensor([draw.randrange(classes) for _ in range(rows)])
    labels[0] = labels[0] if rows == 1 else -100
    weights = torch.rand(classes) + 0.1
    reduction = draw.choice(("mean", "sum"))
    calls: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
        "cross": lambda x, _: F.cross_entropy(x, labels, reduction=reduction, label_smoothing=0.1),
        "weighted": lambda x, _: F.cross_entropy(x, labels, weights.to(x.dtype), reduction=reduction),
        "soft": lambda x, y: F.cross_entropy(x, y.softmax(1), reduction=reduction),
        "mse": lambda x, y: F.mse_loss(x, y, reduction=reduction),
        "huber": lambda x, y: F.huber_loss(x, y, reduction=reduction),
        "bce": lambda x, y: F.binary_cross_entropy_with_logits(x, y.sigmoid(), reduction=reduction),
        "kl": lambda x, y: F.kl_div(x.log_softmax(1), y.log_softmax(1), reduction=reduction, log_target=True),
        "cosine": lambda x, y: F.cosine_similarity(x, y).sum(),
        "cdist": lambda x, y: torch.cdist(x[:40], y[:33]).sum(),
        "triplet": lambda x, y: F.triplet_margin_loss(x, y, x.flip(0) * 0.5, reduction=reduction),
    }
    kind = draw.choice(sorted(calls))
    return Case(f"{kind} {rows} {classes} {reduction}", calls[kind], [x, y])


FAMILIES = [products, convolutions, reductions, norms, images, places, attention, recurrent, losses]


def results(case: Case, dtype: torch.dtype, seed: int) -> list[Tensor]:
    """The value, and the gradients of a weighted sum of it."""
    tensors = [tensor.detach().to(dtype).requires_grad_() for tensor in case.tensors]
    if dtype == torch.float32:
        tensors = [tensor.detach().requires_grad_() for tensor in case.tensors]  # as they lie in memory
    value = case.call(*tensors)
    # torch's own draws are others in portable mode
    weight = torch.from_numpy(np.random.default_rng(seed).standard_normal(tuple(value.shape))).to(dtype)
    gradients = torch.autograd.grad(value, tensors, weight, allow_unused=True)
    return [value.detach(), *(gradient for gradient in gradients if gradient is not None)]


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_random_sizes_are_close_to_float64(family: Callable[[Draw], Case], seed: int) -> None:
    draw = Draw(seed)
    torch.manual_seed(seed)
    for _ in range(CASES):
        case = family(draw)
        exact = results(case, torch.float64, seed)
        plain = results(case, torch.float32, seed)
        with samebits.portable():
            ours = results(case, torch.float32, seed)
        for one, other, truth in zip(ours, plain, exact, strict=True):
            assert one.shape == truth.shape, case.name
            allowed = (
                2e-5 * float(truth.abs().max() if truth.numel() else 0) + 4 * _error(other, truth) + 1e-6
            )
            assert _error(one, truth) <= allowed, case.name


@pytest.fixture
def native() -> Iterator[Kernels]:
    """The kernels, whose instruction set a test may choose."""
    kernels, threads = load(), torch.get_num_threads()
    if kernels is None:
        pytest.skip("no kernels here")
    yield kernels
    kernels.select("")
    torch.set_num_threads(threads)


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_random_sizes_have_the_same_bits_everywhere(
    family: Callable[[Draw], Case], seed: int, native: Kernels
) -> None:
    draw = Draw(seed + 1000)
    torch.manual_seed(seed)
    for _ in range(CASES // 4):
        case = family(draw)
        found = []
        for isa, threads in (("avx512", 2), ("avx2", 1), ("neon", 2), ("scalar", 3)):
            if native.select(isa):
                torch.set_num_threads(threads)
                with samebits.portable():
                    found.append(results(case, torch.float32, seed))
        for others in found[1:]:
            assert all(map(_same_bits, found[0], others)), case.name


def _same_bits(one: Tensor, other: Tensor) -> bool:
    return one.contiguous().view(torch.int32).equal(other.contiguous().view(torch.int32))


def _error(found: Tensor, truth: Tensor) -> float:
    return float((found.double() - truth).abs().max()) if truth.numel() else 0.0
