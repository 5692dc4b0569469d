"""Which event last wrote a storage: the map in Python, and that in C beside it."""

import random
from array import array

import pytest

from samebits.recording.probes.op_calls import RANDOM, SOURCE, WRITES, MemoryMap, memory_map


@pytest.fixture(params=[MemoryMap, memory_map])
def memory(request):
    """An empty map."""
    return request.param()


def at(*addresses):
    return array("Q", addresses).tobytes()


def pairs(links):
    numbers = array("i", links).tolist()
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def test_an_output_is_written_by_its_op(memory):
    assert pairs(memory.op_links(5, b"", at(64), 0)) == [(1, -1)]
    assert pairs(memory.op_links(6, at(64), at(128), 0)) == [(1, 5), (2, -1)]
    assert pairs(memory.op_links(7, at(64), at(64), 0)) == [(1, 5), (1, 5)]  # a view
    assert pairs(memory.op_links(8, at(64), at(64), WRITES)) == [(1, 5), (1, 5)]
    assert pairs(memory.event_links(9, at(64, 128, 256), False)) == [(1, 8), (2, 6), (0, -1)]


def test_memory_that_is_used_anew_is_another_storage(memory):
    memory.op_links(1, b"", at(64), 0)
    assert pairs(memory.op_links(2, b"", at(64), 0)) == [(2, -1)]
    assert pairs(memory.op_links(3, at(64), b"", SOURCE)) == [(3, -1)]


def test_a_generator_is_linked_to_nothing(memory):
    assert pairs(memory.op_links(1, at(64), at(64), RANDOM | WRITES)) == [(1, -1), (0, -1), (1, -1)]


def test_a_batch_writes_its_tensors(memory):
    assert pairs(memory.event_links(3, at(64, 0, 128), True)) == [(1, -1), (0, -1), (2, -1)]
    assert pairs(memory.op_links(4, at(128), b"", 0)) == [(2, 3)]


def test_where_no_storage_is_nothing_is_remembered(memory):
    assert pairs(memory.op_links(1, at(0, 0), at(0), WRITES)) == [(1, -1)] * 3
    assert pairs(memory.op_links(2, at(0), at(64), 0)) == [(2, -1), (3, -1)]


def test_both_maps_agree_on_long_histories():
    ours, theirs = MemoryMap(), memory_map()
    rng = random.Random(0)
    places = [0, *(rng.getrandbits(47) & ~63 for _ in range(3000))]
    for seq in range(4000):
        inputs = at(*rng.choices(places, k=rng.randrange(4)))
        outputs = at(*rng.choices(places, k=rng.randrange(3))) + inputs[: 8 * rng.randrange(2)]
        flags = rng.randrange(8)
        assert ours.op_links(seq, inputs, outputs, flags) == theirs.op_links(seq, inputs, outputs, flags)
        if seq % 5 == 0:
            writes = rng.random() < 0.3
            assert ours.event_links(seq, inputs, writes) == theirs.event_links(seq, inputs, writes)
