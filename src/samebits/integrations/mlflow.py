"""MLflow: what a record says becomes tags of a run, and the record and its page artifacts."""

from __future__ import annotations

from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from samebits.errors import SamebitsError
from samebits.integrations._libraries import library
from samebits.integrations._record_facts import record_facts, written

if TYPE_CHECKING:
    import os

_FOLDER = "samebits"
_MOST = 5000  # characters of a tag; some stores refuse longer ones


def log_record(
    record: str | os.PathLike[str],
    other: str | os.PathLike[str] | None = None,
    *,
    run_id: str | None = None,
) -> None:
    """Log a record to a run of MLflow.

    Source: `mlflow.set_tags`, `mlflow.log_artifact` (https://mlflow.org/docs/latest/python_api/mlflow.html).

    Args:
        record: path of the record of a run that has ended.
        other: path of the record of its twin run, for the verdict.
        run_id: of the run of MLflow; None for the active one.

    Raises:
        SamebitsError: MLflow is not installed, no run is active, or a record cannot be read.
    """
    mlflow = library("mlflow", "mlflow")
    active = mlflow.active_run()
    if run_id is None and active is None:
        message = "no run of MLflow is active; expected one: call `mlflow.start_run()` first, or give run_id"
        raise SamebitsError(message, slug="tracker-run")
    run = run_id or active.info.run_id
    facts = record_facts(record, other)
    client = mlflow.MlflowClient()
    for name, text in facts.tags.items():
        client.set_tag(run, name, text if len(text) <= _MOST else f"{text[: _MOST - 1]}…")
    with TemporaryDirectory() as folder:
        for path in (facts.record, *written(facts, folder)):
            client.log_artifact(run, path, _FOLDER)
