"""Fresh tensors lie on the device of the operands: no function of the handlers and kernels leaves it open."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import torch

from samebits import portable
from samebits.portable._tensors import device_of

ROOT = Path(portable.__file__).parent
SOURCES = sorted(path for folder in (".", "ops", "kernels") for path in (ROOT / folder).glob("*.py"))
FACTORIES = frozenset(
    """
    arange asarray as_tensor bartlett_window blackman_window empty empty_permuted empty_strided eye frombuffer
    full hamming_window hann_window kaiser_window linspace logspace normal ones rand randint randn randperm
    range scalar_tensor tensor tril_indices triu_indices zeros
    """.split()  # noqa: SIM905 - a paragraph
)
OURS = frozenset({"arange_start_step", "linspace"})
"""Handlers that make tensors and that other handlers call."""
OF_ARRAYS = frozenset({"torch.from_numpy", "as_tensor"})
"""What takes over the memory of an array, which is the CPU's; the second is ours, in `_tensors`."""
STAYS_ON_THE_CPU = {
    ("_tensors.py", "as_tensor"): "its callers move what it returns",
    ("kernels/fourier.py", "turns"): "NumPy goes on with it",
}


def name_of(node: ast.AST) -> str:
    """Return the name of what is called, as it is written."""
    return ast.unparse(node.func) if isinstance(node, ast.Call) else ""


def says_device(call: ast.Call) -> bool:
    """Tell whether a call names a device, or passes options on."""
    return any(keyword.arg in {"device", None} for keyword in call.keywords)


def moved(tree: ast.AST) -> set[ast.AST]:
    """Return what `.to(...)` is called on."""
    methods = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return {each.value for each in methods if isinstance(each, ast.Attribute) and each.attr == "to"}


def openings(source: str, name: str = "") -> list[str]:
    """Return the calls that make a tensor on whatever device, with their lines.

    Args:
        source: of a module.
        name: of the module, as `STAYS_ON_THE_CPU` has it.
    """
    tree = ast.parse(source)
    taken, found = moved(tree), []
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef) and (name, function.name) in STAYS_ON_THE_CPU:
            taken.update(ast.walk(function))
    for node in ast.walk(tree):
        called = name_of(node)
        library, _, factory = called.rpartition(".")
        makes = factory in FACTORIES if library == "torch" else called in OURS
        if makes and not says_device(node):
            found.append(f"{name}:{node.lineno}: {called} without device=")
        elif called in OF_ARRAYS and node not in taken:
            found.append(f"{name}:{node.lineno}: {called} without .to(device)")
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_fresh_tensors_have_a_device(path):
    """Without one they would be on the CPU, or wherever `torch.set_default_device` says."""
    assert openings(path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix()) == []


def test_those_without_are_found():
    """The search finds a factory, over several lines too, and an array that is not moved."""
    for source in (
        "torch.zeros((), dtype=x.dtype)",
        "y = f(\n    torch.arange(\n        3,\n    ),\n    device=x.device,\n)",
        "torch.from_numpy(a)",
        "linspace(0, 1, 5, dtype=x.dtype)",
        "as_tensor(a)[0].to(x.device)",
        "f(as_tensor(a), x.to(y.device))",
    ):
        assert len(openings(source)) == 1, source
    for source in (
        "torch.zeros((), device=x.device)",
        "torch.empty(size, **options)",
        "torch.from_numpy(a).to(x.device)",
        "as_tensor(a).to(device, dtype)",
        "x.new_zeros(3)",
        "torch.zeros_like(x)",
    ):
        assert openings(source) == [], source


def test_the_exceptions_are_there():
    """No exception has outlived what it was for."""
    for name, function in STAYS_ON_THE_CPU:
        tree = ast.parse((ROOT / name).read_text(encoding="utf-8"))
        (found,) = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == function)
        assert any(name_of(node) in OF_ARRAYS for node in ast.walk(found)), name


def test_an_op_computes_where_its_operands_are():
    """Numbers and tensors on the CPU go to another device that one of the operands is on."""
    here, there = torch.ones(()), torch.ones(3, device="meta")

    assert device_of(2.0, here) == device_of(2.0) == torch.device("cpu")
    assert device_of(here, there) == device_of(there, 2.0) == torch.device("meta")
