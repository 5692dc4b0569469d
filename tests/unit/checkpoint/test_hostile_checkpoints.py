"""A checkpoint, or a folder of them, from a stranger: one clear error, soon, and nothing printed raw."""

from __future__ import annotations

import json
import os
import warnings

import pytest
import torch

from samebits.checkpoint import CheckpointFolder, load, save
from samebits.checkpoint._container import _header
from samebits.checkpoint._decoding import refuse_alike
from samebits.errors import SamebitsError, SamebitsWarning

MERSENNE = (1 << 61) - 1  # hash(n * MERSENNE) == 0 for every n


def parts_of(path):
    """The tree, the places and the digests of a checkpoint, and the contents of its arrays."""
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    metadata = header.pop("__metadata__")
    return json.loads(metadata["tree"]), header, bytes.fromhex(metadata["digests"]), data[start:]


def forge(path, change):
    """Change a checkpoint as an author who knows the format would: all digests fit."""
    tree, places, digests, rest = parts_of(path)
    change(tree, places)
    path.write_bytes(_header(json.dumps(tree), places, digests) + rest)


def value_of(tree):
    """The JSON of the part `value`."""
    return next(part for part in tree["parts"] if part[0] == "value")


def forged_value(path, node):
    save(path, value=1)
    forge(path, lambda tree, _: value_of(tree).__setitem__(1, node))


def refused(path):
    with pytest.raises(SamebitsError) as caught:
        load(path)
    text = str(caught.value)
    assert text.isprintable()
    assert len(text) < len(str(path)) + 700
    return caught.value


def nested(depth):
    node = 1
    for _ in range(depth):
        node = {"type": "tuple", "items": [node]}
    return node


def numbers(count):
    return [{"type": "int", "hex": hex(MERSENNE * n)} for n in range(1, count)]


NODES = {
    "a set of equal hashes": {"type": "set", "items": numbers(20_000)},
    "a frozenset of equal hashes": {"type": "frozenset", "items": numbers(20_000)},
    "a dict of equal hashes": {"type": "dict", "items": [[n, 1] for n in numbers(20_000)]},
    "a counter of equal hashes": {"type": "Counter", "items": [[n, 1] for n in numbers(20_000)]},
    "tuples of equal hashes": {
        "type": "set",
        "items": [{"type": "tuple", "items": [n]} for n in numbers(20_000)],
    },
    "nested deeply": nested(400),
    "an integer of many digits": {"type": "tensor", "name": "x" * 10**6},
    "an unknown type": {"type": "\x1b[2J" * 1000},
    "a device that moves the cursor": {"type": "device", "name": "\x1b]0;title\x07"},
    "a huge deque": {"type": "deque", "items": [], "maxlen": -5},
    "a list of no type": {"type": "Size", "items": [1.5, "a"]},
    "many missing keys": {"kind": 1, **{f"\x07{n}": 0 for n in range(1000)}},
}


@pytest.mark.parametrize("name", NODES)
def test_hostile_values(tmp_path, name):
    forged_value(tmp_path / "c", NODES[name])
    assert refused(tmp_path / "c").slug == "checkpoint-damaged"


@pytest.mark.parametrize(
    "header",
    [
        '{"__metadata__": {}, "a": 1, "a": 2}',
        '{"a": ' + "9" * 5000 + "}",
        '{"a": ' + "9" * 400_000 + "}",
        '{"a": NaN}',
        '{"a": -Infinity}',
        "[" * 100_000,
        '{"a":' * 100_000,
        "\x00" * 100,
    ],
    ids=lambda text: text[:12],
)
def test_hostile_json(tmp_path, header):
    data = header.encode()
    (tmp_path / "c").write_bytes(len(data).to_bytes(8, "little") + data)
    assert refused(tmp_path / "c").slug == "checkpoint-damaged"


PLACES = {
    "floats as offsets": {"data_offsets": [0.0, 16.0]},
    "booleans as offsets": {"data_offsets": [False, 16]},
    "texts as offsets": {"data_offsets": ["0", "16"]},
    "three offsets": {"data_offsets": [0, 16, 16]},
    "a huge offset": {"data_offsets": [0, 10**18]},
    "a negative offset": {"data_offsets": [-16, 0]},
    "a huge shape": {"shape": [10**19] * 60},
    "many dimensions": {"shape": [1] * 100_000},
    "a size that is no number": {"shape": [4.0]},
    "a shape that is a mapping": {"shape": {"4": 4}},
    "a shape that is text": {"shape": "4"},
    "another dtype": {"dtype": "F64"},
    "an unknown dtype": {"dtype": ["F32"]},
}


@pytest.mark.parametrize("name", PLACES)
def test_hostile_places(tmp_path, name):
    save(tmp_path / "c", value=torch.ones(4))
    forge(tmp_path / "c", lambda _, places: next(iter(places.values())).update(PLACES[name]))
    assert refused(tmp_path / "c").slug == "checkpoint-damaged"


@pytest.mark.parametrize(
    "name", ["\x1b[31mcuda:0", "cuda:99999999999999999999", "x" * 100_000, "meta\x00", "hpu:0", "maia"]
)
def test_hostile_devices(tmp_path, name):
    save(tmp_path / "c", value=torch.ones(4))
    forge(tmp_path / "c", lambda tree, _: value_of(tree)[1].update(device=name))
    assert refused(tmp_path / "c").slug in ("checkpoint-device", "checkpoint-damaged")


def test_a_warning_is_printable(tmp_path):
    """Versions of a checkpoint are shown where they differ."""
    save(tmp_path / "c", value=1)
    forge(tmp_path / "c", lambda tree, _: tree["surroundings"]["versions"].update(torch="\x1b[2J9.9\u202e"))
    with pytest.warns(SamebitsWarning) as caught:
        load(tmp_path / "c")
    assert all(str(warning.message).isprintable() for warning in caught)


def test_ordinary_sets_are_no_attack():
    """-1 and -2, 1 and 1.0 and True have the same hash; so has every number that a hash divides."""
    refuse_alike([-1, -2, *range(100_000), *(MERSENNE * n for n in range(1, 100)), "a", (1, 2), None])
    with pytest.raises(TypeError):
        refuse_alike([[]])


@pytest.mark.parametrize("kind", ["fifo", "folder", "loop", "device"])
def test_a_folder_with_something_else_in_it(tmp_path, kind):
    """Nothing waits for a writer; the newest checkpoint that is whole is loaded."""
    folder = CheckpointFolder(tmp_path / "ck")
    folder.save(step=1, value=torch.ones(4))
    place = tmp_path / "ck" / "step-2.safetensors"
    if kind == "fifo":
        os.mkfifo(place)
    elif kind == "folder":
        place.mkdir()
    else:
        place.symlink_to(place if kind == "loop" else "/dev/zero")
    os.mkfifo(tmp_path / "ck" / ".step-3.safetensors.1-0.tmp")  # taken for what a killed process left

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        loaded = CheckpointFolder(tmp_path / "ck").load()
    assert loaded is not None
    assert loaded.step == 1
    assert "cannot be read" in str(caught[0].message)


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/stdin", "/proc/self/mem"])
def test_devices_are_not_read(path):
    assert refused(path).slug in ("checkpoint-unreadable", "checkpoint-damaged")


def test_the_name_of_a_generator_is_printable(tmp_path):
    """States of generators that are not here are named in a warning."""
    save(tmp_path / "c", value=1)
    forge(tmp_path / "c", lambda tree, _: tree["rng"][0].update(source="\x1b[2J\u202ename"))
    with pytest.warns(SamebitsWarning, match="no such sources here") as caught:
        load(tmp_path / "c", strict=False)
    assert all(str(warning.message).isprintable() for warning in caught)
