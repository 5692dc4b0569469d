"""Ops that compute in code that torch runs before it asks portable mode are refused, in both ways."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._pytree import tree_map

import samebits
from samebits._torch.dispatch_key import can_register, ops_taken_apart
from samebits._torch.kernel_overrides import can_override
from samebits._torch.portable import arguments_of, op_named
from samebits.errors import SamebitsError
from samebits.portable import _early_refusals
from samebits.portable._early_ops import early_ops
from samebits.portable._early_refusals import early_ops_to, refuse
from samebits.portable._mode import DispatchMode
from samebits.portable._registration import Registration
from samebits.portable.activation import PortableActivation

pytestmark = pytest.mark.skipif(not can_override(), reason="this torch gives no kernels to come in front of")

if TYPE_CHECKING:
    from collections.abc import Iterator

aten = torch.ops.aten
WAYS = [DispatchMode, *([Registration] if can_register() else [])]
STATES = [contextlib.nullcontext, torch.no_grad, torch.inference_mode]
# They read integers, and make or move others of them.
READ_INTEGERS = {"aten::_shape_as_tensor", "aten::sparse_coo_tensor.indices"}
CRASHING = {"aten::_thnn_differentiable_gru_cell_backward"}  # torch's own, without gradients


@pytest.fixture(autouse=True)
def audited() -> None:
    """No audit: portable mode as a script has it."""


@contextlib.contextmanager
def portable_in(way: Any) -> Iterator[None]:
    """What an activation enters, in one way of dispatch."""
    with early_ops_to(refuse), way():
        yield


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("way", WAYS)
def test_compositions_of_torch_that_compute_are_refused(way, state):
    """However they are called."""
    x = torch.rand(6, 40)
    with portable_in(way), state():
        for name, call in {
            "fbgemm_linear_quantize_weight": lambda: aten.fbgemm_linear_quantize_weight(x),
            "fbgemm_pack_gemm_matrix_fp16": lambda: torch.fbgemm_pack_gemm_matrix_fp16(x),
            "choose_qparams_optimized": lambda: aten.choose_qparams_optimized(x, 240, 20, 0.16, 8),
            "_choose_qparams_per_tensor": lambda: torch._choose_qparams_per_tensor(x),
            "_saturate_weight_to_fp16": lambda: aten._saturate_weight_to_fp16.default(x),
        }.items():
            with pytest.raises(SamebitsError, match=name) as caught:
                call()
            assert caught.value.slug == "portable-op"
    assert aten._saturate_weight_to_fp16(x).equal(x)


def test_a_refusal_names_op_and_line():
    with PortableActivation(), pytest.raises(SamebitsError) as caught:
        torch.fbgemm_pack_gemm_matrix_fp16(torch.ones(4, 8))
    assert "aten.fbgemm_pack_gemm_matrix_fp16" in str(caught.value)
    assert __file__ in str(caught.value)


def test_older_torch_refuses_their_functions(monkeypatch):
    """It gives no kernels to come in front of; the functions are put back."""
    monkeypatch.setattr(_early_refusals, "can_override", lambda: False)
    names = [name for name in dir(torch) if name.startswith(("fbgemm_", "quantized_"))]
    before = {name: getattr(torch, name) for name in names}
    assert "fbgemm_linear_int8_weight_fp32_activation" in before
    with early_ops_to(refuse) as follow:
        follow()
        for name in before:
            with pytest.raises(SamebitsError, match=name):
                getattr(torch, name)()
    assert all(getattr(torch, name) is function for name, function in before.items())


def as_of_cpp(library: Any, name: str, key: str, function: Any) -> Any:
    """Register a kernel as a library of C++ does: torch does not know that Python code made it."""
    library.define(f"{name}(Tensor x) -> Tensor")
    library.m.impl(name, key, function, False)
    return getattr(torch.ops.samebits_early, name)


def computed_elsewhere(x: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(np.exp(x.detach().numpy()))


@pytest.fixture
def library() -> Iterator[Any]:
    library = torch.library.Library("samebits_early", "FRAGMENT")
    yield library
    library._destroy()


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("key", ["CompositeImplicitAutograd", "AutogradCPU", "Autograd"])
def test_ops_of_libraries_that_run_first_are_refused(library, way, state, key):
    """`m.def("f", &f)` in C++ makes a composition, and nothing says what it does."""
    op = as_of_cpp(library, f"f_{key.lower()}", key, computed_elsewhere)
    x = torch.rand(3)
    with portable_in(way), state(), pytest.raises(SamebitsError, match="op of samebits_early"):
        op(x)
    assert op(x).equal(computed_elsewhere(x))


@pytest.mark.parametrize("way", WAYS)
def test_ops_of_libraries_that_take_no_tensor_are_too(library, way):
    """There is no tensor then that autograd could be asked about."""
    library.define("made(int n) -> Tensor")
    library.m.impl("made", "CompositeImplicitAutograd", torch.ones, False)
    with portable_in(way), pytest.raises(SamebitsError, match="op of samebits_early"):
        torch.ops.samebits_early.made(3)


def test_ops_of_a_library_that_is_loaded_inside_are_refused(library):
    with early_ops_to(refuse) as follow, DispatchMode():
        op = as_of_cpp(library, "late", "CompositeImplicitAutograd", computed_elsewhere)
        follow()
        with pytest.raises(SamebitsError, match="op of samebits_early"):
            op(torch.rand(3))


def test_ops_made_in_python_come_one_by_one(library):
    library.define("in_python(Tensor x) -> Tensor")
    library.impl("in_python", lambda x: x.exp(), "CompositeImplicitAutograd")
    x = torch.rand(300)
    with PortableActivation():
        assert torch.ops.samebits_early.in_python(x).equal(x.exp())


def test_what_is_covered_counts_them(library):
    op = as_of_cpp(library, "counted", "CompositeImplicitAutograd", computed_elsewhere)
    found = samebits.portable.is_covered(lambda x: op(x) + aten._saturate_weight_to_fp16(x), torch.rand(3, 3))
    names = {each.name for each in found.missing}
    assert names == {"samebits_early.counted.default", "aten._saturate_weight_to_fp16.default"}


def test_tensors_without_contents_pass(library):
    """Tracing asks for shapes."""
    op = as_of_cpp(library, "shaped", "CompositeImplicitAutograd", torch.clone)
    with PortableActivation(), FakeTensorMode():
        assert op(torch.ones(3)).shape == (3,)


def test_no_other_composition_of_torch_reads_memory_itself():
    """On fake tensors, which have none, it would fail; what only calls other ops does not."""
    named = {*early_ops(), *READ_INTEGERS, *CRASHING}
    atens = {name for name in ops_taken_apart() if name.startswith("aten::")}
    reading = {name for name in atens - named if reads_memory(op_named(name))}
    assert not reading
    assert reads_memory(aten.fbgemm_linear_quantize_weight.default)


def reads_memory(op: Any) -> bool:
    """Whether an op takes plain tensors of some size, and not fake ones."""
    for size in ((4, 4), (4,), (2, 4, 4), (1, 2, 4, 4)):
        given = [argument for each in arguments_of(op) for argument in made_up(each, size)]
        if not _works(op, given):
            continue
        with FakeTensorMode() as fake:
            try:
                op(*tree_map(lambda x: fake.from_tensor(x) if isinstance(x, torch.Tensor) else x, given))
            except RuntimeError as error:
                if "its data is not allocated" in str(error):
                    return True
    return False


def _works(op: Any, given: list[Any]) -> bool:
    try:
        op(*given)
    except Exception:  # noqa: BLE001 - made-up arguments
        return False
    return True


def made_up(argument: Any, size: tuple[int, ...]) -> list[Any]:
    """An argument of an op, none where it has a default."""
    values = {
        "Tensor": torch.arange(1.0, 1 + int(np.prod(size))).reshape(size) / 7,
        "List[Tensor]": [torch.ones(size), torch.ones(size)],
        "List[int]": [1],
        "number": 0.5,
        "float": 0.25,
        "bool": False,
        "int": 1,
    }
    if argument.has_default_value() or argument.kwarg_only:
        return []
    return [values.get(str(argument.type))]
