"""Op-level runs keep what their first operations gave, so that a difference can be measured at once."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from safetensors.torch import load  # noqa: E402

from samebits.recording.session import RecordingSession  # noqa: E402
from samebits.recording.settings import RecordingSettings  # noqa: E402
from samebits.records.reader import RecordReader  # noqa: E402


def kept(tmp_path, work, **settings):
    """The tensors that a run kept, by op."""
    path = str(tmp_path / "a.sbr")
    session = RecordingSession(RecordingSettings(record=path, level="op", **settings), ("a.py",))
    session.start()
    try:
        work()
    finally:
        session.finish()
    with RecordReader(path) as reader:
        events = list(reader.events(("op", "batch")))
        found = {event.op: reader.captures(event.seq) for event in events}
    return {op: [load(data)["value"] for data in values.values()] for op, values in found.items() if values}


def test_values_are_those_of_the_moment(tmp_path):
    def work():
        a = torch.full((3,), 2.0)
        a.mul_(3)
        a.add_(1)

    found = kept(tmp_path, work, keep_bytes=1000)
    assert found["aten::full.default"][0].tolist() == [2.0] * 3
    assert found["aten::mul_.Tensor"][0].tolist() == [6.0] * 3
    assert found["aten::add_.Tensor"][0].tolist() == [7.0] * 3


def test_nothing_is_kept_beyond_the_limit(tmp_path):
    def work():
        torch.zeros(100)
        torch.ones(100)
        torch.full((100,), 2.0)

    assert set(kept(tmp_path, work, keep_bytes=600)) == {"aten::zeros.default", "aten::ones.default"}


def test_nothing_is_kept_before_its_step(tmp_path):
    weight = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([weight], lr=0.1)

    def work():
        torch.zeros(2)
        weight.grad = torch.ones(2)
        optimizer.step()
        torch.ones(2)

    found = kept(tmp_path, work, keep_bytes=1000, keep_from_step=1)
    assert set(found) == {"aten::ones.default"}


def test_tensors_that_the_format_does_not_hold_are_left_out(tmp_path):
    def work():
        torch.eye(3).to_sparse()
        torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8)
        torch.complex(torch.ones(2), torch.zeros(2))

    found = kept(tmp_path, work, keep_bytes=1000)
    assert found["aten::complex.default"][0].tolist() == [[1.0, 0.0], [1.0, 0.0]]
    assert "aten::quantize_per_tensor.default" not in found


def test_keeping_changes_no_bits(tmp_path):
    results = []

    def work():
        torch.manual_seed(0)
        x = torch.randn(4, 4, requires_grad=True)
        y = (x.transpose(0, 1) @ x).relu_().sum()
        y.backward()
        results.append((y.item(), x.grad.tolist()))

    work()
    kept(tmp_path, work, keep_bytes=1 << 20)
    assert results[0] == results[1]
