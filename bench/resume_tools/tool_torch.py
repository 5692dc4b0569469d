"""Plain torch, used with care.

Seeds, a sampler that knows ranks and epochs, a generator for the loader, all RNG states saved and put back
after the skip.
"""

from __future__ import annotations

import torch
from rig import (
    EPOCHS,
    SEED,
    Log,
    Model,
    Samples,
    optimizer_of,
    options,
    rng_states,
    seed_everything,
    set_rng_states,
    worker_options,
)
from torch.utils.data import DataLoader, DistributedSampler


def main() -> None:
    """Train, stop or resume."""
    chosen = options()
    seed_everything()
    model, log = Model(), Log(chosen)
    optimizer = optimizer_of(model)
    generator, dataset = torch.Generator().manual_seed(SEED), Samples()
    sampler = DistributedSampler(dataset, chosen.world_size, chosen.rank, seed=SEED)
    loader = DataLoader(dataset, chosen.batch, sampler=sampler, generator=generator, **worker_options(chosen))
    file, done = chosen.state / f"last-{chosen.rank}.pt", 0
    states = None
    if chosen.resume:
        states = torch.load(file, weights_only=False)
        model.load_state_dict(states["model"])
        optimizer.load_state_dict(states["optimizer"])
        generator.set_state(states["generator"])
        done = states["step"]
    for epoch in range(done // len(loader), EPOCHS):
        sampler.set_epoch(epoch)
        at_start = generator.get_state()
        iterator, first = iter(loader), done % len(loader)
        for _ in range(first):
            next(iterator)
        if states is not None:  # after the iterator is made and the skip is done: both draw
            set_rng_states(states["rng"])
            states = None
        for number, rows in enumerate(iterator, first):
            log.step(rows)
            optimizer.zero_grad()
            model(rows)["loss"].backward()
            optimizer.step()
            done = epoch * len(loader) + number + 1
            if done == chosen.stop:
                ended = number + 1 == len(loader)
                saved = {
                    "model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": done,
                    "generator": generator.get_state() if ended else at_start, "rng": rng_states(),
                }  # fmt: skip
                torch.save(saved, file)
                return
    log.end(model)


if __name__ == "__main__":
    main()
