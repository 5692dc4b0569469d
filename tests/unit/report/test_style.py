"""Texts of a report are wrapped in columns."""

from __future__ import annotations

from samebits.report.style import Style, row


def test_a_word_longer_than_the_width_keeps_its_indent():
    """Evidence below an item stands two columns in, however long its first word is."""
    style = Style(width=30)

    assert row("", "  " + "x" * 40, style) == [" " * 18 + "x" * 40]
    assert row("", "  one two", style) == [" " * 18 + "one two"]


def test_no_colour_is_no_escape_sequence():
    """A sequence without a number would be shown as text: it is none of those that samebits makes."""
    style = Style(colour=True)

    assert style.paint("train.py:3") == "train.py:3"
    assert style.paint("train.py:3", "dim") == "\x1b[2mtrain.py:3\x1b[0m"


def test_an_item_hangs_below_its_dash():
    assert row("why", "- one two three", Style(width=26)) == [
        "  why           - one two",
        " " * 18 + "three",
    ]
