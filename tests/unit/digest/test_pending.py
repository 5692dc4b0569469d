"""Digests that are still computed are joined and cut as bytes are, and read once they are there."""

import random

import pytest

from samebits.digest.pending import PendingDigests, is_pending, join, pending, read


class Launch:
    """A source whose digests are known to the test."""

    def __init__(self, digests, *, capturing=False):
        self.digests, self.capturing, self.reads = digests, capturing, 0

    def read(self):
        """The digests."""
        self.reads += 1
        return self.digests

    def can_wait(self):
        """As told."""
        return not self.capturing


def digests_of(first, count):
    """That many digests, all different."""
    return b"".join(bytes([first + n]) * 16 for n in range(count))


@pytest.mark.parametrize("seed", range(200))
def test_they_behave_as_bytes(seed):
    """Whatever is known and whatever is not."""
    rng = random.Random(seed)
    parts = [(rng.random() < 0.5, rng.randrange(5)) for _ in range(rng.randrange(7))]
    start, stop = rng.randrange(-200, 200), rng.randrange(-200, 200)
    known, joined, first = b"", b"", 0
    for is_known, count in parts:
        digests = digests_of(first, count)
        first += count
        known += digests
        joined = joined + (digests if is_known else pending(Launch(digests), count))
    assert (len(joined), read(joined)) == (len(known), known)
    cut = slice(start, stop)
    assert read(joined[cut]) == known[cut]
    assert read(joined[:start] + joined[start:]) == known


def test_nothing_is_read_before_it_is_needed():
    launch = Launch(digests_of(0, 4))
    digests = bytes(16) + pending(launch, 4)
    digests = digests[:48] + bytes(16) + digests[48:]
    assert is_pending(digests)
    assert launch.reads == 0
    assert digests.read() == bytes(16) + digests_of(0, 2) + bytes(16) + digests_of(2, 2)


def test_what_is_joined_again_is_one_piece():
    """A thousand tensors of one launch are not a thousand pieces."""
    launch = Launch(digests_of(0, 100))
    digests = pending(launch, 100)
    again = join(digests[16 * n : 16 * n + 16] for n in range(100))
    assert isinstance(again, PendingDigests)
    assert len(again._parts) == 1
    assert (again.read(), launch.reads) == (launch.digests, 1)


def test_what_is_known_is_bytes():
    launch = Launch(digests_of(0, 1))
    assert (pending(launch, 1) + b"")[16:] == b""
    assert join([]) == join([b"", b""]) == b""
    assert (bytes(16) + pending(launch, 1))[:16] == bytes(16)
    assert launch.reads == 0


@pytest.mark.parametrize("capturing", [False, True])
def test_while_a_graph_is_captured_nobody_waits(capturing):
    digests = pending(Launch(bytes(16)), 1) + pending(Launch(bytes(16), capturing=capturing), 1)
    assert digests.can_wait() is not capturing
