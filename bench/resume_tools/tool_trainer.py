"""Trainer of transformers: its own checkpoints and `resume_from_checkpoint`."""

from __future__ import annotations

import sys
from typing import Any

import torch
from rig import EPOCHS, SEED, Log, Model, Samples, options
from transformers import Trainer, TrainerCallback, TrainingArguments, set_seed


def collate(rows: list[Any]) -> dict[str, Any]:
    """A batch as the trainer wants it."""
    return {"rows": torch.stack(rows)}


class StopAt(TrainerCallback):
    """Ends a training after some steps, with a checkpoint."""

    def __init__(self, step: int) -> None:
        self._step = step

    def on_step_end(self, _args: Any, state: Any, control: Any, **_: Any) -> Any:
        """Called after each step."""
        if state.global_step == self._step:
            control.should_save = control.should_training_stop = True
        return control


class Logged(Trainer):
    """Notes what reaches the loss."""

    log_file: Log

    def compute_loss(self, model: Any, inputs: Any, *arguments: Any, **named: Any) -> Any:
        """Torch's default collation made one tensor of the rows."""
        self.log_file.step(inputs["rows"])
        return super().compute_loss(model, inputs, *arguments, **named)


def main() -> None:
    """Train, stop or resume."""
    chosen = options()
    if chosen.start != "fork":
        sys.exit("the trainer has no setting for how workers are started")
    log = Log(chosen)
    settings = TrainingArguments(
        output_dir=str(chosen.state), num_train_epochs=EPOCHS, per_device_train_batch_size=chosen.batch,
        seed=SEED, save_strategy="no", report_to=[], disable_tqdm=True, use_cpu=True,
        dataloader_num_workers=chosen.workers, optim="sgd", learning_rate=0.05,
        dataloader_prefetch_factor=chosen.prefetch if chosen.workers else None,
        dataloader_persistent_workers=chosen.persistent, remove_unused_columns=False,
        dataloader_pin_memory=False, logging_strategy="no",
    )  # fmt: skip
    set_seed(SEED)
    model = Model()
    trainer = Logged(
        model, settings, train_dataset=Samples(), callbacks=[StopAt(chosen.stop)],
        data_collator=collate,
    )  # fmt: skip
    trainer.log_file = log
    trainer.train(resume_from_checkpoint=True if chosen.resume else None)
    if not chosen.stop:
        log.end(model)


if __name__ == "__main__":
    main()
