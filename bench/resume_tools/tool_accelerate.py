"""accelerate: `prepare`, `save_state`, `load_state` and `skip_first_batches`, with its defaults."""

from __future__ import annotations

from accelerate import Accelerator
from accelerate.utils import set_seed
from rig import EPOCHS, SEED, Log, Model, Samples, optimizer_of, options, worker_options
from torch.utils.data import DataLoader


def main() -> None:
    """Train, stop or resume."""
    chosen = options()
    accelerator = Accelerator(cpu=True)
    set_seed(SEED)
    model, log = Model(), Log(chosen)
    loader = DataLoader(Samples(), chosen.batch, shuffle=True, **worker_options(chosen))
    prepared, optimizer, loader = accelerator.prepare(model, optimizer_of(model), loader)
    done, file = 0, chosen.state / "step.txt"
    if chosen.resume:
        accelerator.load_state(str(chosen.state))
        done = int(file.read_text())
    first = done // len(loader)
    for epoch in range(first, EPOCHS):
        loader.set_epoch(epoch)
        batches = loader
        if epoch == first and done % len(loader):
            batches = accelerator.skip_first_batches(loader, done % len(loader))
        for rows in batches:
            log.step(rows)
            optimizer.zero_grad()
            accelerator.backward(prepared(rows)["loss"])
            optimizer.step()
            done += 1
            if done == chosen.stop:
                accelerator.save_state(str(chosen.state))
                file.write_text(str(done))
                return
    log.end(model)


if __name__ == "__main__":
    main()
