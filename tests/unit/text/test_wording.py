"""Words about names that are only known at run time."""

from __future__ import annotations

import pytest

from samebits._text.printable import counted, exit_text, with_article


@pytest.mark.parametrize(
    ("noun", "article"),
    [
        ("object", "an"), ("int", "an"), ("Adam", "an"), ("AdamW", "an"), ("Embedding", "an"),
        ("SGD", "an"), ("LSTM", "an"), ("RMSprop", "an"), ("RNN", "an"), ("MLPMixer", "an"), ("L1Loss", "an"),
        ("Linear", "a"), ("dict", "a"), ("GRU", "a"), ("UNet", "a"), ("uint8", "a"), ("UntypedStorage", "an"),
        ("torch.Tensor", "a"), ("numpy.ndarray", "a"), ("collections.OrderedDict", "a"), ("_Odd", "an"),
    ],
)  # fmt: skip
def test_article(noun, article):
    """By sound, not by letter."""
    assert with_article(noun) == f"{article} {noun}"


def test_counted():
    """One has no s."""
    assert (counted(0, "pair"), counted(1, "pair"), counted(2, "pair")) == ("0 pairs", "1 pair", "2 pairs")


def test_exit_text():
    """A signal has a name; a status that is none stays a number."""
    assert (exit_text(137), exit_text(3)) == ("by SIGKILL", "with exit status 3")
