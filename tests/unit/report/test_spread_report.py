"""What several seeds show: text, sparkline, JSON, plot."""

from __future__ import annotations

import dataclasses
import importlib
import json
import math
from pathlib import Path

import pytest

from samebits.commands.spread._metrics import Series
from samebits.commands.spread.remarks import Remark, RemarkCode
from samebits.commands.spread.study import evaluate
from samebits.commands.spread.summary import (
    Configuration,
    Contrast,
    ContrastReason,
    Failure,
    FailureCode,
    Seeding,
    SeedRun,
    Spread,
)  # fmt: skip
from samebits.report import plot, spread_json, spread_text
from samebits.report.spread_sentences import (
    _CONTRASTS,
    _FAILURES,
    _REMARKS,
    contrast_sentence,
    failure_sentence,
    sentence,
)  # fmt: skip
from samebits.report.spread_text import BLOCKS, PLAIN, sparkline, strip, wants_log
from samebits.report.style import Style

pytest.importorskip("scipy")


def make_run(seed: int, *values: float, state: str = "") -> SeedRun:
    """One run with one metric."""
    series = Series("val_loss", "printed", "epoch", tuple(map(float, range(len(values)))), values, 0)
    return SeedRun(seed, 1.0, 3, state or f"s{seed}", 1, (), (), (), (series,))


def make_configuration(n: int = 10, shift: float = 0.0, **fields: object) -> Configuration:
    """Runs that fall and end apart."""
    runs = tuple(make_run(s, 4.0 + s, 2.0 + shift, 1.0 + shift + s / 10) for s in range(n))
    given = {"command": ("train.py", "--lr", "0.1"), "folder": ".samebits/spread/train-1", "threads": 1}
    return Configuration(**{**given, "runs": runs, **fields})


def make_spread(*configurations: Configuration) -> Spread:
    """What is found in them."""
    return evaluate(configurations or (make_configuration(),))


def test_sparkline_goes_from_low_to_high():
    """One character for each value, or an average."""
    assert sparkline([1, 2, 3, 4, 5, 6, 7, 8], 20) == BLOCKS
    assert sparkline([8, 1], 20, PLAIN) == "#_"
    assert sparkline([5, 5], 20) == "▁▁"
    assert sparkline(list(range(800)), 8) == BLOCKS
    assert sparkline([1, math.nan, 2, math.inf], 9) == "▁?█?"
    assert sparkline([math.nan], 9) == "?"
    assert sparkline([1, 10, 100], 9, "abc", log=True) == "abc"


def test_strip_shows_the_place():
    """At the ends, in the middle, or nowhere."""
    assert strip(0, 0, 1, 5, ".o") == "o...."
    assert strip(1, 0, 1, 5, ".o") == "....o"
    assert strip(3, 3, 3, 5, ".o") == "..o.."
    assert strip(math.nan, 0, 1, 5, ".o") == "....."


def test_log_scale_only_where_it_helps():
    """Positive values that span a lot."""
    assert wants_log([0.01, 1.0])
    assert not wants_log([0.5, 1.0])
    assert not wants_log([0.0, 100.0])
    assert not wants_log([])


@pytest.mark.parametrize("width", [60, 80, 100])
@pytest.mark.parametrize("blocks", [True, False])
def test_text_fits(width, blocks):
    """No line is wider than the terminal; plain ASCII where blocks cannot be shown."""
    text = spread_text.render(make_spread(), Style(width=width), blocks=blocks)

    assert max(map(len, text.splitlines())) <= width
    assert blocks or text.isascii()


def test_text_says_what_matters():
    """Mean, interval with n, deviation, range, and what one run is worth."""
    text = spread_text.render(make_spread(), Style(width=100))

    assert "val_loss of train.py --lr 0.1" in text
    assert "the last of 3 values, as printed" in text
    assert "1.45, 95 % interval 1.2334 to 1.6666 (t, n = 10)" in text
    assert "0.30277 (21 % of the mean)" in text
    assert "1 to 1.9" in text
    assert "the most distant by 0.9" in text


def test_no_deviation_when_the_seed_has_no_effect():
    """A 0 would look like a result."""
    runs = tuple(make_run(seed, 2.0, 1.0, state="x") for seed in range(4))

    text = spread_text.render(make_spread(make_configuration(runs=runs)), Style(width=100))

    assert "no deviation and no interval: every seed gave the same bits" in text
    assert "sd" not in text.split()
    assert "95 %" not in text


def test_failures_are_listed():
    """With the last line of the error and where the rest is."""
    failure = Failure(7, 1, FailureCode.SAID, "ValueError: bad luck", ".samebits/spread/train-1/seed-7.err")

    text = spread_text.render(make_spread(make_configuration(3, failures=(failure,))), Style(width=100))

    assert "3 of 4 seeds" in text
    assert "seed 7, status 1: ValueError: bad luck (.samebits/spread/train-1/seed-7.err)" in text


def test_hostile_names_are_shown_harmless():
    """What a script prints cannot move the cursor."""
    series = Series("a\x1b[2J", "logged", "", (1.0,), (1.0,), 0)
    runs = tuple(dataclasses.replace(make_run(s), series=(series,)) for s in range(2))
    spread = make_spread(make_configuration(runs=runs, command=("tr\x1bain.py",)))

    assert "\x1b" not in spread_text.render(spread, Style())
    assert "\x1b" not in spread_text.render_metrics(spread.metrics, spread.metric, Style())


@pytest.mark.parametrize(("shift", "verdict"), [(3.0, "yes"), (0.0, "no")])
def test_two_configurations(shift, verdict):
    """One sentence, and the figures behind it."""
    spread = make_spread(make_configuration(), make_configuration(shift=shift, command=("train.py",)))

    text = spread_text.render(spread, Style(width=100))

    assert f"differ beyond seed noise: {verdict} (10 seeds, compared seed by seed)" in text
    assert "A: val_loss of train.py --lr 0.1" in text
    assert "B: val_loss of train.py\n" in text


def test_no_verdict_when_a_seed_has_no_effect():
    """Two constants always differ."""
    runs = tuple(make_run(seed, 2.0, 1.0, state="x") for seed in range(9))

    spread = make_spread(make_configuration(9), make_configuration(runs=runs))

    assert spread.contrast.verdict == "cannot tell"


def test_json_is_strict():
    """One object; NaN is text."""
    runs = (make_run(0, 1.0, math.nan), make_run(1, 1.0, 2.0), make_run(2, 1.0, 2.5))

    decoded = json.loads(
        spread_json.render(make_spread(make_configuration(runs=runs))), parse_constant=pytest.fail
    )

    (configuration,) = decoded["configurations"]
    assert [run["final"] for run in configuration["runs"]] == ["nan", 2.0, 2.5]
    assert configuration["estimate"]["left_out"] == [0]
    assert decoded["metric"]["name"] == "val_loss"
    assert json.loads(spread_json.render_error("x"))["reason"] == "x"


@pytest.fixture
def no_library_leaks():
    """Matplotlib and what it imports stay imported; that is not what is tested."""
    pytest.importorskip("matplotlib")
    importlib.import_module("matplotlib.backends.backend_agg")
    importlib.import_module("matplotlib.backends.backend_svg")


@pytest.mark.parametrize("n_configurations", [1, 2])
@pytest.mark.usefixtures("no_library_leaks")
def test_plot_is_written_and_is_the_same_twice(tmp_path, n_configurations):
    """PNG and SVG; same values, same bytes."""
    spread = make_spread(*[make_configuration(shift=k, command=("$x$",)) for k in range(n_configurations)])

    first = plot.draw(spread, tmp_path / "a.b")
    second = plot.draw(spread, tmp_path / "c")

    assert [Path(path).name for path in first] == ["a.b.png", "a.b.svg"]
    assert Path(first[0]).read_bytes()[:4] == b"\x89PNG"
    assert Path(first[1]).read_text().rstrip().endswith("</svg>")
    for one, other in zip(first, second, strict=True):
        assert Path(one).read_bytes() == Path(other).read_bytes()


@pytest.mark.parametrize(
    "curves",
    [
        [(math.nan,), (math.nan,)],
        [(1.0,), (2.0,)],
        [(math.inf, 1.0), (0.0, 1.0)],
        [(1e-300, 1e300), (1.0, 2.0)],
        [tuple(float(k) for k in range(9000)), (1.0,)],
    ],
)
@pytest.mark.usefixtures("no_library_leaks")
def test_odd_values_are_drawn(tmp_path, curves):
    """Without a traceback."""
    runs = tuple(make_run(seed, *values) for seed, values in enumerate(curves))
    spread = make_spread(make_configuration(runs=runs))

    assert len(plot.draw(spread, tmp_path / "p")) == 2
    assert spread_text.render(spread, Style())


SEEDING = Seeding("train.py", 3, "torch.manual_seed(7)")
REMARKS = {
    RemarkCode.SAME_BITS: ((SEEDING,), "each run: torch.manual_seed(7) at train.py:3. So this"),
    RemarkCode.CONSTANT_SEEDINGS: ((SEEDING,), "each run: torch.manual_seed(7) at train.py:3. Later draws"),
    RemarkCode.SHARED_FILE: (("model.pt",), "every run saved to model.pt: "),
    RemarkCode.NUMBERS_OF_VALUES: ((2, 3), "different numbers of values, 2 to 3: "),
    RemarkCode.FEWER_VALUES: ((2, 5), "a run has 2 values, fewer than --last 5: "),
    RemarkCode.SAME_FINAL_VALUE: ((), "the final value is the same in every run: "),
    RemarkCode.NOT_FINITE: ((0, 1, 2, 5), "the final value of seed 0..2,5 is NaN or infinite"),
    RemarkCode.CHANGED_FILES: (("a.py", "b.py"), "a.py, b.py changed since then"),
    RemarkCode.SCRIPT_SETS_THREADS: ((), "the script sets different numbers of threads"),
    RemarkCode.OTHER_THREADS: ((1, 4), "the two used 1 and 4 threads for each run"),
    RemarkCode.NO_MATPLOTLIB: ((), "matplotlib is not installed: no plot"),
    RemarkCode.NO_SCIPY: ((), "scipy is not installed: no interval and no test"),
}


@pytest.mark.parametrize("code", RemarkCode)
def test_each_remark_is_said(code):
    """From its arguments."""
    arguments, words = REMARKS[code]

    assert words in sentence(Remark.of(code, *arguments))


def test_each_code_of_a_spread_has_a_sentence():
    """None more, none less."""
    assert set(_REMARKS) == set(RemarkCode)
    assert set(_FAILURES) == set(FailureCode)
    assert set(_CONTRASTS) == set(ContrastReason)
    said = {contrast_sentence(Contrast("no", reason, (5, 7), paired=False)) for reason in ContrastReason}
    assert len(said) == len(ContrastReason)
    assert "n = 5 and 7: too few for any test to reach p < 0.05; at least 4 seeds of each are needed" in said


def test_a_remark_names_its_configuration_where_there_are_two():
    """In the text and in the JSON object, which has the sentences of all codes."""
    failure = Failure(7, 1, FailureCode.UNREADABLE, "no end", "seed-7.err", 3)
    runs = tuple(make_run(seed, 2.0, 1.0, state="x") for seed in range(9))
    other = make_configuration(runs=runs, failures=(failure,), threads=2)

    decoded = json.loads(spread_json.render(make_spread(make_configuration(9), other)))

    assert decoded["notes"][0].startswith("B: every seed gave the same bits: it draws from no generator")
    assert decoded["notes"][1] == "the two used 1 and 2 threads for each run, which changes bits too"
    assert decoded["contrast"]["reason"] == "the seed has no effect, see the note"
    assert decoded["configurations"][1]["failures"] == [
        {
            "seed": 7,
            "status": 1,
            "reason": failure_sentence(failure),
            "log": "seed-7.err",
            "steps": 3,
        }
    ]
    alone = json.loads(spread_json.render(make_spread(make_configuration(runs=runs))))
    assert alone["notes"][0].startswith("every seed")
