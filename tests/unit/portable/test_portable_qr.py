"""QR and orthogonal initialisation in portable mode."""

from __future__ import annotations

import pytest
import torch

from samebits.portable._dispatch import PortableMode
from samebits.portable.backends.library import load

SHAPES = [(5, 3), (3, 5), (4, 4), (1, 1), (6, 0), (0, 6), (2, 7, 4), (0, 3, 2), (70, 33)]


@pytest.mark.parametrize("mode", ["reduced", "complete", "r"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_qr_is_close_to_torch(shape: tuple[int, ...], mode: str, dtype: torch.dtype) -> None:
    a = torch.randn(shape, generator=torch.Generator().manual_seed(1), dtype=dtype)
    plain = torch.linalg.qr(a, mode)
    with PortableMode():
        ours = torch.linalg.qr(a, mode)
    for one, other in zip(ours, plain, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_qr_of_columns_without_anything_to_reflect() -> None:
    a = torch.tensor([[2.0, 1.0], [0.0, 3.0], [0.0, 4.0]])
    with PortableMode():
        q, r = torch.linalg.qr(a)
        zero = torch.linalg.qr(torch.zeros(3, 2))
    torch.testing.assert_close(q @ r, a)
    assert zero[0].tolist() == torch.eye(3, 2).tolist()
    assert zero[1].tolist() == torch.zeros(2, 2).tolist()


@pytest.mark.parametrize("shape", SHAPES)
def test_reflections_are_close_to_those_of_torch(shape: tuple[int, ...]) -> None:
    a = torch.randn(shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    plain = torch.geqrf(a)
    with PortableMode():
        ours = torch.geqrf(a)
        rows, columns = shape[-2:]
        q = torch.linalg.householder_product(ours.a, ours.tau) if rows >= columns else None
        wanted = torch.linalg.qr(a).Q
    torch.testing.assert_close(ours.a, plain.a)
    torch.testing.assert_close(ours.tau, plain.tau)
    assert q is None or torch.equal(q, wanted)


@pytest.mark.parametrize("shape", [(20, 30), (30, 20), (8, 3, 3, 3)])
def test_orthogonal_weights(shape: tuple[int, ...]) -> None:
    native = load()
    found = []
    for isa in ("scalar", "avx2", "avx512", "neon"):
        if native is not None and native.select(isa):
            torch.manual_seed(4)
            with PortableMode():
                found.append(torch.nn.init.orthogonal_(torch.empty(shape)))
    if native is not None:
        native.select("")
    assert all(torch.equal(found[0], other) for other in found)
    for weight in found[:1]:
        flat = weight.flatten(1)
        flat = flat if flat.shape[0] <= flat.shape[1] else flat.t()
        torch.testing.assert_close(flat @ flat.t(), torch.eye(len(flat)), rtol=0, atol=1e-5)
