"""What the dispatch mode lets through, what it refuses, and how it says so."""

from __future__ import annotations

import sys

import pytest
import torch
from torch import nn

import samebits
from samebits.errors import SamebitsError
from samebits.portable._dispatch import PortableMode, uses_registration

REFUSED_TENSORS = {
    "complex32": lambda: torch.ones(2, dtype=torch.complex64).to(torch.complex32),
    "quantized": lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8),
    "bsr": lambda: torch.eye(2).to_sparse_bsr((1, 1)),
    "nested": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
    "float8": lambda: torch.ones(2).to(torch.float8_e4m3fn),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", REFUSED_TENSORS)
@pytest.mark.parametrize(
    "call",
    [
        torch.exp,
        lambda tensor: torch.mul(torch.ones(2), other=tensor),
        lambda tensor: torch._foreach_mul([torch.ones(2), tensor], 2.0),
    ],
    ids=["positional", "keyword", "list"],
)
def test_tensors_without_portable_values_are_refused(kind, call):
    """Wherever they stand among the arguments."""
    tensor = REFUSED_TENSORS[kind]()

    with PortableMode(), pytest.raises(SamebitsError) as caught:
        call(tensor)

    assert caught.value.slug in {"portable-tensor", "portable-op"}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", REFUSED_TENSORS)
@pytest.mark.parametrize(
    "call",
    [torch.neg, torch.clone, torch.t, lambda tensor: torch.cat([torch.ones(2), tensor])],
    ids=["neg", "clone", "t", "cat"],
)
def test_they_are_moved_or_refused(kind, call):
    """By samebits or by torch, which moves dense ones of any dtype."""
    tensor = REFUSED_TENSORS[kind]()
    with PortableMode():
        try:
            moved = call(tensor)
        except (SamebitsError, RuntimeError):
            return
    assert moved.layout is torch.strided
    assert samebits.digest(moved) == samebits.digest(call(tensor))


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.zeros(2, dtype=torch.complex32) * 2,
        lambda: torch.ones(2).to(torch.complex32),
        lambda: torch.complex(torch.ones(2).half(), torch.ones(2).half()) + 1,
        lambda: torch.sparse_coo_tensor([[0]], torch.ones(1, dtype=torch.complex64), (2,)),
        lambda: torch.ones(2).half() * 1j,
        lambda: torch.ones(2) ** (1 + 1j),
        lambda: (1 + 1j) ** torch.ones(2),
        lambda: torch.linspace(0, 1j, 3),
        lambda: torch.ones(2, dtype=torch.complex64).exp2(),
    ],
)
def test_nothing_that_is_refused_can_be_computed(make):
    """By a factory, a conversion or an op."""
    with PortableMode(), pytest.raises(SamebitsError) as caught:
        make()

    assert caught.value.slug in {"portable-tensor", "portable-op"}


def test_tensors_without_contents_pass():
    """Meta and fake tensors have no bits to differ; kernels never see them."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    with PortableMode():
        assert (torch.ones(2, 3, device="meta") @ torch.ones(3, 4, device="meta")).shape == (2, 4)
        model = nn.Linear(3, 4, device="meta")
        assert model(torch.ones(2, 3, device="meta")).shape == (2, 4)
        with FakeTensorMode():
            assert nn.functional.softmax(torch.ones(2, 3) @ torch.ones(3, 4), 1).shape == (2, 4)


def test_a_refusal_names_op_line_and_page(unaudited):
    """So that the line can be found and changed."""
    with PortableMode(), pytest.raises(SamebitsError) as caught:
        torch.special.ndtri(torch.ones(2))
    line = sys._getframe().f_lineno - 1

    assert caught.value.slug == "portable-op"
    assert "aten.special_ndtri.default" in str(caught.value)
    assert f"{__file__}:{line}" in str(caught.value)
    assert "docs/reference/portable.md" in str(caught.value)


def test_ops_of_others_are_refused():
    """Custom ops, as torchvision's, have code that nobody has looked at."""
    library = torch.library.Library("samebits_test", "FRAGMENT")
    library.define("thrice(Tensor x) -> Tensor")
    library.impl("thrice", lambda x: x * 3, "CPU")

    with PortableMode(), pytest.raises(SamebitsError, match="samebits_test"):
        torch.ops.samebits_test.thrice(torch.ones(2))


def test_ops_that_a_script_makes_of_others_are_portable_or_refused():
    """A dispatch mode cannot look into them; the dispatcher comes to each op in them."""

    @torch.library.custom_op("samebits_test::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x.exp() * 2

    x = torch.rand(50)
    with PortableMode():
        expected = x.exp() * 2
        if uses_registration():
            assert torch.equal(twice(x), expected)
        else:
            with pytest.raises(SamebitsError, match="samebits_test"):
                twice(x)


def test_higher_order_ops_are_portable_or_refused():
    """torch.cond called so runs a branch, whose ops the dispatcher sees; for a mode it is one op."""
    x = torch.rand(50)

    def call():
        return torch.ops.higher_order.cond(torch.tensor(True), lambda x: x.exp(), lambda x: x - 1, (x,))

    with PortableMode():
        if uses_registration():
            assert torch.equal(call(), x.exp())
            return
        with pytest.raises(SamebitsError, match="higher-order") as caught:
            call()
    assert caught.value.slug == "portable-op"


@pytest.mark.parametrize("mode", [torch.inference_mode, torch.no_grad])
def test_composite_ops_are_taken_apart(mode):
    """In inference mode they arrive whole."""
    x, layer = torch.arange(6.0).reshape(2, 3), nn.Linear(3, 4)
    with PortableMode():
        expected = layer(x).detach()
        with mode():
            assert torch.equal(layer(x), expected)
            assert torch.equal(x.reshape(-1).chunk(2)[1], x[1])


def test_scripted_functions_go_through_it():
    """torch.jit calls the same ops."""

    @torch.jit.script
    def scripted(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (x @ y).relu()

    x = torch.rand(70, 300)
    with PortableMode():
        expected = (x @ x.t()).relu()
        for _ in range(3):  # the profiling executor optimizes after the first calls
            assert torch.equal(scripted(x, x.t()), expected)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_low_precision_is_float32_rounded_once(dtype):
    """For results of handlers, of in-place ops, with keyword arguments and in lists."""
    x, y, z = torch.rand(9, 200), torch.rand(200, 7), torch.rand(9, 7)
    low = [t.to(dtype) for t in (x, y, z)]
    up = [t.float() for t in low]
    with PortableMode():
        assert torch.equal(low[0] @ low[1], (up[0] @ up[1]).to(dtype))
        assert torch.equal(torch.mm(low[0], mat2=low[1]), (up[0] @ up[1]).to(dtype))
        assert torch.equal(low[2].clone().addmm_(low[0], low[1]), torch.addmm(up[2], up[0], up[1]).to(dtype))
        assert torch.mm(low[0], low[1], out=torch.empty(9, 7, dtype=dtype)).dtype == dtype
        total = torch.sum(low[0], dtype=torch.float32)
        assert total.dtype == torch.float32
        assert torch.equal(total, up[0].sum())
        assert torch.equal(torch.sum(x, dtype=dtype), x.to(dtype).float().sum().to(dtype))


@pytest.mark.filterwarnings("ignore")
def test_arguments_of_every_kind_go_their_own_way_each_time():
    """What is remembered of one shape says nothing of other dtypes, devices and layouts of that shape."""

    class Own(torch.Tensor):
        pass

    x = torch.full((2, 2), 3.0)
    refused = (x.to_sparse(), x.to(torch.complex32), torch.nested.nested_tensor([x[0], x[1]]))
    for _ in range(2):
        with PortableMode():
            for _ in range(2):
                assert torch.mm(x, x).tolist() == [[18.0, 18.0], [18.0, 18.0]]
                for dtype in (torch.float64, torch.bfloat16, torch.int32, torch.complex64):
                    assert torch.mm(x.to(dtype), x.to(dtype)).dtype == dtype
                assert torch.mm(x.to("meta"), x.to("meta")).is_meta
                assert type(torch.mm(x.as_subclass(Own), x)) is Own
                for other in refused:
                    with pytest.raises(SamebitsError):
                        torch.mm(other, other)
                with pytest.raises(RuntimeError, match="cannot be multiplied"):
                    torch.mm(x, x[:1])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_casts_before_the_mode(dtype):
    """What autocast converts arrives converted."""
    layer, x = nn.Linear(30, 4), torch.rand(5, 30)
    with PortableMode():
        with torch.autocast("cpu", dtype=dtype):
            out = layer(x)
        expected = torch.addmm(
            layer.bias.to(dtype).float(), x.to(dtype).float(), layer.weight.t().to(dtype).float()
        ).to(dtype)
        out.float().sum().backward()

    assert out.dtype == dtype
    assert torch.equal(out, expected)
    assert layer.weight.grad.dtype == torch.float32


def test_transforms_and_recomputation():
    """torch.func, checkpoint, double backward, a Function of the script and hooks see portable values."""
    x = torch.rand(4, 6)
    seen = []

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, tensor):
            return tensor * 2

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 2

    with PortableMode():
        rows = torch.func.vmap(torch.func.grad(lambda row: (row * row * row).sum()))(x)
        assert torch.allclose(rows, 3 * x * x)
        assert torch.func.jacrev(lambda row: row * 2)(x[0]).shape == (6, 6)
        w = torch.rand(6, 6, requires_grad=True)
        w.register_hook(lambda gradient: seen.append(gradient) or gradient)
        out = torch.utils.checkpoint.checkpoint(lambda t: (t @ w).relu(), x, use_reentrant=False)
        Twice.apply(out).sum().backward()
        first = torch.autograd.grad((w * w * w).sum(), w, create_graph=True)[0]
        second = torch.autograd.grad(first.sum(), w)[0]

    assert seen
    assert torch.allclose(second, 6 * w.detach())


def test_subclasses_say_what_they_consist_of():
    """A class of tensors with a dispatch of its own is taken apart, and its parts are portable."""
    from torch.testing._internal.two_tensor import TwoTensor

    a, b = torch.rand(5, 300), torch.rand(300, 4)
    with PortableMode():
        expected = a @ b
        both = TwoTensor(a, a) @ TwoTensor(b, b)

    assert torch.equal(both.a, expected)


def test_the_body_of_a_module_of_torch_is_left_alone(unaudited):  # it calls an op that is not exact
    """Release 2.8 tries every operator of tensors while `torch._dynamo` is imported."""
    body = compile("value = torch.linalg.ldl_factor(torch.eye(2))[0].diagonal()", "torch_module", "exec")
    names = {"__name__": "torch.some_module", "torch": torch}
    with PortableMode():
        exec(body, names)  # noqa: S102 - as an import does
        with pytest.raises(SamebitsError, match="ldl"):
            exec(body, {**names, "__name__": "my_module"})  # noqa: S102
    assert names["value"].tolist() == [1, 1]
