"""The product ops of torch in portable mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from opinfo import check_op
from torch.nn import functional

from samebits.errors import SamebitsError
from samebits.portable._dispatch import PortableMode

if TYPE_CHECKING:
    from collections.abc import Callable

OPS = (
    "mm",
    "bmm",
    "addmm",
    "baddbmm",
    "addbmm",
    "mv",
    "addmv",
    "dot",
    "vdot",
    "addr",
    "matmul",
    "__rmatmul__",
    "inner",
    "outer",
    "einsum",
    "tensordot",
    "kron",
    "linalg.multi_dot",
    "linalg.vecdot",
    "nn.functional.linear",
    "nn.functional.bilinear",
)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", OPS)
def test_products_agree_with_torch(name: str, dtype: torch.dtype) -> None:
    assert check_op(name, dtype, limit=12)


def test_relu_of_addmm_agrees_with_torch() -> None:
    own, a, b = torch.randn(5), torch.randn(4, 3), torch.randn(3, 5)
    with PortableMode():
        ours = torch._addmm_activation(own, a, b, beta=0.5, alpha=2)
    torch.testing.assert_close(ours, torch._addmm_activation(own, a, b, beta=0.5, alpha=2))
    with PortableMode(), pytest.raises(SamebitsError):
        torch._addmm_activation(own, a, b, use_gelu=True)


def test_nothing_times_a_nan_is_not_added() -> None:
    nothing = torch.full((4, 5), float("nan"))
    a, b = torch.randn(4, 3), torch.randn(3, 5)
    with PortableMode():
        ours = torch.addmm(nothing, a, b, beta=0)
        plain = torch.mm(a, b)
        into = torch.empty(0)
        torch.mm(a, b, out=into)
        in_place = torch.zeros(4, 5).addmm_(a, b)
    assert ours.equal(plain)
    assert into.equal(plain)
    assert in_place.equal(plain)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_low_precision_is_rounded_once(dtype: torch.dtype) -> None:
    bias, a, b = (torch.randn(shape).to(dtype) for shape in ((5,), (4, 300), (300, 5)))
    with PortableMode():
        ours = torch.addmm(bias, a, b)
        wide = torch.addmm(bias.float(), a.float(), b.float())
    assert ours.dtype == dtype
    assert ours.equal(wide.to(dtype))


def test_inference_mode_gives_the_same_bits() -> None:
    x, weight, bias = torch.randn(2, 7, 130), torch.randn(9, 130), torch.randn(9)
    jobs: tuple[Callable[[], torch.Tensor], ...] = (
        lambda: functional.linear(x, weight, bias),
        lambda: x @ weight.t(),
        lambda: torch.einsum("bij,kj->bik", x, weight),
    )
    for job in jobs:
        with PortableMode():
            plain = job()
            with torch.inference_mode():
                assert job().equal(plain)


def test_integers_are_torchs() -> None:
    a, b = torch.arange(6).view(2, 3), torch.arange(6).view(3, 2)
    with PortableMode():
        ours = a @ b
    assert ours.equal(a @ b)


@pytest.mark.parametrize(
    "job",
    [
        lambda: torch.mm(torch.ones(2, 3), torch.ones(2, 3)),
        lambda: torch.mm(torch.ones(2, 3), torch.ones(3, 2, dtype=torch.float64)),
        lambda: torch.bmm(torch.ones(2, 2, 3), torch.ones(3, 3, 2)),
        lambda: torch.mv(torch.ones(2, 3), torch.ones(2)),
        lambda: torch.addmm(torch.ones(7), torch.ones(2, 3), torch.ones(3, 2)),
        lambda: torch.dot(torch.ones(2), torch.ones(3)),
    ],
)
def test_wrong_shapes_are_refused_as_by_torch(job: Callable[[], torch.Tensor]) -> None:
    with pytest.raises(RuntimeError):
        job()
    with PortableMode(), pytest.raises(RuntimeError):
        job()


def test_products_without_a_kernel_for_complex_numbers_are_refused() -> None:
    z = torch.ones(2, 2, 2, dtype=torch.complex64)
    with PortableMode(), pytest.raises(SamebitsError, match="complex numbers"):
        torch.addbmm(z[0], z, z)
