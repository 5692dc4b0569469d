"""Losses in portable mode against plain torch, over torch's own samples."""

from __future__ import annotations

import pytest
import torch
from opinfo import check_op
from torch.nn import functional as F  # noqa: N812

from samebits.portable._dispatch import PortableMode

LOSSES = """
    binary_cross_entropy binary_cross_entropy_with_logits cosine_embedding_loss cosine_similarity
    cross_entropy gaussian_nll_loss hinge_embedding_loss huber_loss kl_div l1_loss margin_ranking_loss
    mse_loss multi_margin_loss multilabel_margin_loss multilabel_soft_margin_loss nll_loss pairwise_distance
    poisson_nll_loss smooth_l1_loss soft_margin_loss triplet_margin_loss triplet_margin_with_distance_loss
""".split()  # noqa: SIM905
DISTANCES = ("cdist", "dist", "nn.functional.pdist")
"""`dist` is `linalg_vector_norm` of the difference."""


@pytest.mark.filterwarnings("ignore:reduction. 'mean' divides")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", LOSSES)
def test_losses(name: str, dtype: torch.dtype) -> None:
    check_op(f"nn.functional.{name}", dtype, limit=20)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", DISTANCES)
def test_distances(name: str, dtype: torch.dtype) -> None:
    check_op(name, dtype, limit=15)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_ctc(dtype: torch.dtype) -> None:
    check_op("nn.functional.ctc_loss", dtype, limit=3)


@pytest.mark.parametrize("zero_infinity", [False, True])
def test_ctc_with_a_target_too_long_and_an_empty_one(*, zero_infinity: bool) -> None:
    log_probs = torch.randn(5, 3, 4, generator=torch.Generator().manual_seed(1)).log_softmax(2)
    targets = torch.tensor([[1, 1, 1, 1], [2, 3, 0, 0], [0, 0, 0, 0]])
    found = []
    for mode in (torch.enable_grad(), PortableMode()):
        x = log_probs.clone().requires_grad_()
        with mode:
            loss = F.ctc_loss(x, targets, (5, 4, 3), (4, 2, 0), zero_infinity=zero_infinity, reduction="none")
            (grad,) = torch.autograd.grad(loss, x, torch.tensor([1.0, 2.0, 3.0]))
        found.append((loss.detach(), grad))
    for plain, ours in zip(*found, strict=True):
        torch.testing.assert_close(ours, plain, equal_nan=True, rtol=1e-4, atol=1e-5)


def test_many_rows_are_measured_in_parts() -> None:
    rows = torch.randn(3000, 40, generator=torch.Generator().manual_seed(2))
    with PortableMode():
        ours = torch.cdist(rows, rows[:50])
        alone = torch.cdist(rows[2998:], rows[:50])
    assert torch.equal(ours[2998:], alone)
    exact = torch.cdist(rows.double(), rows[:50].double(), compute_mode="donot_use_mm_for_euclid_dist")
    torch.testing.assert_close(ours, exact.float(), rtol=1e-5, atol=0)


def test_losses_without_gradients() -> None:
    x, y = torch.linspace(-1, 1, 12).view(3, 4), torch.tensor([0, 3, 1])
    with PortableMode():
        graded = F.cross_entropy(x.clone().requires_grad_(), y).detach()
        with torch.inference_mode():
            assert torch.equal(F.cross_entropy(x, y), graded)
            assert torch.equal(F.l1_loss(x, -x), torch.tensor(F.l1_loss(x, -x).item()))


def test_labels_outside_are_refused_and_ignored_ones_are_not() -> None:
    x = torch.zeros(2, 3)
    with PortableMode():
        with pytest.raises(IndexError, match="out of bounds"):
            F.nll_loss(x, torch.tensor([0, 3]))
        assert F.nll_loss(x, torch.tensor([-100, 2]), reduction="none").tolist() == [0, 0]
        assert torch.isnan(F.nll_loss(x, torch.tensor([-100, -100])))
        with pytest.raises(RuntimeError, match="between 0 and 1"):
            F.binary_cross_entropy(x - 1, x)
        with pytest.raises(RuntimeError, match="out of range"):
            F.multi_margin_loss(x, torch.tensor([0, 3]))


@pytest.mark.parametrize("name", ["mse_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss"])
def test_bfloat16_losses_are_float32_rounded_once(name: str) -> None:
    x, y = torch.linspace(-2, 2, 64).bfloat16(), torch.linspace(1, -1, 64).bfloat16()
    loss = getattr(F, name)
    with PortableMode():
        assert torch.equal(loss(x, y), loss(x.float(), y.float()).bfloat16())


@pytest.mark.parametrize(
    "dtypes", [("float32", "float64"), ("float64", "float32"), ("float32", "bfloat16")], ids=str
)
@pytest.mark.parametrize(
    "loss",
    [
        F.huber_loss,
        F.soft_margin_loss,
        F.mse_loss,
        F.smooth_l1_loss,
        F.binary_cross_entropy_with_logits,
        lambda x, y: F.binary_cross_entropy_with_logits(
            x, y, torch.ones(5).double(), pos_weight=torch.ones(5) * 2
        ),
    ],
)
def test_inputs_of_two_dtypes_give_the_dtype_of_torch(loss: object, dtypes: tuple[str, str]) -> None:
    """Labels from NumPy are float64."""
    ours, plain = [], []
    for found, mode in ((plain, torch.enable_grad()), (ours, PortableMode())):
        x = torch.linspace(-2, 3, 5).to(getattr(torch, dtypes[0])).requires_grad_()
        y = torch.linspace(0, 1, 5).to(getattr(torch, dtypes[1]))
        with mode:
            value = loss(x, y)
            grads = () if loss is F.huber_loss else torch.autograd.grad(value, x)  # torch's own does not fit
            found += [value.detach(), *grads]
    torch.testing.assert_close(ours, plain, rtol=2e-2, atol=1e-3)
