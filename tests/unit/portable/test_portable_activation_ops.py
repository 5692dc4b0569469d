"""Activations and scaled sums in portable mode against plain torch, over torch's own samples."""

from __future__ import annotations

import pytest
import torch
from opinfo import check_op
from torch import nn
from torch.nn import functional as F  # noqa: N812 - as everyone calls it

from samebits.portable._dispatch import PortableMode

ACTIVATIONS = """
    celu elu gelu glu hardshrink hardsigmoid hardswish hardtanh leaky_relu logsigmoid mish prelu relu relu6
    selu silu softmin softplus softshrink softsign tanhshrink threshold
""".split()  # noqa: SIM905
SCALED = ("add", "addcdiv", "addcmul", "lerp", "rsub", "sub")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name: str, dtype: torch.dtype) -> None:
    if name == "hardsigmoid" and dtype == torch.float64:
        pytest.skip("torch's own gradient has 1/6 in float32 precision")
    check_op(f"nn.functional.{name}", dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", SCALED)
def test_scaled_sums(name: str, dtype: torch.dtype) -> None:
    check_op(name, dtype)


def test_hardsigmoid_has_a_sixth_as_slope() -> None:
    x = torch.tensor([-4.0, -1.0, 2.0, 4.0], dtype=torch.float64, requires_grad=True)
    with PortableMode():
        F.hardsigmoid(x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0, 1 / 6, 1 / 6, 0]


IN_PLACE = ("elu_", "selu_", "celu_", "leaky_relu_", "hardtanh_", "relu_", "threshold_")


@pytest.mark.parametrize("name", IN_PLACE)
def test_activations_in_place(name: str) -> None:
    extra = (0.3, 0.1) if name == "threshold_" else ()
    x = torch.linspace(-2, 2, 9)
    expected = getattr(F, name)(x.clone(), *extra)
    with PortableMode(), torch.inference_mode():
        ours = x.clone()
        assert getattr(F, name)(ours, *extra) is ours
    torch.testing.assert_close(ours, expected)


@pytest.mark.parametrize("module", [nn.SiLU, nn.Mish, nn.Hardswish, nn.Hardsigmoid, nn.CELU, nn.ELU], ids=str)
def test_modules_in_place_and_without_gradients(module: type[nn.Module]) -> None:
    x = torch.linspace(-4, 4, 9)
    expected = module()(x)
    with PortableMode(), torch.inference_mode():
        torch.testing.assert_close(module(inplace=True)(x.clone()), expected)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_low_precision_is_float32_rounded_once(dtype: torch.dtype) -> None:
    x, y = torch.linspace(-5, 5, 101).to(dtype), torch.linspace(1, -3, 101).to(dtype)
    with PortableMode():
        for call in (F.gelu, F.silu, F.softplus, F.logsigmoid):
            assert torch.equal(call(x), call(x.float()).to(dtype))
        assert torch.equal(torch.add(x, y, alpha=0.3), torch.add(x.float(), y.float(), alpha=0.3).to(dtype))
        assert torch.add(x, y.float(), alpha=0.3).dtype == torch.float32


def test_a_product_is_rounded_before_it_is_added() -> None:
    x, y = torch.full((33,), 1.0), torch.full((33,), 1 + 2**-12)
    rounded = torch.full((33,), (1 + 2**-12) ** 2)  # 2^-24 is lost
    with PortableMode():
        assert torch.equal(torch.addcmul(-rounded, y, y), torch.zeros(33))
        assert torch.equal(torch.add(x, y, alpha=1 / 3), x + y * torch.tensor(1 / 3))
        assert torch.equal(torch.sub(x, y, alpha=1 / 3), x - y * torch.tensor(1 / 3))
        assert torch.equal(torch.rsub(x, y, alpha=1 / 3), y - x * torch.tensor(1 / 3))
        inplace = x.clone().add_(y, alpha=1 / 3)
        assert torch.equal(inplace, x + y * torch.tensor(1 / 3))


def test_out_and_dtypes_of_scaled_sums() -> None:
    x, n = torch.linspace(0, 1, 5), torch.arange(5)
    out = torch.empty(0)
    with PortableMode():
        assert torch.add(x, x, alpha=0.5, out=out) is out
        assert torch.add(n, x, alpha=0.5).dtype == torch.float32
        assert torch.equal(torch.add(n, n, alpha=3), n * 4)
        assert torch.add(x, 2, alpha=0.5).tolist() == (x + 1).tolist()
    torch.testing.assert_close(out, x * 1.5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: F.gelu(x, approximate="erf"), "approximate"),
        (lambda x: F.glu(x[:3]), "even"),
        (lambda x: F.softshrink(x, -1), "lambda"),
        (lambda x: F.celu(x, 0), "alpha"),
    ],
)
def test_what_torch_refuses_is_refused(call: object, message: str) -> None:
    with PortableMode(), pytest.raises(RuntimeError, match=message):
        call(torch.ones(4))  # type: ignore[operator]
