"""Frames of samebits' wrappers are taken out of tracebacks; an error of samebits' own keeps its frames."""

from __future__ import annotations

import traceback

import pytest

from samebits.errors import SamebitsError
from samebits.recording.runner import clean_tracebacks
from samebits.records.reader import RecordReader


def functions(error):
    return [frame.name for frame in traceback.extract_tb(error.__traceback__)]


def test_an_error_that_samebits_raises_keeps_its_frames(tmp_path):
    """The user is to see which call of samebits it was."""
    with pytest.raises(SamebitsError) as caught:
        RecordReader(tmp_path / "missing.sbr")
    before = functions(caught.value)
    clean_tracebacks(caught.value)

    assert functions(caught.value) == before
    assert "__init__" in before


def test_a_mistake_in_samebits_keeps_its_frames():
    """Frames that are no wrapper's stay where they are innermost: they say what broke."""
    with pytest.raises(AttributeError) as caught:
        clean_tracebacks(3)  # type: ignore[arg-type]
    clean_tracebacks(caught.value)

    assert functions(caught.value)[-1] == "clean_tracebacks"


def test_an_error_that_is_its_own_context_ends():
    """A ring of causes is walked once."""
    first, second = ValueError(1), ValueError(2)
    first.__cause__, second.__cause__ = second, first
    clean_tracebacks(first)

    assert functions(first) == []
