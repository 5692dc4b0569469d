"""Sparse tensors in portable mode: sums and products in the order of storage."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn, optim

from samebits.errors import SamebitsError
from samebits.portable import _sparse
from samebits.portable._dispatch import PortableMode
from samebits.portable._sparse import sparse_plan

pytestmark = pytest.mark.filterwarnings("ignore:Sparse")
FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
ROWS, COLUMNS, STORED = 7, 5, 40  # so that places come several times
LAYOUTS = {
    "coo": lambda tensor: tensor,
    "coalesced": lambda tensor: tensor.coalesce(),
    "csr": lambda tensor: tensor.to_sparse_csr(),
    "csc": lambda tensor: tensor.to_sparse_csc(),
}


def stored(dtype=torch.float32, shape=(ROWS, COLUMNS), dense=(), seed=0):
    """A COO tensor whose places repeat and are in no order."""
    generator = torch.Generator().manual_seed(seed)
    places = torch.stack([torch.randint(size, (STORED,), generator=generator) for size in shape])
    values = torch.randn(STORED, *dense, generator=generator, dtype=torch.float64).to(dtype)
    return torch.sparse_coo_tensor(places, values, (*shape, *dense), check_invariants=True)


def dense(*shape, dtype=torch.float32, seed=1):
    """A dense tensor."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


def listed(tensor):
    """Places and values as Python has them."""
    return list(zip(tensor._indices().t().tolist(), tensor._values().numpy(), strict=True))


def test_entries_are_added_in_the_order_of_storage():
    """Bit for bit as a loop over them; the order is seen in the last bits."""
    tensor, start = stored(), dense(ROWS, COLUMNS)
    summed = np.zeros((ROWS, COLUMNS), np.float32)
    added = start.numpy().copy()
    for (row, column), value in listed(tensor):
        summed[row, column] += value
        added[row, column] += np.float32(0.3) * value

    with PortableMode():
        whole = tensor.coalesce()
        found = tensor.to_dense(), whole.to_dense(), torch.add(start, tensor, alpha=0.3), start.clone()
        found[3].add_(tensor, alpha=0.3)

    assert whole.is_coalesced()
    assert (whole.indices() == tensor.coalesce().indices()).all()
    assert (found[0].numpy() == summed).all()
    assert (found[1].numpy() == summed).all()
    assert (found[2].numpy() == added).all()
    assert (found[3].numpy() == added).all()


def test_a_product_takes_entries_in_the_order_of_storage():
    """Bit for bit as a loop, in one part and in many."""
    tensor, right = stored(), dense(COLUMNS, 3)
    expected = np.zeros((ROWS, 3), np.float32)
    for (row, column), value in listed(tensor):
        expected[row] += value * right[column].numpy()

    with PortableMode():
        found = tensor @ right
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("samebits.portable.ops.sparse._AT_ONCE", 7)
            in_parts = torch.sparse.mm(tensor, right)

    assert (found.numpy() == expected).all()
    assert (in_parts.numpy() == expected).all()


@pytest.mark.parametrize("layout", ["coalesced", "csr", "csc"])
def test_a_dense_matrix_times_a_sparse_one_adds_by_rising_rows(layout):
    """However the places are stored."""
    tensor, left = stored().coalesce(), dense(3, ROWS)
    whole = LAYOUTS[layout](tensor)
    expected = np.zeros((3, COLUMNS), np.float32)
    for (row, column), value in listed(tensor):
        expected[:, column] += value * left[:, row].numpy()

    with PortableMode():
        found = left @ whole

    assert (found.numpy() == expected).all()


def test_sums_over_a_dimension_are_in_the_order_of_storage():
    """Bit for bit as a loop."""
    tensor = stored()
    expected = np.zeros(ROWS, np.float32)
    for (row, _), value in listed(tensor):
        expected[row] += value

    with PortableMode():
        found = torch.sparse.sum(tensor, 1).to_dense()

    assert (found.numpy() == expected).all()


# Torch itself multiplies compressed matrices in float32 and float64 only.
TAKEN = [
    (layout, dtype) for layout in LAYOUTS for dtype in (FLOATS if layout.startswith("co") else FLOATS[:2])
]


@pytest.mark.parametrize(("layout", "dtype"), TAKEN)
def test_products_are_close_to_torchs(layout, dtype):
    """Of all layouts and dtypes; beside the product of dense matrices."""
    tensor = LAYOUTS[layout](stored(torch.float64)).to(dtype)
    right, left = dense(COLUMNS, 4, dtype=dtype), dense(3, ROWS, dtype=dtype)
    whole = tensor.to(torch.float64).to_dense()

    with PortableMode():
        found = [tensor @ right, left @ tensor, tensor.mv(right[:, 0]), tensor.t() @ left.t()]
        found.append(torch.sparse.addmm(found[0], tensor, right, beta=0.5, alpha=2))
        found.append(tensor.to_dense())

    low = dtype in {torch.float16, torch.bfloat16}
    tolerance = {"rtol": 1e-2, "atol": 0.1} if low else {"rtol": 1e-5, "atol": 1e-5}
    wide, narrow = right.double(), left.double()
    expected = [whole @ wide, narrow @ whole, whole @ wide[:, 0], whole.t() @ narrow.t()]
    expected += [0.5 * expected[0] + 2 * expected[0], whole]
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == dtype
        torch.testing.assert_close(one.double(), other, **tolerance)


@pytest.mark.parametrize("values_need", [False, True])
def test_gradients_are_close_to_torchs(values_need):
    """Of the dense factor, and of the values that are stored."""
    given, factor = stored(torch.float64), dense(COLUMNS, 4, dtype=torch.float64)

    def gradients():
        values = given._values().clone().requires_grad_(values_need)
        tensor = torch.sparse_coo_tensor(given._indices(), values, given.shape, check_invariants=True)
        right = factor.clone().requires_grad_()
        out = torch.sparse.mm(tensor.coalesce(), right) + (tensor * 2).to_dense() @ right
        out.square().sum().backward()
        return [right.grad, values.grad] if values_need else [right.grad]

    expected = gradients()
    with PortableMode():
        found = gradients()

    torch.testing.assert_close(found, expected)


ELEMENTWISE = {
    "double": lambda t, d: t * 2,
    "by a tensor": lambda t, d: t * torch.tensor(3.0),
    "in place": lambda t, d: t.clone().mul_(0.5),
    "times dense": lambda t, d: t * d,
    "dense times": lambda t, d: d * t,
    "divided": lambda t, d: t / 3,
    "negative": lambda t, d: -t,
    "sum": lambda t, d: t + t,
    "sum of coalesced": lambda t, d: t.coalesce() + t.coalesce() * 2,
    "dense minus": lambda t, d: d - t,
    "rows": lambda t, d: torch.sparse.sum(t, 1),
    "columns": lambda t, d: torch.sparse.sum(t, 0),
    "mask": lambda t, d: d.sparse_mask(t.coalesce()),
    "transposed": lambda t, d: t.t().coalesce(),
    "half": lambda t, d: t.half().float(),
    "from dense": lambda t, d: d.to_sparse() + t,
    "csr": lambda t, d: t.to_sparse_csr(),
    "csr twice": lambda t, d: t.to_sparse_csr() * 2,
    "csc": lambda t, d: t.to_sparse_csc(),
    "coo again": lambda t, d: t.to_sparse_csr().to_sparse(),
}


@pytest.mark.parametrize("case", ELEMENTWISE)
def test_other_ops_are_close_to_torchs(case):
    """Values, layout, and whether places are unique."""
    tensor, other = stored(), dense(ROWS, COLUMNS)
    expected = ELEMENTWISE[case](tensor, other)
    with PortableMode():
        found = ELEMENTWISE[case](tensor, other)

    assert found.layout == expected.layout
    assert found.dtype == expected.dtype
    if found.layout == torch.sparse_coo and expected.is_coalesced():
        assert found.is_coalesced()
    torch.testing.assert_close(found.to_dense(), expected.to_dense(), rtol=1e-3, atol=1e-5)


def test_dense_dimensions_and_empty_tensors():
    """As gradients of embeddings have them."""
    rows = stored(shape=(6,), dense=(3,))
    empty = torch.sparse_coo_tensor(torch.empty((2, 0), dtype=torch.int64), torch.empty(0), (4, 5))
    expected = rows.to_dense(), torch.ones(6, 3) + rows, torch.zeros(4, 2)

    with PortableMode():
        found = rows.coalesce().to_dense(), torch.ones(6, 3) + rows, empty @ torch.ones(5, 2)
        assert empty.coalesce().to_dense().abs().sum() == 0

    torch.testing.assert_close(found, expected)


OPTIMIZERS = {
    "SparseAdam": lambda parameters: optim.SparseAdam(parameters, lr=0.1),
    "SGD": lambda parameters: optim.SGD(parameters, lr=0.1),
    "Adagrad": lambda parameters: optim.Adagrad(parameters, lr=0.1),
}
TABLES = {
    "embedding": lambda: (nn.Embedding(20, 4, sparse=True, padding_idx=3), ()),
    "bag": lambda: (nn.EmbeddingBag(20, 4, sparse=True, mode="mean"), (torch.tensor([0, 4, 4]),)),
    "max_norm": lambda: (nn.Embedding(20, 4, max_norm=0.8, sparse=True), ()),
}


START = dense(20, 4)


def trained(optimizer, table):
    """The weights after some steps, with gradients of two backward passes added up."""
    torch.manual_seed(0)
    model, more = TABLES[table]()
    with torch.no_grad():
        model.weight.copy_(START)
    steps = OPTIMIZERS[optimizer](list(model.parameters()))
    for number in range(4):
        steps.zero_grad()
        for shift in (0, 1):
            index = (torch.tensor([1, 3, 3, 7, 7, 7, 2, 19]) + shift + number) % 20
            model(index, *more).square().sum().backward()
        steps.step()
    return model.weight.detach()


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("table", TABLES)
def test_sparse_gradients_train_as_with_torch(optimizer, table):
    """Every optimizer that takes them."""
    expected = trained(optimizer, table)
    with PortableMode():
        found = trained(optimizer, table)
        again = trained(optimizer, table)

    assert torch.equal(found, again)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    assert not torch.equal(found, START)


MASKS = {
    "coalesced": lambda: stored().coalesce(),
    "places that repeat": stored,
    "rows": lambda: torch.sparse_coo_tensor([[2, 0]], torch.ones(2, COLUMNS), (ROWS, COLUMNS)),
    "other dtype": lambda: stored(torch.float64),
    "nothing": lambda: torch.sparse_coo_tensor(torch.empty(2, 0).long(), torch.empty(0), (ROWS, COLUMNS)),
    "rows of CSR": lambda: stored().to_sparse_csr(),
}


@pytest.mark.parametrize("mask", MASKS)
def test_a_mask_takes_what_torch_takes(mask):
    """Places, values and whether they are coalesced."""
    given, d = MASKS[mask](), dense(ROWS, COLUMNS)
    d[0, 0], d[2, 1] = -0.0, torch.inf
    expected = d.sparse_mask(given)
    with PortableMode():
        found = d.sparse_mask(given)

    assert (found.layout, found.dtype) == (expected.layout, expected.dtype)
    if found.layout == torch.sparse_coo:
        assert found.is_coalesced() == expected.is_coalesced()
        assert torch.equal(found._indices(), expected._indices())
        found, expected = found._values(), expected._values()
    else:
        found, expected = found.values(), expected.values()
    assert found.numpy().tobytes() == expected.numpy().tobytes()


def test_integers_are_torchs_own():
    """Whatever the op, the order does not matter."""
    tensor = torch.sparse_coo_tensor([[0, 0, 2]], [1, 2, 5], (4,))
    with PortableMode():
        assert (tensor + tensor).to_dense().tolist() == [6, 0, 10, 0]


REFUSED = {
    "two sparse": lambda t, d: torch.sparse.mm(t, t.t()),
    "elementwise product of two": lambda t, d: t.coalesce() * t.coalesce(),
    "power": lambda t, d: t.coalesce().pow(2),
    "integers of floats": lambda t, d: t.to(torch.int64),
    "integers copied": lambda t, d: torch.zeros_like(t, dtype=torch.int64).copy_(t),
    "floats of integers": lambda t, d: torch.zeros_like(t, dtype=torch.int64).coalesce().sin(),
    "quotients of integers": lambda t, d: torch.zeros_like(t, dtype=torch.int64) / 3,
    "another device": lambda t, d: t.to("meta"),
    "sum over all": lambda t, d: torch.ops.aten._sparse_sum.dim(t, [0, 1]),
    "norm": lambda t, d: t.coalesce().norm(),
    "blocks": lambda t, d: d[:6, :4].to_sparse_bsr((2, 2)),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_covered_is_refused(case):
    """Never torch's own order of a sum."""
    tensor, other = stored(), dense(ROWS, COLUMNS)
    with PortableMode(), pytest.raises(SamebitsError) as caught:
        REFUSED[case](tensor, other)

    assert caught.value.slug in {"portable-tensor", "portable-op"}


def test_a_tensor_without_contents_beside_a_sparse_one_gives_none():
    empty = torch.empty(ROWS, COLUMNS, device="meta")
    plain = empty + stored()
    with PortableMode():
        total = empty + stored()

    assert (total.device, total.shape) == (plain.device, plain.shape)


def test_a_tensor_on_another_device_beside_a_sparse_one_is_refused(monkeypatch):
    sparse_plan.cache_clear()
    monkeypatch.setattr(_sparse, "device_types", lambda: frozenset({"cuda"}))
    with (
        PortableMode(),
        pytest.raises(SamebitsError, match=r"sub\.Tensor at .* got a tensor on cpu") as caught,
    ):
        stored() - stored()

    assert caught.value.slug == "portable-tensor"


WRONG = {
    "shapes": lambda t, d: t @ torch.ones(9, 2),
    "sum of shapes": lambda t, d: torch.ones(3, 3) + t,
    "sum of dtypes": lambda t, d: torch.ones(ROWS, COLUMNS, dtype=torch.int64).add_(t),
    "outside": lambda t, d: torch.sparse_coo_tensor([[9]], [1.0], (4,), check_invariants=True),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_torch_does_not_take_is_torchs_error(case):
    """With torch's type and text."""
    tensor, other = stored(), dense(ROWS, COLUMNS)
    with pytest.raises((RuntimeError, IndexError)) as expected:
        WRONG[case](tensor, other)
    with PortableMode(), pytest.raises(expected.type) as caught:
        WRONG[case](tensor, other)

    assert str(caught.value)[:40] == str(expected.value)[:40]


@pytest.mark.parametrize("layout", [torch.sparse_csr, torch.sparse_csc])
def test_a_batch_of_compressed_tensors_is_refused_by_the_name_of_the_op(layout):
    batch = torch.eye(3).expand(2, 3, 3).contiguous().to_sparse(layout=layout)
    with PortableMode(), pytest.raises(SamebitsError) as caught:
        batch.to_dense()

    assert str(caught.value).startswith("aten::_to_dense at ")
    assert f"of a batch of {layout} tensors has no portable kernel" in str(caught.value)


@pytest.mark.parametrize("function", [torch.sparse.softmax, torch.sparse.log_softmax])
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_softmax_of_what_is_stored(function, dim):
    """Forward and backward, over sparse dimensions and a dense one."""
    weights = dense(ROWS, COLUMNS, 3, dtype=torch.float64)

    def run(tensor):
        out = function(tensor, dim)
        (out.to_dense() * weights).sum().backward()
        return out.to_dense().detach(), tensor.grad.to_dense()

    tensors = [stored(torch.float64, dense=(3,)).requires_grad_() for _ in range(2)]
    plain = run(tensors[0])
    with PortableMode():
        ours = run(tensors[1])
    assert plain[1].abs().max() > 0.1
    torch.testing.assert_close(ours, plain, rtol=1e-12, atol=1e-12)


def test_softmax_adds_the_entries_of_a_row_in_their_order():
    tensor = stored().coalesce()
    expected = []
    with PortableMode():
        found = torch.sparse.softmax(tensor, 1)
        for row in tensor.indices()[0].unique().tolist():
            values = tensor.values()[tensor.indices()[0] == row]
            powers = (values - values.max()).exp().numpy()
            total = np.float32(0)
            for power in powers:
                total += power
            expected.append(powers / total)
    assert found.values().numpy().tobytes() == np.concatenate(expected).tobytes()
