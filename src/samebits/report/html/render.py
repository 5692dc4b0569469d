"""Renders a page: every text is made printable and escaped, and the page may execute and load nothing."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from samebits._runtime.package import __version__
from samebits._text.printable import printable, shortened

if TYPE_CHECKING:
    import jinja2

    from samebits.report.html.document import Page

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
_CODE = re.compile(r"`([^`]+)`")
# A line may end after these, and within a digest, but not within a number.
_JOINTS = re.compile(r"(?<=[/._:,=-])(?=[^\s/._:,=-])")
_NUMBERS = re.compile(r"(?<!\w)[+-]?\d+(?:[.,]\d+)*(?:e[+-]?\d+)?(?!\w)")
_DIGESTS = re.compile(r"[0-9a-f]{32,}")
_DIGEST_PART = 16


def render(page: Page) -> str:
    """Return the page as HTML.

    A record may come from a stranger and hold any text. Jinja escapes each, control characters and what turns
    the direction of text are shown as escape sequences, and the page's Content-Security-Policy forbids
    scripts, forms and whatever would be loaded.

    Args:
        page: what it shows.
    """
    environment = _environment()
    style = environment.get_template("style.css").render()
    template = environment.get_template("page.html")
    return template.render(page=page, policy=_POLICY, style=_trusted(style), version=__version__)


def _environment() -> jinja2.Environment:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("samebits.report.html"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    environment.filters["drawing"] = _trusted
    environment.filters["breakable"] = _breakable
    return environment


def _shown(value: Any) -> Any:
    """Make a text harmless before it is escaped; markup of our own stays."""
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return printable(shortened(value))
    return value


def _trusted(markup: str) -> Any:
    """Mark what our own code has made, and matplotlib has escaped, as markup."""
    import markupsafe

    return markupsafe.Markup(markup)  # noqa: S704 - see above


def _breakable(text: str) -> Any:
    """Return a text, escaped, with code between backticks as such; names may break at a joint."""
    import markupsafe

    parts = []
    for number, part in enumerate(_CODE.split(printable(shortened(text)))):
        broken = markupsafe.Markup("<wbr>").join(_unbroken(part))
        parts.append(markupsafe.Markup("<code>{}</code>").format(broken) if number % 2 else broken)
    return markupsafe.Markup("").join(parts)


def _unbroken(text: str) -> list[str]:
    """Return the parts of a text between which a line may end."""
    within = {at for found in _NUMBERS.finditer(text) for at in range(found.start() + 1, found.end())}
    places = {found.start() for found in _JOINTS.finditer(text)} - within
    for found in _DIGESTS.finditer(text):
        places.update(range(found.start() + _DIGEST_PART, found.end(), _DIGEST_PART))
    ends = [0, *sorted(places), len(text)]
    return [text[start:end] for start, end in pairwise(ends)]
