"""The site of the documentation: where messages lead to, and llms.txt."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import samebits
from samebits import errors
from samebits.report.messages import read_entries

pytest.importorskip("sphinx_llms_txt")
ROOT = Path(__file__).parents[2]
ADDRESS = f"https://docs.example.org/samebits/{samebits.__version__}"


class Anchors(HTMLParser):
    """Collects the ids of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """See an element."""
        self.ids += [value for name, value in attrs if name == "id" and value]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the metadata of a package whose documentation has an address."""
    folder = tmp_path_factory.mktemp("published")
    metadata = folder / f"samebits-{samebits.__version__}.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text(
        f"Metadata-Version: 2.4\nName: samebits\nVersion: {samebits.__version__}\n"
        f"Project-URL: Source, https://code.example.org/samebits\nProject-URL: Documentation, {ADDRESS}/\n"
    )
    return folder


@pytest.fixture(scope="module")
def site(published: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built for that address."""
    folder = tmp_path_factory.mktemp("site")
    subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html", ROOT / "docs", folder],
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(published), str(ROOT / "src")))},
        check=True,
    )
    return folder


def test_each_message_leads_to_its_entry_on_the_site(published, site, monkeypatch):
    monkeypatch.syspath_prepend(published)
    entries = read_entries()
    assert entries
    for slug in entries:
        address = errors.pointer(slug).removeprefix("see ").split(",")[0]
        page, _, anchor = address.removeprefix(f"{ADDRESS}/").partition("#")
        assert anchor == slug
        assert anchor in Anchors((site / page).read_text(encoding="utf-8")).ids


def test_the_site_is_that_of_this_version(site):
    page = (site / "reference/messages.html").read_text(encoding="utf-8")

    assert f"samebits {samebits.__version__}</title>" in page
    assert f'<link rel="canonical" href="{ADDRESS}/reference/messages.html"' in page


def test_the_list_for_language_models_has_every_page(site):
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}

    text = (site / "llms.txt").read_text(encoding="utf-8")

    assert text.startswith("# samebits\n\n> samebits runs a PyTorch script twice")
    links = re.findall(r"^- \[([^\]]+)\]\((.+)\)", text, flags=re.MULTILINE)
    copies = {address.removeprefix(f"{ADDRESS}/_sources/") for _, address in links}
    assert copies == {f"{page}.txt" for page in pages}
    for title, address in links:
        copy = (site / address.removeprefix(f"{ADDRESS}/")).read_text(encoding="utf-8")
        assert f"# {title}\n" in copy.replace("`", "")
