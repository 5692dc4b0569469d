"""A plan gives what `digest_many` gives, whatever happened to its tensors in between."""

import torch

from samebits.digest import DigestPlan, digest_many


def make_tensors():
    return [torch.arange(n, dtype=torch.float32).view(-1, 2) for n in (2, 10, 4096)] + [torch.ones(3, 4).t()]


def test_same_as_digest_many():
    data = make_tensors()
    plan = DigestPlan(data)
    assert plan.digest() == plan.digest() == digest_many(data)


def test_sees_changes_in_place():
    data = make_tensors()
    plan = DigestPlan(data)
    before = plan.digest()
    data[1][2, 0] += 1
    assert plan.digest() != before
    assert plan.digest() == digest_many(data)


def test_sees_other_memory():
    data = make_tensors()
    plan = DigestPlan(data)
    plan.digest()
    old = data[1].data
    data[1].data = torch.full_like(old, 7)
    assert plan.digest() == digest_many(data)


def test_sees_another_shape_in_the_same_memory():
    data = make_tensors()
    plan = DigestPlan(data)
    plan.digest()
    data[1].t_()
    assert plan.digest() == digest_many(data)
    data[1].resize_(2, 2)
    assert plan.digest() == digest_many(data)


def test_sees_another_dtype_in_the_same_memory():
    """Both are made of the same bytes at the same address; reading the wider one would leave the memory."""
    data = [torch.zeros(8, dtype=torch.float64)]
    plan = DigestPlan(data)
    plan.digest()
    data[0].data = data[0].data.view(torch.int64)
    assert plan.digest() == digest_many(data)


def test_any_kind_of_tensor():
    data = [torch.eye(3).to_sparse(), torch.ones(2), torch.ones(2, device="meta")]
    assert DigestPlan(data).digest() == digest_many(data)


def test_larger_than_one_call_holds_the_gil_for():
    data = [torch.arange(1_000_000), torch.ones(3)]
    plan = DigestPlan(data)
    assert plan.digest() == plan.digest() == digest_many(data)


def test_empty():
    assert DigestPlan([]).digest() == b""
