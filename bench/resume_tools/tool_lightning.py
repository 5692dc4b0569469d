"""Lightning: `seed_everything(workers=True)`, its own checkpoints and `ckpt_path`."""

from __future__ import annotations

import logging
import os
import warnings
from typing import TYPE_CHECKING, Any

import lightning
from rig import EPOCHS, SEED, Log, Model, Samples, optimizer_of, options, worker_options
from torch.utils.data import DataLoader

if TYPE_CHECKING:
    from pathlib import Path


class Module(lightning.LightningModule):
    """The model of the rig."""

    def __init__(self, log: Log) -> None:
        super().__init__()
        self.model, self.rows = Model(), log

    def training_step(self, rows: Any, _number: int) -> Any:
        """One batch."""
        self.rows.step(rows)
        return self.model(rows)["loss"]

    def configure_optimizers(self) -> Any:
        """SGD with momentum."""
        return optimizer_of(self.model)


class StopAt(lightning.Callback):
    """Saves after some steps and ends the process, as a kill would."""

    def __init__(self, step: int, file: Path) -> None:
        self._step, self._file = step, file

    def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
        """Called after each step."""
        if trainer.global_step == self._step:
            trainer.save_checkpoint(self._file)
            os._exit(0)


def main() -> None:
    """Train, stop or resume."""
    warnings.simplefilter("ignore")
    logging.getLogger("lightning").setLevel(logging.ERROR)
    chosen = options()
    lightning.seed_everything(SEED, workers=True, verbose=False)
    module = Module(Log(chosen))
    loader = DataLoader(Samples(), chosen.batch, shuffle=True, **worker_options(chosen))
    file = chosen.state / "last.ckpt"
    trainer = lightning.Trainer(
        max_epochs=EPOCHS, callbacks=[StopAt(chosen.stop, file)], accelerator="cpu",
        devices=chosen.world_size, strategy="ddp" if chosen.world_size > 1 else "auto",
        logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, default_root_dir=str(chosen.state),
    )  # fmt: skip
    trainer.fit(module, loader, ckpt_path=str(file) if chosen.resume else None)
    module.rows.end(module.model)


if __name__ == "__main__":
    main()
