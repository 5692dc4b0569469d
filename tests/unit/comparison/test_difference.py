"""How far two tensors are apart."""

from __future__ import annotations

import math
import random
import struct
import subprocess
import sys

import pytest
import torch

from samebits.comparison.difference import captured_difference, decode
from samebits.errors import SamebitsError
from samebits.recording import distance
from samebits.recording.distance import as_doubles, tensor_difference, tensor_elements
from samebits.recording.probes.captures import to_safetensors

FLOATS = [torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.float8_e4m3fn, torch.float8_e5m2]
INTEGERS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]


def from_bits(bits, dtype):
    sizes = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return torch.tensor(bits, dtype=sizes[dtype.itemsize]).view(dtype)


def test_equal_tensors():
    x = torch.tensor([1.0, math.nan, math.inf, -0.0])
    found = tensor_difference(x, x.clone())
    assert (found.elements, found.total, found.max_ulp, found.max_abs) == (0, 4, None, None)
    assert (found.first_index, found.values) == (None, None)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_one_ulp(dtype):
    bits = [0, 1, 40, 41, 50]
    other = [0, 1, 41, 41, 50]
    found = tensor_difference(from_bits(bits, dtype), from_bits(other, dtype))
    assert (found.elements, found.total, found.max_ulp, found.first_index) == (1, 5, 1, (2,))
    assert found.max_abs == abs(float(from_bits(bits, dtype)[2]) - float(from_bits(other, dtype)[2]))


def test_ulp_through_zero():
    smallest = from_bits([1], torch.float32)
    assert tensor_difference(smallest, -smallest).max_ulp == 2
    zero = torch.zeros(1)
    found = tensor_difference(zero, -zero)
    assert (found.elements, found.max_ulp, found.max_abs, found.values) == (1, 0, 0.0, ("0.0", "-0.0"))


def test_ulp_of_doubles_needs_64_bits():
    large = torch.tensor([1.7e308], dtype=torch.float64)
    steps = struct.unpack("<q", struct.pack("<d", 1.7e308))[0]
    assert tensor_difference(large, -large).max_ulp == 2 * steps > 2**63
    assert tensor_difference(large, -large).max_abs is not None


@pytest.mark.parametrize("seed", range(20))
def test_ulp_agrees_with_counting_neighbours(seed):
    rng = random.Random(seed)
    value = torch.tensor([rng.uniform(-1, 1) * 10.0 ** rng.randrange(-40, 3)])
    steps = rng.randrange(1, 200)
    other = value.clone()
    for _ in range(steps):
        other = torch.nextafter(other, torch.tensor([math.inf]))
    assert tensor_difference(value, other).max_ulp == steps


@pytest.mark.parametrize("special", [math.nan, math.inf, -math.inf])
def test_not_finite(special):
    found = tensor_difference(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.5, special, 3.0]))
    assert (found.elements, found.max_ulp, found.max_abs) == (2, None, None)
    same = tensor_difference(torch.tensor([1.0, special]), torch.tensor([2.0, special]))
    assert (same.elements, same.max_abs) == (1, 1.0)


def test_not_finite_in_an_earlier_chunk(monkeypatch):
    monkeypatch.setattr(distance, "_CHUNK", 1)
    found = tensor_difference(torch.tensor([math.nan, 2.0]), torch.tensor([1.0, 2.5]))
    assert (found.elements, found.max_ulp, found.max_abs) == (2, None, None)


def test_payloads_of_nan_are_told_apart():
    found = tensor_difference(from_bits([0x7FC00000], torch.float32), from_bits([0x7FC00001], torch.float32))
    assert found.elements == 1


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integers(dtype):
    info = torch.iinfo(dtype)
    a, b = torch.tensor([info.min, 5], dtype=dtype), torch.tensor([info.max, 5], dtype=dtype)
    found = tensor_difference(a, b)
    assert (found.elements, found.max_ulp, found.max_abs) == (1, None, float(info.max - info.min))


def test_unsigned_integers():
    for dtype, largest in ((torch.uint16, 2**16 - 1), (torch.uint32, 2**32 - 1), (torch.uint64, 2**64 - 1)):
        a, b = torch.tensor([0], dtype=dtype), torch.tensor([largest], dtype=dtype)
        assert tensor_difference(a, b).max_abs == float(largest)


def test_booleans():
    found = tensor_difference(torch.tensor([True, False]), torch.tensor([True, True]))
    assert (found.elements, found.max_ulp, found.max_abs, found.values) == (1, None, 1.0, ("False", "True"))


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_complex(dtype):
    a = torch.tensor([1 + 2j, 3 + 4j], dtype=dtype)
    b = torch.tensor([1 + 2j, 3.5 + 3j], dtype=dtype)
    found = tensor_difference(a, b)
    assert (found.elements, found.total, found.max_abs, found.first_index) == (1, 2, 1.0, (1,))
    assert tensor_difference(a.conj(), a.conj()).elements == 0
    assert tensor_difference(a, a.conj()).elements == 2


@pytest.mark.filterwarnings("ignore")
def test_quantized():
    a, b = (torch.quantize_per_tensor(torch.tensor([0.0, v]), 0.1, 0, torch.qint8) for v in (1.0, 1.2))
    found = tensor_difference(a, b)
    assert (found.elements, found.max_abs, found.values) == (1, 2.0, ("10", "12"))


def test_shapes():
    assert tensor_difference(torch.tensor(1.0), torch.tensor(2.0)).first_index == ()
    assert tensor_difference(torch.empty(0, 3), torch.empty(0, 3)).total == 0
    a = torch.arange(24.0).reshape(2, 3, 4)
    b = a.clone()
    b[1, 2, 3] += 1
    b[1, 0, 2] += 1
    found = tensor_difference(a.transpose(0, 2), b.transpose(0, 2))
    assert (found.elements, found.first_index, found.values) == (2, (2, 0, 1), ("14.0", "15.0"))


def test_chunks_are_joined(monkeypatch):
    monkeypatch.setattr(distance, "_CHUNK", 7)
    a = torch.zeros(10, 10)
    b = a.clone()
    b[3, 3], b[9, 9] = 1.0, 5.0
    found = tensor_difference(a, b)
    assert (found.elements, found.total, found.max_abs, found.first_index) == (2, 100, 5.0, (3, 3))
    c = torch.complex(a, a)
    d = c.clone()
    d[9, 9] = 1j
    assert tensor_difference(c, d).first_index == (9, 9)


def test_tensors_that_are_not_alike():
    with pytest.raises(ValueError, match="expected two tensors alike"):
        tensor_difference(torch.zeros(2), torch.zeros(3))


def blob(tensor):
    save = pytest.importorskip("safetensors.torch").save
    return save({"value": tensor})


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, torch.bool, torch.complex64], ids=str)
def test_captured_tensors(dtype):
    a = torch.tensor([0, 1, 1]).to(dtype)
    b = torch.tensor([0, 1, 0]).to(dtype)
    held, expected = decode(blob(a)), tensor_elements(a)
    assert (held.dtype, held.shape) == (expected.dtype, expected.shape) == (str(dtype)[6:], (3,))
    assert held.bits.tolist() == expected.bits.tolist()
    found = captured_difference({0: blob(a), 2: blob(a)}, {0: blob(a), 2: blob(b)})
    assert (found.elements, found.first_index) == (1, (2,))


EIGHT_BIT = ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"]


@pytest.mark.parametrize("name", EIGHT_BIT)
def test_eight_bit_floats_mean_what_torch_says(name):
    if not hasattr(torch, name):
        pytest.skip(f"this torch has no {name}")
    bits = torch.arange(256).to(torch.uint8)
    expected = bits.view(getattr(torch, name)).to(torch.float64)
    found = torch.from_numpy(as_doubles(bits.numpy(), name))
    assert torch.equal(found.nan_to_num(7e200), expected.nan_to_num(7e200))
    assert torch.equal(found.signbit() & found.isfinite(), expected.signbit() & expected.isfinite())


def test_kept_values_are_compared_without_torch():
    """Its import takes longer than everything else that `verify` does between two runs."""
    code = (
        "import sys; from samebits.comparison.difference import captured_difference as compare\n"
        "a, b = (bytes.fromhex(word) for word in sys.argv[1:])\n"
        "print(compare({0: a}, {0: b}).values, 'torch' in sys.modules)"
    )
    blobs = [blob(torch.tensor([value])).hex() for value in (1.5, 2.5)]
    done = subprocess.run([sys.executable, "-c", code, *blobs], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "('1.5', '2.5') False"


def test_complex_tensors_are_kept_as_pairs():
    """Elements are counted, and not their parts."""
    a, b = torch.tensor([1 + 2j, 3 + 4j]), torch.tensor([1 + 2j, 3 + 5j])
    kept = [{0: to_safetensors(a)}, {0: to_safetensors(b)}]
    found = captured_difference(*kept, complex_at={0})
    assert (found.elements, found.total, found.first_index) == (1, 2, (1,))
    assert found.values == ("(3+4j)", "(3+5j)")
    assert captured_difference({0: blob(torch.ones(3))}, {0: blob(torch.zeros(3))}, {0}).total == 3


def test_nothing_captured_in_both_runs():
    assert captured_difference({0: blob(torch.zeros(1))}, {}) is None
    assert captured_difference({0: blob(torch.zeros(1))}, {0: blob(torch.zeros(2))}) is None


def test_hostile_captures():
    good = blob(torch.arange(4.0))
    rng = random.Random(0)
    hostile = [b"", b"x" * 7, b"\xff" * 64, good[:-1], good + b"x", struct.pack("<Q", 2**63) + good[8:]]
    hostile.append(blob_of_two())
    for _ in range(300):
        data = bytearray(good)
        data[rng.randrange(len(data) - 16)] ^= 1 << rng.randrange(8)
        hostile.append(bytes(data))
    assert {outcome(data) for data in hostile} <= {"record-damaged", "a tensor"}
    for data in hostile[:7]:
        with pytest.raises(SamebitsError):
            decode(data)


def outcome(data):
    try:
        decode(data)
    except SamebitsError as error:
        return error.slug
    return "a tensor"


def blob_of_two():
    save = pytest.importorskip("safetensors.torch").save
    return save({"a": torch.zeros(1), "b": torch.zeros(1)})
