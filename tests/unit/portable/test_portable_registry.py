"""Handlers are declared where they are defined: a module of ops needs no table."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

import pytest
import torch

from samebits._torch.portable import op_named, op_names
from samebits.portable._dispatch import PortableMode
from samebits.portable._registry import (
    Handlers,
    declared,
    declared_by,
    declared_sparse,
    declares_handlers,
    handles,
    handles_sparse,
    resolve,
)
from samebits.portable.ops import families

if TYPE_CHECKING:
    from collections.abc import Callable

    from samebits.portable._registry import Handler


def make_family(*functions: Handler) -> ModuleType:
    """A module of ops that defines these functions."""
    module = ModuleType("family")
    for number, function in enumerate(functions):
        function.__module__ = module.__name__
        setattr(module, f"function_{number}", function)
    return module


def make_handler() -> Callable[[torch.Tensor], torch.Tensor]:
    """A function of its own."""
    return lambda self: self


def test_a_module_declares_its_handlers():
    plain, sparse, made = make_handler(), make_handler(), make_handler()
    family = make_family(
        handles("aten::sin", "aten::mean.dim")(plain),
        handles_sparse("aten::sin")(sparse),
        declares_handlers(lambda: {"aten::cos": made}),
        make_handler(),
    )

    assert declared(family) == {"sin": plain, "mean.dim": plain, "cos": made}
    assert declared_sparse([family]) == {"sin": sparse}
    assert resolve(declared(family))[torch.ops.aten.mean.dim] is plain


def test_a_handler_is_found_op_by_op_as_in_the_table_of_all():
    """Declared ones themselves, and those made of them for ops in place and with `out`."""
    table = declared_by(families())
    found, every = Handlers(table), resolve(table)
    atens = [op_named(name) for name in op_names() if name.startswith("aten::")]
    assert {op for op in atens if found.get(op)} == every.keys()
    assert found.all().keys() == every.keys()
    assert found.get(torch.ops.aten.mm.default) is every[torch.ops.aten.mm.default]
    names = {op: each.__qualname__ for op, each in every.items() if hasattr(each, "__qualname__")}
    assert names == {op: found.get(op).__qualname__ for op in names}


def test_an_imported_handler_belongs_to_the_module_that_defines_it():
    family = ModuleType("other")
    family.imported = handles("aten::sin")(make_handler())

    assert declared(family) == {}


def test_two_handlers_of_one_op_are_an_error():
    one, other = (make_family(handles("aten::sin")(make_handler())) for _ in range(2))
    same = make_family(handles("aten::sin")(make_handler()), handles("aten::sin")(make_handler()))

    for family in ([one, other], [same]):
        with pytest.raises(ValueError, match="two handlers for \\['sin'\\]"):
            declared_by(family)


def test_only_ops_of_aten_have_handlers():
    with pytest.raises(ValueError, match="prims::sin is not an op of aten"):
        handles("prims::sin")


def test_a_new_family_is_one_module(monkeypatch):
    """Nothing else has to name it."""
    answer = handles("aten::ldl_factor", "aten::linalg_ldl_factor_ex")(lambda self, **_: (self, self, self))
    monkeypatch.setattr("samebits.portable.ops.families", lambda: (*families(), make_family(answer)))
    with PortableMode():
        assert torch.linalg.ldl_factor_ex(torch.eye(2))[0].tolist() == [[1, 0], [0, 1]]


@pytest.mark.skipif(torch.__version__ < (2, 13), reason="this torch lacks ops of later releases")
def test_every_declared_op_exists():
    """A misspelt name would be left out in silence."""
    table = {**declared_by(families()), **declared_sparse(families())}

    assert [name for name in table if not _exists(name)] == []


def _exists(name: str) -> bool:
    packet, _, overload = name.partition(".")
    return hasattr(getattr(torch.ops.aten, packet, None), overload or "default")
