"""Weights & Biases: what a record says becomes the summary of a run, the record and its page an artifact."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from samebits.errors import SamebitsError
from samebits.integrations._libraries import library
from samebits.integrations._record_facts import record_facts, written

if TYPE_CHECKING:
    import os

_TYPE = "samebits-record"


def log_record(
    record: str | os.PathLike[str], other: str | os.PathLike[str] | None = None, *, run: Any = None
) -> None:
    """Log a record to a run of Weights & Biases; it may be offline.

    Source: `Run.summary`, `Run.log_artifact` (https://docs.wandb.ai/ref/python/).

    Args:
        record: path of the record of a run that has ended.
        other: path of the record of its twin run, for the verdict.
        run: what `wandb.init` returned; None for the active run.

    Raises:
        SamebitsError: wandb is not installed, no run is active, or a record cannot be read.
    """
    wandb = library("wandb", "wandb")
    run = wandb.run if run is None else run
    if run is None:
        message = "no run of wandb is active; expected one: call `wandb.init()` first, or give run"
        raise SamebitsError(message, slug="tracker-run")
    facts = record_facts(record, other)
    run.summary.update(facts.tags)
    artifact = wandb.Artifact(f"samebits-{run.id}", type=_TYPE, metadata=facts.tags)
    with TemporaryDirectory() as folder:
        for path in (facts.record, *written(facts, folder)):
            artifact.add_file(path, name=Path(path).name, policy="mutable")
        run.log_artifact(artifact)
        if not run.offline:
            artifact.wait()
