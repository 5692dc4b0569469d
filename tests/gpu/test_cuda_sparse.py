"""Sparse tensors on a CUDA device in portable mode: the bits of the CPU, without torch's kernels for them."""

from __future__ import annotations

import contextlib

import pytest
import torch
from torch import nn

import samebits
from samebits._torch.kernel_overrides import KernelOverrides, op_named
from samebits.errors import SamebitsError
from samebits.portable._exact import SPARSE, base_of

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.filterwarnings("ignore:Sparse"),
]

KEYS = ("SparseCUDA", "SparseCsrCUDA")
MOVING = SPARSE | {"copy_sparse_to_sparse", "empty", "sparse_resize_and_clear"}
"""The ops of torch for sparse tensors on a GPU that portable mode may call: they compute nothing."""


@pytest.fixture(scope="module", autouse=True)
def _started():
    """Torch keeps what it learns of devices, which is no test's doing."""
    torch.cuda.init()
    torch.cuda.device_count()


class TorchComputesError(BaseException):
    """A kernel of torch for sparse tensors on a GPU was called that is not known to only move entries.

    Portable mode tells exceptions of a handler as torch would; this one must pass.
    """


def computing_at(key):
    """The ops of aten that torch has a kernel for there, but for those that only move."""
    found = torch._C._dispatch_get_registrations_for_dispatch_key(key)
    return {name.removeprefix("aten::") for name in found if base_of(name) not in MOVING}


@pytest.fixture(autouse=True)
def _torch_only_moves():
    """Have torch's own kernels for sparse tensors on a GPU fail, but for those in `MOVING`."""

    def forbidden(name):
        def run(*_, **__):
            raise TorchComputesError(name)

        return run

    with contextlib.ExitStack() as stack:
        for key in KEYS:
            kernels = {name: forbidden(name) for name in computing_at(key)}
            stack.enter_context(KernelOverrides(kernels, key).held())
        yield


ROWS, COLUMNS, STORED = 7, 5, 40


def stored(dtype=torch.float32, shape=(ROWS, COLUMNS), dense=()):
    """A COO tensor in CPU memory, whose places repeat and are in no order."""
    generator = torch.Generator().manual_seed(0)
    places = torch.stack([torch.randint(size, (STORED,), generator=generator) for size in shape])
    values = torch.randn(STORED, *dense, generator=generator, dtype=torch.float64).to(dtype)
    return torch.sparse_coo_tensor(places, values, (*shape, *dense), check_invariants=True)


def whole_numbers():
    """A COO tensor of integers."""
    return torch.sparse_coo_tensor([[0, 0, 2], [1, 1, 4]], [1, 2, 5], (ROWS, COLUMNS), check_invariants=True)


def parts(tensor):
    """What a tensor of any layout consists of, in CPU memory."""
    if tensor.layout == torch.strided:
        return [tensor]
    if tensor.layout == torch.sparse_coo:
        return [tensor._indices(), tensor._values(), torch.tensor(tensor.is_coalesced())]
    if tensor.layout == torch.sparse_csr:
        return [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
    return [tensor.ccol_indices(), tensor.row_indices(), tensor.values()]


def described(tensor):
    """All that two tensors must share, but for the device."""
    tensor = tensor.detach()
    pieces = [each.cpu() for each in parts(tensor)]
    return tensor.layout, tensor.shape, [(each.dtype, str(samebits.digest(each))) for each in pieces]


def other_bits(run, *inputs):
    """Compare what a function gives for inputs in CPU memory and on the device; the places that differ."""
    found = []
    for device in ("cpu", "cuda"):
        given = [x.detach().clone().to(device) for x in inputs]
        with samebits.portable():
            results = run(*given)
        results = list(results) if isinstance(results, tuple | list) else [results]
        assert {each.device.type for each in results} == {device}
        found.append([described(each) for each in results])
    return [at for at, (one, other) in enumerate(zip(*found, strict=True)) if one != other]


OPS = {
    "coalesced": lambda t, d: t.coalesce(),
    "dense": lambda t, d: [t.to_dense(), t.coalesce().to_dense()],
    "times a number": lambda t, d: [t * 2, 0.3 * t, t * torch.tensor(3.0), t.clone().mul_(0.5), -t],
    "times dense": lambda t, d: [t * d, d * t],
    "divided": lambda t, d: [t / 3, t / torch.tensor(0.7)],
    "sums": lambda t, d: [
        t + t,
        t.coalesce() + t.coalesce() * 2,
        t - t.t().t(),
        t.clone().add_(t, alpha=0.3),
    ],
    "sums with dense": lambda t, d: [
        d + t,
        torch.add(d, t, alpha=0.3),
        d - t,
        d.clone().add_(t),
        d.clone().sub_(t),
    ],
    "products": lambda t, d: [
        t @ d.t(),
        d.t() @ t,
        t.mv(d[0]),
        t.t() @ d,
        torch.sparse.mm(t.coalesce(), d.t()),
        torch.sparse.addmm(d @ d.t(), t, d.t(), beta=0.5, alpha=2),
    ],
    "rows and columns": lambda t, d: [torch.sparse.sum(t, 0), torch.sparse.sum(t, 1)],
    "mask": lambda t, d: [
        d.sparse_mask(t),
        d.sparse_mask(t.coalesce()),
        t.sparse_mask(t.coalesce()),
        (t * 2).sparse_mask((-t).coalesce()),
        d.sparse_mask(t.to_sparse_csr()),
    ],
    "other dtypes": lambda t, d: [t.half(), t.double(), t.to_sparse_csr().double()],
    "from dense": lambda t, d: [
        d.to_sparse() + t,
        d.to_sparse(1),
        d.to_sparse_csr(),
        d.to_sparse_csc(),
        d.relu().to_sparse(),
    ],
    "layouts": lambda t, d: [
        t.to_sparse_csr(),
        t.to_sparse_csc(),
        t.to_sparse_csr().to_sparse(),
        t.to_sparse_csc().to_sparse(),
        t.to_sparse_csr().to_sparse_csc(),
        t.to_sparse_csc().to_sparse_csr(),
        t.to_sparse(),
        t.to_sparse(layout=torch.sparse_csr),
        t.to_sparse_csr().t(),
    ],
    "compressed": lambda t, d: [
        t.to_sparse_csr() @ d.t(),
        t.to_sparse_csc() @ d.t(),
        d.t() @ t.to_sparse_csr(),
        d.t() @ t.to_sparse_csc(),
        t.to_sparse_csr().mv(d[0]),
        t.to_sparse_csr() * 2,
        t.to_sparse_csc().to_dense(),
    ],
    "softmax": lambda t, d: [torch.sparse.softmax(t, 1), torch.sparse.log_softmax(t, 0)],
    "made": lambda t, d: [
        torch.zeros_like(t),
        torch.empty_like(t),
        t.clone().zero_(),
        t.clone().copy_(t * 2),
    ],
    "moved": lambda t, d: [
        t.to("cpu").to(d.device),
        t.to_sparse_csr().cpu().to(d.device),
        t.to_sparse_csc().cpu().to(d.device),
    ],
    "made of parts": lambda t, d: [
        torch.sparse_coo_tensor(t._indices(), t._values(), t.shape, check_invariants=True),
        torch.sparse_coo_tensor([[0, 1, 1]], [1.0, 2.0, 3.0], (4,), device=d.device).coalesce(),
        torch.sparse_csr_tensor(
            [0, 1, 2], [0, 1], [1.0, 2.0], (2, 2), check_invariants=False, device=d.device
        )
        @ d[:2].float(),
    ],
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", OPS)
def test_ops(name, dtype):
    """The parts of the results, and whether they are coalesced."""
    if dtype == torch.bfloat16 and name in {"compressed", "softmax"}:
        pytest.skip("torch has none of that dtype")
    d = torch.randn(ROWS, COLUMNS, dtype=dtype)
    assert other_bits(OPS[name], stored(dtype), d) == []


def with_gradients(t, d, weights):
    """Of the values that are stored and of a dense factor, by each op that is followed."""
    values, d = t._values().clone().requires_grad_(), d.clone().requires_grad_()
    made = torch.sparse_coo_tensor(t._indices(), values, t.shape, check_invariants=True)
    whole = made.coalesce()
    outs = [
        torch.sparse.mm(whole, d.t()),
        d.t() @ made,
        (made * 2).to_dense() * weights,
        torch.sparse.softmax(whole, 1).to_dense() * weights,
        (d * 0.5 + made / 3).cos(),
        whole.to_sparse_csr() @ d.t(),
    ]
    return [*outs, *torch.autograd.grad(sum(out.sin().sum() for out in outs), [values, d])]


def test_gradients():
    """A thread of autograd computes them."""
    d, weights = torch.randn(2, ROWS, COLUMNS)
    assert other_bits(with_gradients, stored(), d, weights) == []


SHAPES = {
    "rows with vectors": stored(shape=(6,), dense=(3,)),
    "three dimensions": stored(shape=(3, 4, 5)),
    "nothing stored": torch.sparse_coo_tensor(
        torch.empty((2, 0), dtype=torch.int64), torch.empty(0), (4, 5), check_invariants=True
    ),
    "whole numbers": whole_numbers(),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name):
    """Of coalescing, sums and dense copies; integers go to the CPU and back."""

    def run(t):
        dense = torch.ones(t.shape, dtype=t.dtype, device=t.device)
        in_place = t.clone().coalesce()
        return [t.coalesce(), t + t, dense + t, t * 3, t.to_dense(), in_place.mul_(2), in_place]

    assert other_bits(run, SHAPES[name]) == []


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc])
@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.float32])
def test_a_copy_lies_where_it_was_asked_for(dtype, layout):
    """From the device to CPU memory and back."""
    t = stored().coalesce().bool().to(dtype).to_sparse(layout=layout)
    with samebits.portable():
        there = t.to("cuda")
        back, again, other = there.cpu(), there.to("cuda", copy=True), there.to("cpu", torch.float64)

    assert [each.device.type for each in (there, back, again, other)] == ["cuda", "cpu", "cuda", "cpu"]
    assert described(t) == described(back) == described(again)
    assert described(t.to(torch.float64)) == described(other)


def test_the_sign_of_zero():
    """Torch's kernel on a GPU adds to +0 what needs no sum; a gradient may divide by it."""
    t = torch.sparse_coo_tensor(
        [[0, 1], [1, 0]], [-0.0, -2.0], (2, 2), check_invariants=True, is_coalesced=True
    )
    run = lambda t: [t.to_sparse_csc(), t.to_sparse_csr(), t.t().to_sparse_csr()]  # noqa: E731

    assert other_bits(run, t) == []
    with samebits.portable():
        assert t.cuda().to_sparse_csc().values().signbit().all()


OPTIMIZERS = {
    "SparseAdam": lambda weights: torch.optim.SparseAdam(weights, lr=0.1),
    "SGD": lambda weights: torch.optim.SGD(weights, lr=0.1),
    "Adagrad": lambda weights: torch.optim.Adagrad(weights, lr=0.1),
}
TABLES = {
    "embedding": lambda: nn.Embedding(20, 4, sparse=True, padding_idx=3),
    "bag": lambda: nn.EmbeddingBag(20, 4, sparse=True, mode="mean"),
    "max_norm": lambda: nn.Embedding(20, 4, max_norm=0.8, sparse=True),
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("table", TABLES)
def test_sparse_gradients(optimizer, table):
    """Each optimizer that takes them, some of two passes."""

    def run(start):
        model = TABLES[table]().to(start.device)
        model.weight.data.copy_(start)
        steps = OPTIMIZERS[optimizer](list(model.parameters()))
        for number in range(4):
            steps.zero_grad()
            for shift in (0, 1):
                index = (torch.tensor([1, 3, 3, 7, 7, 7, 2, 19], device=start.device) + shift + number) % 20
                model(index.view(4, 2)).square().sum().backward()
            steps.step()
        return model.weight.detach()

    assert other_bits(run, torch.randn(20, 4)) == []


REFUSED = {
    "two sparse": lambda t, d: torch.sparse.mm(t, t.t()),
    "power": lambda t, d: t.coalesce().pow(2),
    "norm": lambda t, d: t.coalesce().norm(),
    "two devices": lambda t, d: t @ d.t().cpu(),
    "two devices, of one shape": lambda t, d: d + t.cpu(),
    "integers on two devices": lambda t, d: whole_numbers().cuda() * torch.ones(ROWS, COLUMNS).long(),
    "integers of floats": lambda t, d: t.to(torch.int64),
    "integers copied": lambda t, d: torch.zeros_like(t, dtype=torch.int64).copy_(t),
    "floats of integers": lambda t, d: whole_numbers().cuda().coalesce().sin(),
    "complex": lambda t, d: torch.sparse_coo_tensor(t._indices(), t._values() * 1j, t.shape).coalesce(),
    "meta": lambda t, d: t.to("meta"),
    "blocks": lambda t, d: t.to_dense()[:6, :4].to_sparse_bsr((2, 2)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    """As on the CPU."""
    with samebits.portable(), pytest.raises(SamebitsError) as caught:
        REFUSED[name](stored().cuda(), torch.randn(ROWS, COLUMNS, device="cuda"))

    assert caught.value.slug in {"portable-op", "portable-tensor"}


VALUES = {
    "Tensor": lambda t: t,
    "List[Tensor]": lambda t: [t, t],
    "number": lambda _: 2,
    "int": lambda _: 0,
    "float": lambda _: 0.5,
    "bool": lambda _: False,
    "List[int]": lambda _: [0],
}


def refuses(op, tensor):
    """Whether portable mode refuses an op of such a tensor. It may compute it, or torch does not take it."""
    arguments = op._schema.arguments
    given = [VALUES.get(str(each.type), lambda _: None)(tensor) for each in arguments if not each.kwarg_only]
    outs = {each.name: torch.zeros_like(tensor) for each in arguments if each.is_out}
    try:
        with samebits.portable():
            op(*given, **outs)
    except SamebitsError:
        return True
    except (RuntimeError, TypeError, IndexError, ValueError):
        pass
    return False


def test_torch_computes_nothing():
    """Of floats and of integers: whatever it has a kernel for is refused, ours, or goes to the CPU."""
    names = sorted({name for key in KEYS for name in computing_at(key)})
    tensors = [each.cuda() for each in (stored().coalesce(), stored().to_sparse_csr(), whole_numbers())]
    refused = [name for name in names for tensor in tensors if refuses(op_named(name), tensor)]

    assert len(names) > 100
    assert len(refused) > len(names)


def test_the_fixture_sees_torchs_kernels():
    """Without portable mode."""
    with pytest.raises(TorchComputesError, match="_coalesce"):
        stored().cuda().coalesce()
