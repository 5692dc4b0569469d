"""The rules by which ops are executed again or skipped, and the count of the results."""

from __future__ import annotations

import dataclasses
import threading
from collections import Counter
from typing import TYPE_CHECKING

from samebits._torch.own_ops import NAMESPACE as OURS
from samebits.recording.replay_results import ReplaySummary, Skipped, SkipReason, Unrepeated

if TYPE_CHECKING:
    from collections.abc import Callable

    from samebits._runtime.frames import Site
    from samebits._torch.schemas import OpTraits
    from samebits.recording.distance import Difference

BUILT_IN = frozenset((
    "aten", "prims", "quantized", "_quantized", "sparse", "mkldnn", "onednn", "mkldnn_prepacked", "prepacked",
    OURS,
))  # fmt: skip
"""Namespaces of torch, and ours: ops do what their schemas say, and draw from torch's generators only."""

# They mark what the profiler shows.
_PROFILER_NAMESPACES = frozenset(("profiler", "record_function"))
# They talk to other processes, or to streams, or check something.
_EFFECT_NAMESPACES = frozenset(
    (
        "c10d", "_c10d_functional", "_c10d_functional_autograd", "c10d_functional", "_dtensor", "symm_mem",
        "rpc", "prim", "debugprims", "streams",
    )
)  # fmt: skip
# They change what a tensor's memory is, read files, or keep something (aten/src/ATen/native, 2.13.0).
_EFFECTS = frozenset(
    f"aten::{name}"
    for name in (
        "set_", "set_data", "record_stream", "from_file", "resize_as_sparse_",
        "sparse_resize_", "sparse_resize_and_clear_", "_cudnn_rnn_flatten_weight",
        "_pin_memory", "pin_memory", "_assert_async", "_functional_assert_async", "_assert_scalar",
        "_print",
    )
)  # fmt: skip
# What they return holds whatever was in that memory.
_UNINITIALIZED = frozenset(
    f"aten::{name}"
    for name in (
        "empty", "empty_like", "new_empty", "new_empty_strided", "empty_strided", "empty_permuted",
        "empty_quantized", "_empty_affine_quantized", "_empty_per_channel_affine_quantized",
        "_nested_from_padded_tensor", "resize_", "resize_as_", "_resize_output_",
        "resize", "_resize_output",
    )
)  # fmt: skip


def reason_to_skip(traits: OpTraits) -> SkipReason | None:
    """Return why an op is never executed again; None when it is."""
    silent = traits.has_schema and not traits.returns_tensors and not traits.writes
    reasons = (
        (not traits.has_schema, SkipReason.COMPILED),
        (traits.namespace in _PROFILER_NAMESPACES, SkipReason.PROFILER),
        (traits.namespace in _EFFECT_NAMESPACES or traits.base in _EFFECTS, SkipReason.SIDE_EFFECT),
        (traits.base in _UNINITIALIZED, SkipReason.UNINITIALIZED),
        (traits.is_view, SkipReason.VIEW),
        (silent, SkipReason.SIDE_EFFECT if is_foreign(traits) else SkipReason.NO_RESULT),
        (traits.takes_objects and is_foreign(traits), SkipReason.OBJECT),
    )
    return next((reason for holds, reason in reasons if holds), None)


def is_foreign(traits: OpTraits) -> bool:
    """Tell whether an op is not torch's own: it may use any generator and do other than its schema says."""
    return traits.namespace not in BUILT_IN


_MOST_MEASURED = 16  # differing calls of one op at one line whose elements are compared


@dataclasses.dataclass(frozen=True, slots=True)
class CallSite:
    """An op at a line.

    Args:
        op: its name.
        module: path of the module, empty outside modules.
        site: line of user code.
        forward_site: for a backward op, the line whose forward made it.
    """

    op: str
    module: str
    site: Site | None
    forward_site: Site | None


@dataclasses.dataclass(frozen=True, slots=True)
class Deviation:
    """The difference between a call and its repetitions.

    Args:
        differing: how many of the repetitions differed.
        inputs: descriptions of the inputs.
        outputs: descriptions of the results that differed.
        device: type of the device.
        only_generator: whether only the state of the generator differed.
        measure: compares the elements; costly.
    """

    differing: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    device: str
    only_generator: bool
    measure: Callable[[], Difference | None]


class Tally:
    """Counts the calls of all threads: executed again, skipped, and with other results.

    Args:
        times: how often each call is executed again.
    """

    def __init__(self, times: int) -> None:
        self._times = times
        self._lock = threading.Lock()
        self._calls: Counter[CallSite] = Counter()
        self._steps: set[int] = set()
        self._skipped: Counter[tuple[SkipReason, str, str]] = Counter()
        self._unrepeated: dict[CallSite, Unrepeated] = {}
        self._measured: Counter[CallSite] = Counter()

    def skip(self, reason: SkipReason, op: str, error: str = "") -> None:
        """Count a call that was not executed again.

        Args:
            reason: why.
            op: its name.
            error: the class of the error, if the reason is `FAILED`.
        """
        with self._lock:
            self._skipped[reason, op, error] += 1

    def count(self, call_site: CallSite, step: int) -> None:
        """Count a call that was executed again."""
        with self._lock:
            self._calls[call_site] += 1
            self._steps.add(step)

    def differs(self, call_site: CallSite, step: int, deviation: Deviation) -> None:
        """Count what differed in a call that was counted."""
        with self._lock:
            known = self._unrepeated.get(call_site) or _first_deviation(call_site, step, deviation)
            known = self._unrepeated[call_site] = dataclasses.replace(
                known,
                differing=known.differing + deviation.differing,
                only_generator=known.only_generator and deviation.only_generator,
            )
            self._measured[call_site] += 1
            if self._measured[call_site] <= _MOST_MEASURED:
                difference = _larger(known.difference, deviation.measure())
                self._unrepeated[call_site] = dataclasses.replace(known, difference=difference)

    def summary(self) -> ReplaySummary:
        """Return what was counted."""
        with self._lock:
            skipped = [Skipped(reason, op, n, error) for (reason, op, error), n in self._skipped.items()]
            skipped.sort(key=lambda item: (-item.calls, item.reason, item.error, item.op))
            return ReplaySummary(
                times=self._times,
                calls=sum(self._calls.values()),
                ops=len({call_site.op for call_site in self._calls}),
                steps=len(self._steps),
                unrepeated=tuple(
                    dataclasses.replace(
                        unrepeated,
                        calls=self._calls[call_site],
                        repetitions=self._calls[call_site] * self._times,
                    )
                    for call_site, unrepeated in self._unrepeated.items()
                ),
                skipped=tuple(skipped),
            )


def _first_deviation(call_site: CallSite, step: int, deviation: Deviation) -> Unrepeated:
    """Return what is reported of an op at a line, before any repetition of it is counted."""
    return Unrepeated(
        call_site.op,
        call_site.module,
        call_site.site,
        call_site.forward_site,
        step=step,
        calls=0,
        repetitions=0,
        differing=0,
        inputs=deviation.inputs,
        outputs=deviation.outputs,
        device=deviation.device,
        only_generator=True,
    )


def _larger(a: Difference | None, b: Difference | None) -> Difference | None:
    if a is None or b is None:
        return a or b
    return max(a, b, key=lambda difference: (difference.max_ulp or 0, difference.elements))
