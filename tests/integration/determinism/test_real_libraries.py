"""Real libraries that change switches and generators behind the script's back: noticed, and named."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "unit" / "determinism"))
from control_support import line_of, run

IN_TIME = {"PYTHONHASHSEED": "0", "OMP_DYNAMIC": "FALSE", "MKL_DYNAMIC": "FALSE"}


def warned(result) -> list[str]:
    """The warnings of samebits; Lightning shows warnings without their category."""
    return [line for line in result.stderr.splitlines() if "SamebitsWarning" in line or " changed: " in line]


def needs(name):
    """Skip where that library is not installed."""
    return pytest.mark.skipif(importlib.util.find_spec(name) is None, reason=f"{name} is not installed")


@needs("transformers")
def test_transformers_turns_tf32_on_when_it_compiles(tmp_path):
    """`training_args.py` does so where the GPU has TF32 and the user chose nothing (5.23.0)."""
    result = run(
        tmp_path,
        """
        from samebits.determinism.context import deterministic
        control = deterministic(seed=0)
        import transformers.training_args as arguments
        arguments.is_torch_tf32_available = lambda: True  # what a GPU would say
        control.check()
        arguments.TrainingArguments(output_dir="out", torch_compile=True, use_cpu=True)
        print(sorted(drift.what for drift in control.check()))
        """,
        **IN_TIME,
    )
    line = line_of(tmp_path, "arguments.TrainingArguments(")

    assert "fp32-cuda-matmul" in result.stdout, result.stderr
    told = [text for text in warned(result) if "fp32-cuda-matmul changed: none -> tf32" in text]
    assert len(told) == 1
    assert f"script.py:{line} (through " in told[0]
    assert "transformers" in told[0].split("through")[1]


@needs("transformers")
def test_the_trainer_of_transformers_runs_under_control(tmp_path):
    result = run(
        tmp_path,
        """
        import torch
        from samebits.determinism.context import deterministic
        control = deterministic(seed=42)
        from transformers import Trainer, TrainingArguments
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = torch.nn.Linear(4, 1)
            def forward(self, x, labels=None):
                out = self.layer(torch.nn.functional.dropout(x))
                return {"loss": (out - labels).square().mean(), "logits": out}
        data = [{"x": torch.randn(4), "labels": torch.randn(1)} for _ in range(16)]
        arguments = TrainingArguments(
            output_dir="out", max_steps=3, use_cpu=True, report_to=[], save_strategy="no"
        )
        Trainer(Net(), arguments, train_dataset=data).train()
        print("flags", torch.are_deterministic_algorithms_enabled())
        """,
        **IN_TIME,
    )
    line = line_of(tmp_path, "Trainer(Net()")

    assert "flags True" in result.stdout, result.stderr
    rewinds = [text for text in warned(result) if "generator changed" in text]
    assert rewinds  # `Trainer.__init__` calls `set_seed(42)` after the data and the model were made
    assert all(f"script.py:{line} (through " in text and "transformers" in text for text in rewinds)


LIGHTNING = """
    import torch, lightning
    from samebits.determinism.context import deterministic
    control = deterministic(seed=3)
    lightning.seed_everything(3)
    class Net(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)
        def training_step(self, batch, _):
            return self.layer(torch.nn.functional.dropout(batch)).square().mean()
        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)
    loader = torch.utils.data.DataLoader([torch.ones(4)] * 8, batch_size=2)
    trainer = lightning.Trainer(
        accelerator="cpu", devices=1, STRATEGY max_steps=3, logger=False,
        enable_checkpointing=False, enable_progress_bar=False,
    )
    trainer.fit(Net(), loader)
    print("flags", torch.are_deterministic_algorithms_enabled())
"""


@needs("lightning")
def test_a_lightning_run_is_left_in_peace(tmp_path):
    result = run(tmp_path, LIGHTNING.replace("STRATEGY", ""), **IN_TIME)

    assert "flags True" in result.stdout, result.stderr
    assert [text for text in warned(result) if "generator" in text] == []


@needs("lightning")
def test_a_lightning_strategy_that_rewinds_generators_is_noticed(tmp_path):
    """`DDPStrategy.setup_environment` calls `reset_seed` (pytorch/strategies/ddp.py:200, 2.6.6)."""
    result = run(tmp_path, LIGHTNING.replace("STRATEGY", "strategy='ddp',"), **IN_TIME)
    line = line_of(tmp_path, "trainer.fit(")
    rewinds = [text for text in warned(result) if "generator changed" in text]

    assert "flags True" in result.stdout, result.stderr
    assert any("torch generator" in text for text in rewinds)
    assert all(f"script.py:{line} (through " in text and "lightning" in text for text in rewinds)
