"""Compares what a function computes on the CPU and on a GPU."""

from __future__ import annotations

import torch

import samebits


def other_bits(run, *inputs):
    """Compare what a function gives for inputs in CPU memory and on the device; the places that differ."""
    expected, found = (run(*(x.detach().clone().to(device) for x in inputs)) for device in ("cpu", "cuda"))
    pairs = zip(listed(expected), listed(found), strict=True)
    return [at for at, (one, other) in enumerate(pairs) if not same(one, other)]


def listed(values):
    """The results of a function as a list."""
    return list(values) if isinstance(values, tuple | list) else [values]


def same(one, other):
    """Whether the second has the bits of the first, and lies on the device; NaNs are one value."""
    assert other.device.type == "cuda"
    one, other = one.detach(), other.detach().cpu()
    if one.is_complex():
        one, other = torch.view_as_real(one), torch.view_as_real(other)
    if one.is_floating_point():
        one, other = (torch.where(x.isnan(), 7.0, x) for x in (one, other))
    return one.dtype == other.dtype and samebits.digest(one) == samebits.digest(other)
