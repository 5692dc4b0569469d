"""The request for control: the seed and the switches of one run."""

from __future__ import annotations

from typing import Any, NamedTuple

LEFT_ALONE = "leave"


class Control(NamedTuple):
    """The control of one run.

    Args:
        seed: from 0 to 2**64 - 1; None leaves all RNG sources alone.
        per_rank: each process of a distributed run gets a seed of its own, from `seed` and its rank.
        switches: (name, value) of those that differ from the table; `leave` neither sets nor watches the
            switch.
        all_switches: False touches only the switches that `switches` names.
        on_drift: what happens when a switch or an RNG source is changed later: `warn`, `error`, `restore`
            (set it again, and warn) or `ignore`.
        workers: seed DataLoader workers, and keep loaders from drawing from the main process's generators.
        reseed: seeds that the script sets are derived from `seed` too; otherwise they stay the script's.
        scope: names this process among those that the run starts; set by samebits only.
        sources: the RNG sources to seed, with the generators that their libraries make without a seed; None
            is all. Used by interventions (docs/reference/interventions.md), with `workers=False`.
        pins: names of interventions that replace something inside the process (`interventions`).
        keyed_samples: random numbers drawn while a sample is loaded depend on the sample, not on the worker.
        portable: every op gives portable values (`samebits.portable`); the runner of the script sees to it.
    """

    seed: int | None = None
    per_rank: bool = False
    switches: tuple[tuple[str, str], ...] = ()
    all_switches: bool = True
    on_drift: str = "warn"
    workers: bool = True
    reseed: bool = False
    scope: tuple[int | str, ...] = ()
    sources: tuple[str, ...] | None = None
    pins: tuple[str, ...] = ()
    keyed_samples: bool = False
    portable: bool = False

    def seeds(self, source: str) -> bool:
        """Tell whether the RNG source of that name is seeded when there is a seed."""
        return self.sources is None or source in self.sources

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON can hold them."""
        return self._asdict()

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Control:
        """Read what `to_dict` wrote, also after it went through JSON."""
        switches = tuple((str(name), str(value)) for name, value in fields["switches"])
        read = {"switches": switches, "scope": tuple(fields.get("scope", ()))}
        if fields.get("sources") is not None:
            read["sources"] = tuple(fields["sources"])
        return cls(**{**fields, **read, "pins": tuple(fields.get("pins", ()))})
