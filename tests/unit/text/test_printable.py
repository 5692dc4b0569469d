"""Text of others is shown without anything that a terminal would act on."""

from __future__ import annotations

import io
import json

import pytest

from samebits._text.printable import printable, printable_lines, shortened
from samebits.cli.terminal import write
from samebits.errors import SamebitsError, SamebitsWarning

HOSTILE = (
    "\x1b[2J",
    "\x1b]0;title\x07",
    "\r",
    "\b",
    "\x00",
    "\x7f",
    "\x85",
    "\x9b31m",
    "\u202e",  # turns the direction of text
    "\u2066",
    "\u200b",
    "\u2028",
    "\ud800",
    "\U000e0041",  # a tag character
)


@pytest.mark.parametrize("text", HOSTILE, ids=repr)
def test_no_control_character_is_left(text):
    assert printable(f"a{text}b").isprintable()
    assert printable_lines(f"a{text}b\nc").replace("\n", "").isprintable()


@pytest.mark.parametrize("text", HOSTILE, ids=repr)
def test_the_escapes_of_lines_are_those_of_json(text):
    assert json.loads(printable_lines(json.dumps(text, ensure_ascii=False))) == text


def test_ordinary_text_stays():
    text = "train.py:3 größe 数 - ok"
    assert printable(text) == printable_lines(text) == text


class _Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("stream", [_Terminal, io.StringIO])
@pytest.mark.parametrize("text", HOSTILE, ids=repr)
def test_nothing_else_reaches_a_terminal(stream, text):
    """Whoever forgot to make a text printable: this is the one way out."""
    written = stream()
    write(f"before {text} after", written)
    shown = written.getvalue()
    assert shown.endswith(" after\n")
    assert shown[:-1].isprintable()


def test_our_colours_pass_on_a_terminal_only():
    painted = "\x1b[1;31mdifferent\x1b[0m \x1b[2mdim\x1b[0m"
    terminal, pipe = _Terminal(), io.StringIO()
    write(painted, terminal)
    write(painted, pipe)
    assert terminal.getvalue() == painted + "\n"
    assert "\x1b" not in pipe.getvalue()


@pytest.mark.parametrize("text", HOSTILE, ids=repr)
def test_errors_and_warnings_are_printable(text):
    """A traceback shows them without samebits' help."""
    for made in (SamebitsError(f"x {text}", slug="usage"), SamebitsWarning(f"x {text}")):
        assert str(made).isprintable()


def test_long_texts_are_cut_and_say_so():
    assert shortened("a" * 2_000) == "a" * 2_000
    cut = shortened("a" * 2_000_000)
    assert len(cut) == 2_000
    assert cut.endswith("… (2000000 characters)")
