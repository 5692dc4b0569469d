"""The options of `samebits compare` for two programs."""

from __future__ import annotations

import pytest

from samebits.cli.compare import CompareCommand
from samebits.comparison.programs.outcome import Tolerance
from samebits.errors import SamebitsError


@pytest.mark.parametrize(
    ("text", "tolerance"),
    [("0", Tolerance(ulp=0)), ("16", Tolerance(ulp=16)), ("rel=1e-5", Tolerance(relative=1e-5))],
)
def test_a_tolerance_is_read(text, tolerance):
    options = CompareCommand().parse(["--align", "names", "--tolerance", text, "a", "b"])

    assert options.tolerance == tolerance


@pytest.mark.parametrize(
    "words",
    [
        ["--align", "names", "--tolerance", "-1", "a", "b"],
        ["--align", "names", "--tolerance", "1.5", "a", "b"],
        ["--align", "names", "--tolerance", "rel=nan", "a", "b"],
        ["--align", "names", "--tolerance", "rel=-1", "a", "b"],
        ["--align", "names", "--tolerance", "abs=1", "a", "b"],
        ["--tolerance", "1", "a", "b"],
        ["--align", "lines", "a", "b"],
        ["--align", "names", "a"],
        ["--align", "names", "--ranks", "a"],
        ["--align", "names", "--state-only", "a", "b"],
    ],
)
def test_what_makes_no_sense_is_refused(words):
    with pytest.raises(SamebitsError) as raised:
        CompareCommand().parse(words)
    assert raised.value.slug == "usage"
