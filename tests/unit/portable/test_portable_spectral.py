"""Eigenvalues and singular values in portable mode."""

from __future__ import annotations

import pytest
import torch
from opinfo import check_op
from torch import Tensor

from samebits.portable._dispatch import PortableMode
from samebits.portable.backends.library import load
from samebits.portable.kernels import jacobi

SHAPES = [
    (5, 3),
    (3, 5),
    (4, 4),
    (1, 1),
    (6, 0),
    (0, 6),
    (2, 7, 4),
    (0, 3, 2),
    (2, 2, 3, 3),
    (33, 20),
    (0, 0),
]
KINDS = ["full", "deficient", "whole", "zero", "graded", "tiny", "huge"]
ACCURACY = {torch.float32: 2e-6, torch.float64: 1e-13}


def matrix(shape: tuple[int, ...], kind: str, dtype: torch.dtype) -> Tensor:
    torch.manual_seed(3)
    a = torch.randn(shape, dtype=torch.float64)
    if kind == "deficient":
        a = a @ torch.randn(shape[-1], shape[-1], dtype=torch.float64).tril(-1)
    if kind == "graded":
        a = a * torch.logspace(0, -20, shape[-1], dtype=torch.float64)
    a = {"whole": a.round(), "zero": a * 0, "tiny": a * 1e-30, "huge": a * 1e30}.get(kind, a)
    return a.to(dtype)


def check_close(found: Tensor, wanted: Tensor, accuracy: float) -> None:
    torch.testing.assert_close(
        found, wanted, rtol=0, atol=accuracy * max(1.0, max(found.shape, default=1) ** 0.5)
    )


def check_orthogonal(vectors: Tensor, accuracy: float) -> None:
    size = vectors.shape[-1]
    check_close(
        vectors.mT @ vectors,
        torch.eye(size, dtype=vectors.dtype).expand(*vectors.shape[:-2], size, size),
        accuracy,
    )


def scale_of(values: Tensor) -> float:
    return float(values.abs().max()) or 1.0 if values.numel() else 1.0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_svd_gives_the_matrix_back(shape, kind, dtype):
    a = matrix(shape, kind, dtype)
    accuracy = ACCURACY[dtype]
    for full in (False, True):
        plain = torch.linalg.svd(a, full)
        with PortableMode():
            u, s, vh = torch.linalg.svd(a, full)
            alone = torch.linalg.svdvals(a)
        assert [x.shape for x in (u, s, vh)] == [x.shape for x in plain]
        k, scale = s.shape[-1], scale_of(plain.S)
        check_close(s / scale, plain.S / scale, accuracy)
        check_close((u[..., :k] * (s / scale)[..., None, :]) @ vh[..., :k, :], a / scale, accuracy)
        check_orthogonal(u, accuracy)
        check_orthogonal(vh.mT, accuracy)
        assert torch.equal(s, alone)
        assert bool((s[..., :-1] >= s[..., 1:]).all())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(4, 4), (1, 1), (3, 5, 5), (2, 0, 0), (0, 3, 3), (31, 31)])
@pytest.mark.parametrize("side", ["L", "U"])
def test_eigh_gives_the_matrix_back(shape, kind, dtype, side):
    a = matrix(shape, kind, dtype)
    half = a.tril() if side == "L" else a.triu()
    whole = half + half.mT - torch.diag_embed(a.diagonal(0, -2, -1))
    plain = torch.linalg.eigvalsh(a, side)
    with PortableMode():
        w, v = torch.linalg.eigh(a, side)
        alone = torch.linalg.eigvalsh(a, side)
    scale = scale_of(plain)
    check_close(w / scale, plain / scale, ACCURACY[dtype])
    check_close((v * (w / scale)[..., None, :]) @ v.mT, whole / scale, ACCURACY[dtype])
    check_orthogonal(v, ACCURACY[dtype])
    assert torch.equal(w, alone)
    assert bool((w[..., :-1] <= w[..., 1:]).all())


def test_the_sign_is_that_of_the_largest_component():
    torch.manual_seed(0)
    for a in (torch.randn(3, 5, 4), torch.randn(3, 4, 5), torch.randn(2, 4, 4)):
        with PortableMode():
            u, _, vh = torch.linalg.svd(a, full_matrices=True)
            v = torch.linalg.eigh(a @ a.mT)[1]
        for vectors in (u if a.shape[-2] >= a.shape[-1] else vh.mT, v):
            largest = vectors.gather(-2, vectors.abs().argmax(-2, keepdim=True))
            assert bool((largest > 0).all())


def test_a_matrix_has_the_same_bits_in_any_batch():
    torch.manual_seed(0)
    easy, hard = torch.diag(torch.tensor([1.0, 1.0, 3.0])), torch.randn(3, 3)
    with PortableMode():
        for op in (torch.linalg.svd, torch.linalg.eigh):
            together = op(torch.stack([easy, hard, easy]))
            for index, one in enumerate((easy, hard, easy)):
                assert all(torch.equal(x[index], y) for x, y in zip(together, op(one), strict=True))


def test_every_instruction_set_and_thread_count_gives_the_same_bits():
    native = load()
    if native is None:
        pytest.skip("no kernels here")
    a = matrix((20, 13), "full", torch.float64)
    found = []
    for isa in ("scalar", "avx2", "avx512", "neon"):
        for threads in (1, 2) if native.select(isa) else ():
            native.set_threads(threads)
            with PortableMode():
                found.append([*torch.linalg.svd(a), *torch.linalg.eigh(a @ a.mT)])
    native.select("")
    native.set_threads(1)
    assert all(torch.equal(x, y) for other in found for x, y in zip(found[0], other, strict=True))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("op", ["svd", "eigh", "svdvals", "eigvalsh"])
def test_what_is_not_finite_is_an_error_as_in_torch(op, value):
    a = torch.eye(3).repeat(2, 1, 1)
    a[1, 2, 0] = value
    with PortableMode(), pytest.raises(torch.linalg.LinAlgError, match="Batch element 1"):
        getattr(torch.linalg, op)(a)


def test_too_many_sweeps_are_an_error(monkeypatch):
    monkeypatch.setattr(jacobi, "MOST_SWEEPS", 1)
    for op in (torch.linalg.svd, torch.linalg.eigh):
        with PortableMode(), pytest.raises(torch.linalg.LinAlgError, match="failed to converge"):
            op(torch.arange(25.0).reshape(5, 5))


def of_svd(a: Tensor) -> Tensor:
    u, s, vh = torch.linalg.svd(a, full_matrices=False)
    return (u * torch.log1p(s)[..., None, :]) @ vh


def of_eigh(a: Tensor) -> Tensor:
    w, v = torch.linalg.eigh(a + a.mT)
    return (v * torch.tanh(w)[..., None, :]) @ v.mT


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (of_svd, (2, 4, 3)),
        (of_svd, (3, 4)),
        (of_eigh, (2, 4, 4)),
        (lambda a: torch.linalg.eigvalsh(a + a.mT), (4, 4)),
        (torch.linalg.svdvals, (3, 4)),
        (torch.linalg.pinv, (2, 5, 3)),
        (lambda a: torch.linalg.matrix_norm(a, "nuc"), (4, 3)),
        (lambda a: torch.linalg.matrix_norm(a, 2), (4, 3)),
        (torch.linalg.cond, (4, 4)),
    ],
)
def test_gradients(function, shape):
    torch.manual_seed(1)
    a = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    with PortableMode():
        assert torch.autograd.gradcheck(function, (a,), fast_mode=True)


OPS = [("linalg.svdvals", ""), ("linalg.eigvalsh", ""), ("linalg.pinv", ""), ("linalg.pinv", "hermitian")]
OPS += [
    ("linalg.matrix_rank", ""),
    ("linalg.matrix_rank", "hermitian"),
    ("linalg.cond", ""),
    ("pinverse", ""),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(("name", "variant"), OPS)
def test_ops_agree_with_torch(name, variant, dtype):
    check_op(name, dtype, variant=variant, limit=8)


def test_what_torch_makes_of_them():
    torch.manual_seed(0)
    a = torch.randn(30, 6, dtype=torch.float64)
    with PortableMode():
        u, s, v = torch.svd(a)
        _, low, _ = torch.svd_lowrank(a, 6)
        _, main, _ = torch.pca_lowrank(a, 6)
    plain = torch.linalg.svdvals(a)
    torch.testing.assert_close((u * s) @ v.mT, a)
    torch.testing.assert_close(low, plain)
    torch.testing.assert_close(main, torch.linalg.svdvals(a - a.mean(0)))
