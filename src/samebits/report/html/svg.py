"""Drawings of matplotlib as SVG inside a page: colours of the page, its font, no names that clash.

A figure is drawn with the colours of `Ink`. They stand for CSS variables of the page, which replace them. So
one drawing serves light, dark and print.
"""

from __future__ import annotations

import importlib
import io
import math
import re
import warnings
from enum import Enum
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

if TYPE_CHECKING:
    from collections.abc import Callable

_SVG, _XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_URL = re.compile(r"url\(#([^)]+)\)")
_FONT = re.compile(r"font:\s*[^;]*?([\d.]+)px[^;]*;?")
_COLOUR = re.compile(r"#0101[0-9a-f]{2}", re.IGNORECASE)
_SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
WIDE, NARROW = 7.4, 3.4
"""Widths of figures in inches, at 96 CSS pixels each."""


class Ink(Enum):
    """The colours of figures: what matplotlib draws with, for a CSS variable of the page."""

    TEXT = "#010101"
    MUTED = "#010102"
    GRID = "#010103"
    FIRST = "#010104"
    SECOND = "#010105"
    LEVEL_1 = "#010111"
    LEVEL_2 = "#010112"
    LEVEL_3 = "#010113"
    LEVEL_4 = "#010114"
    PAPER = "#010120"

    @property
    def variable(self) -> str:
        """The name of its CSS variable."""
        return f"--{self.name.lower().replace('_', '-')}"


_STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "text.parse_math": False,  # a dollar in the name of a module begins no formula
    "font.size": 9,
    "text.color": Ink.TEXT.value,
    "axes.labelcolor": Ink.TEXT.value,
    "axes.edgecolor": Ink.MUTED.value,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "xtick.color": Ink.MUTED.value,
    "ytick.color": Ink.MUTED.value,
    "xtick.labelcolor": Ink.TEXT.value,
    "ytick.labelcolor": Ink.TEXT.value,
    "grid.color": Ink.GRID.value,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "figure.facecolor": "none",
}


def drawn(draw: Callable[[Any, float], None], ident: str, width: float, height: float) -> str:
    """Return a figure as an SVG element for a page.

    Args:
        draw: draws into a figure of matplotlib of that width in inches.
        ident: unique on the page, a word; ids in the element begin with it.
        width: in inches.
        height: in inches.
    """
    matplotlib = importlib.import_module("matplotlib")
    figures = importlib.import_module("matplotlib.figure")
    image = io.BytesIO()
    style = {**matplotlib.rcParamsDefault, "backend": matplotlib.rcParams["backend"], **_STYLE}
    with warnings.catch_warnings(), matplotlib.rc_context({**style, "svg.hashsalt": ident}):
        warnings.simplefilter("ignore")  # a character that the font of the measurement lacks
        figure = figures.Figure(figsize=(width, height), layout="constrained")
        draw(figure, width)
        metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(image, format="svg", metadata=metadata, transparent=True)
    return _for_page(image.getvalue(), ident)


def power_of_ten(value: float, _position: int) -> str:
    """Return the label `1` or `10⁶` of a logarithmic axis: matplotlib's own would be a formula."""
    exponent = round(math.log10(value))
    return "1" if exponent == 0 else "10" + str(exponent).translate(_SUPERSCRIPTS)


def _for_page(data: bytes, ident: str) -> str:
    """Return the SVG element with the page's colours and font, and with ids of its own."""
    root = ET.fromstring(data)  # noqa: S314 - matplotlib has just written it
    for parent in root.iter():
        for child in [each for each in parent if each.tag.endswith(("}metadata", "}style"))]:
            parent.remove(child)
        _rewrite(parent, ident)
    width, height = (float(number) for number in root.attrib["viewBox"].split()[2:])
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    root.set("style", f"aspect-ratio: {width:g} / {height:g}")
    root.set("aria-hidden", "true")  # the figure around it says what it shows
    root.set("focusable", "false")
    ET.register_namespace("", _SVG)
    ET.register_namespace("xlink", _XLINK)
    return ET.tostring(root, encoding="unicode")


def _rewrite(element: ET.Element, ident: str) -> None:
    for name, value in list(element.attrib.items()):
        if name == "id":
            element.set(name, f"{ident}-{value}")
        elif name == f"{{{_XLINK}}}href" and value.startswith("#"):
            del element.attrib[name]
            element.set("href", f"#{ident}-{value[1:]}")
        else:
            text = _URL.sub(rf"url(#{ident}-\1)", value)
            text = _FONT.sub(r"font-size: \1px;", text)
            element.set(name, _COLOUR.sub(_variable, text))


def _variable(match: re.Match[str]) -> str:
    return f"var({Ink(match[0].lower()).variable})"
