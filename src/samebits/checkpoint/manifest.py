"""Whether the manifest of a sharded checkpoint has the form of one: it may come from anyone."""

from __future__ import annotations

import re
from typing import Any

# Files of the folder itself, or of its shards: no name leads to another place.
_FILE = re.compile(r"(?:shards/)?[A-Za-z0-9][A-Za-z0-9_.\-]{0,200}")
_MOST_RANKS = 1 << 24
_MOST_DIMENSIONS = 64


def is_manifest(fields: dict[str, Any]) -> bool:
    """Whether all that is read of a manifest has the type that it must have."""
    size = fields.get("world_size")
    return (
        type(size) is int
        and 0 < size <= _MOST_RANKS
        and type(fields.get("values_apart")) is bool
        and all(_is_text_list(fields.get(name)) for name in ("own", "apart"))
        and _is_mapping(fields.get("files"), _is_file)
        and _is_mapping(fields.get("shapes"), _is_shape)
        and all(_FILE.fullmatch(name) for name in fields["files"])
    )


def _is_text_list(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def _is_mapping(value: Any, holds: Any) -> bool:
    return isinstance(value, dict) and all(map(holds, value.values()))


def _is_file(facts: Any) -> bool:
    """Length and digest."""
    return isinstance(facts, list) and len(facts) == 2 and type(facts[0]) is int and isinstance(facts[1], str)


def _is_shape(facts: Any) -> bool:
    """Sizes and dtype."""
    if not (isinstance(facts, list) and len(facts) == 2 and isinstance(facts[0], list)):
        return False
    sizes = facts[0]
    return (
        len(sizes) <= _MOST_DIMENSIONS
        and all(type(size) is int and size >= 0 for size in sizes)
        and isinstance(facts[1], str)
    )
