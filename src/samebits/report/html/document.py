"""What a page shows, as frozen values: text that is not escaped yet, tables, figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Tone = Literal["good", "bad", "unsure", "plain"]


@dataclass(frozen=True)
class Paragraph:
    """A paragraph.

    Args:
        text: of it.
        tone: `unsure` for a remark that a reader should not miss.
    """

    text: str
    tone: Tone = "plain"
    kind: Literal["paragraph"] = "paragraph"


@dataclass(frozen=True)
class Facts:
    """Names with their values.

    Args:
        rows: of each fact its name and its value.
    """

    rows: tuple[tuple[str, str], ...]
    kind: Literal["facts"] = "facts"


@dataclass(frozen=True)
class Items:
    """A list of sentences.

    Args:
        texts: its items.
        left_out: how many more there are.
    """

    texts: tuple[str, ...]
    left_out: int = 0
    kind: Literal["items"] = "items"


@dataclass(frozen=True)
class Table:
    """A table with a header row, whose first column names each row.

    Args:
        caption: what it shows.
        head: names of the columns.
        rows: as many cells each.
        numbers: positions of the columns whose cells are aligned right.
        folded: whether it is shown when a reader opens it; it is printed all the same.
        left_out: how many more rows there are.
    """

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: frozenset[int] = frozenset()
    folded: bool = False
    left_out: int = 0
    kind: Literal["table"] = "table"


@dataclass(frozen=True)
class CodeLine:
    """One line of code.

    Args:
        text: of it.
        change: `+` added, `-` removed, `@` where the next lines are; empty for a line as it is.
    """

    text: str
    change: Literal["+", "-", "@", ""] = ""


@dataclass(frozen=True)
class Code:
    """Lines of source, or a patch.

    Args:
        title: where they are.
        lines: of code.
    """

    title: str
    lines: tuple[CodeLine, ...]
    kind: Literal["code"] = "code"


@dataclass(frozen=True)
class Figure:
    """A drawing, once for wide pages and once for narrow ones.

    Args:
        ident: unique on the page, a word.
        title: what it shows, in a few words.
        alt: what can be seen in it, in sentences, for those who cannot see it.
        caption: how to read it.
        wide: SVG made by `samebits.report.html.svg`; empty where matplotlib is not installed.
        narrow: the same for a phone.
    """

    ident: str
    title: str
    alt: str
    caption: str
    wide: str
    narrow: str
    kind: Literal["figure"] = "figure"


Block: TypeAlias = "Paragraph | Facts | Items | Table | Code | Figure"


@dataclass(frozen=True)
class Section:
    """A part of a page under its own heading.

    Args:
        ident: unique on the page, a word.
        title: its heading.
        blocks: what it shows.
    """

    ident: str
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Page:
    """One page.

    Args:
        title: of the page.
        verdict: the answer in one or two words.
        tone: of the verdict.
        answer: the answer in a sentence.
        facts: what the page is about: command, records.
        sections: the rest.
    """

    title: str
    verdict: str
    tone: Tone
    answer: str
    facts: Facts
    sections: tuple[Section, ...]
