"""TensorBoard: what a record says, and its digests, become texts of a log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from samebits.integrations._record_facts import record_facts

if TYPE_CHECKING:
    import os

_TAG = "samebits/{}"


def log_record(
    record: str | os.PathLike[str], other: str | os.PathLike[str] | None = None, *, writer: Any
) -> None:
    """Log a record to TensorBoard, under `samebits/record` and `samebits/digests` of its tab Text.

    A log of TensorBoard holds no files: the record itself stays where it is, and its path is in the text.

    Args:
        record: path of the record of a run that has ended.
        other: path of the record of its twin run, for the verdict.
        writer: a `torch.utils.tensorboard.SummaryWriter`.

    Raises:
        SamebitsError: a record cannot be read.
    """
    facts = record_facts(record, other)
    rows = [f"| {name} | `{text.replace('|', '/')}` |" for name, text in facts.tags.items()]
    writer.add_text(_TAG.format("record"), "\n".join(["| fact | value |", "|---|---|", *rows]))
    writer.add_text(_TAG.format("digests"), "".join(f"    {line}\n" for line in facts.digests.splitlines()))
    writer.flush()
