"""The C module sees what Python sees, and leaves alone what it cannot read."""

from array import array

import pytest
import torch

from samebits.digest import _cuda_backend, _definition
from samebits.digest._native_backend import NativeBackend
from samebits.digest._torch_backend import NoReader
from samebits.digest.native import load, open_reader
from samebits.digest.tensors import observe, storage_addresses

LIBRARY = load()
READER = None if LIBRARY is None else open_reader(LIBRARY)
pytestmark = pytest.mark.skipif(READER is None, reason="not built, or torch is older than 2.10")

COMMON = (
    "bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64",
    "float16", "bfloat16", "float32", "float64", "complex32", "complex64", "complex128",
)  # fmt: skip


def sample(dtype):
    """12 x 10 of a dtype, from random bytes."""
    _, width = _definition.DTYPES[dtype]
    generator = torch.Generator().manual_seed(width)
    data = torch.randint(0, 2, (12, 10 * width), dtype=torch.uint8, generator=generator)
    return data.view(getattr(torch, dtype))


def views(tensor):
    """The same memory seen in many ways."""
    return [
        tensor, tensor[1:], tensor[:, 3], tensor.t(), tensor[::3, 1::2], tensor[4:4], tensor[7, 5],
        tensor[:1].expand(6, 10), tensor.view(3, 4, 1, 10).permute(2, 3, 0, 1),
        torch.nn.Parameter(tensor, requires_grad=False),
    ]  # fmt: skip


def in_python(listed):
    """What the backend sees without the module."""
    return NativeBackend(load(), NoReader()).observe_plain(listed)


@pytest.mark.parametrize("dtype", COMMON)
def test_common_dtypes_are_read_in_every_view(dtype):
    listed = views(sample(dtype))
    digests, kinds, bases = READER.observe(listed)
    expected = in_python(listed)
    assert digests == expected[0] == READER.digests(listed) == READER.digests(tuple(listed))
    assert bases == expected[2] == READER.bases(listed)
    assert set(array("Q", bases[:40])) == {listed[0].untyped_storage().data_ptr()}
    assert kinds != READER.observe(views(sample("uint8" if dtype == "bool" else "bool")))[1]


@pytest.mark.parametrize("dtype", [name for name in _definition.DTYPES if hasattr(torch, name)])
def test_every_dtype_digests_alike(dtype):
    """Those that the module does not know too."""
    listed = [torch.empty(0, dtype=getattr(torch, dtype)), torch.ones(8, dtype=torch.uint8)]
    assert observe(listed)[0] == in_python(listed)[0]


def test_kinds_tell_shapes_apart_and_nothing_else():
    def kind(*shapes):
        return READER.observe([torch.zeros(shape) for shape in shapes])[1]

    assert kind((2, 3)) == kind((2, 3)) != kind((3, 2))
    assert kind((2,), (3,)) != kind((2, 3))
    assert READER.observe([torch.ones(3, 2)])[1] == READER.observe([torch.zeros(2, 3).t()])[1]


def test_many_tensors_and_large_ones():
    listed = [torch.full((n % 7 + 1, 5), float(n)) for n in range(300)]
    assert READER.observe(listed)[::2] == in_python(listed)[::2]
    large = [torch.arange(400_000, dtype=torch.float32), torch.ones(3)]
    assert READER.observe(large)[::2] == in_python(large)[::2]
    assert READER.observe([]) == (b"", b"", b"")


class Wrapper(torch.Tensor):
    """A subclass."""


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.zeros(2, device="meta"),
        lambda: torch.zeros(2).to_sparse(),
        lambda: torch.quantize_per_tensor(torch.zeros(2), 0.1, 0, torch.quint8),
        lambda: torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)]),
        lambda: torch.zeros(2).as_subclass(Wrapper),
        lambda: torch.zeros(2, dtype=torch.complex64).conj(),
        lambda: torch.zeros(2, dtype=torch.complex64).conj().imag,
        lambda: torch.zeros([1] * 13),
        lambda: torch._efficientzerotensor(2),
        lambda: torch._efficientzerotensor(3)[1:],
        lambda: torch.zeros(2, dtype=torch.float8_e4m3fn),
        lambda: torch.empty(2, dtype=torch.uint4),
        lambda: "no tensor",
    ],
)
def test_other_tensors_are_left_to_python(make):
    other = make()
    for listed in ([other], [torch.zeros(2), other]):
        assert READER.digests(listed) is None
        assert READER.observe(listed) is None
    if isinstance(other, torch.Tensor):
        assert len(storage_addresses([other, torch.zeros(2)])) == 16


def test_anything_but_a_list_is_refused():
    for method in (READER.digests, READER.observe, READER.bases):
        with pytest.raises(TypeError, match="list or tuple"):
            method(torch.zeros(2))


DLPACK_CPU, UNIT = 1, 1 << 16


def table(listed, device=0):
    """The words for kernels, as C writes them."""
    read = READER.rows(listed, DLPACK_CPU, device, UNIT)
    return None if read is None else read[0]


def table_in_python(listed):
    """The same as Python writes them."""
    rows = _cuda_backend._Rows()
    for t in listed:
        rows.add(t.data_ptr(), t.numel() * t.element_size(), _cuda_backend._CODES[t.dtype], t.shape)
    return rows.words()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64", "bool", "int64", "uint8", "float64"])
def test_tables_for_kernels(dtype):
    whole = torch.ones(64, 1, 40, 20, dtype=getattr(torch, dtype))
    listed = [
        whole,
        whole[3],
        whole[:0],
        whole[2, 0, 1, 1],
        whole[:, :, :1, :1][5],
        torch.ones(3),
        whole[5:7],
    ]

    assert table(listed) == table_in_python(listed)
    assert READER.rows(listed, DLPACK_CPU, 0, UNIT)[1:] == READER.observe(listed)[1:]
    assert table([]) == table_in_python([])


@pytest.mark.parametrize(
    "other",
    [
        torch.ones(3, 4).t(),
        torch.ones(4)[::2],
        torch.ones(1).expand(5),
        torch.ones(2, dtype=torch.complex64).conj(),
        torch.zeros(2).as_subclass(Wrapper),
        torch.zeros(2).to_sparse(),
        torch.zeros(2, dtype=torch.float8_e4m3fn),
        torch._efficientzerotensor(2),
        torch._efficientzerotensor(3)[1:],
        torch.zeros([1] * 13),
    ],
    ids=lambda tensor: str(tensor.layout),
)
def test_tensors_that_no_table_holds(other):
    assert table([torch.ones(2), other]) is None


def test_tables_are_of_one_device():
    assert table([torch.ones(2)], device=1) is None
    assert READER.rows([torch.ones(2)], 2, 0, UNIT) is None
    with pytest.raises(TypeError, match="list or tuple"):
        READER.rows(torch.ones(2), DLPACK_CPU, 0, UNIT)
