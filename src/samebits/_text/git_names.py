"""Names of files as git writes them in a diff."""

from __future__ import annotations

import re

_TO_QUOTE = re.compile(r'[\x00-\x1f\x7f"\\]')


def quoted_in_diff(name: str) -> str:
    """Return a name as git writes it in a diff: one that would end its line early is quoted as C does."""
    if not _TO_QUOTE.search(name):
        return name
    quoted = _TO_QUOTE.sub(
        lambda match: f"\\{match[0]}" if match[0] in '"\\' else f"\\{ord(match[0]):03o}", name
    )
    return f'"{quoted}"'
