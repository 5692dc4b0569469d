"""Ops that the C module sees as a whole leave the same events as those that are seen part by part."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from samebits.digest.native import open_observer  # noqa: E402
from samebits.recording.probes.ops import OpProbe  # noqa: E402
from samebits.recording.session import record  # noqa: E402
from samebits.records.reader import RecordReader  # noqa: E402

pytestmark = pytest.mark.skipif(open_observer() is None, reason="not built, or torch is older than 2.10")


def many_dimensions():
    """After the op the tensor has more dimensions than the C module reads."""
    x = torch.ones(12 * [1])
    x.unsqueeze_(0)


def in_place():
    x = torch.arange(10.0)
    x.add_(1, alpha=2).mul_(x)
    torch.add(x, 1, out=x)
    x.view(2, 5).t().sub_(1)
    x.t_()
    x.resize_(4)
    x.zero_()


def lists():
    x, y = torch.ones(2), torch.zeros(3)
    torch._foreach_add_([x, y], 1.0)
    torch._foreach_mul_([x, x], 2.0)
    torch._foreach_mul([x, y], [2.0, 3.0])
    torch.cat([x, y])
    x.split(1)
    torch.max(x, 0)


def numbers():
    x = torch.ones(3)
    torch.equal(x, x)
    x.sum().item()
    x.clamp(min=None, max=0.5)
    torch.add(x, True)
    x * complex(1, 2)


def dtypes():
    x = torch.ones(2, 0, 3)
    for dtype in (torch.bfloat16, torch.int8, torch.uint8, torch.bool, torch.float64, torch.complex64):
        x = x.to(dtype)
    torch.ones_like(x, memory_format=torch.contiguous_format)
    torch.ones(2).to(torch.complex64).conj().mul(2)
    torch.zeros(3, dtype=torch.int64, device="cpu")


def other_memory():
    torch.ones(4, device="meta") + 1
    torch.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (3,)).to_dense()
    torch.ones(3).set_(torch.zeros(4))
    torch.tensor([1.0, 2.0])


def backward():
    x = torch.nn.Parameter(torch.ones(3, 2))
    (x @ x.t()).sum().backward()
    torch.optim.SGD([x], 0.1, momentum=0.9).step()
    x.detach()


def failing():
    with pytest.raises(RuntimeError):
        torch.ones(2) @ torch.ones(3)
    with pytest.raises(RuntimeError):
        torch.ones(2).add_(torch.ones(3))


LSTM = torch.nn.LSTM(3, 4)  # made here: its memory is not filled when it is new


def scratch():
    LSTM(torch.ones(2, 1, 3))


def events(path, act):
    torch.manual_seed(0)
    with record(path, level="op"):
        act()
    with RecordReader(path) as reader:
        return [
            (e.seq, e.op, e.arguments, e.module, e.site, e.forward_site, e.tensors, e.digests, e.links)
            for e in reader.events(kinds=("op",))
        ]


PROGRAMS = (
    many_dimensions, in_place, lists, numbers, dtypes, other_memory, backward, failing, scratch,
)  # fmt: skip


@pytest.mark.parametrize("act", PROGRAMS)
def test_events_are_the_same_part_by_part(tmp_path, monkeypatch, act):
    """Every column of every row."""
    parts = []
    at_once = events(tmp_path / "a.sbr", act)
    original = OpProbe._call_in_parts
    monkeypatch.setattr(OpProbe, "_call_in_parts", lambda *args: (parts.append(1), original(*args))[1])
    monkeypatch.setenv("SAMEBITS_READ_ALL", "1")
    in_parts = events(tmp_path / "b.sbr", act)

    assert at_once == in_parts
    assert len(parts) >= len(in_parts) > 0


def test_common_ops_are_seen_at_once(tmp_path, monkeypatch):
    """Otherwise the test above would compare a way with itself."""

    def refuse(*_):
        raise AssertionError("seen part by part")

    monkeypatch.setattr(OpProbe, "_call_in_parts", refuse)
    monkeypatch.setattr(OpProbe, "_record_rest", refuse)
    assert [op for _, op, *_ in events(tmp_path / "a.sbr", backward)][-1] == "aten::detach.default"
