"""Lists of seeds."""

from __future__ import annotations

import random

import pytest

from samebits.commands.spread.request import parse_seeds, seeds_text
from samebits.errors import SamebitsError


@pytest.mark.parametrize(
    ("text", "seeds"),
    [
        ("0..3", (0, 1, 2, 3)),
        ("5", (5,)),
        ("0,3,7", (0, 3, 7)),
        ("7, 0..2 ,100", (7, 0, 1, 2, 100)),
        ("4..4", (4,)),
        (str(2**64 - 1), (2**64 - 1,)),
    ],
)
def test_seeds_are_read(text, seeds):
    """Both ends of a range are in it."""
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "'' is not a whole number"),
        ("a", "'a' is not a whole number"),
        ("0-9", "'0-9' is not a whole number"),
        ("0..", "'' is not a whole number"),
        ("1,,2", "'' is not a whole number"),
        ("-1", "'-1' is not a whole number"),
        ("9..0", "runs backwards"),
        ("1,0..3", "seed 1 appears twice"),
        ("0..99999999999", "more than 10000"),
        (str(2**64), "from 0 to 2**64 - 1"),
        ("٣", "not a whole number"),
    ],
)
def test_anything_else_is_refused(text, words):
    """With what is wrong and what is expected."""
    with pytest.raises(SamebitsError) as caught:
        parse_seeds(text)

    assert words in str(caught.value)
    assert "expected" in str(caught.value)


def test_short_text_reads_back():
    """For any list."""
    for _ in range(200):
        seeds = tuple(random.sample(range(12), random.randrange(1, 12)))

        assert parse_seeds(seeds_text(seeds)) == seeds
    assert seeds_text((0, 1, 2, 5, 7, 8)) == "0..2,5,7..8"
