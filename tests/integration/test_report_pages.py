"""`samebits report` and `--html` on real scripts: the facts, the refusals, and how a browser shows them."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import textwrap
from typing import TYPE_CHECKING

import pytest
from cli_support import NOISY, SEEDED, samebits, write
from page_support import Reading, read_page

if TYPE_CHECKING:
    from pathlib import Path

BROWSER = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)


def page_of(path: Path) -> Reading:
    """A page that has nothing wrong with it."""
    reading = read_page(path.read_text(encoding="utf-8"))

    assert reading.complaints == []
    return reading


@pytest.fixture(scope="module")
def verified(tmp_path_factory) -> Path:
    """A folder with the page of a verification, and two records of the same script."""
    folder = tmp_path_factory.mktemp("verified")
    write(folder, "noisy.py", NOISY)
    result = samebits("verify", "--fix", "--full", "--html", "page.html", "noisy.py", cwd=folder)
    assert result.returncode == 1, result.stderr
    assert "samebits: page written to page.html" in result.stderr
    for name in ("a", "b"):
        samebits("run", "--record", f"{name}.sbr", "noisy.py", cwd=folder)
    return folder


def test_page_of_a_verification_has_values_distances_and_the_patch(verified):
    """The first difference, its values side by side, ULP, the remedy, what differs in which step."""
    words = page_of(verified / "page.html").words

    for fact in (
        "the state differs at step 2",
        "step 2, a generator is seeded",
        "> 9 torch.seed() 10 x = x + torch.randn(6, 4) # the culprit",
        "24 of 24 elements differ",
        "first at [0, 0]: ",
        "unseeded-torch",
        "The first difference is in step 2: generators",
        "largest distance in ULP",
        "operations gave other bits",
    ):
        assert fact in words, fact
    assert "--- a/noisy.py" in words
    assert "confirmed by 1 pair" in words


def test_verification_with_a_page_keeps_no_more_than_one_without(verified):
    """What was captured for the page is removed again."""
    folder = verified / ".samebits/noisy-verify-1"

    assert not list(folder.glob("fix-*.sbr"))
    for name in ("op-1a", "op-1b"):
        with sqlite3.connect(folder / f"{name}.sbr") as connection:
            assert connection.execute("SELECT count(*) FROM capture").fetchone() == (0,)


def test_page_of_two_records_says_what_records_cannot_tell(verified):
    """The module and the step, but no distance; a line of source only from the working folder."""
    result = samebits("report", "a.sbr", "b.sbr", cwd=verified)
    words = page_of(verified / "a-and-b.html").words

    assert result.returncode == 0, result.stderr
    assert "The first difference is in step 2: generators" in words
    assert "not how far they are apart" in words
    assert "Nothing that can change bits differs between the two environments" in words


def test_page_of_one_record_has_seeds_and_environment(verified):
    """A single run has no verdict."""
    result = samebits("report", "a.sbr", "--output", "one.html", cwd=verified)
    words = page_of(verified / "one.html").words

    assert result.returncode == 0, result.stderr
    assert "A single run has no verdict" in words
    assert "torch.manual_seed(0)" in words
    assert "not the numbers" in words
    assert "torch version" in words


def test_losses_are_known_where_values_were_kept(tmp_path):
    """`run --values` keeps them."""
    write(tmp_path, "seeded.py", SEEDED, STEPS=2)
    words = ("run", "--level", "step", "--values", "--record", "a.sbr", "seeded.py")
    made = samebits(*words, cwd=tmp_path)
    samebits("report", "a.sbr", "--output", "one.html", cwd=tmp_path)
    one = page_of(tmp_path / "one.html").words

    assert made.returncode == 0, made.stderr
    assert "the numbers of 2 of 2 losses" in one
    assert "Values that are known" in one


GROWING = """\
import os, torch
torch.manual_seed(0)
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
for step in range(STEPS):
    if os.environ.get("SHIFTED") and step in (2, 4):
        with torch.no_grad():
            weight = model.weight.view(torch.int32)
            weight[0, 1] += 1 if step == 2 else 99
    optimizer.zero_grad()
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
"""


def test_distance_of_each_step_is_known_where_values_were_kept(tmp_path):
    """The weight is 1 ULP apart from step 2 on, and 100 from step 4 on; its gradients are equal."""
    write(tmp_path, "growing.py", GROWING, STEPS=6)
    for name, shifted in (("a", ""), ("b", "1")):
        words = ("run", "--values", "--record", f"{name}.sbr", "growing.py")
        samebits(*words, cwd=tmp_path, SHIFTED=shifted)
    result = samebits("report", "a.sbr", "b.sbr", "--output", "page.html", cwd=tmp_path)
    page = page_of(tmp_path / "page.html")

    assert result.returncode == 0, result.stderr
    assert "Parameters and buffers: 1 ULP in step 2, at most 100 in step 4." in page.words
    assert "Gradients:" not in page.words
    assert "How far they are apart is shown below." in page.words
    assert "figure-growth" in page.idents


PROGRAM = """\
import os, samebits, torch
x = torch.linspace(0.5, 1, 6)
y = samebits.tap("up", x + (2.0 ** -22 if os.environ.get("SHIFTED") else 0.0))
samebits.tap("<script>", y * 3)
"""


def test_page_of_two_programs(tmp_path):
    """The first tensor that differs with the lines of both, each name with its distance, both records."""
    write(tmp_path, "program.py", PROGRAM)
    for name, shifted in (("a", ""), ("b", "1")):
        samebits("run", "--record", f"{name}.sbr", "program.py", cwd=tmp_path, SHIFTED=shifted)
    words = ("compare", "--align", "names", "--html", "page.html", "--json", "a.sbr", "b.sbr")
    result = samebits(*words, cwd=tmp_path)
    page = page_of(tmp_path / "page.html")

    assert result.returncode == 1, result.stderr
    assert result.stdout.startswith("{")
    assert "samebits: page written to page.html" in result.stderr
    assert "different tap up, call 1 is the first tensor that differs; it is the first of all." in page.words
    assert "6 of 6 elements, by up to 4 ULP of float32" in page.words
    assert '> 3 y = samebits.tap("up"' in page.words
    assert "tap <script>" in page.words
    assert "figure-names" in page.idents
    assert "b.sbr, torch" in page.words


def test_page_of_a_comparison_is_that_of_the_report(verified):
    """Whoever compares needs no second command."""
    compared = samebits("compare", "--html", "compared.html", "a.sbr", "b.sbr", cwd=verified)
    samebits("report", "a.sbr", "b.sbr", "--output", "reported.html", cwd=verified)

    assert compared.returncode == 1, compared.stderr
    assert compared.stdout.startswith("different")
    assert (verified / "compared.html").read_bytes() == (verified / "reported.html").read_bytes()


@pytest.mark.parametrize("words", [("--ranks", "."), (".", ".")])
def test_folders_have_no_page(tmp_path, words):
    """It would be one of each rank."""
    result = samebits("compare", "--html", "page.html", *words, cwd=tmp_path)

    assert result.returncode == 2
    assert "--html is for two records" in result.stderr
    assert not (tmp_path / "page.html").exists()


def test_values_are_known_where_operations_were_captured(tmp_path):
    """The digest of a loss is that of the output of an operation; the origin has its elements."""
    write(tmp_path, "unseeded.py", SEEDED.replace("torch.manual_seed(0)", ""), STEPS=3)
    samebits("verify", "--quick", "--keep", "kept", "--html", "page.html", "unseeded.py", cwd=tmp_path)
    samebits("report", "kept/op-1a.sbr", "--output", "one.html", cwd=tmp_path)
    page, one = page_of(tmp_path / "page.html").words, page_of(tmp_path / "one.html").words

    assert "the numbers of 1 of 1 losses" in one
    assert "Values that are known" in one
    assert "Values side by side: the first elements that differ" in page
    assert "[0, 0]" in page


def test_page_of_two_records_with_operations(tmp_path):
    """Each operation of the step in which the runs part; digests tell which differ, not how far."""
    write(tmp_path, "unseeded.py", SEEDED.replace("torch.manual_seed(0)", ""), STEPS=2)
    for name in ("a", "b"):
        samebits("run", "--level", "op", "--record", f"{name}.sbr", "unseeded.py", cwd=tmp_path)
    result = samebits("report", "a.sbr", "b.sbr", cwd=tmp_path)
    words = page_of(tmp_path / "a-and-b.html").words

    assert result.returncode == 0, result.stderr
    assert "step 0, aten::uniform_.default" in words
    assert "> 3 model = torch.nn.Sequential(" in words
    assert "In step 0, " in words
    assert "operations gave other bits. The records hold digests of them and no values" in words
    assert "aten::uniform_.default" in words.partition("Operations that differ")[2]
    assert "begins here" in words
    assert "a.sbr and b.sbr (op level)" in words


def test_page_of_a_replay_has_a_section(tmp_path):
    """How many operations were executed again, and that all gave the same bits."""
    write(tmp_path, "seeded.py", SEEDED, STEPS=2)
    result = samebits("verify", "--replay", "--html", "page.html", "seeded.py", cwd=tmp_path)
    words = page_of(tmp_path / "page.html").words.partition("Operations executed again")[2]

    assert result.returncode == 0, result.stderr
    assert "executed again in " in words
    assert "all gave the same bits." in words
    assert "not executed again: " in words


def test_a_run_that_trains_nothing_and_reads_values(tmp_path):
    """No state, no loss: the values that differ are its result."""
    source = "import torch\nfor _ in range(3):\n    print(torch.rand(4).sum().item())\n"
    write(tmp_path, "reads.py", source)
    result = samebits("verify", "--quick", "--html", "page.html", "reads.py", cwd=tmp_path)
    samebits("run", "--record", "r.sbr", "reads.py", cwd=tmp_path)
    samebits("report", "r.sbr", cwd=tmp_path)
    words, one = page_of(tmp_path / "page.html").words, page_of(tmp_path / "r.html").words

    assert result.returncode == 1, result.stderr
    assert "unseeded-torch" in words
    assert "> 3 print(torch.rand(4).sum().item())" in words
    assert "value readreads.py:33" in one  # three cells: what, line, times
    assert "The record has a digest of each loss and of each value that was read, not the numbers." in one


def test_identical_runs_have_a_page(tmp_path):
    """And JSON beside it."""
    write(tmp_path, "seeded.py", SEEDED, STEPS=3)
    result = samebits("verify", "--html", "page.html", "--json", "seeded.py", cwd=tmp_path)
    words = page_of(tmp_path / "page.html").words

    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("{")
    assert "identical 2 runs, 3 steps" in words


def damaged(folder: Path) -> str:
    """A record with a part overwritten."""
    data = bytearray((folder / "a.sbr").read_bytes())
    data[len(data) // 2 :] = b"\xff" * (len(data) - len(data) // 2)
    (folder / "damaged.sbr").write_bytes(data)
    return "damaged.sbr"


def newer(folder: Path) -> str:
    """A record of a version to come."""
    shutil.copy(folder / "a.sbr", folder / "newer.sbr")
    with sqlite3.connect(folder / "newer.sbr") as connection:
        connection.execute("PRAGMA user_version = 99")
    return "newer.sbr"


@pytest.mark.parametrize(
    ("words", "slug"),
    [
        (["a.sbr", "--output", "no/page.html"], "report-unwritable"),
        (["a.sbr", "--output", "noisy.py"], "report-exists"),
        (["missing.sbr"], "record-missing"),
        (["noisy.py"], "record-foreign"),
        ([damaged], "record-damaged"),
        (["a.sbr", newer], "record-version"),
        ([".samebits"], "usage"),
        (["a.sbr", "b.sbr", "a.sbr"], "usage"),
        ([], "usage"),
    ],
)
def test_bad_input_gives_one_line_and_no_page(verified, words, slug):
    """And never a traceback."""
    before = sorted(os.listdir(verified))
    words = [word(verified) if callable(word) else word for word in words]
    result = samebits("report", *words, cwd=verified)

    assert result.returncode == 2
    assert result.stderr.count("\n") == 2, result.stderr
    assert f"explain {slug}\n" in result.stderr
    assert {*os.listdir(verified)} - {*before} <= {"damaged.sbr", "newer.sbr"}


def test_records_of_other_scripts_give_a_page_that_says_so(verified, tmp_path):
    """It is no error: the page says why there is no verdict, and shows both environments."""
    write(tmp_path, "seeded.py", SEEDED, STEPS=2)
    samebits("run", "--record", "c.sbr", "seeded.py", cwd=tmp_path)
    result = samebits("report", str(verified / "a.sbr"), "c.sbr", cwd=tmp_path)
    words = page_of(tmp_path / "a-and-c.html").words

    assert result.returncode == 0, result.stderr
    assert "not judged" in words
    assert "seeded.py" in words


def test_a_run_that_was_killed_has_a_page(tmp_path):
    """As far as it went."""
    source = SEEDED.replace(
        "optimizer.step()\n", "optimizer.step()\n        if step == 3: os.kill(os.getpid(), 9)\n"
    )
    write(tmp_path, "killed.py", "import os\n" + textwrap.dedent(source), STEPS=9)
    samebits("run", "--record", "k.sbr", "killed.py", cwd=tmp_path)
    result = samebits("report", "k.sbr", cwd=tmp_path)

    assert result.returncode == 0, result.stderr
    assert "the run was killed" in page_of(tmp_path / "k.html").words


@pytest.mark.skipif(BROWSER is None, reason="needs Chromium: apt-get install chromium")
@pytest.mark.parametrize("width", [360, 800, 1280])
def test_no_width_needs_horizontal_scrolling(verified, tmp_path, width):
    """A frame around the page measures it; the page itself runs no script."""
    page = tmp_path / "page.html"
    shutil.copy(verified / "page.html", page)
    frame = tmp_path / "frame.html"
    frame.write_text(
        f"<body><iframe id=f src='{page.as_uri()}' width={width} height=900></iframe><p id=p></p><script>"
        "onload = () => { const e = f.contentDocument.documentElement;"
        " p.textContent = 'measured ' + e.scrollWidth + ' of ' + e.clientWidth; }</script>"
    )
    shown, _ = browse("--dump-dom", "--allow-file-access-from-files", frame.as_uri())

    found = shown.partition("measured ")[2].split("<")[0].split()
    assert found, shown[-500:]
    assert int(found[0]) <= int(found[2])


@pytest.mark.skipif(BROWSER is None, reason="needs Chromium: apt-get install chromium")
def test_a_browser_finds_nothing_to_complain_about(verified):
    """No violation of the policy, nothing that is loaded; the print has pages."""
    page = verified / "page.html"
    _, errors = browse(
        "--enable-logging=stderr", "--v=0", f"--print-to-pdf={verified / 'page.pdf'}", page.as_uri()
    )

    assert (verified / "page.pdf").read_bytes().startswith(b"%PDF")
    assert "Content Security Policy" not in errors


@pytest.mark.skipif(BROWSER is None, reason="needs Chromium: apt-get install chromium")
@pytest.mark.parametrize(
    "planted",
    [
        "<script>document.title = 'ran'</script>",
        "<img src='file:///dev/null'>",
        "<svg onload=\"document.title = 'ran'\"></svg>",
    ],
)
def test_the_policy_forbids_what_a_page_must_not_have(verified, tmp_path, planted):
    """What was smuggled into a page does not run, and the browser says so: the test above would see it."""
    text = (verified / "page.html").read_text(encoding="utf-8")
    page = tmp_path / "planted.html"
    page.write_text(text.replace("<main>", f"<main>{planted}", 1), encoding="utf-8")
    shown, errors = browse("--enable-logging=stderr", "--v=0", "--dump-dom", page.as_uri())

    assert "Content Security Policy" in errors
    assert "<title>ran</title>" not in shown


def browse(*words: str) -> tuple[str, str]:
    """Run Chromium without a window; what it writes on its streams."""
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=2000"]
    done = subprocess.run(
        [BROWSER, *options, *words], capture_output=True, text=True, timeout=120, check=False
    )
    return done.stdout, done.stderr
