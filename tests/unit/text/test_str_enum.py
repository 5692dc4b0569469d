"""A member of a `StrEnum` is written, compared and stored as its value."""

import json
import pickle
import sqlite3
import sys

import pytest

from samebits._text.str_enum import StrEnum


class Colour(StrEnum):
    """Two texts."""

    RED = "red"
    DEEP_BLUE = "deep-blue"


def test_a_member_is_written_as_its_value():
    red, blue = Colour.RED, Colour.DEEP_BLUE
    assert (str(red), f"{red}", f"{red:>5}") == ("red", "red", "  red")
    assert "-".join(sorted((red, blue), reverse=True)) == "red-deep-blue"
    assert json.dumps({red: [blue]}) == '{"red": ["deep-blue"]}'
    assert json.dumps([red], indent=1) == '[\n "red"\n]'


def test_a_member_is_compared_and_hashed_as_its_value():
    assert Colour.RED == "red"
    assert {"red": 1}[Colour.RED] == {Colour.RED: 1}["red"] == 1
    match json.loads('"red"'):
        case Colour.RED:
            matched = True
        case _:
            matched = False
    assert matched


def test_sqlite_stores_the_value():
    with sqlite3.connect(":memory:") as connection:
        row = connection.execute("SELECT ?, typeof(?)", (Colour.DEEP_BLUE, Colour.RED)).fetchone()
    assert row == ("deep-blue", "text")
    assert type(row[0]) is str


def test_a_value_gives_the_member_itself():
    assert Colour("deep-blue") is Colour.DEEP_BLUE
    assert pickle.loads(pickle.dumps(Colour.RED)) is Colour.RED
    assert list(Colour) == [Colour.RED, Colour.DEEP_BLUE]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="3.10 makes the members later")
def test_no_descriptor_stands_between_the_class_and_its_members():
    assert vars(Colour)["RED"] is Colour.RED
