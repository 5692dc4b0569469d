"""A file that is torn, altered or foreign is never loaded, and the error says what was found."""

import json
import os
import pickle
import random

import numpy as np
import pytest
import torch
from checkpoint_support import make_training
from safetensors.torch import save_file

from samebits.checkpoint import load, save
from samebits.errors import SamebitsError


@pytest.fixture
def saved(tmp_path):
    """A checkpoint, and what it is of."""
    training = make_training()
    training.steps(2)
    path = tmp_path / "c"
    save(path, **training.parts, step=2, note="text")
    return path, training


def refused(path, training):
    """The error of loading; nothing may have been changed by it."""
    before = training.digest()
    with pytest.raises(SamebitsError) as raised:
        load(path, **training.parts)
    assert training.digest() == before
    assert "\n" not in str(raised.value)
    return raised.value


def header_length(data):
    return 8 + int.from_bytes(data[:8], "little")


def test_every_truncation_is_refused(saved):
    path, training = saved
    data = path.read_bytes()
    lengths = {0, 1, 7, 8, 9, header_length(data), header_length(data) + 1, len(data) - 1}
    lengths |= set(random.Random(0).sample(range(len(data)), 40))
    for length in sorted(lengths):
        path.write_bytes(data[:length])
        assert refused(path, training).slug == "checkpoint-damaged", length


def test_every_altered_byte_is_refused(saved):
    path, training = saved
    data = path.read_bytes()
    rng = random.Random(1)
    for position in [
        *range(12),
        *rng.sample(range(header_length(data)), 60),
        *rng.sample(range(len(data)), 60),
    ]:
        altered = bytearray(data)
        altered[position] ^= 1 << rng.randrange(8)
        if (
            altered[header_length(data) - 1] == data[header_length(data) - 1]
            or position != header_length(data) - 1
        ):
            path.write_bytes(altered)
            error = refused(path, training)
            assert error.slug in ("checkpoint-damaged", "checkpoint-foreign", "checkpoint-version"), position


def test_a_digest_with_a_capital_is_refused(saved):
    """One flipped bit makes `a` of `A`, which is the same number."""
    path, training = saved
    data = bytearray(path.read_bytes())
    start = data.index(b'"digests":"') + len(b'"digests":"')
    place = next(place for place in range(start, len(data)) if chr(data[place]) in "abcdef")
    data[place] ^= 0x20
    path.write_bytes(data)
    assert refused(path, training).slug == "checkpoint-damaged"


def test_an_altered_array_is_named(saved):
    path, training = saved
    data = bytearray(path.read_bytes())
    start = header_length(data)
    place = json.loads(data[8:start])["model.3.weight"]["data_offsets"]
    data[start + place[0]] ^= 1
    path.write_bytes(data)
    assert "'model.3.weight' are not as they were written" in str(refused(path, training))


def test_trailing_bytes_are_refused(saved):
    path, training = saved
    path.write_bytes(path.read_bytes() + b"\0")
    assert refused(path, training).slug == "checkpoint-damaged"


def test_swapped_arrays_are_refused(saved):
    """Of the same shape, each whole in itself."""
    path, training = saved
    data = path.read_bytes()
    header = data[: header_length(data)]
    first, second = b'"optimizer.state.0.exp_avg":', b'"optimizer.state.0.exp_avg_sq":'
    swapped = header.replace(first, b"?").replace(second, first).replace(b"?", second)
    assert swapped != header
    path.write_bytes(swapped + data[len(header) :])
    assert refused(path, training).slug == "checkpoint-damaged"


def rewritten(path, change):
    """Change the header and give it valid digests: what a hostile author would do."""
    from samebits.checkpoint import _container

    data = path.read_bytes()
    start = header_length(data)
    header = json.loads(data[8:start])
    metadata = header.pop("__metadata__")
    tree = json.loads(metadata["tree"])
    tree = change(tree, header) or tree
    text = _container._header(json.dumps(tree), header, bytes.fromhex(metadata["digests"]))
    path.write_bytes(text + data[start:])


def set_at(tree, keys, value):
    for key in keys[:-1]:
        tree = tree[key]
    tree[keys[-1]] = value


HOSTILE = {
    "an unknown type": lambda tree, _: set_at(tree, ["parts", 0, 1, "type"], "pickle"),
    "no type": lambda tree, _: set_at(tree, ["parts", 0, 1], {}),
    "no parts": lambda tree, _: tree.pop("parts") and None,
    "parts of another form": lambda tree, _: set_at(tree, ["parts"], [1]),
    "no tree": lambda _tree, _: [1],
    "no surroundings": lambda tree, _: tree.pop("surroundings") and None,
    "a seed that is none": lambda tree, _: set_at(tree, ["run_seed"], "x"),
    "a step that is none": lambda tree, _: set_at(tree, ["step"], [1]),
    "an array that is not there": lambda tree, _: set_at(
        tree, ["parts", 0, 1, "value"], {"type": "tensor", "name": "x"}
    ),
    "a shape that does not fit": lambda tree, _: set_at(
        tree, ["parts", 0, 1, "value"], {"type": "tensor", "name": "model.0.bias", "shape": [10**30]}
    ),
    "strides that do not fit": lambda tree, _: set_at(
        tree, ["parts", 0, 1, "value"], {"type": "tensor", "name": "model.0.bias", "strides": [10**9]}
    ),
    "a dtype that is none": lambda tree, _: set_at(
        tree, ["parts", 0, 1, "value"], {"type": "tensor", "name": "model.0.bias", "dtype": "load"}
    ),
    "a NumPy dtype of objects": lambda tree, _: set_at(
        tree, ["parts", 0, 1, "value"], {"type": "array", "name": "model.0.bias", "dtype": "O", "shape": [4]}
    ),
    "a sparse tensor out of bounds": lambda tree, _: set_at(
        tree,
        ["parts", 0, 1, "value"],
        {
            "type": "sparse",
            "layout": "sparse_coo",
            "shape": [2],
            "parts": [
                {"type": "tensor", "name": "model.1.num_batches_tracked"},
                {"type": "tensor", "name": "model.0.bias"},
            ],
        },
    ),
    "an unhashable key": lambda tree, _: set_at(
        tree, ["parts", 0, 1, "value"], {"type": "dict", "items": [[[], 1]]}
    ),
    "base64 that is none": lambda tree, _: set_at(
        tree, ["parts", 0, 1, "value"], {"type": "bytes", "base64": "?"}
    ),
    "deep nesting": lambda tree, _: set_at(tree, ["parts", 0, 1, "value"], nested(900)),
    "a negative size": lambda _tree, header: set_at(header, ["model.0.bias", "shape"], [-8]),
    "a size that is no number": lambda _tree, header: set_at(header, ["model.0.bias", "shape"], ["8"]),
    "a place beyond the end": lambda _tree, header: set_at(
        header, ["model.0.bias", "data_offsets"], [0, 10**18]
    ),
    "an entry of another form": lambda _tree, header: set_at(header, ["model.0.bias"], 3),
}


def nested(depth):
    node: list = []
    for _ in range(depth):
        node = [node]
    return node


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_headers_are_refused(saved, name):
    path, training = saved
    try:
        rewritten(path, HOSTILE[name])
    except TypeError:  # the writer itself cannot: another form of the same
        data = path.read_bytes()
        path.write_bytes(data[:8] + data[8:].replace(b'"model.0.bias":{', b'"model.0.bias":[', 1))
    assert refused(path, training).slug == "checkpoint-damaged"


ODD = (
    *(None, True, -1, 10**20, 1.5, "", "x", "cuda:9", [], {}, [[]], [1, 2], -(10**30), "\ud800"),
    *({"type": "tensor", "name": "a"}, {"type": "dict", "items": [[1, 2]]}, {"type": "set", "items": [[]]}),
    *({"type": "state", "kind": "module", "class": "x", "value": 3}, {"type": "tuple", "items": [{}]}),
)


def places(node, before=()):
    """The path of everything in some JSON."""
    if before:
        yield before
    inner = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in inner:
        yield from places(value, (*before, key))


@pytest.mark.filterwarnings("ignore::samebits.SamebitsWarning")
def test_random_changes_of_the_tree_end_in_one_clear_error(tmp_path):
    """With digests that fit: a hostile author, or a bug in another writer."""
    training = make_training()
    training.steps(1)
    values = {
        "sparse": torch.eye(3).to_sparse(),
        "turned": torch.ones(3, 2).t(),
        "complex": torch.ones(2, dtype=torch.complex64),
        "array": np.asfortranarray(np.ones((2, 3))),
        "plain": [1, 2.5, float("inf"), b"a", (1,), {1, 2}, 1 << 70, 1j, torch.Size([1]), torch.int8],
        "generator": torch.Generator(),
    }
    path = tmp_path / "c"
    save(path, **training.parts, **values)
    data = path.read_bytes()
    rng = random.Random(4)
    every = list(places(json.loads(json.loads(data[8 : header_length(data)])["__metadata__"]["tree"])))
    parts = {**training.parts, "generator": torch.Generator()}

    def change(tree, _header):
        *way, last = rng.choice(every)
        for key in way:
            tree = tree[key]
        if rng.random() < 0.3:
            del tree[last]
        else:
            tree[last] = rng.choice(ODD)

    outcomes, texts = set(), []
    for _ in range(200):
        path.write_bytes(data)
        rewritten(path, change)
        try:
            load(path, **parts, rng=False)
            outcomes.add("loaded")
        except SamebitsError as error:
            outcomes.add(error.slug)
            texts.append(str(error))
    assert not any("\n" in text for text in texts)
    assert {"checkpoint-damaged", "checkpoint-mismatch"} <= outcomes


def test_a_header_longer_than_the_file_allocates_nothing(tmp_path):
    path = tmp_path / "c"
    path.write_bytes((2**62).to_bytes(8, "little") + b"{}")
    with pytest.raises(SamebitsError, match=r"fewer than its header describes"):
        load(path)


def test_foreign_files(tmp_path, saved):
    _, training = saved
    path = tmp_path / "foreign"
    torch.save({"a": 1}, path)
    assert "is a file of torch.save; expected" in str(refused(path, training))
    torch.save({"a": 1}, path, _use_new_zipfile_serialization=False)
    assert refused(path, training).slug == "checkpoint-foreign"
    save_file({"a": torch.ones(1)}, path)
    assert "a safetensors file that samebits.checkpoint did not write" in str(refused(path, training))
    path.write_bytes(os.urandom(1000))
    assert refused(path, training).slug == "checkpoint-damaged"
    path.write_text("")
    assert refused(path, training).slug == "checkpoint-damaged"


def test_other_versions(saved, monkeypatch):
    path, training = saved
    monkeypatch.setattr("samebits.checkpoint._container.VERSION", "2")
    error = refused(path, training)
    assert error.slug == "checkpoint-version"
    assert "has the version '1'; this samebits reads '2'" in str(error)


def test_missing_and_unreadable(tmp_path):
    with pytest.raises(SamebitsError, match=r"there is no checkpoint") as raised:
        load(tmp_path / "none")
    assert raised.value.slug == "checkpoint-missing"
    with pytest.raises(SamebitsError, match=r"cannot be read: it is a folder") as raised:
        load(tmp_path)
    assert raised.value.slug == "checkpoint-unreadable"


def test_loading_unpickles_nothing(saved, monkeypatch):
    path, training = saved

    def refuse(*args, **kwargs):
        raise AssertionError

    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, refuse)
    monkeypatch.setattr(torch, "load", refuse)
    assert load(path, **training.parts).extra == {"note": "text"}


def test_equal_states_make_equal_files(tmp_path):
    files = []
    for name in "ab":
        training = make_training()
        training.steps(3)
        save(tmp_path / name, **training.parts, step=3)
        files.append((tmp_path / name).read_bytes())
    assert files[0] == files[1]


def test_arrays_begin_at_multiples_of_their_size(tmp_path):
    save(
        tmp_path / "c",
        a=torch.ones(3, dtype=torch.bool),
        b=torch.ones(1, dtype=torch.float64),
        c=torch.ones(1).half(),
    )
    data = (tmp_path / "c").read_bytes()
    header = json.loads(data[8 : header_length(data)])
    assert header_length(data) % 8 == 0
    assert {name: header[name]["data_offsets"] for name in "abc"} == {
        "b": [0, 8],
        "c": [8, 10],
        "a": [10, 13],
    }
