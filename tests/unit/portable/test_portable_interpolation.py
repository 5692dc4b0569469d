"""Interpolation, grids and padding against torch."""

from __future__ import annotations

import pytest
import torch
from opinfo import check_op

OPS = [
    "nn.functional.interpolate:linear",
    "nn.functional.interpolate:bilinear",
    "nn.functional.interpolate:bicubic",
    "nn.functional.interpolate:trilinear",
    "nn.functional.interpolate:nearest",
    "nn.functional.interpolate:nearest-exact",
    "_upsample_bilinear2d_aa",
    "nn.functional.grid_sample",
    "nn.functional.pad:reflect",
    "nn.functional.pad:replicate",
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", OPS)
def test_ops_agree_with_torch(name, dtype):
    op, _, variant = name.partition(":")
    check_op(op, dtype, variant=variant, limit=8)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("size", [(3, 5), (11, 4)])
def test_smoothed_interpolation_agrees_with_torch(mode, size):
    from samebits.portable._dispatch import PortableMode

    x = torch.randn(2, 3, 7, 8, dtype=torch.float64, requires_grad=True)

    def run():
        out = torch.nn.functional.interpolate(x, size, mode=mode, antialias=True)
        return out, torch.autograd.grad(out, x, torch.cos(out.detach() * 0 + 0.3))[0]

    plain = run()
    with PortableMode():
        out = torch.nn.functional.interpolate(x, size, mode=mode, antialias=True)
        ours = out, torch.autograd.grad(out, x, torch.full_like(out, 0.955336489125606))[0]
    torch.testing.assert_close(ours, plain, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("align", [True, False])
@pytest.mark.parametrize("size", [(2, 3, 4, 5), (2, 3, 1, 5), (1, 1, 3, 4, 5)], ids=str)
@pytest.mark.filterwarnings("ignore:Since version 1.3.0")
def test_affine_grids_agree_with_torch(size, align):
    from samebits.portable._dispatch import PortableMode

    spatial = len(size) - 2
    theta = torch.randn(size[0], spatial, spatial + 1, dtype=torch.float64, requires_grad=True)

    def run():
        grid = torch.nn.functional.affine_grid(theta, size, align_corners=align)
        return grid, torch.autograd.grad(grid.square().sum(), theta)[0]

    plain = run()
    with PortableMode():
        ours = run()
    torch.testing.assert_close(ours, plain, rtol=1e-12, atol=1e-12)
