"""Which seeds are asked for: `0..9`, `0,3,7`, `5`."""

from __future__ import annotations

from samebits.determinism.seeds import check_seed
from samebits.errors import SamebitsError

_MOST = 10_000


def parse_seeds(text: str) -> tuple[int, ...]:
    """The seeds in a text, in order.

    Args:
        text: whole numbers and ranges, both ends included, separated by commas: `0..9`, `0,3,7`, `0..4,100`.

    Raises:
        SamebitsError: anything else, a seed twice, or more than 10 000 seeds; `seeds` or `seed`.
    """
    seeds: list[int] = []
    for part in text.split(","):
        first, dots, last = part.strip().partition("..")
        low, high = _whole(first, text), _whole(last if dots else first, text)
        if high < low:
            raise _refused(text, f"{part.strip()} runs backwards")
        if high - low >= _MOST or len(seeds) + high - low >= _MOST:
            raise _refused(text, f"more than {_MOST} seeds")
        seeds += range(low, high + 1)
    twice = sorted({seed for seed in seeds if seeds.count(seed) > 1}) if len(set(seeds)) < len(seeds) else []
    if twice:
        raise _refused(text, f"seed {twice[0]} is there twice")
    return tuple(seeds)


def seeds_text(seeds: tuple[int, ...]) -> str:
    """The shortest form that `parse_seeds` reads."""
    parts: list[list[int]] = []
    for seed in seeds:
        if parts and seed == parts[-1][-1] + 1:
            parts[-1].append(seed)
        else:
            parts.append([seed])
    return ",".join(f"{part[0]}..{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts)


def _whole(text: str, given: str) -> int:
    text = text.strip()
    if not (text.isascii() and text.isdigit()):
        raise _refused(given, f"{text!r} is no whole number")
    return check_seed(int(text))


def _refused(text: str, why: str) -> SamebitsError:
    message = f"the seeds are {text!r}: {why}; expected seeds such as 0..9 or 0,3,7"
    return SamebitsError(message, slug="seeds")
