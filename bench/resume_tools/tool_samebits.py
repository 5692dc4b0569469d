"""samebits: its loader and its checkpoint in a plain training loop."""

from __future__ import annotations

from rig import EPOCHS, SEED, Log, Model, Samples, optimizer_of, options, worker_options

import samebits
from samebits import checkpoint


def main() -> None:
    """Train, stop or resume."""
    chosen = options()
    samebits.seed_all(SEED)
    model, log = Model(), Log(chosen)
    optimizer = optimizer_of(model)
    loader = samebits.DataLoader(
        Samples(), chosen.batch, shuffle=True, world_size=chosen.world_size, rank=chosen.rank,
        **worker_options(chosen),
    )  # fmt: skip
    file = chosen.state / "last.safetensors"
    done = first = 0
    if chosen.resume:
        loaded = checkpoint.load(file, model=model, optimizer=optimizer, loader=loader)
        done, first = loaded.step, loaded.epoch
    for epoch in range(first, EPOCHS):
        for rows in loader:
            log.step(rows)
            optimizer.zero_grad()
            model(rows)["loss"].backward()
            optimizer.step()
            done += 1
            if done == chosen.stop:
                if chosen.rank == 0:
                    checkpoint.save(
                        file, model=model, optimizer=optimizer, loader=loader, step=done, epoch=epoch
                    )
                return
    log.end(model)


if __name__ == "__main__":
    main()
