"""Tensors that are not one piece of strided CPU memory."""

from dataclasses import dataclass

import pytest
import torch

from samebits.digest import digest, digest_many, observe
from samebits.digest._parts import parts_of
from samebits.errors import SamebitsError


@pytest.fixture(params=["bindings", "native", "torch"], autouse=True)
def back_end(request, choose_backend):
    """Each test with all C parts, with the C library alone and without any."""
    choose_backend(request.param)


class Plain(torch.Tensor):
    """A subclass that changes nothing."""


class Pair(torch.Tensor):
    """A wrapper around two tensors."""

    @staticmethod
    def __new__(cls, first, second):
        """Without memory of its own."""
        return torch.Tensor._make_wrapper_subclass(cls, first.shape, dtype=first.dtype)

    def __init__(self, first, second):
        self.first, self.second = first, second

    def __tensor_flatten__(self):
        return ["first", "second"], None

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise NotImplementedError


class Scaled(torch.Tensor):
    """A wrapper around one tensor, with a context."""

    @staticmethod
    def __new__(cls, inner, context):
        """Without memory of its own."""
        wanted = isinstance(context, dict) and context.get("requires_grad", False)
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, requires_grad=wanted)

    def __init__(self, inner, context):
        self.inner, self.context = inner, context

    def __tensor_flatten__(self):
        context = self.context
        if isinstance(context, dict) and "requires_grad" in context:
            context = {**context, "requires_grad": self.requires_grad}
        return ["inner"], context

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if func is torch.ops.aten.detach.default:
            return cls(args[0].inner, {**args[0].context, "requires_grad": False})
        raise NotImplementedError


@dataclass
class Layout:
    """A context."""

    scale: float
    axes: tuple


def complex_numbers():
    return torch.arange(6, dtype=torch.float32).view(torch.complex64) + 0


def test_conjugate_and_negative_views():
    """They digest as what they read as, also in a list with others and when contiguous."""
    z = torch.tensor([1 + 2j, -3 + 0.5j, 0 - 1j] * 100)
    imaginary = z.conj().imag
    assert imaginary.is_neg()
    assert z.conj().is_conj()
    expected = [z.conj().resolve_conj(), imaginary.resolve_neg().contiguous(), imaginary[:1].resolve_neg(), z]
    views = [z.conj(), imaginary, imaginary[:1], z]
    assert digest_many(views) == digest_many(expected)
    assert [digest(view) for view in views] == [digest(dense) for dense in expected]
    assert digest(z.conj()) != digest(z)


def test_large_lazy_views():
    """Resolved in pieces."""
    z = torch.arange(2_000_000, dtype=torch.float32).view(torch.complex64)
    assert digest(z.conj()) == digest(z.conj().resolve_conj())


@pytest.mark.parametrize(
    "convert",
    [
        lambda t: t.to_sparse(),
        lambda t: t.to_sparse_csr(),
        lambda t: t.to_sparse_csc(),
        lambda t: t.to_sparse_bsr((2, 2)),
        lambda t: t.to_sparse_bsc((2, 2)),
    ],
    ids=["coo", "csr", "csc", "bsr", "bsc"],
)
@pytest.mark.filterwarnings("ignore")
def test_sparse(convert):
    base = torch.eye(4)
    other = torch.eye(4)
    other[0, 0] = 2
    moved = base.flip(0)
    assert digest(convert(base)) == digest(convert(base.clone()))
    assert (
        len(
            {digest(t) for t in (base, convert(base), convert(other), convert(moved), convert(base.double()))}
        )
        == 5
    )


@pytest.mark.filterwarnings("ignore")
def test_sparse_shapes_differ():
    index, value = torch.tensor([[0], [1]]), torch.ones(1)
    small, large = (torch.sparse_coo_tensor(index, value, size) for size in ((2, 2), (2, 3)))
    assert digest(small) != digest(large)


@pytest.mark.filterwarnings("ignore")
def test_quantized():
    """Integers, scale and zero point all count."""
    t = torch.arange(6.0).view(2, 3)
    variants = [
        torch.quantize_per_tensor(t, 0.1, 3, torch.quint8),
        torch.quantize_per_tensor(t, 0.2, 3, torch.quint8),
        torch.quantize_per_tensor(t, 0.1, 4, torch.quint8),
        torch.quantize_per_tensor(t, 0.1, 3, torch.qint32),
        torch.quantize_per_channel(t, torch.tensor([0.1, 0.1]), torch.tensor([3, 3]), 0, torch.quint8),
        torch.quantize_per_channel(t, torch.tensor([0.1, 0.2]), torch.tensor([3, 3]), 0, torch.quint8),
    ]
    assert len({digest(v) for v in variants}) == len(variants)
    assert digest(variants[0]) == digest(variants[0].clone())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("layout", [torch.strided, torch.jagged], ids=str)
def test_nested(layout):
    """Made twice, a nested tensor digests alike, whatever torch numbers its ragged size."""

    def make(first, second):
        return torch.nested.nested_tensor([torch.ones(first, 3), torch.ones(second, 3)], layout=layout)

    assert digest(make(2, 4)) == digest(make(2, 4))
    assert digest(make(2, 4)) != digest(make(3, 3))


def test_without_contents():
    """A meta tensor is its dtype and shape; it is never that of an empty or zero tensor."""
    meta = [torch.empty(size, device="meta") for size in ((3,), (0,), (3, 1))] + [
        torch.empty(3).to("meta").half()
    ]
    real = [torch.zeros(3), torch.zeros(0), torch.zeros(3, 1)]
    assert len({digest(t) for t in meta + real}) == 7
    assert digest(meta[0]) == digest(torch.ones(3, device="meta"))


def test_fake_tensors():
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode():
        fake = torch.ones(3)
    assert digest(fake) == digest(torch.ones(3, device="meta"))


def test_freed_storage():
    """As fully sharded training leaves parameters: the address is gone, nothing is read."""
    t = torch.ones(1000)
    t.untyped_storage().resize_(0)
    assert digest_many([t, torch.ones(2)])[:16] == digest(torch.ones(1000, device="meta")).value


def test_zeros_that_were_never_written():
    assert digest(torch._efficientzerotensor((3,))) == digest(torch.zeros(3))


@pytest.mark.parametrize("view", [lambda t: t[1], lambda t: t[:, 1:], lambda t: t.t()[2:]])
def test_a_part_of_zeros_that_were_never_written(view):
    """Its address is its offset, not 0."""
    part, written = view(torch._efficientzerotensor((4, 4))), view(torch.zeros(4, 4))

    assert digest(part) == digest(written)
    assert observe([part, written])[0] == digest_many([written, written])


def test_mkldnn():
    t = torch.arange(24.0).view(2, 3, 4)
    assert digest(t.to_mkldnn()) == digest(t)


def test_subclasses():
    t = torch.arange(6.0)
    assert digest(t.as_subclass(Plain)) == digest(torch.nn.Parameter(t)) == digest(t)
    assert digest(t.view(2, 3).t().as_subclass(Plain)) == digest(t.view(2, 3).t())
    assert digest(Pair(t, t + 1)) == digest(Pair(t.clone(), t + 1)) != digest(Pair(t + 1, t))


def test_gradients_are_not_in_the_way():
    weight = torch.ones(2, 3, requires_grad=True)
    assert digest(weight) == digest(weight * 1) == digest((weight * 1).t().t()) == digest(torch.ones(2, 3))
    with torch.inference_mode():
        assert digest(torch.ones(2, 3)) == digest(weight)


def test_not_recorded_by_autograd():
    weight = torch.ones(300, requires_grad=True)
    digest(weight.conj())
    assert weight._version == 0
    assert weight.grad_fn is None


def test_inside_a_transform():
    """There is no memory to read there: the error says so."""
    seen = []

    def function(x):
        with pytest.raises(SamebitsError, match=r"torch\.func") as caught:
            digest(x)
        seen.append(caught.value.slug)
        return x

    torch.vmap(function)(torch.ones(2, 3))
    assert seen == ["digest-unreadable"]


def test_default_device_does_not_matter():
    expected = digest([torch.ones(3), "text", torch.ones(3).to_sparse()])
    torch.set_default_device("meta")
    try:
        found = digest([torch.ones(3, device="cpu"), "text", torch.ones(3, device="cpu").to_sparse()])
    finally:
        torch.set_default_device(None)
    assert found == expected


@pytest.mark.gpu
def test_cuda():
    """Where the tensor lives, in one transfer; the same digests as on the CPU."""
    cpu = [torch.randn(n) for n in (0, 1, 300, 3_000_000)] + [
        torch.randn(300, 70).t(),
        torch.randn(9, 9).half(),
    ]
    cuda = [t.cuda() for t in cpu]
    mixed = [t for pair in zip(cuda, cpu, strict=True) for t in pair]
    digests = digest_many(mixed)
    assert digest_many(cuda) == digest_many(cpu)
    assert digests[:16] == digests[16:32]


class Placed(torch.Tensor):
    """A wrapper that also names something that is no tensor, as a DTensor of torch 2.13 does its mesh."""

    @staticmethod
    def __new__(cls, inner):
        """Without memory of its own."""
        return torch.Tensor._make_wrapper_subclass(cls, (8, *inner.shape), dtype=inner.dtype)

    def __init__(self, inner):
        self.inner, self.mesh, self.waited = inner, object(), 0

    def __tensor_flatten__(self):
        return ["inner", "mesh"], None

    def trigger_wait(self):
        """As an AsyncCollectiveTensor has it."""
        self.waited += 1
        self.inner.fill_(7)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise NotImplementedError


def test_wrappers_that_name_more_than_tensors():
    """The tensors count; what other ranks may still be writing to is waited for."""
    one, other = Placed(torch.ones(3)), Placed(torch.zeros(3))

    assert digest(one) == digest(other)
    assert (one.waited, other.waited) == (1, 1)


class Doubled(Pair):
    """A wrapper that names one of its tensors twice."""

    def __tensor_flatten__(self):
        return ["first", "first"], None


class Opaque(torch.Tensor):
    """A tensor that takes back what its base class may offer."""

    __tensor_flatten__ = None


def test_a_tensor_that_a_wrapper_names_twice_counts_twice():
    tensor = torch.ones(3)
    parts = parts_of(Doubled(tensor, tensor))

    assert "('first', 'first')" in parts.tag
    assert [part.tolist() for part in parts.tensors] == [[1, 1, 1]] * 2


def test_a_subclass_without_parts_digests_as_its_contents():
    tensor = torch.arange(5.0)

    assert digest(tensor.as_subclass(Opaque)) == digest(tensor)


def test_the_context_of_a_wrapper_counts():
    """Numbers, dtypes, containers, dataclasses and tensors in it; not the order of a dict, nor addresses."""
    inner = torch.arange(4.0)
    contexts = [
        None, 1, 1.0, True, "1", -0.0, 0.0, float("nan"), torch.float16, (1, 2), [1, 2], (2, 1),
        {"scale": 1}, {"scale": 2},
        Layout(0.5, (0, 1)), Layout(0.5, (1, 0)), torch.ones(2), torch.zeros(2), (torch.ones(2), 1), {1, 2},
        (),
    ]  # fmt: skip

    found = [digest(Scaled(inner, context)) for context in contexts]

    assert len(set(found)) == len(contexts)
    assert found == [digest(Scaled(inner.clone(), context)) for context in contexts]
    assert digest(Scaled(inner, {"a": 1, "b": 2})) == digest(Scaled(inner, {"b": 2, "a": 1}))
    assert digest(Scaled(inner, object())) == digest(Scaled(inner, object()))


def test_wanting_a_gradient_is_no_part_of_a_wrapper():
    """As of any other tensor: a state dict has detached ones."""
    one, other = (Scaled(torch.ones(2), {"scale": 2, "requires_grad": wanted}) for wanted in (True, False))

    assert one.requires_grad
    assert digest(one) == digest(other)
    assert digest(one) != digest(Scaled(torch.ones(2), {"scale": 3, "requires_grad": True}))


def test_what_an_uncoalesced_tensor_stores_counts():
    """Entries of one place in another order, or not added up, are other bits, whose sum may be another."""
    at = torch.tensor([[0, 0, 2]])
    first, again, swapped = (
        torch.sparse_coo_tensor(at, torch.tensor(values), (3,))
        for values in ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [2.0, 1.0, 3.0])
    )

    assert digest(first) == digest(again)
    assert len({digest(first), digest(swapped), digest(first.coalesce())}) == 3
    assert digest(first.coalesce()) == digest(swapped.coalesce())


def test_a_plain_tensor_viewed_as_quantized_is_refused():
    """It has no scale; the message says what to digest in its place."""
    odd = torch.zeros(4, dtype=torch.int8).view(torch.qint8)

    for value in (odd, [torch.ones(2), odd]):
        with pytest.raises(SamebitsError, match=r"plain tensor viewed as qint8.*no scale") as caught:
            digest(value)
        assert caught.value.slug == "digest-unreadable"
