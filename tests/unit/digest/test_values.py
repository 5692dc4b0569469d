"""The public function: containers, scalars, arrays, and what it refuses."""

import collections

import numpy as np
import pytest
import torch

import samebits.digest
from samebits.digest import Digest, digest, digest_many
from samebits.digest.values import is_array
from samebits.errors import SamebitsError


@pytest.fixture(params=["bindings", "native", "torch"], autouse=True)
def back_end(request, choose_backend):
    """Each test with all C parts, with the C library alone and without any."""
    choose_backend(request.param)


def test_a_digest_is_sixteen_bytes():
    d = digest(torch.ones(3))
    assert isinstance(d, Digest)
    assert d.value == digest_many([torch.ones(3)])
    assert str(d) == d.value.hex()
    assert len(str(d)) == 32
    assert d == digest(torch.ones(3))
    with pytest.raises(AttributeError):
        d.value = b""


def test_the_package_is_the_function():
    assert samebits.digest(torch.ones(3)) == digest(torch.ones(3))


def test_different_values_differ():
    """Values that look alike: types, nesting, empty containers."""
    t = torch.ones(3)
    values = [
        *(None, False, True, 0, 1, -1, 2**70, 0.0, -0.0, 1.0, 0j, 1 + 0j, "", "1", "a", b"", b"1", b"a"),
        *(
            [],
            {},
            set(),
            [[]],
            [{}],
            [None],
            ["a", "b"],
            ["ab"],
            [["a"], "b"],
            ["b", "a"],
            {"a": "b"},
            {"b": "a"},
        ),
        *(
            t,
            [t],
            {"t": t},
            {"t": [t]},
            [t, t],
            [t, t + 1],
            [t + 1, t],
            {1: t},
            {"1": t},
            {True: t},
            {"a", "b"},
        ),
        *(torch.float32, torch.device("cpu"), "float32", "torch.float32", np.float64(1.0), np.array([1.0])),
    ]
    digests = [digest(v) for v in values]
    assert len(set(digests)) == len(values)


def test_order_of_keys_does_not_matter():
    a, b = torch.ones(2), torch.zeros(2)
    one = {"a": a, "b": {1: a, "x": b}}
    two = collections.OrderedDict([("b", {"x": b, 1: a}), ("a", a)])
    assert digest(one) == digest(two) != digest({"a": b, "b": {1: a, "x": a}})
    assert digest({"x", "y", 1}) == digest(frozenset([1, "y", "x"]))
    assert digest([1, 2]) == digest((1, 2)) == digest(collections.deque([1, 2])) != digest([2, 1])


def test_one_bit_of_a_state_dict():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(2, 3)).sum().backward()
    optimizer.step()
    before = digest([model, optimizer])
    assert before == digest([model.state_dict(), optimizer.state_dict()])
    with torch.no_grad():
        model[0].weight.view(torch.int32)[1, 2] ^= 1
    assert digest([model, optimizer]) != before


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint16", "int64", "float16", "float32", "float64", "complex128"]
)
def test_arrays_are_tensors(dtype):
    """Of any strides and byte order."""
    a = np.arange(4 * 5 * 6).reshape(4, 5, 6).astype(dtype)
    views = [
        a,
        a.T,
        a[::-1, 1::2],
        a[..., ::-3],
        a[:0],
        a[0, 0, 0],
        a[0, 0, 0, None][::-1],
        np.broadcast_to(a, (2, 4, 5, 6)),
    ]
    for view in views:
        expected = digest(torch.from_numpy(np.ascontiguousarray(view).reshape(view.shape)))
        assert digest(view) == expected
        assert digest(view.astype(view.dtype.newbyteorder(">"))) == expected


def test_fields_of_structured_arrays():
    a = np.zeros(5, dtype=[("x", "f4"), ("y", "i2")])
    a["x"] = range(5)
    assert digest(a["x"]) == digest(torch.arange(5.0))


def test_numpy_states():
    """The state of NumPy's generators: strings, integers, arrays."""
    first = digest(np.random.RandomState(3).get_state())
    assert (
        first == digest(np.random.RandomState(3).get_state()) != digest(np.random.RandomState(4).get_state())
    )
    assert is_array(np.float32(1))
    assert not is_array(1.0)


@pytest.mark.parametrize(
    "value", [object(), len, {"a": [1, object()]}, np.array(["a"]), np.zeros(2, "M8[s]")]
)
def test_what_has_no_defined_contents(value):
    with pytest.raises(SamebitsError, match="value") as caught:
        digest(value)
    assert caught.value.slug == "digest-type"


def test_the_place_is_named():
    with pytest.raises(SamebitsError, match=r"value\['a'\]\[1\] is an object"):
        digest({"a": [1, object()]})


def test_recursion():
    loop = [1]
    loop.append({"again": loop})
    with pytest.raises(SamebitsError) as caught:
        digest(loop)
    assert caught.value.slug == "digest-recursion"
    shared = [1]
    digest([shared, shared])
