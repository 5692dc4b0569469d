"""How a browser lays out each kind of page: on a phone and a screen, in light and in dark, and on paper."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import unicodedata
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from cli_support import NOISY, samebits, write
from pypdf import PdfReader

BROWSER = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="needs Chromium: apt-get install chromium")
SCRIPT = (Path(__file__).parent / "page_layout.js").read_text(encoding="utf-8")
PAGES = {
    "verification": ("verify", "--fix", "--full", "--html", "verification.html", "noisy.py"),
    "record": ("report", "a.sbr", "--output", "record.html"),
    "records": ("report", "a.sbr", "b.sbr", "--output", "records.html"),
    "programs": ("compare", "--align", "shapes", "--html", "programs.html", "a.sbr", "b.sbr"),
    "spread": ("spread", "--seeds", "0..3", "--html", "spread.html", "noisy.py"),
    "cost": ("cost", "--rounds", "1", "--warmup", "1", "--html", "cost.html", "noisy.py"),
}
PAPER = 673  # pixels of CSS: A4 without margins of 16 mm


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a page of each kind."""
    folder = tmp_path_factory.mktemp("pages")
    write(folder, "noisy.py", NOISY)
    for name in ("a", "b"):
        samebits("run", "--values", "--record", f"{name}.sbr", "noisy.py", cwd=folder)
    for name, words in PAGES.items():
        result = samebits(*words, cwd=folder)
        assert (folder / f"{name}.html").exists(), result.stderr
    return folder


def measured(page: Path, width: int, *, dark: bool = False) -> dict[str, Any]:
    """Lay out a page in a frame of that width; the page itself runs no script."""
    frame = page.with_name("frame.html")
    frame.write_text(
        f"<body><iframe id=f src='{page.as_uri()}' width={width} height=900></iframe><p id=p></p>"
        f"<script>{SCRIPT}</script>"
    )
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=2000"]
    scheme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
    words = [str(BROWSER), *options, scheme, "--allow-file-access-from-files", "--dump-dom", frame.as_uri()]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    told = done.stdout.partition('<p id="p">measured')[2].partition("</p>")[0]
    assert told, done.stderr
    facts: dict[str, Any] = json.loads(unescape(told))
    return facts


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_can_be_read(pages: Path, name: str, width: int, *, dark: bool) -> None:
    """Nothing is too wide, cut off, hard to read, on another text of a plot, or out of it."""
    facts = measured(pages / f"{name}.html", width, dark=dark)
    assert facts["told"] == []
    assert facts["plots"] > 0
    channels = [int(part) for part in facts["paper"][4:-1].split(",")]
    assert (max(channels) < 128) == dark


@pytest.mark.parametrize("name", PAGES)
def test_a_printed_page_is_on_white_and_as_wide_as_the_paper(pages: Path, name: str) -> None:
    """Also where the reader's browser is dark; the rules for print are those for everything here."""
    text = (pages / f"{name}.html").read_text(encoding="utf-8")
    printed = pages / f"printed-{name}.html"
    printed.write_text(text.replace("@media print", "@media all"), encoding="utf-8")
    facts = measured(printed, PAPER, dark=True)
    assert facts["told"] == []
    assert facts["paper"] == "rgb(255, 255, 255)"


@pytest.mark.parametrize("name", PAGES)
def test_everything_is_printed(pages: Path, name: str) -> None:
    """What a screen folds away is on paper, too; no page is empty; the verdict is on the first."""
    page, pdf = pages / f"{name}.html", pages / f"{name}.pdf"
    options = ["--headless", "--no-sandbox", "--disable-gpu"]
    words = [str(BROWSER), *options, f"--print-to-pdf={pdf}", page.as_uri()]
    subprocess.run(words, capture_output=True, timeout=120, check=True)
    sheets = [_words(each.extract_text()) for each in PdfReader(pdf).pages]
    assert all(sheets)
    text = page.read_text(encoding="utf-8")
    (title,) = re.findall(r"<h1[^>]*>(.+?)</h1>", text, re.DOTALL)
    assert _words(re.sub("<[^>]+>", "", title)) in sheets[0]
    folded = re.findall(r"<summary[^>]*>(.+?)</summary>", text, re.DOTALL)
    rows = re.findall(r"<td[^>]*>([^<]{6,})</td>", text)
    missing = [
        each for each in (*folded, *rows) if _words(re.sub("<[^>]+>", "", each)) not in "".join(sheets)
    ]
    assert missing == []


def _words(text: str) -> str:
    """Return a text without spaces, which lines of a page break elsewhere, and without ligatures."""
    return "".join(unicodedata.normalize("NFKC", unescape(text)).split())


@pytest.mark.parametrize(
    ("rule", "fault"),
    [
        ("main { width: 3000px; max-width: none }", "wide:"),
        ("p, td { color: #999 !important }", "contrast:"),
        ("h1 { width: 40px; overflow: hidden; white-space: nowrap }", "cut:"),
        ("svg text { font-size: 40px !important }", "overlap:"),
        ("svg text { transform: translateX(-2000px) }", "outside:"),
    ],
)
def test_a_broken_layout_is_seen(pages: Path, rule: str, fault: str) -> None:
    text = (pages / "verification.html").read_text(encoding="utf-8")
    broken = pages / "broken.html"
    broken.write_text(text.replace("</style>", f"{rule}</style>", 1), encoding="utf-8")
    assert any(told.startswith(fault) for told in measured(broken, 800)["told"])
