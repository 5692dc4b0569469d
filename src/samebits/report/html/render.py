"""Renders a page: every text is made printable and escaped, and the page may execute and load nothing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from samebits._runtime.package import __version__
from samebits._text.printable import printable, shortened

if TYPE_CHECKING:
    import jinja2

    from samebits.report.html.document import Page

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
_CODE = re.compile(r"`([^`]+)`")
# A long path or name breaks after these.
_BREAKS = re.compile(r"(?<=[/._:,=-])(?=[^\s/._:,=-])")


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
        broken = markupsafe.Markup("<wbr>").join(_BREAKS.split(part))
        parts.append(markupsafe.Markup("<code>{}</code>").format(broken) if number % 2 else broken)
    return markupsafe.Markup("").join(parts)
