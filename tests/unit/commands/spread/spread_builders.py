"""Runs as `samebits.commands.spread` sees them."""

from __future__ import annotations

from samebits.commands.spread._metrics import Series
from samebits.commands.spread.summary import Configuration, Seeding, SeedRun


def make_series(*values: float, name: str = "loss", source: str = "printed", last_place: int = 0) -> Series:
    """Values at positions from 1."""
    x = tuple(float(place) for place in range(1, len(values) + 1))
    return Series(name, source, "step", x, tuple(map(float, values)), last_place)


def make_run(seed: int, *series: Series, state: str | None = None, **fields: object) -> SeedRun:
    """A finished run; each seed ends in other bits unless told otherwise."""
    given = {
        "seconds": 1.0,
        "steps": 3,
        "threads": 1,
        "seedings": (),
        "saved": (),
        "files": (),
        **fields,
    }
    return SeedRun(seed=seed, state=f"state {seed}" if state is None else state, series=series, **given)


def make_configuration(*runs: SeedRun, **fields: object) -> Configuration:
    """Runs of one command."""
    given = {"command": ("train.py",), "folder": "/code/.samebits/spread/train-1", "threads": 1, **fields}
    return Configuration(runs=runs, **given)


def make_seeding(line: int = 3, call: str = "torch.manual_seed(7)") -> Seeding:
    """A call of the script."""
    return Seeding("/code/train.py", line, call)
