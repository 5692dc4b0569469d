"""Scratch memory that an op returns for its backward pass is no value: nothing may be blamed for its bits."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from samebits.records.reader import RecordReader

SCRIPT = """
import sys, torch
from samebits import record

torch.manual_seed(0)
layers = {
    "lstm": torch.nn.LSTM(8, 16),
    "stacked": torch.nn.LSTM(8, 4, num_layers=2, bidirectional=True, dropout=0.2),
    "frozen": torch.nn.LSTM(8, 16).requires_grad_(False),
}
with record(sys.argv[2], level="op"):
    x = torch.randn(5, 3, 8, requires_grad=True)
    if sys.argv[1] == "ctc":
        lengths = torch.tensor([5, 5, 4]), torch.tensor([2, 1, 2])
        torch.nn.functional.ctc_loss(x.log_softmax(2), torch.ones(3, 2).long(), *lengths).backward()
    else:
        layers[sys.argv[1]](x)[0].square().sum().backward()
"""


def recorded(folder, layer: str, fill: int) -> list[tuple[str, tuple[bytes, ...]]]:
    """The ops and digests of a script in whose memory C's allocator leaves other bytes."""
    path = folder / f"{fill}.sbr"
    variables = {**os.environ, "MALLOC_PERTURB_": str(fill)}
    subprocess.run([sys.executable, "-c", SCRIPT, layer, str(path)], env=variables, check=True)
    with RecordReader(path) as reader:
        return [(event.op, event.digests) for event in reader.events(kinds=("op",))]


def is_filled(op: str) -> bool:
    """Whether an op has values: neither new memory, nor what it was before it is overwritten."""
    return "empty" not in op and "bernoulli_" not in op


@pytest.mark.skipif(sys.platform != "linux", reason="MALLOC_PERTURB_ is glibc's")
@pytest.mark.parametrize("layer", ["lstm", "stacked", "frozen", "ctc"])
def test_scratch_memory_is_not_compared(tmp_path, layer):
    first, second = (recorded(tmp_path, layer, fill) for fill in (85, 170))
    assert any(op.startswith("aten::") and "backward" in op for op, _ in first)
    assert [each for each in first if is_filled(each[0])] == [each for each in second if is_filled(each[0])]


def test_what_such_an_op_computes_is_compared(tmp_path):
    (outputs,) = {digests[-4:-1] for op, digests in recorded(tmp_path, "lstm", 85) if "rnn_layer.d" in op}
    assert len(set(outputs)) == 3
    assert bytes(16) not in outputs
