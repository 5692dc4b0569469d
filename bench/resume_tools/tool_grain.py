"""Grain: `MapDataset` with `random_map` and its own generator, whose position it saves; torch trains.

Draws are of the generator that Grain hands to `random_map`: it keys no other.
"""

from __future__ import annotations

import json
from typing import Any

import grain
import numpy as np
import torch
from rig import (
    EPOCHS,
    N_SAMPLES,
    RANGE,
    SEED,
    Log,
    Model,
    optimizer_of,
    options,
    rng_states,
    seed_everything,
    set_rng_states,
)


class Draw(grain.transforms.RandomMap):
    """Sample `i` and three draws."""

    def random_map(self, element: int, rng: np.random.Generator) -> Any:
        """As `Samples` of the rig, from Grain's generator."""
        return np.array([element, *rng.integers(RANGE, size=3)])


def main() -> None:
    """Train, stop or resume."""
    chosen = options()
    seed_everything()
    model, log = Model(), Log(chosen)
    optimizer = optimizer_of(model)
    data = grain.MapDataset.source(range(N_SAMPLES)).seed(SEED).shuffle().repeat(EPOCHS).random_map(Draw())
    data = data[chosen.rank :: chosen.world_size].batch(chosen.batch).to_iter_dataset()
    if chosen.workers:
        data = data.mp_prefetch(
            grain.multiprocessing.MultiprocessingOptions(
                num_workers=chosen.workers, per_worker_buffer_size=chosen.prefetch
            )
        )
    iterator, done = iter(data), 0
    file = chosen.state / f"last-{chosen.rank}.pt"
    if chosen.resume:
        states = torch.load(file, weights_only=False)
        model.load_state_dict(states["model"])
        optimizer.load_state_dict(states["optimizer"])
        iterator.set_state(json.loads(states["data"]))
        set_rng_states(states["rng"])
        done = states["step"]
    for rows in iterator:
        batch = torch.from_numpy(rows)
        log.step(batch)
        optimizer.zero_grad()
        model(batch)["loss"].backward()
        optimizer.step()
        done += 1
        if done == chosen.stop:
            saved = {
                "model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": done,
                "data": json.dumps(iterator.get_state()), "rng": rng_states(),
            }  # fmt: skip
            torch.save(saved, file)
            return
    log.end(model)


if __name__ == "__main__":
    main()
