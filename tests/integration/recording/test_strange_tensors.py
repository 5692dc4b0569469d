"""Tensors without data of their own, at op level: nothing looks into them."""

from __future__ import annotations

import warnings

import pytest

torch = pytest.importorskip("torch")

from sentence_support import notes_of  # noqa: E402
from torch.utils._pytree import tree_map  # noqa: E402

from samebits.recording.session import record  # noqa: E402
from samebits.records.reader import RecordReader  # noqa: E402


class Wrapped(torch.Tensor):
    """A wrapper that does not say what it wraps, and notes what is asked of it."""

    calls: list[str]

    @staticmethod
    def __new__(cls, inner):
        """Wrap a tensor."""
        made = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, device=inner.device)
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        cls.calls.append(str(function))
        args, kwargs = tree_map(cls.unwrap, (args, kwargs or {}))
        return tree_map(
            lambda out: cls(out) if isinstance(out, torch.Tensor) else out, function(*args, **kwargs)
        )

    @staticmethod
    def unwrap(value):
        """What a wrapper wraps."""
        return value.inner if isinstance(value, Wrapped) else value


def ops_of(path):
    with RecordReader(path) as reader:
        return [event.op for event in reader.events(("op",))], notes_of(reader.info)


@pytest.mark.parametrize("act", [
    lambda w: w + 1,
    lambda w: torch.cat([w, w]),
    lambda w: torch.ops.aten.add.Tensor(torch.ones(2), other=w),
    lambda w: w.add_(1),
], ids=["argument", "list", "keyword", "in place"])  # fmt: skip
def test_a_wrapper_sees_only_what_the_script_asks_of_it(tmp_path, act):
    """Without `__tensor_flatten__` its contents cannot be read; the ops inside it are recorded."""
    Wrapped.calls = []
    act(Wrapped(torch.ones(2)))
    asked, Wrapped.calls = Wrapped.calls, []
    with record(tmp_path / "a.sbr", level="op") as path:
        act(Wrapped(torch.ones(2)))
    ops, notes = ops_of(path)

    assert Wrapped.calls == asked
    assert asked[-1].removeprefix("aten.") == ops[-1].removeprefix("aten::")
    assert notes == ()


def test_nothing_is_read_of_fake_tensors(tmp_path):
    """Tracing for export runs the model on tensors that have no data, also in lists."""

    class Model(torch.nn.Module):
        def forward(self, x):
            return torch.cat(torch.stack([x, x]).unbind(0)).sum()

    with warnings.catch_warnings(), record(tmp_path / "a.sbr", level="op") as path:
        warnings.filterwarnings("error", message=".*data pointer.*")
        torch.export.export(Model(), (torch.randn(3, 4),))

    assert ops_of(path)[1] == ()


def test_nothing_is_read_of_what_a_fake_mode_makes(tmp_path):
    """A factory has no argument that tells what it will give."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    with warnings.catch_warnings(), record(tmp_path / "a.sbr", level="op") as path:
        warnings.filterwarnings("error", message=".*data pointer.*")
        with FakeTensorMode():
            torch.empty(3)
    assert ops_of(path)[1] == ()
