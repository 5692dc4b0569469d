"""How far captured tensors of two runs are apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from samebits.errors import SamebitsError
from samebits.recording.distance import tensor_difference

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from samebits.recording.distance import Difference


def captured_difference(
    a: Mapping[int, bytes], b: Mapping[int, bytes], complex_at: Collection[int] = ()
) -> Difference | None:
    """The difference of the first captured tensor of an event that differs between two runs.

    Args:
        a: captured tensors of the event in the first run, as safetensors files, by position.
        b: the same of the second run.
        complex_at: positions of complex tensors, which are kept as pairs.

    Returns:
        None when no tensor was captured in both runs, or none has the same dtype and shape.

    Raises:
        SamebitsError: a captured tensor is damaged.
    """
    last = None
    for position in sorted(a.keys() & b.keys()):
        first, second = decode(a[position]), decode(b[position])
        if position in complex_at:
            first, second = _complex(first), _complex(second)
        if first.dtype == second.dtype and first.shape == second.shape:
            last = tensor_difference(first, second)
            if last.elements:
                return last
    return last


def decode(data: bytes) -> Any:
    """The tensor of a safetensors file that holds one.

    Raises:
        SamebitsError: it is no such file.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        tensors = load(data)
    except (SafetensorError, ValueError, RuntimeError, KeyError, OverflowError, MemoryError) as error:
        text = " ".join(str(error).split())[:100]
        raise _damaged(text) from None
    if len(tensors) != 1:
        raise _damaged(f"it holds {len(tensors)} tensors, expected one")
    return next(iter(tensors.values()))


def _complex(pairs: Any) -> Any:
    """The complex tensor of pairs; what else a record holds is left as it is."""
    from torch import view_as_complex

    fits = pairs.is_floating_point() and pairs.element_size() > 1 and tuple(pairs.shape[-1:]) == (2,)
    return view_as_complex(pairs) if fits and str(pairs.dtype) != "torch.bfloat16" else pairs


def _damaged(what: str) -> SamebitsError:
    return SamebitsError(
        f"a captured tensor in the record is damaged ({what}): record the run again", slug="record-damaged"
    )
