"""Values of switches: text as a user types it, and what torch holds."""

from __future__ import annotations

import re
from typing import Any

MIXED = "mixed"  # torch refuses to read it: its legacy and its new precision settings contradict each other
# Kinds of values: what is accepted, and how an error says so.
KINDS = {
    "switch": (r"on|off", "`on` or `off`"),
    "reduction": (r"(on|off)(,no-split-k)?", "`on` or `off`, or one of them with `,no-split-k`"),
    "count": (r"[1-9]\d*", "a whole number from 1"),
    "limit": (r"\d+", "a whole number from 0"),
    "optional": (r"none|\d+", "`none` or a whole number"),
    "order": (r"\d+(,\d+)*", "numbers of back ends, such as `1,2,0,3,4`"),
    "precision": (r"none|ieee|tf32|bf16", "`none`, `ieee`, `tf32` or `bf16`"),
    "matmul": (r"highest|high|medium", "`highest`, `high` or `medium`"),
    "word": (r"[a-z0-9_]+", "one word in small letters"),
    "names": (r"none|[a-z0-9_:]+(,[a-z0-9_:]+)*", "`none` or names with commas between them"),
}
ANYTHING = (r".*", "text")


def unfit(kind: tuple[str, str], value: str) -> str:
    """What is expected instead of that value; empty when it fits the kind."""
    pattern, expected = kind
    return "" if re.fullmatch(pattern, value) else expected


def as_text(raw: Any) -> str:
    """A value as a user would type it."""
    if isinstance(raw, bool):
        return "on" if raw else "off"
    if raw is None:
        return "none"
    if isinstance(raw, tuple):  # reduced precision, split-K
        return as_text(raw[0]) + ("" if raw[1] else ",no-split-k")
    if isinstance(raw, list):
        return ",".join(map(str, raw))
    name = getattr(raw, "name", None)  # an enumeration
    return str(raw) if name is None else str(name).lower()


def from_text(value: str, like: Any) -> Any:
    """The value of a text that `as_text` would give, of the type that the setting has now.

    Raises:
        ValueError: this build has no such choice.
    """
    if isinstance(like, tuple):
        first, _, second = value.partition(",")
        return first == "on", not second
    if isinstance(like, bool) and value not in {"on", "off"}:
        raise ValueError("expected `on` or `off`: this torch has no more to choose from")
    if value in {"on", "off"}:
        return value == "on"
    if isinstance(like, list):
        return [int(part) for part in value.split(",")]
    if hasattr(like, "name"):
        members = {name.lower(): member for name, member in type(like).__members__.items()}
        if value not in members:
            raise ValueError(f"expected one of {', '.join(sorted(members))}")
        return members[value]
    if value == "none" and not isinstance(like, str):
        return None
    return int(value) if value.isdecimal() else value
