"""Pages: they load nothing and run nothing, whatever a record holds, and have the facts."""

from __future__ import annotations

import dataclasses
import re
import sys
from pathlib import Path

import pytest
from page_support import read_page
from report_builders import different, finding, identical
from test_spread_report import make_configuration, make_spread

from samebits._runtime.frames import Site
from samebits.cli.page_file import check_page, write_page
from samebits.commands.compared_facts import compared_facts
from samebits.commands.cost import Cost, CostReport, CostRequest, Unmeasured, Variant, WhyUnmeasured
from samebits.comparison.course import Scalar, Seeding, course
from samebits.comparison.environments import EnvironmentComparison, FactDifference
from samebits.comparison.op_timeline import OpPoint, OpState, OpTimeline
from samebits.comparison.replayed import replayed
from samebits.errors import SamebitsError
from samebits.recording.distance import Difference
from samebits.recording.replay_results import ReplaySummary, Skipped, SkipReason, Unrepeated
from samebits.recording.runner import Target
from samebits.records.events import RunInfo, TensorInfo
from samebits.records.kinds import KINDS, EventKind
from samebits.records.reader import RecordReader
from samebits.records.writer import RecordWriter
from samebits.report.cost import render_cost
from samebits.report.html import svg
from samebits.report.html.comparison_page import comparison_page
from samebits.report.html.cost_page import cost_page
from samebits.report.html.document import CodeLine, Facts, Figure, Items, Page, Paragraph, Section, Table
from samebits.report.html.op_section import op_section
from samebits.report.html.record_page import record_page
from samebits.report.html.render import render
from samebits.report.html.run_section import (
    environment_section,
    environments_section,
    seeds_section,
    switches_section,
)
from samebits.report.html.scalar_figure import scalar_figure
from samebits.report.html.sharing import shareable
from samebits.report.html.spread_page import spread_page
from samebits.report.style import Style
from samebits.report.vocabulary import script_name
from samebits.switches.switch import Control
from samebits.verification import verify_records

HOSTILE = (
    "</script><script>alert(1)</script>\" onload='x' <img src=http://evil/x> "
    "\x1b[31mred\x1b[0m \u202e$\\frac{1}{2}$"
)
COSTS = (
    Cost(Variant("off", None), (0.001,) * 3, (1.0,) * 3),
    Cost(Variant("off again", None, why="the same as off"), (0.001,) * 3, (0.99, 1.0, 1.02)),
    Cost(Variant("on", None, why="all switches"), (0.0012,) * 3, (1.15, 1.2, 1.3)),
    Cost(Variant(HOSTILE, None), failure=HOSTILE),
)
REQUEST = CostRequest(Target("train.py", None, ("--lr", "1")), Path("x"), Control(), 3, 20, 3, "nothing")


def hostile_record(path: Path, shift: int = 0, text: str = HOSTILE, steps: int = 5) -> Path:
    """A record whose every text is hostile; from step 2 on its digests depend on `shift`."""
    info = RunInfo(
        (text, text), "step", "finished", 0, failure=text, steps=steps, torch=text,
        environment={text: text, "machine": {text: [text, {text: text}]}, "packages": {text: text},
                     "switches": {text: text}},
        control={"seed": text, "results": {text: {"name": text, "state": text}, "x": 3}},
    )  # fmt: skip
    writer = RecordWriter(path, dataclasses.replace(info, status="running"))
    site = writer.site(Site(f"/{text}.py", 3, text))
    tensors = (TensorInfo("param", f"{text}.{text}", text, (3,)),)
    for step in range(steps):
        for offset, (kind, op) in enumerate(
            (("rng", "seed"), ("loss", text), ("read", text), ("step", text))
        ):
            seen = tensors if kind != "rng" else ()
            digest = (step + (shift if step > 1 else 0)).to_bytes(16, "little") if seen else b""
            words = writer.text(text)
            head = (
                4 * step + offset,
                KINDS.index(kind),
                step,
                writer.text(op),
                site,
                None,
                words,
                words if kind == "x" else writer.text(""),
                words,
            )
            writer.add((*head, writer.layout(seen), digest, b""))
    writer.update(status="finished", exit_status=0, steps=steps)
    writer.close()
    return path


def compared_page(a: Path, b: Path, folder: str) -> Page:
    """The page on two records."""
    result = verify_records(str(a), str(b))
    return comparison_page(result, compared_facts(result), folder)


def check(page: Page) -> str:
    """The text of a page that has nothing wrong with it."""
    reading = read_page(render(page))

    assert reading.complaints == []
    return reading.words


def losses(*lines: int) -> tuple[Scalar, ...]:
    """Three losses of each line, 3, 2 and 1."""
    return tuple(
        Scalar(EventKind.LOSS, step, Site("/code/train.py", line, "main"), f"{3.0 - step}", 3.0 - step)
        for line in lines or (9,)
        for step in range(3)
    )


def loss_page(scalars: tuple[Scalar, ...]) -> Page:
    """A page with a drawing of losses."""
    return page_with(scalar_figure(scalars))


def page_with(*blocks: object) -> Page:
    """A page with one section."""
    return Page("t", "v", "plain", "a", Facts(()), (Section("s", "S", tuple(blocks)),))


def points(*states: OpState) -> tuple[OpPoint, ...]:
    """An operation in each of these states."""
    return tuple(
        OpPoint(at, 2, f"aten::op{at}", "net", None, is_backward=False, state=state)
        for at, state in enumerate(states)
    )


def op_page(shown: tuple[OpPoint, ...], **more: int) -> Page:
    """A page with the section on operations."""
    section = op_section(OpTimeline(shown, 2, 2, measured=0, **more), "/code")
    return dataclasses.replace(page_with(), sections=(section,))


def test_a_hostile_record_gives_a_harmless_page(tmp_path):
    """Its texts are shown as they are, with control characters as escapes."""
    record = hostile_record(tmp_path / "a.sbr")
    with RecordReader(record) as reader:
        page = record_page(course(reader), str(record), str(tmp_path))

    words = check(page)

    assert "</script><script>alert(1)</script>" in words
    assert "\\x1b[31mred" in words
    assert "\\u202e" in words
    assert "\x1b" not in words
    assert "\u202e" not in words


def test_two_hostile_records_give_a_harmless_page(tmp_path):
    """Names of modules go into drawings too."""
    a, b = hostile_record(tmp_path / "a.sbr"), hostile_record(tmp_path / "b.sbr", shift=1000)

    words = check(compared_page(a, b, str(tmp_path)))

    assert words.count("alert(1)") > 5
    assert "The first difference is in step 2" in words


def test_texts_of_megabytes_and_many_steps_give_a_page_of_bounded_size(tmp_path):
    """A record is not trusted; nor is a long run a reason for a page that no mail takes."""
    long = hostile_record(tmp_path / "a.sbr", text="x<" * 100_000, steps=20)
    many = [hostile_record(tmp_path / f"{s}.sbr", s, "m", 20_000) for s in (0, 1)]

    with RecordReader(long) as reader:
        page = record_page(course(reader), str(long), str(tmp_path))
    compared = compared_page(*many, str(tmp_path))

    assert len(render(page)) < 600_000
    assert len(render(compared)) < 300_000
    assert "Each column stands for 128 steps" in check(compared)
    assert "The first difference is in step 2:" in check(compared)


def test_page_of_a_difference_has_the_facts():
    """Verdict, place, amount, values, cause, remedy, others."""
    result = different(finding(), finding(step=3, op="aten::mm.default", cause="wall-clock"))

    words = check(comparison_page(result, None, "/code"))

    for fact in (
        "different the state differs at step 2: parameter weight (f32[2, 4]).",
        "step 2, aten::randn.default in module net.drop",
        "train.py:3 in training_step",
        "24 of 24 elements differ, by up to 2.513 (1 074 266 112 ULP)",
        "first at [0, 0]: 0.33669036626815796 in run 1, 1.9269152879714966 in run 2",
        "unseeded-torch",
        "the generator was seeded by torch.seed() at train.py:2",
        "call torch.manual_seed(...) instead",
        "step 3, aten::mm.default",
    ):
        assert fact in words, fact


def test_page_of_identical_runs_says_so():
    """And has no section on differences."""
    words = check(comparison_page(identical(), None, "/code"))

    assert "identical 2 runs, 120 steps, 4 812 values compared bit for bit." in words
    assert "ab" * 16 in words
    assert "The first difference" not in words


def test_page_of_a_spread_has_the_facts():
    """Mean, interval, each seed, the test."""
    one = check(spread_page(make_spread()))
    two = check(spread_page(make_spread(make_configuration(), make_configuration(shift=0.5))))

    assert "1.45, 95 % interval 1.2334 to 1.6666 (t, n = 10)" in one
    assert "differ beyond seed noise: yes" in two
    assert "Configuration B" in two


def test_page_of_costs_has_the_facts():
    """Cost, noise, failure, what was left out."""
    left_out = (Unmeasured("cudnn-benchmark", WhyUnmeasured.NO_CUDA),)

    words = check(cost_page(CostReport(REQUEST, COSTS, left_out, steps=20)))

    assert "+20.0% for all switches" in words
    assert "(+15.0% to +30.0% over the rounds). Two equal variants differ by up to 2.0% here." in words
    assert "cudnn-benchmark" in words
    assert "train.py --lr 1" in words


def test_a_cost_within_noise_is_called_noise():
    """The headline must not say more than the measurement."""
    costs = (COSTS[0], dataclasses.replace(COSTS[1], ratios=(1.0, 1.4)), COSTS[2])

    assert "so this cannot be told from noise" in check(cost_page(CostReport(REQUEST, costs, steps=20)))


@pytest.mark.parametrize(
    ("ratios", "clear"), [((1.15, 1.2, 1.3), True), ((1.01, 1.2, 1.3), False), ((0.7, 0.8, 0.97), True)]
)
def test_page_and_table_call_the_same_costs_noise(ratios, clear):
    """One round within the noise is enough; a bar of the table has its colour by the same rule."""
    report = CostReport(REQUEST, (*COSTS[:2], dataclasses.replace(COSTS[2], ratios=ratios)), steps=20)

    assert ("cannot be told from noise" in cost_page(report).answer) != clear
    bars = [line for line in render_cost(report, Style(colour=True)).splitlines() if "#" in line]
    assert any("\x1b[31m#" in line or "\x1b[32m#" in line for line in bars) == clear


def test_without_matplotlib_the_page_says_it_in_words(monkeypatch, tmp_path):
    """The page is whole without its drawings."""
    a, b = (hostile_record(tmp_path / f"{s}.sbr", s, "m") for s in (0, 1))
    pages = {
        "at most 1 of 1 tensors that differ": lambda: compared_page(a, b, str(tmp_path)),
        "final values from": lambda: spread_page(make_spread()),
        "on +20.0%": lambda: cost_page(CostReport(REQUEST, COSTS, steps=20)),
        "3 losses: 3 in step 0": lambda: loss_page(losses()),
        "gave other bits": lambda: op_page(points(OpState.SAME, OpState.BEGINS)),
    }
    drawn = {words: read_page(render(make())) for words, make in pages.items()}
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)  # an import of it raises an ImportError

    plain = {words: read_page(render(make())) for words, make in pages.items()}

    for words, reading in plain.items():
        assert reading.complaints == []
        assert "svg" in drawn[words].tags
        assert "svg" not in reading.tags
        assert "matplotlib was not installed" in reading.words
        assert words in reading.words


def test_drawings_use_the_colours_of_the_page():
    """So that one drawing serves light, dark and print."""
    page = render(spread_page(make_spread()))
    drawings = page[page.index("<svg") : page.rindex("</svg>")]

    assert "var(--first)" in drawings
    assert "#0101" not in drawings
    colours = {ink.variable for ink in svg.Ink}
    style = Path(svg.__file__).parent.joinpath("templates/style.css").read_text()
    used = {f"--{name}" for name in re.findall(r"var\(--([\w-]+)\)", drawings)}
    assert used <= colours
    assert all(f"{colour}:" in style for colour in used)


def test_a_dollar_in_a_name_begins_no_formula(tmp_path):
    """Matplotlib would draw it as one."""
    a, b = (hostile_record(tmp_path / f"{s}.sbr", s, "$a_b$") for s in (0, 1))
    page = render(compared_page(a, b, str(tmp_path)))

    assert "$a_b$" in page[page.index("<svg") : page.rindex("</svg>")]


def test_a_shared_page_has_no_secret_and_no_home(monkeypatch):
    """Paths are as short as they can be."""
    monkeypatch.setenv("HOME", "/home/ada")
    blocks = (
        Paragraph("a token=ghp_0123456789abcdefghijABCDEFGHIJ012345 in /home/ada/x.py"),
        CodeLine("/project/y.py"),
    )
    page = Page("t", "v", "bad", "a", Facts((("command", "/project/train.py --password hunter2hunter2"),)),
                (Section("s", "S", blocks),))  # fmt: skip

    shared = repr(shareable(page, "/project"))

    assert "ghp_" not in shared
    assert "hunter2" not in shared
    assert "~/x.py" in shared
    assert "ada" not in shared
    assert "'y.py'" in shared
    assert "'train.py --password ***'" in shared


@pytest.mark.parametrize(
    ("folder", "text", "shown"),
    [
        ("/project", "/project/y.py and /data/project/y.py", "y.py and /data/project/y.py"),
        ("/root", "at /mnt/root/x", "at /mnt/root/x"),
        ("/", "a // b, https://example.org", "a // b, https://example.org"),
    ],
)
def test_only_the_folder_itself_is_left_out(monkeypatch, folder, text, shown):
    """Neither a folder that ends alike, nor other slashes."""
    monkeypatch.setenv("HOME", "/home/ada")
    assert shareable(CodeLine(text), folder) == CodeLine(shown)


def test_a_file_that_came_meanwhile_is_not_replaced(tmp_path):
    """A script may write to the path that was free when its run began."""
    file = check_page(str(tmp_path / "report.html"))
    file.write_text("mine")
    with pytest.raises(SamebitsError) as caught:
        write_page(Page("t", "v", "bad", "a", Facts(()), ()), file)
    assert caught.value.slug == "report-exists"
    assert file.read_text() == "mine"


def test_only_drawings_are_trusted():
    """Every other text of a page is escaped, wherever it stands."""
    figure = Figure("f", HOSTILE, HOSTILE, HOSTILE, "", "")
    page = Page(
        HOSTILE, HOSTILE, "bad", HOSTILE, Facts(((HOSTILE, HOSTILE),)), (Section("s", HOSTILE, (figure,)),)
    )

    check(page)


@pytest.mark.parametrize("kind", ["missing", "file", "folder", "link", "foreign", "empty"])
def test_a_page_replaces_nothing_but_a_page(tmp_path, kind):
    """The error says what is there."""
    path = tmp_path / "page.html"
    if kind == "missing":
        path = tmp_path / "no" / "page.html"
    elif kind == "file":
        path = tmp_path / "file" / "page.html"
        path.parent.write_text("")
    elif kind == "folder":
        path.mkdir()
    elif kind == "link":
        path.symlink_to(tmp_path / "other.html")
    elif kind == "foreign":
        path.write_text("<html>mine</html>")

    with pytest.raises(SamebitsError) as caught:
        check_page("" if kind == "empty" else str(path))

    assert caught.value.slug == ("report-exists" if kind == "foreign" else "report-unwritable")


def test_a_page_is_replaced_by_a_page(tmp_path, monkeypatch, capsys):
    """The same command may be given twice."""
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        write_page(spread_page(make_spread()), check_page("page.html"))

    assert capsys.readouterr().err.count("samebits: page written to page.html") == 2
    assert (tmp_path / "page.html").read_text().startswith("<!DOCTYPE html>")


def test_operations_without_a_counterpart_gave_no_other_bits():
    """They are counted by themselves, as are those that were not compared."""
    states = (OpState.SAME, OpState.BEGINS, OpState.DIFFERS, OpState.ALONE, OpState.UNPAIRED)

    words = check(op_page(points(*states), only_second=7, left_out=1_000))

    assert (
        "2 of 5 operations gave other bits. Only run 1 has 1 of these. Only the other run has 7 more."
        in words
    )
    assert "1 operation could not be compared: a step has too many events" in words
    assert "5 operations around the first that differs are shown, 1 000 are left out" in words
    assert "aten::op33netthe other run has none like it" in words
    assert "aten::op44net" not in words


def test_operations_that_were_executed_again_have_a_section():
    """What was executed, what did not repeat, with its line and how far it is apart, what was left out."""
    unrepeated = Unrepeated(
        "aten::index_add_.default", "net", Site("/code/train.py", 7, "main"), None, 3, calls=4, repetitions=8,
        differing=2, outputs=("f32[4]",), device="cuda",
        difference=Difference(1, 4, 2, 0.5, (3,), ("1.0", "1.5")),
    )  # fmt: skip
    summary = ReplaySummary(2, 40, 11, 2, (unrepeated,), (Skipped(SkipReason.VIEW, "aten::view.default", 5),))
    comparison = dataclasses.replace(identical().comparison, replayed=replayed(summary))

    words = check(comparison_page(dataclasses.replace(identical(), comparison=comparison), None, "/code"))

    for fact in (
        "Operations executed again",
        "40 calls of 11 operations executed again 2 times each in 2 steps, 1 operation did not repeat.",
        "train.py:7 in main",
        "1 of 4 elements differ, by up to 0.5 (2 ULP)",
        "first at [3]: 1.0, then 1.5",
        "nondeterministic-kernel",
        "not executed again: 5 view",
    ):
        assert fact in words, fact
    assert "run 0" not in words
    assert "Operations executed again" not in check(comparison_page(identical(), None, "/code"))


def test_losses_of_several_lines_are_several_curves():
    """A generator and a discriminator have no loss in common."""
    one, two = scalar_figure(losses()), scalar_figure(losses(9, 20))

    assert "train.py:9, 3 losses: 3 in step 0, 1 in step 2." in two.alt
    assert "train.py:20, 3 losses: 3 in step 0, 1 in step 2." in two.alt
    assert "train.py:20" in two.wide
    assert "train.py:9" not in one.wide  # one curve needs no legend
    assert "3 more lines are not drawn" in scalar_figure(losses(*range(7))).caption
    assert scalar_figure(losses()[:1]) is None


@pytest.mark.parametrize(
    ("command", "name"),
    [(("/code/train.py", "-m"), "train.py"), (("-m", "pkg.train", "x"), "-m pkg.train"), ((), "a script")],
)
def test_every_page_names_the_script_alike(command, name):
    """Without its folder; a module with its option."""
    assert script_name(command) == name
    if command:
        spread = make_spread(make_configuration(command=command))
        assert spread_page(spread).title == f"val_loss over seeds: {name}"


def test_what_is_cut_says_so():
    """Facts, switches and other differences of an environment."""
    many = {f"name{number}": f"v{number}" for number in range(100)}
    info = dataclasses.replace(identical().runs[0].info, environment={"switches": many, "more": many})
    blocks = (*switches_section(info).blocks, *environment_section(info).blocks)
    left_out = [block.left_out for block in blocks if isinstance(block, Table)]

    assert left_out == [40, 40]
    facts = tuple(FactDifference((f"f{number}",), "a", "b") for number in range(100))
    section = environments_section((info, info), EnvironmentComparison((), facts))
    assert [block.left_out for block in section.blocks if isinstance(block, Items)] == [40]


def test_calls_that_seed_are_counted_where_they_are_too_many_to_list():
    """A script may seed with another number in each of thousands of steps."""
    info = identical().runs[0].info
    listed = (Seeding("torch.manual_seed(0)", None, 0, 2),)

    words = check(dataclasses.replace(page_with(), sections=(seeds_section(info, listed, 60, "/code"),)))

    assert "60 more calls seeded a generator." in words
