"""Calls of C kernels: their parameters have names, types and a number, and the library has the same ones."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from typing import NamedTuple

import pytest
import torch

from samebits.digest import native
from samebits.errors import SamebitsError
from samebits.portable import backends
from samebits.portable.backends import parameters
from samebits.portable.backends.library import (
    PlainKernel,
    check_backend,
    check_parameters,
    declared_parameters,
    exported_parameters,
    find_library,
    load,
    open_library,
)


@pytest.fixture(params=["module", "ctypes"])
def library(request, monkeypatch):
    """The kernels, called by the C module or through ctypes."""
    if load() is None:
        pytest.skip("no C library")
    if request.param == "ctypes":
        monkeypatch.setattr(native, "load_module", lambda: None)
    elif native.load_module() is None:
        pytest.skip("no C module")
    kernels = open_library(find_library())
    kernels.select("")
    assert isinstance(kernels.sqrt.__self__, PlainKernel) == (request.param == "ctypes")
    return kernels


def root_of(x, **others):
    """The parameters of a square root."""
    out = torch.empty_like(x)
    given = {"is_f64": False, "x": x.data_ptr(), "out": out.data_ptr(), "numel": x.numel(), **others}
    return out, given


def test_a_kernel_is_called_by_name(library):
    x = torch.arange(5000.0)
    out, given = root_of(x)
    library.sqrt(**given)
    again, given = root_of(x)
    library.sqrt(**dict(reversed(given.items())))

    assert torch.equal(out, again)
    assert out[:5].tolist() == x[:5].sqrt().tolist()


def test_it_follows_the_number_of_threads(library):
    x = torch.arange(100_000.0)
    out, given = root_of(x)
    asked = []
    library.follow(lambda: asked.append(1) or 2)
    library.sqrt(**given)
    library.sqrt(**given)
    library.set_threads(1)
    library.sqrt(**given)

    assert len(asked) == 2
    assert out[4] == 2


def test_the_library_is_told_the_number_of_threads():
    if load() is None:
        pytest.skip("no C library")
    told = []
    callback = ctypes.CFUNCTYPE(None, ctypes.c_int)(told.append)
    kernels = [PlainKernel(load()._library.samebits_portable_sqrt, parameters.Sqrt, told.append)]
    if native.load_module() is not None:
        addresses = (ctypes.cast(each, ctypes.c_void_p).value for each in (kernels[0]._function, callback))
        fields = ("is_f64", "x", "out", "numel")
        kernels.append(native.load_module().Kernel("sqrt", fields, b"q p p q ", *addresses))
    x = torch.full((3,), 4.0)
    for number, kernel in enumerate(kernels):
        out, given = root_of(x)
        kernel.call(**given)
        assert told == list(range(number))
        kernel.threads = lambda number=number: number
        kernel.call(**given)
        assert told == list(range(number + 1))
        assert out.tolist() == [2, 2, 2]


@pytest.mark.parametrize(
    ("name", "others", "error"),
    [
        ("short", {"numel": None}, TypeError),
        ("long", {"more": 1}, TypeError),
        ("misspelt", {"numel": None, "count": 1}, TypeError),
        ("real", {"numel": 1.5}, TypeError),
        ("text", {"numel": "1"}, TypeError),
        ("huge", {"numel": 2**70}, (TypeError, OverflowError)),
    ],
)
def test_other_parameters_are_refused(library, name, others, error):
    x = torch.ones(3)
    out, given = root_of(x, **others)
    given = {name: value for name, value in given.items() if value is not None}
    out.fill_(7)
    with pytest.raises(error):
        library.sqrt(**given)
    with pytest.raises(TypeError):
        library.sqrt(*given.values())

    assert out.tolist() == [7, 7, 7]


@pytest.mark.parametrize("count", [0, 2, 4])
def test_several_numbers_are_as_many_as_the_kernel_reads(library, count):
    x = torch.ones(3)
    out = torch.full((3,), 7.0)
    address = x.data_ptr()
    given = {"function": 0, "is_f64": False, "numel": 3, "out": out.data_ptr(), "numbers": (0.0,) * 4}
    for inputs, is_single in ((3, count), (count, 3)):
        with pytest.raises(ValueError, match="3 numbers"):
            library.activation(**given, inputs=[address] * inputs, is_single=(False,) * is_single)
    with pytest.raises(TypeError):
        library.activation(**given, inputs=address, is_single=(False,) * 3)

    assert out.tolist() == [7, 7, 7]


def reduction_of(x, out, extents):
    """The parameters of a sum over all axes."""
    return {
        "kind": 0,
        "is_f64": False,
        "a": x.data_ptr(),
        "b": 0,
        "mean": 0,
        "out": out.data_ptr(),
        "reduced": 3,
        "axes": 2,
        "extents": extents,
    }


def test_a_list_is_as_long_as_the_parameter_before_it_says(library):
    x, out = torch.ones(3, 4), torch.full((1,), 7.0)
    extents = (3, 4, 4, 1, 4, 1)
    for wrong in (extents[:5], (*extents, 1), ()):
        with pytest.raises(ValueError, match="6 numbers"):
            library.reduce(**reduction_of(x, out, wrong))
    assert out.item() == 7

    library.reduce(**reduction_of(x, out, extents))
    assert out.item() == 12


def test_a_list_may_be_longer_than_fits_the_stack(library):
    """A step of an optimizer has some numbers for each tensor."""
    tensors = [torch.full((3,), float(i)) for i in range(50)]
    each = []
    for one in tensors:
        each += (3, one.data_ptr(), one.data_ptr(), 0, 0, 0, -0.5, 1.0)
    numbers = {"shrink": 1.0, "decay": 0.0, "weight": 0.0, "keep": 0.0, "gain": 0.0, "eps": 0.0}
    given = {"is_f64": False, "is_sgd": True, "flags": 0, **numbers}
    for count, values in ((49, each), (51, each), (50, [*each[:-1], "1"])):
        with pytest.raises((TypeError, ValueError)):
            library.optimizer(**given, tensors=count, each=values)
    assert all(one.tolist() == [i] * 3 for i, one in enumerate(tensors))

    library.optimizer(**given, tensors=50, each=each)
    assert all(one.tolist() == [i / 2] * 3 for i, one in enumerate(tensors))


def test_all_kernels_have_the_fields_of_the_header():
    if load() is None:
        pytest.skip("no C library")

    assert declared_parameters() == exported_parameters(load()._library)
    assert len(declared_parameters()) == 33


@pytest.mark.parametrize(
    "change",
    [
        lambda fields: {**fields, "sqrt": "is_f64:q x:p out:p"},
        lambda fields: {**fields, "sqrt": "is_f64:q out:p x:p numel:q"},
        lambda fields: {**fields, "sqrt": "is_f64:q x:p out:p numel:d"},
        lambda fields: {name: each for name, each in fields.items() if name != "sqrt"},
        lambda fields: {**fields, "cbrt": "x:p"},
    ],
)
def test_a_library_with_other_fields_is_an_error(change):
    check_parameters(declared_parameters(), declared_parameters())

    with pytest.raises(SamebitsError, match=r"sqrt|cbrt") as caught:
        check_parameters(declared_parameters(), change(declared_parameters()))
    assert caught.value.slug == "portable-backend"


def test_the_fields_are_compared_when_the_library_is_loaded(monkeypatch):
    if load() is None:
        pytest.skip("no C library")

    fields = [("is_f64", bool), ("x", parameters.Address), ("out", parameters.Address)]
    monkeypatch.setattr(parameters, "Sqrt", NamedTuple("Sqrt", fields))
    with pytest.raises(SamebitsError, match="sqrt takes \\(is_f64:q x:p out:p numel:q\\)"):
        open_library(find_library())


@pytest.mark.parametrize("wanted", ["", "reference", "scalar"])
def test_a_check_of_the_kernels_changes_none(monkeypatch, wanted):
    kernels = load()
    if kernels is None:
        pytest.skip("no C library")
    monkeypatch.setenv("SAMEBITS_PORTABLE_BACKEND", wanted)
    before = kernels.isa
    check_backend()
    assert kernels.isa == before


@pytest.mark.parametrize("built", [True, False])
@pytest.mark.parametrize("wanted", ["wrong", "AVX2", "scalar "])
def test_a_check_refuses_kernels_that_this_machine_lacks(monkeypatch, built, wanted):
    if not built:
        monkeypatch.setattr("samebits.portable.backends.library.find_library", lambda: None)
    monkeypatch.setenv("SAMEBITS_PORTABLE_BACKEND", wanted)
    words = f"SAMEBITS_PORTABLE_BACKEND={wanted} asks for .*; unset the variable"
    with pytest.raises(SamebitsError, match=words) as refused:
        check_backend()
    assert refused.value.slug == "portable-backend"


def test_a_kernel_without_fields_is_refused():
    module = native.load_module()
    if module is None:
        pytest.skip("no C module")
    for fields, types in (
        ((), b"q "),
        (("a",), b"q"),
        (("a",), b""),
        (("a",), b"*q "),
        (("a", "b", "c"), b"q *q q "),
        (("a",), b"q" * 97 + b" "),
    ):
        with pytest.raises(ValueError, match="no such parameters"):
            module.Kernel("sqrt", fields, types, 1, 1)


def test_each_device_has_its_backend():
    assert backends.backend_of(torch.ones(1)) is backends.cpu_backend()
    with pytest.raises(SamebitsError, match="a tensor on meta was found") as refused:
        backends.backend_of(torch.ones(1, device="meta"))
    assert refused.value.slug == "portable-tensor"
    assert "move it with `.cpu()`" in str(refused.value)


REFERENCE = """
import torch
from samebits.portable.backends import cpu_backend
from samebits.portable._dispatch import PortableMode
with PortableMode():
    x = torch.linspace(0, 1, 300).reshape(3, 100)
    print(cpu_backend().name, torch.softmax(x @ x.t(), -1).sum().item().hex())
"""


def test_the_reference_stands_in_where_there_is_no_library(monkeypatch):
    printed = []
    for backend in ("", "reference"):
        monkeypatch.setenv("SAMEBITS_PORTABLE_BACKEND", backend)
        printed.append(subprocess.check_output([sys.executable, "-c", REFERENCE], text=True).split())

    assert printed[1] == ["reference", printed[0][1]]
