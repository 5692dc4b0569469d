"""An op of torch writes only to what its schema says: the op level does not read the rest again.

Seen are all ops that torch's own samples dispatch, forward and backward.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes  # noqa: E402

from samebits.recording.probes.op_calls import argument_tensors, spec_of, written_arguments  # noqa: E402

SAMPLES = 6  # of each op and dtype
DTYPES = (torch.float32, torch.int64, torch.bool, torch.complex64)
UNFIT = (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError, AssertionError)


class Writes(TorchDispatchMode):
    """Keeps the names of trusted ops that wrote to memory that their schemas do not name."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.wrong: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        spec = spec_of(func, len)
        named = kwargs or {}
        with _disable_current_modes():
            written = {memory(tensor) for tensor in written_arguments(spec, args, named)}
            rest = [tensor for tensor in argument_tensors(args, named) if memory(tensor) not in written]
            before = [contents(tensor) for tensor in rest]
        outcome = func(*args, **named)
        self.seen.add(spec.text)
        with _disable_current_modes():
            after = [contents(tensor) for tensor in rest]
        if spec.trusted and before != after:
            self.wrong.add(spec.text)
        return outcome


def memory(tensor: Any) -> int:
    """What tells one storage from another."""
    return tensor.untyped_storage()._cdata if tensor.layout == torch.strided else id(tensor)


def contents(tensor: Any) -> bytes:
    """All bytes of its storage; none for tensors that the op level always reads."""
    if tensor.layout != torch.strided or tensor.device.type != "cpu" or tensor._is_zerotensor():
        return b""
    storage = tensor.untyped_storage()
    whole = torch.empty(0, dtype=torch.uint8).set_(storage, 0, (storage.nbytes(),))
    return whole.numpy().tobytes()


def run_samples(info: Any, dtype: Any, watch: Writes) -> None:
    """Samples of an op, with their gradients and in place."""
    if not info.supports_dtype(dtype, "cpu"):
        return
    gradients = info.supports_autograd and dtype.is_floating_point
    torch.manual_seed(1)
    for sample in itertools.islice(info.sample_inputs("cpu", dtype, requires_grad=gradients), SAMPLES):
        run(watch, info, sample, backward=gradients)
        if info.inplace_variant is not None and isinstance(sample.input, torch.Tensor):
            sample.input = sample.input.detach().clone()
            run(watch, info.inplace_variant, sample, backward=False)


def run(watch: Writes, call: Any, sample: Any, *, backward: bool) -> None:
    try:
        with watch:
            outcome = call(sample.input, *sample.args, **sample.kwargs)
            parts = outcome if isinstance(outcome, (tuple, list)) else (outcome,)
            wanted = [part for part in parts if isinstance(part, torch.Tensor) and part.requires_grad]
            if backward and wanted:
                torch.autograd.backward(wanted, [torch.ones_like(part) for part in wanted])
    except UNFIT:
        return  # some samples do not bear this


def test_ops_of_torch_write_only_to_what_their_schemas_say():
    watch = Writes()
    for info in op_db:
        for dtype in DTYPES:
            run_samples(info, dtype, watch)
    assert len(watch.seen) > 650
    assert watch.wrong == set()


def test_a_write_that_no_schema_names_is_seen():
    with torch.library._scoped_library("aten", "FRAGMENT") as library:
        library.define("_sneaks(Tensor x) -> Tensor")
        library.impl("_sneaks", lambda x: x.numpy().fill(3) or x.clone(), "CPU")
        watch = Writes()
        with watch:
            torch.ops.aten._sneaks(torch.zeros(4))
        assert watch.wrong == {"aten::_sneaks.default"}
