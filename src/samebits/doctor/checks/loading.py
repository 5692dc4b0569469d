"""What torch itself cannot resume."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits.doctor.threat import NOTE, Threat

if TYPE_CHECKING:
    from collections.abc import Iterable

    from samebits.doctor.surroundings import Surroundings

_SOURCE = "measured, torch 2.15.0; torch/utils/data/_utils/worker.py"


def loader_position(here: Surroundings) -> Iterable[Threat]:
    """A DataLoader can be continued where it stood."""
    if here.torch.version:
        yield Threat(
            "resumable",
            "DataLoader",
            "torch's DataLoader has no position that a checkpoint could hold",
            "It has no `state_dict`, and prefetching runs ahead of the optimizer; pytorch#36650 asks for it "
            "since 2020.",
            "resume at epoch ends, with generator= given and its state saved",
            "torch 2.15.0, measured; pytorch#36650",
            NOTE,
        )


def worker_draws(here: Surroundings) -> Iterable[Threat]:
    """Random numbers in DataLoader workers do not depend on how many there are."""
    if here.torch.version:
        yield Threat(
            "resumable",
            "workers",
            "random draws in DataLoader workers change with num_workers",
            "A worker is seeded with a number drawn from the main generator plus its own: from 2 workers "
            "to 4, 16 of 64 draws stay; and two ranks with one seed draw the same.",
            "keep num_workers, or seed by the index of the sample",
            _SOURCE,
            NOTE,
        )


def worker_threads(here: Surroundings) -> Iterable[Threat]:
    """Computing in a worker gives what computing in the main process gives."""
    if here.torch.threads > 1:
        yield Threat(
            "resumable",
            "worker threads",
            f"workers compute with 1 thread, the main process with {here.torch.threads}",
            "So num_workers=0 and num_workers=1 give other bits, without anything random: 1 of 4 sums "
            "differed.",
            "export OMP_NUM_THREADS=1, or keep num_workers above 0",
            _SOURCE,
            NOTE,
        )
