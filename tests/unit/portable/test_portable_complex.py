"""Complex numbers in portable mode: the sequences of real operations, and what has none."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest
import torch

from samebits.errors import SamebitsError
from samebits.portable._dispatch import PortableMode

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

INF, NAN = math.inf, math.nan


def numbers(*shape: int, dtype: torch.dtype = torch.complex64, seed: int = 1) -> Tensor:
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def same(one: Tensor, other: Tensor) -> bool:
    """Bit for bit, but for NaNs."""
    pairs = [torch.view_as_real(z.resolve_conj()) if z.is_complex() else z for z in (one, other)]
    a, b = pairs
    return one.dtype == other.dtype and bool(
        ((a == b) & (a.signbit() == b.signbit()) | (a.isnan() & b.isnan())).all()
    )


def test_a_product_is_four_products() -> None:
    a, b = numbers(40), numbers(3, 1, seed=2)
    with PortableMode():
        z = a * b
        assert same(z.real, a.real * b.real - a.imag * b.imag)
        assert same(z.imag, a.real * b.imag + a.imag * b.real)
        assert same(a * 0.3, torch.complex(a.real * 0.3, a.imag * 0.3))
        assert same(b.real * a, torch.complex(b.real * a.real, b.real * a.imag))
        assert same(a * (0.3 + 2j), a * torch.full((), 0.3 + 2j))


def test_a_quotient_divides_by_the_larger_part() -> None:
    a, b = torch.tensor([1 + 2j, 3 - 1j]), torch.tensor([4 - 3j, 2 + 5j])
    with PortableMode():
        z = a / b
        assert same(a / 3, torch.complex(a.real / 3, a.imag / 3))
    c, d = b[0].real, b[0].imag
    ratio = d / c
    assert z[0].real == (a[0].real + a[0].imag * ratio) / (c + d * ratio)
    assert z[0].imag == (a[0].imag - a[0].real * ratio) / (c + d * ratio)
    c, d = b[1].imag, b[1].real
    ratio = d / c
    assert z[1].real == (a[1].imag + a[1].real * ratio) / (c + d * ratio)
    assert z[1].imag == (a[1].imag * ratio - a[1].real) / (c + d * ratio)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_extreme_quotients_and_magnitudes(dtype: torch.dtype) -> None:
    """Nothing overflows on the way."""
    large = torch.finfo(dtype).max / 4
    a = torch.tensor([complex(large, large), complex(large, 0), 1 + 1j, 0j], dtype=dtype)
    b = torch.tensor([complex(large, large), complex(0, large), 0j, complex(large, large)], dtype=dtype)
    with PortableMode():
        quotients, sizes = a / b, a.abs()
    assert quotients[:2].tolist() == [1, -1j]
    assert quotients[2].isinf()
    assert quotients[3] == 0
    torch.testing.assert_close(sizes, torch.hypot(a.real, a.imag))


def test_products_of_matrices_are_four_real_ones() -> None:
    a, b, c = numbers(5, 200), numbers(200, 3, seed=2), numbers(3, seed=3)
    with PortableMode():
        expected = torch.complex(
            a.real @ b.real - a.imag @ b.imag,
            a.real @ b.imag + a.imag @ b.real,
        )
        assert same(a @ b, expected)
        assert same(torch.bmm(a[None], b[None])[0], expected)
        assert same(a @ b[:, 0], expected[:, 0])
        assert same(torch.addmm(c, a, b, beta=2j, alpha=1 - 1j), expected * (1 - 1j) + c * 2j)
        assert same(torch.vdot(b[:, 0], a[0]), torch.dot(b[:, 0].conj().resolve_conj(), a[0]))
        assert same(torch.einsum("ik,kj->ij", a, b), expected)
        assert same((b.mH @ a.mH).mH, expected)


def test_sums_are_those_of_the_parts() -> None:
    z = numbers(7, 600, dtype=torch.complex128)
    with PortableMode():
        for dims in (None, 0, 1, (0, 1)):
            real, imaginary = (part.contiguous().sum(dims) for part in (z.real, z.imag))
            assert same(z.sum(dims), torch.complex(real, imaginary))
        assert same(z.mean(1), torch.complex(z.real.mean(1), z.imag.mean(1)))
        assert z.real.sum(1, dtype=torch.complex64).dtype == torch.complex64
        assert z[:0].sum() == 0


def test_lazy_conjugates_are_seen() -> None:
    """Ops that torch hands them to as they are, and others."""
    a, b = numbers(4, 4), numbers(4, 4, seed=2)
    plain = a.conj().resolve_conj()
    calls: list[Callable[[Tensor], Tensor]] = [
        lambda z: z @ b,
        lambda z: b @ z,
        lambda z: torch.baddbmm(z[None], z[None], b[None]),
        lambda z: torch.dot(z[0], b[0]),
        lambda z: torch.vdot(z[0], b[0]),
        lambda z: torch.mv(z, b[0]),
        lambda z: z * b,
        lambda z: z + 1j,
        lambda z: z.abs() * z.imag,
        torch.fft.fft,
        torch.fft.irfft,
        lambda z: z.clone().to(torch.complex128),
        lambda z: torch.cat([z, b]),
        lambda z: b.clone().copy_(z),
        lambda z: z.imag.sum(),
        lambda z: z.exp(),
    ]
    with PortableMode():
        for call in calls:
            assert same(call(a.conj()), call(plain))


def test_in_place_and_out() -> None:
    a, b = numbers(5, 3), numbers(5, 3, seed=2)
    with PortableMode():
        expected = a * b
        z = a.clone()
        assert z.mul_(b) is z
        assert same(z, expected)
        lazy = a.conj().clone().conj()
        assert same(lazy.mul_(b), expected)
        assert same(torch.mul(a, b, out=torch.empty(0, dtype=a.dtype)), expected)
        out = torch.empty(0)
        assert same(torch.abs(a, out=out), a.abs())
        spectrum = torch.empty(0, dtype=torch.complex64)
        assert same(torch.fft.rfft(a.real, out=spectrum), torch.fft.rfft(a.real))
        each = torch._foreach_mul([a, a.real], [b, b.real])
        assert same(each[0], expected)
        assert same(each[1], a.real * b.real)
        torch._foreach_add_([each[1], each[0]], [b.real, b], alpha=2)
        assert same(each[0], expected + b * 2)
        with pytest.raises(RuntimeError, match="can't be cast"):
            a.real.clone().mul_(b)


def test_small_powers() -> None:
    z = numbers(6, dtype=torch.complex128)
    with PortableMode():
        for exponent in (0, 1, 2, 3, 7, -1, -2):
            torch.testing.assert_close(z**exponent, z.clone() ** exponent)
        with pytest.raises(SamebitsError, match="whole exponents"):
            z**0.5


def test_conversions() -> None:
    z = torch.tensor([1.7 - 2j, complex(NAN, 1), complex(-INF, 0), 1e30 + 0j])
    with PortableMode():
        assert z.to(torch.int32).tolist() == z.real.to(torch.int32).tolist()
        assert torch.zeros(4, dtype=torch.int64).copy_(z).tolist() == z.real.to(torch.int64).tolist()
        assert same(z.to(torch.float64), z.real.to(torch.float64))
        assert torch.tensor([0j, 1j]).to(torch.bool).tolist() == [False, True]
        assert z.real.to(torch.complex128).imag.tolist() == [0.0] * 4
        assert z.view(torch.int32)[2] == 0x7FC00000
        assert same(z.real.contiguous().view(torch.complex64).real, z.real[::2])


REFUSED: dict[str, Callable[[Tensor], Any]] = {
    "log": torch.log,
    "sqrt": torch.sqrt,
    "prod": torch.prod,
    "inverse": torch.linalg.inv,
    "softmax": lambda z: torch.softmax(z, 0),
    "power": lambda z: z ** (1 + 1j),
    "power of powers": lambda z: z**z,
    "var": torch.var,
    "linspace": lambda z: torch.linspace(0, z[0, 0].item(), 3),
    "complex32": lambda z: z.to(torch.complex32),
    "half": lambda z: torch.complex(z.real.half(), z.imag.half()) * 2,
    "half pairs": lambda z: torch.view_as_complex(torch.view_as_real(z).half()) + 1,
    "half times a number": lambda z: z.real.half() * 1j,
    "polar of half": lambda z: torch.polar(z.real.half(), z.imag.half()),
    "sparse": lambda z: torch.sparse_coo_tensor([[0]], z[0, :1], (2,)),
    "dense": lambda z: z.to_sparse(),
}


@pytest.mark.parametrize("name", REFUSED)
def test_anything_else_is_refused(name: str) -> None:
    z = numbers(2, 2)
    with PortableMode(), pytest.raises(SamebitsError) as caught:
        REFUSED[name](z)
    assert caught.value.slug in {"portable-tensor", "portable-op"}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_transforms_of_half_precision_are_refused_as_by_torch(dtype: torch.dtype) -> None:
    x = torch.ones(4, dtype=dtype)
    with pytest.raises(RuntimeError):
        torch.fft.fft(x)
    with PortableMode(), pytest.raises((RuntimeError, SamebitsError)):
        torch.fft.fft(x)


def test_random_numbers_are_pairs() -> None:
    with PortableMode():
        torch.manual_seed(3)
        pairs = torch.rand(4, 5, 2)
        torch.manual_seed(3)
        assert same(torch.rand(4, 5, dtype=torch.complex64), torch.view_as_complex(pairs))
        torch.manual_seed(3)
        normal = torch.empty(300, 2, dtype=torch.float64).normal_(0, math.sqrt(0.5))
        torch.manual_seed(3)
        assert same(torch.randn(300, dtype=torch.complex128), torch.view_as_complex(normal))


@pytest.mark.parametrize("normalization", ["forward", "backward", "ortho"])
def test_gradients_of_transforms(normalization: Any) -> None:
    """And second ones."""
    x = torch.randn(2, 3, 6, dtype=torch.float64, requires_grad=True)
    z = numbers(2, 5, dtype=torch.complex128).requires_grad_()
    with PortableMode():
        for call in (torch.fft.rfft2, torch.fft.fftn, torch.fft.ihfft):
            assert torch.autograd.gradcheck(lambda t, f=call: f(t, norm=normalization), (x,))
        for call in (torch.fft.ifft, torch.fft.irfft, torch.fft.hfft):
            assert torch.autograd.gradcheck(lambda t, f=call: f(t, norm=normalization), (z,))
        assert torch.autograd.gradgradcheck(lambda t: torch.fft.irfft(t * t, n=7), (z,))


def test_scales_are_rounded_once() -> None:
    x = torch.randn(3, 10)
    with PortableMode():
        plain = torch.fft.fft(x)
        assert same(torch.fft.ifft(plain, norm="forward") * 0.1, torch.fft.ifft(plain))
        assert same(torch.fft.fft(x, norm="ortho"), plain * (1 / math.sqrt(10)))
        once = torch.fft.fft2(x, norm="forward")
        assert same(once, torch.fft.fft2(x) * (1 / 30))


def test_dimensions_are_transformed_from_the_last_one_on() -> None:
    x = torch.randn(3, 4, 5)
    with PortableMode():
        expected = torch.fft.fft(torch.fft.fft(torch.fft.rfft(x, dim=0), dim=2), dim=1)
        assert same(torch.fft.rfftn(x, dim=(1, 2, 0)), expected)
        back = torch.fft.irfft(torch.fft.ifft(torch.fft.ifft(expected, dim=2), dim=1), n=3, dim=0)
        torch.testing.assert_close(back, x)


def rotary(x: Tensor, angles: Tensor) -> Tensor:
    """A rotary embedding written with complex numbers."""
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(-2)


def spectral(x: Tensor, weight: Tensor) -> Tensor:
    """A layer of a Fourier neural operator."""
    modes, spectrum = weight.shape[-1], torch.fft.rfft2(x)
    out = torch.zeros(*spectrum.shape, dtype=spectrum.dtype)
    out[..., :modes, :modes] = torch.einsum("bixy,ioxy->boxy", spectrum[..., :modes, :modes], weight)
    return torch.fft.irfft2(out, s=x.shape[-2:])


def test_layers_of_complex_numbers_agree_with_torch() -> None:
    """Forward, and the gradients of everything."""
    x = torch.randn(2, 4, 12, 10, requires_grad=True)
    weight = numbers(4, 4, 3, 3, seed=2).requires_grad_()
    angles = torch.rand(10, 5, requires_grad=True)

    def run() -> list[Tensor]:
        out = spectral(rotary(x, angles.repeat(1, 1)[:1]), weight)
        return [out, *torch.autograd.grad(out.square().sum(), (x, weight, angles))]

    plain = run()
    with PortableMode():
        ours, again = run(), run()
    for one, other, twice in zip(plain, ours, again, strict=True):
        torch.testing.assert_close(other, one, rtol=1e-4, atol=1e-4)
        assert same(other, twice)


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW])
@pytest.mark.parametrize("foreach", [False, True])
def test_complex_parameters_are_trained(optimizer: Any, foreach: Any) -> None:
    """With clipped gradients; as in plain torch."""
    start, batch = numbers(4, 4), numbers(4, 2, seed=4)

    def train() -> Tensor:
        weight = torch.nn.Parameter(start.clone())
        steps = optimizer([weight], lr=0.1, foreach=foreach)
        for _ in range(3):
            steps.zero_grad()
            (weight @ batch).abs().sum().backward()
            torch.nn.utils.clip_grad_norm_([weight], 1.0, foreach=foreach)
            steps.step()
        return weight.detach()

    plain = train()
    with PortableMode():
        ours = train()
    torch.testing.assert_close(ours, plain, rtol=1e-4, atol=1e-4)
