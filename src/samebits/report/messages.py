"""The entries of docs/reference/messages.md, which explain each error message, on a terminal."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from samebits.errors import SamebitsError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from samebits.report.style import Style

_PACKAGE = Path(__file__).parents[1]
# An installed package contains the page (setup.py); a checkout has it in docs/.
_PATHS = (_PACKAGE / "messages.md", _PACKAGE.parents[1] / "docs" / "reference" / "messages.md")
_ENTRY = re.compile(r"^## ([a-z0-9-]+)$", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]+)\]\(([^)]+)\)")


def read_entries() -> dict[str, str]:
    """Return every slug with its text in Markdown.

    Raises:
        SamebitsError: the page is missing from this installation; `explain-missing`.
    """
    page = next((path for path in _PATHS if path.is_file()), None)
    if page is None:
        message = (
            f"the page of messages is missing from this installation ({_PATHS[0]}); install samebits again"
        )
        raise SamebitsError(message, slug="explain-missing")
    parts = _ENTRY.split(page.read_text(encoding="utf-8"))
    return {slug: text.strip() for slug, text in zip(parts[1::2], parts[2::2], strict=True)}


def render_entry(slug: str, text: str, style: Style) -> str:
    """Return one entry, wrapped to the width of the terminal.

    Args:
        slug: of the entry.
        text: its Markdown.
        style: width and colour.
    """
    lines = [style.paint(slug, "bold")]
    for paragraph in text.split("\n\n"):
        lines += ["", *_set(paragraph, style)]
    return "\n".join(lines)


def render_slugs(entries: Mapping[str, str], style: Style) -> str:
    """Return the list of slugs, each with the first sentence of its entry."""
    width = max(map(len, entries)) + 2
    lines = []
    for slug, text in entries.items():
        first = _plain(text.split("\n\n", 1)[0]).split(". ", 1)[0].rstrip(".")
        wrapped = style.wrap(first, indent=width)
        lines += [f"{slug:{width}}{wrapped[0][width:]}", *wrapped[1:]]
    return "\n".join(lines)


def _set(paragraph: str, style: Style) -> list[str]:
    """Wrap a paragraph; code, tables and lists keep their lines."""
    if paragraph.startswith(("```", "|", "- ", "    ")):
        return [line for line in paragraph.splitlines() if not line.startswith("```")]
    return style.wrap(_plain(paragraph))


def _plain(markdown: str) -> str:
    """Return one line of text: links become their words, with the address if it is not a page of samebits."""
    text = _LINK.sub(lambda link: link[1] if "://" not in link[2] else f"{link[1]} ({link[2]})", markdown)
    return " ".join(text.replace("\\*", "*").split())
