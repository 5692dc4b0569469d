"""Portable mode in torch's dispatcher: who comes there, who does not, and that nothing is left behind."""

from __future__ import annotations

import contextlib
import ctypes
import shutil
import sys
import threading
from importlib.machinery import ExtensionFileLoader
from typing import Any

import pytest
import torch
from numpy.linalg import _umath_linalg
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from samebits._torch import dispatch_key
from samebits._torch.portable import name_of, op_named
from samebits.digest.native import load_module
from samebits.errors import SamebitsError
from samebits.portable import _native_ops, _registration, ops
from samebits.portable._complex import complex_handlers
from samebits.portable._dispatch import PortableMode, is_portable, uses_registration
from samebits.portable._exact import COMPUTED_FACTORIES, base_of, exactness_of, passing_ops
from samebits.portable._loaded_libraries import Libraries
from samebits.portable._mode import DispatchMode
from samebits.portable._native_ops import left_to_handlers, switch
from samebits.portable._plans import handlers
from samebits.portable._sparse import sparse_handlers
from samebits.portable.activation import PortableActivation

pytestmark = pytest.mark.skipif(not uses_registration(), reason="this torch takes no kernels from Python")


@pytest.fixture(autouse=True)
def audited() -> None:
    """No audit: portable mode as a script has it."""


def keys() -> tuple[int, int]:
    """Which keys this thread includes and excludes."""
    return dispatch_key._keys_of_thread()


def test_the_keys_of_a_thread_are_put_back():
    """After blocks in blocks, errors, refusals inside handlers, and in a generator that is left alone."""
    before = keys()
    x = torch.rand(3)
    with PortableMode():
        inside = keys()
        assert inside != before
        with pytest.raises(SamebitsError):
            torch.special.ndtri(x)
        with pytest.raises(RuntimeError):
            x @ torch.rand(4)
        assert keys() == inside
        with PortableMode(), pytest.raises(ZeroDivisionError):
            print(1 / 0)
        assert keys() == inside
    assert keys() == before


def test_handlers_see_torch_as_in_a_dispatch_mode():
    """Past autograd, with their own thread's keys."""
    seen = []
    x = torch.rand(3, requires_grad=True)

    def handler(op: Any, args: Any, kwargs: Any, again: Any) -> torch.Tensor:
        seen.append((is_portable(), (x * 2).requires_grad))
        with again:
            seen.append((is_portable(), torch.is_grad_enabled()))
        return x.detach().clone()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_registration._plans(), "run", handler, raising=False)
        with PortableMode():
            torch.special.ndtri(x)
    assert seen == [(False, False), (True, True)]


def test_both_switches_do_the_same():
    """That of C, where it works, and that of Python."""
    with PortableMode():
        before, states = keys(), []
        for each in (switch(), dispatch_key.slow_switch()):
            state = each.leave()
            states.append(keys())
            each.return_to(state)
            assert keys() == before
    assert states[0] == states[1]


def test_a_switch_that_does_something_else_is_not_used(monkeypatch):
    """Neither by Python nor by C code."""
    module = _native_ops._module()
    if module is None or dispatch_key.switch_of(module) is None:
        pytest.skip("no C code for the dispatcher here")
    monkeypatch.setattr(dispatch_key, "_does_the_same", lambda _: False)
    try:
        assert dispatch_key.switch_of(module) is None
        with pytest.raises(RuntimeError, match="not found"):
            module.leave()
    finally:
        monkeypatch.undo()
        assert dispatch_key.switch_of(module) is not None


def test_a_thread_that_is_outside_is_left_alone():
    """Its kernels are torch's, while another thread is inside."""
    x = torch.rand(70, 300)
    plain, found = (x @ x.t()).tanh(), []
    with PortableMode():
        thread = threading.Thread(target=lambda: found.append((x @ x.t()).tanh()))
        thread.start()
        thread.join()
    assert torch.equal(found[0], plain)


def test_a_mode_of_the_script_sees_its_ops_and_changes_no_bits():
    """Whichever was entered first; it sees none of the ops that kernels call."""
    model = nn.Sequential(nn.Linear(30, 40), nn.GELU(), nn.LayerNorm(40), nn.Linear(40, 3))
    x = torch.rand(9, 30)

    def gradients() -> list[torch.Tensor]:
        return list(torch.autograd.grad(model(x).square().sum(), list(model.parameters())))

    with FlopCounterMode(display=False) as plain:
        gradients()
    with PortableMode():
        expected = gradients()
        with FlopCounterMode(display=False) as inner:
            found = gradients()
    with FlopCounterMode(display=False) as outer, PortableMode():
        also = gradients()
    assert inner.get_total_flops() == outer.get_total_flops() == plain.get_total_flops()
    for one, other, third in zip(expected, found, also, strict=True):
        assert torch.equal(one, other)
        assert torch.equal(one, third)


class Names(TorchDispatchMode):
    """Notes the ops."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


def test_a_mode_sees_what_it_sees_without_portable_mode():
    x, w = torch.rand(2, 4, 4)
    w.requires_grad_()

    def compute() -> None:
        w.grad = None
        torch.nn.functional.cross_entropy((x @ w).relu(), torch.arange(4)).backward()

    with Names() as plain:
        compute()
    with PortableMode(), Names() as ours:
        compute()
    assert ours.seen == plain.seen


def test_autograd_works_for_the_thread_that_is_inside():
    """Also from a thread that starts `backward` for it, with hooks."""
    w = torch.rand(60, 60, requires_grad=True)
    seen = []
    w.register_hook(lambda gradient: seen.append(is_portable()) or gradient)
    with PortableMode():
        (w @ w).exp().sum().backward()
        (w @ w).exp().sum().backward()
    assert seen == [True, True]


class OneMore:
    """A library for torch was loaded, whenever one asks."""

    def has_more_for_torch(self) -> bool:
        """It was."""
        return True


@pytest.mark.skipif(sys.platform != "linux" or load_module() is None, reason="elsewhere all are looked at")
def test_only_libraries_for_torch_can_bring_ops(tmp_path):
    """An import of many others would take seconds if each was looked at."""
    libraries = Libraries()
    plain = shutil.copy(_umath_linalg.__file__, tmp_path / "plain.so")
    for_torch = shutil.copy(torch._C.__file__, tmp_path / "for_torch.so")
    assert not libraries.has_more_for_torch()
    ctypes.CDLL(str(plain))
    assert not libraries.has_more_for_torch()
    ctypes.CDLL(str(for_torch))
    assert libraries.has_more_for_torch()
    assert not libraries.has_more_for_torch()


@pytest.mark.parametrize("alias", ["CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional"])
def test_ops_of_a_library_that_is_loaded_later_are_caught(monkeypatch, alias):
    """Those whose kernel is for all devices too, which the dispatcher would run without asking."""
    library = torch.library.Library("samebits_test", "FRAGMENT")
    name = f"of_all_{alias.lower()}"
    with PortableActivation():
        library.define(f"{name}(Tensor x) -> Tensor")
        library.impl(name, lambda x: x.numpy() * 2, alias)
        monkeypatch.setattr(dispatch_key, "_made_in_python", lambda _: frozenset())  # as if it was of C++
        _registration._then_closed(lambda: None, OneMore(), lambda: None)()
        with pytest.raises(SamebitsError, match=name):
            getattr(torch.ops.samebits_test, name)(torch.ones(2))


def test_every_factory_with_a_handler_comes_to_it():
    """Torch sends ops without tensors past the key."""
    handled = {name_of(op) for op in handlers(ops.families()).all()} & dispatch_key.factory_ops()
    missed = {base_of(name) for name in handled} - COMPUTED_FACTORIES
    assert missed == {"_to_copy"}  # it has a tensor
    with PortableMode():
        ours = torch.hann_window(300), torch.kaiser_window(50), torch.logspace(0, 1, 77)
    with DispatchMode():
        expected = torch.hann_window(300), torch.kaiser_window(50), torch.logspace(0, 1, 77)
    for one, other in zip(ours, expected, strict=True):
        assert torch.equal(one, other)
    assert torch.equal(torch.arange(5), torch.tensor([0, 1, 2, 3, 4]))


def test_ops_with_a_kernel_and_a_composition_are_not_taken_apart(monkeypatch):
    """`mish_backward` is one: its composition has other bits than its handler."""
    x, slope = torch.randn(2, 50)
    backward = torch.ops.aten.mish_backward
    with DispatchMode():
        expected = backward(slope, x)
    with PortableMode(), left_to_handlers():
        assert torch.equal(backward(slope, x), expected)


def test_what_passes_in_the_dispatcher_is_exact_and_has_no_handler():
    """Whatever the overload: in place and with `out` too. A handler would not be asked."""
    passing = passing_ops() - dispatch_key.ops_taken_apart()
    named = {name: op_named(name) for name in passing if name.startswith("aten::")}
    found = {name: exactness_of(op) for name, op in named.items()}
    assert not {name for name, each in found.items() if not each.floats or each.condition}
    for table in (handlers(ops.families()), sparse_handlers(), complex_handlers()):
        assert not {name for name, op in named.items() if table.get(op)}


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.round_(decimals=2),
        lambda x: torch.round(x, decimals=2, out=torch.empty(50)),
        lambda x: x.scatter_(0, torch.zeros(50, dtype=torch.int64), x + 1, reduce="add"),
        lambda x: x.scatter_(0, torch.arange(50), 0.3, reduce="multiply"),
    ],
)
def test_overloads_that_compute_do_not_pass_with_those_that_move(call):
    """Torch's own kernels of them give these bits on some machines only."""
    seen = []
    run = _registration._plans().run

    def noted(op: Any, *rest: Any) -> Any:
        seen.append(base_of(name_of(op)))
        return run(op, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_registration._plans(), "run", noted, raising=False)
        with PortableMode(), contextlib.suppress(SamebitsError):
            call(torch.randn(50) * 100)
    assert {"round", "scatter"} & {*seen}


@pytest.mark.skipif(not torch.backends.cuda.is_built(), reason="a build of torch for CPUs")
def test_no_memory_is_allocated_on_other_devices():
    """Whether there is such a device or not: the ops are called past what looks for a driver."""
    cuda, dtype = torch.device("cuda"), torch.float32
    aten = torch.ops.aten
    for make in (
        lambda: aten.empty.memory_format([3], dtype=dtype, device=cuda),
        lambda: aten.zeros([3], dtype=dtype, device=cuda),
        lambda: aten.empty_strided([3], [1], dtype=dtype, device=cuda),
        lambda: aten.rand([3], dtype=dtype, device=cuda),
    ):
        with PortableMode(), pytest.raises(SamebitsError, match="device=cuda"):
            make()


def test_memory_of_the_meta_device_is():
    with PortableMode():
        assert torch.zeros(3, device="meta").is_meta
        assert torch.rand(3, device="meta").is_meta


def test_a_mode_outside_a_dispatch_mode_sees_the_ops_of_kernels():
    """In that way of dispatch the order counts."""
    x = torch.rand(4)
    with Names() as outer, DispatchMode():
        x.exp()
    with DispatchMode(), Names() as inner:
        x.exp()
    assert "aten.exp.default" not in outer.seen
    assert outer.seen
    assert inner.seen == ["aten.exp.default"]


def test_loading_a_library_looks_for_its_ops(monkeypatch):
    """An extension module, or a library of ops."""
    closed = []
    monkeypatch.setattr(_registration, "close_composites", lambda _: closed.append(True))
    before = ExtensionFileLoader.exec_module
    with _registration.following_libraries(lambda: closed.append(False)):
        assert ExtensionFileLoader.exec_module is not before
        with pytest.raises(OSError, match="no_such"):
            torch.ops.load_library("no_such_library.so")
        assert not closed
        _registration._then_closed(lambda: None, OneMore(), lambda: closed.append(False))()
    assert closed == [True, False]
    assert ExtensionFileLoader.exec_module is before
