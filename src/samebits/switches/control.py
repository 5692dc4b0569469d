"""What is asked for: the seed and the switches of one run."""

from __future__ import annotations

from typing import Any, NamedTuple

LEFT_ALONE = "leave"


class Control(NamedTuple):
    """How a run is controlled.

    Args:
        seed: from 0 to 2**64 - 1; None leaves all RNG sources alone.
        per_rank: each process of a distributed run gets a seed of its own, from `seed` and its rank.
        switches: (name, value) of those that are not to have the table's own value; the value `leave` leaves
            a switch alone and does not watch it.
        all_switches: False touches only the switches that `switches` names.
        on_drift: what happens when a switch or an RNG source is changed later: `warn`, `error`, `restore`
            (set it again, and warn) or `ignore`.
        workers: seed DataLoader workers, and keep loaders from drawing from the main process's generators.
        reseed: seeds that the script sets itself follow from `seed` too; else they are the script's.
        scope: the part of the run that this process is, in processes that the run starts; samebits' own.
        sources: names of the only RNG sources that are seeded, with what is made without a seed in their
            libraries; None is all. For interventions (docs/reference/interventions.md), with `workers=False`.
        pins: names of interventions that replace something inside the process (`determinism.pins`).
        keyed_samples: what is drawn while a sample is loaded follows from the sample, not from the worker.
        portable: every op has its portable values (`samebits.portable`); who runs the script sees to that.
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
        """Whether the RNG source of that name is to be seeded, if there is a seed."""
        return self.sources is None or source in self.sources

    def to_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return self._asdict()

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Control:
        """Read what `to_dict` wrote, also after it went through JSON."""
        switches = tuple((str(name), str(value)) for name, value in fields["switches"])
        read = {"switches": switches, "scope": tuple(fields.get("scope", ()))}
        if fields.get("sources") is not None:
            read["sources"] = tuple(fields["sources"])
        return cls(**{**fields, **read, "pins": tuple(fields.get("pins", ()))})
