"""What can be told without a GPU of the kernels for one: their names and parameters."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest

from samebits.portable.backends import cuda_kernels, parameters_cuda
from samebits.portable.backends.library import declared_fields
from samebits.portable.kernels import activations, complex_numbers, elementwise

NATIVE = Path(__file__).resolve().parents[3] / "native"
TEXTS = {path.name: path.read_text() for path in (NATIVE / "cuda").glob("portable_*")}
STRUCTS = [kind for name, kind in vars(parameters_cuda).items() if name.startswith("Sbd")]
KINDS = {"int64_t": "q", "const void *": "p", "void *": "p", "sbd_axis": "qqq" * parameters_cuda.ON_DEVICE}


def fields_of(name):
    """The fields of a struct in the sources, as Python declares them."""
    body = re.search(rf"typedef struct {{([^}}]*)}} {name}_parameters;", "".join(TEXTS.values()))
    found = {}
    for line in re.sub(r"/\*.*?\*/", "", body[1]).split(";"):
        words = line.split()
        if not words:
            continue
        kind = next(each for each in KINDS if line.strip().startswith(each))
        for each in line.strip().removeprefix(kind).split(","):
            base, _, size = each.strip(" *").partition("[")
            number = size.rstrip("]")
            found[base] = KINDS[kind] * (int(number) if number.isdigit() else 1)
    return found


@pytest.mark.parametrize("kind", STRUCTS, ids=lambda kind: kind.__name__)
def test_structs_are_those_of_the_sources(kind):
    """Name by name, in their order: the bytes are passed as they are."""
    name, fields = declared_fields(kind)
    assert fields_of(name) == fields


def test_lists_are_as_long_as_in_the_sources():
    """A struct by value has one length."""
    assert f"#define SBP_ON_DEVICE {parameters_cuda.ON_DEVICE} " in TEXTS["portable_base.h"]


def test_bytes_of_a_struct():
    """Numbers of 64 bits one after another, lists filled up with zeros."""
    given = parameters_cuda.SbdBranches(True, 2**63 - 1, 5, 6, 7)
    assert cuda_kernels.packed(given) == struct.pack("=5q", 1, 2**63 - 1, 5, 6, 7)

    numbers = [(3, 1, 1)]
    flat = tuple(each for axis in numbers for each in axis)
    reduce = parameters_cuda.SbdReduce(0, 1, 2, 3, 4, 5, 6, 7, 1, 1, flat, flat)
    size = 3 * parameters_cuda.ON_DEVICE
    rest = [0] * (size - 3)
    assert cuda_kernels.packed(reduce) == struct.pack(
        f"={10 + 2 * size}q", 0, *range(1, 8), 1, 1, *flat, *rest, *flat, *rest
    )


def kernel_names():
    """The names of all kernels in the sources, without the dtype."""
    found = set()
    for text in TEXTS.values():
        found |= set(re.findall(r"SBP_KERNEL_(?:APART|TOGETHER)\((\w+), \w+\)", text))
        found |= set(re.findall(r"__global__ void (\w+)\(const", text))
    return found - {"name"}


def test_every_kernel_that_is_launched_is_there():
    """By the names that launches make, and those in the backend."""
    names = kernel_names()
    own = {
        "accumulate",
        "channel_norm",
        "conv",
        "conv_weight_chains",
        "add_chains",
        "gemm",
        "group_norm",
        "layer_norm",
        "scan",
        "softmax",
        "window",
    }
    assert own <= names
    assert {f"pairs_{name}" for name in complex_numbers.NAMES} <= names
    text = "".join(path.read_text() for path in Path(cuda_kernels.__file__).parent.glob("cuda*.py"))
    assert set(re.findall(r'suffixed\(\s*"(\w+)"', text)) <= names
    assert {"random_values", "adam", "sgd", "reduce_rows", "reduce_columns", "window_gradient"} <= names


def test_functions_have_their_numbers():
    """The lists in the headers, which make a kernel of each, are those of Python."""
    header = (NATIVE / "portable" / "activation.h").read_text()
    assert re.findall(
        r"[XY]\((\w+)\)", header.partition("#define SBP_ACTIVATIONS")[2].partition("enum")[0]
    ) == list(activations.NAMES)
    header = (NATIVE / "portable" / "elementwise.h").read_text()
    listed = header.partition("#define SBP_PLAIN")[2].partition("#define SBP_UNARY")[0]
    assert re.findall(r"\b(?:DO|SMALL)\((\w+)\)", listed) == list(elementwise.UNARY)
    listed = header.partition("#define SBP_BINARY")[2].partition("#define SBP_COUNT")[0]
    assert re.findall(r"\bDO\((\w+)\)", listed) == list(elementwise.BINARY)
