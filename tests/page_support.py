"""Reads a page as a browser would, and tells what is wrong with it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "wbr", "br", "hr", "img", "input", "link"}
ALLOWED = {
    "html", "head", "meta", "title", "style", "body", "a", "header", "h1", "h2", "main", "section", "p",
    "strong", "dl", "div", "dt", "dd", "wbr", "code", "figure", "figcaption", "pre", "table", "caption",
    "thead", "tbody", "tr", "th", "td", "ul", "li", "details", "summary", "footer",
    "svg", "g", "path", "text", "defs", "use", "clippath", "rect", "tspan",
}  # fmt: skip
# Names of XML namespaces are no addresses that anything loads.
NAMESPACES = ("http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink")


@dataclass
class Reading(HTMLParser):
    """What a page holds.

    Args:
        text: all text outside `style`, as a reader sees it.
        complaints: whatever a page must not have.
        tags: how often each element comes.
        idents: every `id`.
        values: of all attributes.
    """

    text: str = ""
    complaints: list[str] = field(default_factory=list)
    tags: dict[str, int] = field(default_factory=dict)
    idents: list[str] = field(default_factory=list)
    values: list[str] = field(default_factory=list)
    references: list[str] = field(default_factory=list)
    policy: str = ""
    _open: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element and its attributes."""
        self.tags[tag] = self.tags.get(tag, 0) + 1
        if tag not in ALLOWED:
            self.complaints.append(f"<{tag}>")
        for name, value in attrs:
            self._attribute(tag, name, value or "")
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element of SVG that is closed at once."""
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self._open.pop()

    def _attribute(self, tag: str, name: str, value: str) -> None:
        self.values.append(value)
        if name.startswith("on") or name in ("src", "srcdoc", "action", "formaction", "background"):
            self.complaints.append(f"<{tag} {name}>")
        if name in ("href", "xlink:href"):
            self.references.append(value)
            if not value.startswith("#"):
                self.complaints.append(f"<{tag} {name}={value!r}>")
        if name == "id":
            self.idents.append(value)
        if name == "content" and "default-src" in value:
            self.policy = value
        if "://" in value and value not in NAMESPACES and name in ("style", "href", "src", "xmlns"):
            self.complaints.append(f"{name}={value!r}")

    def handle_endtag(self, tag: str) -> None:
        """Check that it closes the element that was opened last."""
        if not self._open or self._open.pop() != tag:
            self.complaints.append(f"</{tag}> closes nothing")

    def handle_data(self, data: str) -> None:
        """Collect text; styles may load nothing."""
        if self._open[-1:] == ["style"]:
            if re.search(r"url\(|@import|expression", data):
                self.complaints.append("a style loads something")
        else:
            self.text += data

    @property
    def words(self) -> str:
        """The text, with one space between words."""
        return " ".join(self.text.split())


def read_page(page: str) -> Reading:
    """Read a page, and check what holds for every page."""
    reading = Reading()
    reading.feed(page)
    reading.close()
    if reading._open:
        reading.complaints.append(f"never closed: {reading._open}")
    if len(set(reading.idents)) != len(reading.idents):
        reading.complaints.append("an id comes twice")
    links = [*reading.references, *re.findall(r"url\((#[^)]+)\)", " ".join(reading.values))]
    lost = [link for link in links if link[1:] not in reading.idents]
    if lost:
        reading.complaints.append(f"links that lead nowhere: {lost[:3]}")
    if not page.lstrip().startswith("<!DOCTYPE html>") or "default-src 'none'" not in reading.policy:
        reading.complaints.append("no doctype or no policy")
    if "script-src" in reading.policy or "unsafe-eval" in reading.policy:
        reading.complaints.append("the policy lets scripts run")
    return reading
