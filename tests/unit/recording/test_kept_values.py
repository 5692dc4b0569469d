"""The elements that a record keeps of a tensor."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from samebits.digest import digest_many
from samebits.recording._recorder import describe
from samebits.recording.distance import KNOWN, sampled, tensor_elements
from samebits.recording.kept_values import MOST_ELEMENTS, pack, rounded, unordered, unpack
from samebits.records.kinds import Role


def kept(tensor):
    return unpack(pack(tensor, digest_many), describe(Role.VALUE, "", tensor))


@pytest.mark.parametrize("name", sorted(name for name in KNOWN if hasattr(torch, name)))
def test_every_dtype_comes_back(name):
    dtype = getattr(torch, name)
    tensor = torch.tensor([0, 1, 2, 3, 4, 5]).reshape(2, 3).to(dtype).t()

    found = kept(tensor)

    wanted = tensor_elements(tensor)
    assert found.is_whole
    assert found.elements.dtype == wanted.dtype
    assert (found.elements.bits == wanted.bits).all()


@pytest.mark.parametrize(
    "tensor",
    [
        torch.tensor(3.5),
        torch.empty(0, 4),
        torch.ones(1).expand(7),
        torch.tensor([1 + 2j]).conj(),
        torch.eye(3).to_sparse(),
        torch.ones(2, requires_grad=True),
    ],
)
def test_any_layout_is_kept_as_its_contents(tensor):
    found = kept(tensor)

    assert found.total == tensor.numel()
    wanted = tensor_elements(tensor.to_dense().resolve_conj())
    assert (found.elements.bits == wanted.bits).all()


def test_a_nested_tensor_is_not_kept():
    assert pack(torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), digest_many) is None


@pytest.mark.parametrize("total", [MOST_ELEMENTS + 1, 3 * MOST_ELEMENTS, 10**9 + 7])
def test_the_places_are_spread_over_the_tensor(total):
    places = sampled(total, MOST_ELEMENTS)

    assert len(places) == MOST_ELEMENTS
    assert (np.diff(places) > 0).all()
    assert places[0] >= 0
    assert places[-1] < total
    assert np.diff(places).max() <= 2 * -(-total // MOST_ELEMENTS)


def test_the_places_meet_every_column():
    width = 8  # as wide as each stretch is long
    places = sampled(width * MOST_ELEMENTS, MOST_ELEMENTS)

    assert len(set((places % width).tolist())) == width


def test_a_large_tensor_is_kept_in_part_with_what_tells_its_contents():
    tensor = torch.arange(MOST_ELEMENTS + 5, dtype=torch.int32)

    found = kept(tensor)

    assert not found.is_whole
    assert (
        found.elements.bits.tolist() == tensor[torch.from_numpy(sampled(len(tensor), MOST_ELEMENTS))].tolist()
    )
    assert found.flat == digest_many([tensor])
    assert found.unordered == kept(tensor.flip(0)).unordered != kept(tensor + 1).unordered
    assert found.index(7) == sampled(len(tensor), MOST_ELEMENTS)[7]


def test_the_unordered_sum_keeps_elements_of_pairs_together():
    pairs = torch.tensor([[1, 2], [3, 4]], dtype=torch.int32)

    assert torch.equal(unordered(pairs), unordered(pairs.flip(0)))
    assert not torch.equal(unordered(pairs), unordered(pairs.flip(1)))


def test_a_file_that_does_not_fit_its_description_is_not_used():
    data = pack(torch.ones(4), digest_many)

    assert unpack(data, describe(Role.VALUE, "", torch.ones(5))) is None
    assert unpack(data, describe(Role.VALUE, "", torch.ones(4, dtype=torch.float64))) is None
    assert unpack(b"no safetensors", describe(Role.VALUE, "", torch.ones(4))) is None


@pytest.mark.parametrize("dtype", ["float²", "int" + "9" * 5000, "int0", "", "object", "complex", "qint7"])
def test_a_dtype_that_does_not_exist_is_no_error(dtype):
    """A record may come from a stranger."""
    info = dataclasses.replace(describe(Role.VALUE, "", torch.ones(4)), dtype=dtype)

    assert unpack(pack(torch.ones(4), digest_many), info) is None


def test_rounding_is_that_of_torch():
    tensor = torch.linspace(-3, 3, 50)

    found = rounded(tensor_elements(tensor), "bfloat16")

    assert (found.bits == tensor_elements(tensor.bfloat16()).bits).all()
