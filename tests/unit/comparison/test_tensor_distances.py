"""How two tensors of two programs relate: the numbers, and the form in which one is the other."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from samebits.comparison.programs._distance import measure
from samebits.comparison.programs.outcome import Part, Relation, Tolerance
from samebits.digest import digest_many
from samebits.recording._recorder import describe
from samebits.recording.kept_values import MOST_ELEMENTS, pack, unpack
from samebits.records.kinds import Role

X = torch.linspace(-2, 2, 24).reshape(2, 3, 4)
BIG = torch.arange(2.0 * MOST_ELEMENTS).reshape(2, -1)


def distance(a, b):
    infos = tuple(describe(Role.VALUE, "", tensor) for tensor in (a, b))
    kept = [unpack(pack(tensor, digest_many), info) for tensor, info in zip((a, b), infos, strict=True)]
    return measure(infos, *kept)


@pytest.mark.parametrize(
    ("a", "b", "relation"),
    [
        (X, X + 1, Relation.VALUES),
        (X, X.reshape(6, 4), Relation.SAME_VALUES),
        (X[:1], X[0], Relation.SAME_VALUES),
        (X, X.double(), Relation.SAME_VALUES),
        (torch.tensor([3, 4]), torch.tensor([3, 4], dtype=torch.int32), Relation.SAME_VALUES),
        (torch.tensor([True, False]), torch.tensor([[1.0, 0.0]]), Relation.SAME_VALUES),
        (torch.tensor([1.0]), torch.tensor([1 + 0j]), Relation.SAME_VALUES),
        (torch.tensor([0.0]), torch.tensor([-0.0], dtype=torch.float64), Relation.VALUES),
        (X, X.bfloat16(), Relation.ROUNDED),
        (X.half(), X.half().bfloat16(), Relation.ROUNDED),
        (X, (X + 1).bfloat16(), Relation.VALUES),
        (X[0, :, :3], X[0, :, :3].T, Relation.TRANSPOSED),
        (X[0], X[0].T, Relation.TRANSPOSED),
        (X, X.flip(0), Relation.REORDERED),
        (X, X[:, -1:], Relation.PART),
        (X, X.reshape(6, 4).bfloat16(), Relation.ROUNDED),
        (X, X.reshape(2, 12) + 1, Relation.VALUES),
        (X, X.reshape(4, 6).bfloat16(), Relation.ROUNDED),
        (X, X.reshape(4, 6) + 1, Relation.OTHER_SIZE),
        (X[:, :0], X[None, :, :0].double(), Relation.SAME_VALUES),
        (torch.empty(0, 4), torch.empty(0, 5), Relation.OTHER_SIZE),
        (torch.empty(0, 4), torch.empty(3, 0), Relation.OTHER_SIZE),
        (torch.empty(0, 4), torch.empty(0, 5, dtype=torch.float64), Relation.OTHER_SIZE),
        (torch.empty(0, 4, 5), torch.empty(0, 20), Relation.SAME_VALUES),
        (torch.empty(2, 0, 4), torch.empty(0), Relation.SAME_VALUES),
        (BIG, BIG.reshape(4, -1).bfloat16(), Relation.ROUNDED),
        (X, X[0, 0], Relation.OTHER_SIZE),
        (X, X[:, :2] + 1, Relation.OTHER_SIZE),
        (BIG, BIG.reshape(-1), Relation.SAME_VALUES),
        (BIG, BIG[None], Relation.SAME_VALUES),
        (BIG, BIG[None] + 1, Relation.VALUES),
        (BIG, BIG.flip(1), Relation.REORDERED),
        (BIG, BIG.double(), Relation.SAME_VALUES),
        (BIG, BIG + 0.5, Relation.VALUES),
        (torch.quantize_per_tensor(X, 0.5, 0, torch.qint8), X.to(torch.int8), Relation.NOT_KEPT),
        (
            torch.quantize_per_tensor(X, 0.5, 0, torch.qint8),
            torch.quantize_per_tensor(X.reshape(-1), 0.25, 0, torch.qint8),
            Relation.NOT_KEPT,
        ),
        (torch.tensor([2**53 + 1]), torch.tensor([2.0**53], dtype=torch.float64), Relation.VALUES),
    ],
)  # fmt: skip
def test_the_closest_relation_is_found(a, b, relation):
    assert distance(a, b).relation is relation
    assert distance(b, a).relation is relation


def test_what_differs_is_counted_and_measured():
    b = X.clone()
    b[1, 2, 3] = torch.nextafter(b[1, 2, 3], torch.tensor(9.0))
    b[0, 0, 1] += 0.5

    found = distance(X, b)

    assert (found.differing, found.compared, found.total) == (2, 24, 24)
    assert found.first_index == (0, 0, 1)
    assert found.values == (repr(X[0, 0, 1].item()), repr(b[0, 0, 1].item()))
    assert found.max_abs == pytest.approx(0.5)
    assert found.relative == pytest.approx(0.5 / b.abs().max().item())
    gap = abs(int(X[0, 0, 1].view(torch.int32)) - int(b[0, 0, 1].view(torch.int32)))
    assert (found.max_ulp, found.ulp_dtype) == (gap, "float32")


def test_ulps_are_of_the_less_precise_dtype():
    found = distance(torch.tensor([1.0, 2.0]), torch.tensor([1.0078125, 2.0]).bfloat16())

    assert (found.max_ulp, found.ulp_dtype, found.differing) == (1, "bfloat16", 1)


def test_what_is_not_finite_has_no_distance():
    found = distance(torch.tensor([1.0, float("nan")]), torch.tensor([1.0, 2.0]))

    assert (found.differing, found.max_ulp, found.max_abs, found.relative) == (1, None, None, None)
    assert not Tolerance(ulp=1 << 40).accepts(found)
    assert not Tolerance(relative=1e9).accepts(found)


def test_integers_have_no_ulp():
    found = distance(torch.tensor([1, 2]), torch.tensor([1, 4]))

    assert (found.max_ulp, found.max_abs, found.relative) == (None, 2.0, 0.5)
    assert not Tolerance(ulp=100).accepts(found)
    assert Tolerance(relative=0.5).accepts(found)


def test_large_unsigned_integers_are_compared_exactly():
    a, b = (torch.from_numpy(np.array([2**63 + n], dtype=np.uint64)) for n in (0, 1))

    assert distance(a, b).differing == 1
    assert distance(a, torch.tensor([5], dtype=torch.int64)).relation is Relation.VALUES


def test_the_order_of_dimensions_is_named():
    moved = X.permute(2, 0, 1)

    found = distance(X, moved)

    assert torch.equal(X.permute(found.permutation), moved)


def test_the_part_is_named():
    assert distance(X, X[:, -1:]).part == Part(1, is_last=True, kept=1, of=3)
    assert distance(X[..., :2], X).part == Part(2, is_last=False, kept=2, of=4)


def test_a_difference_outside_of_the_kept_elements_is_no_equality():
    b = BIG.clone()
    unseen = next(n for n in range(BIG.numel()) if n not in set(kept_places(BIG)))
    b.view(-1)[unseen] += 1

    found = distance(BIG, b)

    assert (found.relation, found.differing, found.is_sample) == (Relation.VALUES, 0, True)
    assert not Tolerance(ulp=1).accepts(found)


def test_the_index_of_a_kept_element_is_that_in_the_tensor():
    b = BIG.clone()
    place = kept_places(BIG)[-1]
    b.view(-1)[place] = -1

    found = distance(BIG, b)

    assert (found.differing, found.first_index) == (1, divmod(place, BIG.shape[1]))


def kept_places(tensor):
    info = describe(Role.VALUE, "", tensor)
    return unpack(pack(tensor, digest_many), info).elements.bits.view("f4").astype(int).tolist()


def test_the_scale_of_quantized_tensors_is_no_equality():
    a, b = (torch.quantize_per_tensor(torch.tensor([s, 2 * s]), s, 0, torch.qint8) for s in (0.5, 0.25))

    assert distance(a, b).relation is Relation.NOT_KEPT


def test_without_values_nothing_is_measured():
    info = describe(Role.VALUE, "", X)

    assert measure((info, info), None, None).relation is Relation.NOT_KEPT


def test_a_tolerance_accepts_up_to_its_limit():
    found = distance(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.0]).nextafter(torch.tensor(9.0)))

    assert [Tolerance(ulp=n).accepts(found) for n in (0, 1)] == [False, True]
    assert [Tolerance(relative=r).accepts(found) for r in (1e-8, 2e-7)] == [False, True]
    assert Tolerance(ulp=0).accepts(distance(X, X.bfloat16()))
    assert not Tolerance(ulp=1 << 40).accepts(distance(X, X[0]))


def test_the_two_zeros_are_within_any_relative_difference():
    found = distance(torch.zeros(2), -torch.zeros(2))
    assert (found.relation, found.relative) == (Relation.VALUES, 0.0)
    assert Tolerance(relative=1e-5).accepts(found)


def test_numbers_further_apart_than_the_largest_have_no_distance_that_json_lacks():
    far = torch.tensor([1.7e308], dtype=torch.float64)
    assert distance(far, -far).max_abs is None


def test_neighbouring_dimensions_made_into_one_are_compared_in_place():
    """A batch of sequences in one program is a batch of tokens in the other."""
    b = X.reshape(6, 4).clone()
    b[5, 1] += 1

    found = distance(X, b)

    assert (found.differing, found.compared, found.first_index) == (1, 24, (1, 2, 1))
