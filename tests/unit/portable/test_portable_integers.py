"""Ops of integers and booleans give what torch gives: a kernel of floats must never read their memory."""

from __future__ import annotations

import contextlib
import copy
import itertools
import warnings
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_leaves

import samebits
from samebits.errors import SamebitsError
from samebits.portable.kernels.activations import pointwise

if TYPE_CHECKING:
    from collections.abc import Callable

DTYPES = (torch.int64, torch.int32, torch.uint8, torch.bool)
SAMPLES = 10
OTHERS = (
    *("empty", "new_empty"),  # contents of nobody
    *("rand", "geometric"),  # numbers of our own generators
    *("sort", "argsort", "topk", "kthvalue", "mode", "msort"),  # which of equals comes first
    "jiterator",  # not for CPUs
)


@pytest.fixture(autouse=True)
def audited() -> None:
    """No audit: ops of integers may call others that are exact for these."""


def outcome(op: Any, sample: Any) -> list[torch.Tensor]:
    """The tensors that a call gives, dense and real, of a copy of its input."""
    first = copy.deepcopy(sample.input)  # with all of its memory, where it is a part of that
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = tree_leaves(op(first, *sample.args, **sample.kwargs))
    dense = [each.to_dense() for each in given if isinstance(each, torch.Tensor)]
    return [torch.view_as_real(each.resolve_conj()) if each.is_complex() else each for each in dense]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(
    "info",
    [info for info in op_db if not info.name.startswith(OTHERS)],
    ids=lambda info: f"{info.name}-{info.variant_test_name}",
)
def test_ops_agree_with_torch(info, dtype):
    if dtype not in info.dtypes:
        pytest.skip("torch has none")
    for sample in itertools.islice(info.sample_inputs("cpu", dtype), SAMPLES):
        expected = outcome(info.op, sample)
        with contextlib.suppress(SamebitsError):
            with samebits.portable():
                ours = outcome(info.op, sample)
            torch.testing.assert_close(ours, expected, rtol=1e-3, atol=1e-5, equal_nan=True)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.addcmul_(x, x, value=0.1),
        lambda x: torch.addcmul(x, x, x, value=2.7),
        lambda x: torch.nn.functional.hardtanh(x, -1.5, 2.5),
        lambda x: torch.nn.functional.hardtanh(x, 0.5, 2.5, inplace=True),
    ],
)
def test_numbers_beside_integers_become_integers(call: Callable[[torch.Tensor], torch.Tensor]):
    x = torch.arange(-6, 7)
    with samebits.portable():
        ours = call(x.clone())
    assert torch.equal(ours, call(x.clone()))
    assert ours.dtype == x.dtype


def test_the_gradient_of_dropout_takes_integers():
    backward = torch.ops.aten.native_dropout_backward
    grad, mask = torch.tensor([1, 2, 3]), torch.tensor([True, False, True])
    with samebits.portable():
        ours = backward(grad, mask, 2.5)
    assert torch.equal(ours, backward(grad, mask, 2.5))


def test_a_kernel_of_floats_refuses_integers():
    """Whatever handler hands them over: it would take their memory for floats."""
    x = torch.arange(3)
    with pytest.raises(SamebitsError, match=r"addcmul.* of torch.int64"):
        pointwise("addcmul", x, x, x, params=(1.0,))


def test_interpolation_of_bytes_is_refused():
    image = torch.zeros(1, 1, 4, 4, dtype=torch.uint8)
    with samebits.portable(), pytest.raises(SamebitsError, match=r"upsample_bilinear2d.* of torch.uint8"):
        torch.nn.functional.interpolate(image, scale_factor=2, mode="bilinear")
