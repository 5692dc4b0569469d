"""Whether the output for a sample depends on its batch, and the first operation that makes it so.

The first dimension of every tensor in a batch and in an output counts the samples.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch

from samebits._runtime.compiled_code import compiled_code_runs_eagerly
from samebits._runtime.frames import FrameRanks, nearest_site
from samebits._text.str_enum import StrEnum
from samebits._torch.core import is_random
from samebits._torch.dispatch_modes import dispatch_mode_class
from samebits._torch.higher_order import is_higher_order, run_by_its_ops
from samebits.digest import digest_many
from samebits.errors import SamebitsError
from samebits.recording.distance import KNOWN, Difference, tensor_difference
from samebits.recording.runner import last_line
from samebits.rng.states import isolated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from samebits._runtime.frames import Site

_UNWRITTEN = ("aten.empty", "aten.new_empty", "aten.resize")  # their memory holds anything
_LARGEST_ROUNDING = 1e-3  # of the values: more than another order of additions makes of them


class Placement(StrEnum):
    """Where the samples of a second computation were."""

    AGAIN = "again"
    """Where they had been: the same batch once more."""
    ALONE = "alone"
    TWICE = "twice"
    """With itself only, where the model computes no sample alone."""
    PART = "part"
    LARGER = "larger"
    MOVED = "moved"


class VarianceCause(StrEnum):
    """Why the output for a sample depends on its batch."""

    RANDOM = "random"
    """Random numbers are drawn, and which of them a sample gets depends on its place."""
    OTHER_SAMPLES = "other-samples"
    """The operation computes with all samples of the batch, such as a mean over them."""
    KERNEL = "kernel"
    """The kernel rounds in another order for another size of batch."""
    UNREPEATABLE = "unrepeatable"
    """The same batch gives other bits each time."""


@dataclass(frozen=True)
class Variance:
    """The first difference between the output for a sample in the batch and elsewhere.

    Args:
        placement: where the sample was the second time.
        size: of the batch that it was in then.
        row: number of the sample in the batch, from 0.
        output: path of the output that differs, such as `output[0]`.
        difference: between the two rows of the output, or of the operation if that is known.
        cause: why.
        op: the operation that gave the first difference; empty where none was found.
        site: the line that called it.
        module: name of the innermost module that called it; empty for none.
        refusal: the error that the model raises for one sample alone; empty for none.
    """

    placement: Placement
    size: int
    row: int
    output: str
    difference: Difference | None
    cause: VarianceCause
    op: str = ""
    site: Site | None = None
    module: str = ""
    refusal: str = ""


@dataclass(frozen=True)
class Refusal:
    """No difference was found, but the model computes no sample alone.

    Args:
        error: that it raises.
    """

    error: str


@dataclass(frozen=True)
class _Setting:
    """One computation: which samples of the batch, in which order.

    Args:
        placement: what it is.
        rows: numbers of the samples.
    """

    placement: Placement
    rows: tuple[int, ...]


@dataclass(frozen=True)
class _OpRows:
    """The rows that one operation gave.

    Args:
        op: its name.
        random: whether it draws random numbers.
        site: the line that called it.
        module: the module that called it.
        outputs: the tensors with a row, or some, for each sample.
    """

    op: str
    random: bool
    site: Site | None
    module: str
    outputs: tuple[torch.Tensor, ...]


def first_variance(model: Callable[[Any], Any], batch: Any) -> Variance | Refusal | None:
    """Compute each sample of a batch alone, in part of it, in a larger one and at other places.

    Args:
        model: gives an output with one row for each sample.
        batch: tensors of at least 2 samples, in any lists, tuples and dicts.

    Returns:
        The first difference; None where every sample always has the same bits. A model that computes no
        sample alone, such as batch normalisation in training, is given each one twice instead.

    Raises:
        SamebitsError: the batch or the output does not have one row for each sample; `usage`.
    """
    n = _n_samples(batch)
    with torch.no_grad():
        whole = _rows_of(_outputs(model, _chosen(batch, tuple(range(n)), n)), n)
        refusal = _refusal(model, _chosen(batch, (0,), n))
        for setting in _settings(n, alone=not refusal):
            outputs = _rows_of(_outputs(model, _chosen(batch, setting.rows, n)), len(setting.rows))
            found = _difference(whole, outputs, setting)
            if found is not None:
                return replace(_located(model, batch, found, setting), refusal=refusal)
    return Refusal(refusal) if refusal else None


def _refusal(model: Callable[[Any], Any], sample: Any) -> str:
    """Return the error that a model raises for one sample, on one line; empty where it computes it."""
    try:
        _outputs(model, sample)
    except SamebitsError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever the user's model raises
        return last_line(error)
    return ""


def _settings(n: int, *, alone: bool) -> Iterator[_Setting]:
    every = tuple(range(n))
    yield _Setting(Placement.AGAIN, every)
    for row in every:
        yield _Setting(Placement.ALONE, (row,)) if alone else _Setting(Placement.TWICE, (row, row))
    for part in (every[: n // 2], every[n // 2 :]):
        if alone or len(part) > 1:
            yield _Setting(Placement.PART, part)
    yield _Setting(Placement.MOVED, every[::-1])
    yield _Setting(Placement.MOVED, every[1:] + every[:1])
    yield _Setting(Placement.LARGER, every + every)


def _outputs(model: Callable[[Any], Any], batch: Any) -> dict[str, torch.Tensor]:
    with isolated(), _unchanged(model):
        return {name: tensor.clone() for name, tensor in _tensors(model(batch), "output")}


def _tensors(value: Any, name: str) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the tensors in lists, tuples, dicts and outputs of models, each with its path."""
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _tensors(inner, f"{name}[{key!r}]")
    elif isinstance(value, (list, tuple)):
        for position, inner in enumerate(value):
            yield from _tensors(inner, f"{name}[{position}]")


def _n_samples(batch: Any) -> int:
    found = {tensor.shape[0] if tensor.ndim else 0 for _, tensor in _tensors(batch, "batch")}
    if len(found) == 1 and min(found) < 2:
        number = f"{min(found)} sample{'' if min(found) == 1 else 's'}"
        message = f"the batch has {number}; expected tensors whose first dimension counts at least 2"
        raise SamebitsError(message, slug="usage")
    if len(found) != 1:
        sizes = ", ".join(map(str, sorted(found))) or "no tensor"
        message = (
            f"the batch has these numbers of samples: {sizes}; expected tensors whose first dimension is the "
            "same number"
        )
        raise SamebitsError(message, slug="usage")
    return found.pop()


def _chosen(batch: Any, rows: tuple[int, ...], n: int) -> Any:
    """Return a batch of some samples; what is no tensor stays as it is."""
    if isinstance(batch, torch.Tensor):
        return batch.clone() if rows == tuple(range(n)) else batch[list(rows)]
    if isinstance(batch, Mapping):
        chosen = {key: _chosen(value, rows, n) for key, value in batch.items()}
        if type(batch) is dict:
            return chosen
        made = copy.copy(batch)
        made.update(chosen)  # type: ignore[attr-defined]  # such as the batch of a tokenizer
        return made
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(_chosen(value, rows, n) for value in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(_chosen(value, rows, n) for value in batch)
    return batch


def _rows_of(outputs: dict[str, torch.Tensor], n: int) -> dict[str, torch.Tensor]:
    """Check that outputs have a row for each sample."""
    wrong = [f"{name} {tuple(tensor.shape)}" for name, tensor in outputs.items() if not _has_rows(tensor, n)]
    if wrong or not outputs:
        found = ", ".join(wrong) or "no tensor"
        message = (
            f"a batch of {n} samples gave {found}; expected outputs whose first dimension is the number of "
            "samples: let the function return only those"
        )
        raise SamebitsError(message, slug="usage")
    return outputs


def _has_rows(tensor: torch.Tensor, n: int) -> bool:
    return tensor.ndim > 0 and tensor.shape[0] == n


def _difference(
    whole: dict[str, torch.Tensor], outputs: dict[str, torch.Tensor], setting: _Setting
) -> Variance | None:
    if whole.keys() != outputs.keys():
        names = ", ".join(sorted(whole.keys() ^ outputs.keys()))
        message = f"{names} is not in the output of every batch; expected the same outputs of each"
        raise SamebitsError(message, slug="usage")
    for name, tensor in outputs.items():
        expected = [whole[name][row] for row in setting.rows]
        for place in _unequal(expected, list(tensor)):
            row = setting.rows[place]
            difference = _measured(expected[place], tensor[place])
            again = setting.placement == Placement.AGAIN
            cause = VarianceCause.UNREPEATABLE if again else _judged(expected[place], difference)
            return Variance(setting.placement, len(setting.rows), row, name, difference, cause)
    return None


def _unequal(expected: list[torch.Tensor], found: list[torch.Tensor]) -> list[int]:
    """Return the places at which two lists of tensors have other bits."""
    a, b = digest_many(expected), digest_many(found)
    return [at for at in range(len(expected)) if a[16 * at : 16 * at + 16] != b[16 * at : 16 * at + 16]]


def _measured(a: torch.Tensor, b: torch.Tensor) -> Difference | None:
    if a.shape != b.shape or a.dtype != b.dtype or str(a.dtype).removeprefix("torch.") not in KNOWN:
        return None
    return tensor_difference(a, b)


def _judged(expected: torch.Tensor, difference: Difference | None) -> VarianceCause:
    """Say which cause a difference of that size suggests."""
    if difference is None or difference.max_abs is None or not expected.is_floating_point():
        return VarianceCause.OTHER_SAMPLES
    scale = float(expected.detach().double().abs().max()) if expected.numel() else 0.0
    largest = max(_LARGEST_ROUNDING, 4 * torch.finfo(expected.dtype).eps)
    is_rounding = difference.max_abs <= largest * max(scale, 1e-30)
    return VarianceCause.KERNEL if is_rounding else VarianceCause.OTHER_SAMPLES


def _located(model: Callable[[Any], Any], batch: Any, found: Variance, setting: _Setting) -> Variance:
    """Return the difference at the first operation that gave one row other bits."""
    n = _n_samples(batch)
    first = _logged(model, _chosen(batch, tuple(range(n)), n), n)
    second = _logged(model, _chosen(batch, setting.rows, n), len(setting.rows))
    is_again = setting.placement == Placement.AGAIN
    randomness = not is_again and any(op.random for op in (*first, *second))
    for a, b in zip(first, second, strict=False):
        if a.op != b.op:
            break
        for whole, part in zip(a.outputs, b.outputs, strict=False):
            located = _at_op(whole, part, setting, n, replace(found, op=a.op, site=a.site, module=a.module))
            if located is not None:
                return replace(located, cause=VarianceCause.RANDOM) if a.random and not is_again else located
    return replace(found, cause=VarianceCause.RANDOM) if randomness else found


def _at_op(
    whole: torch.Tensor, part: torch.Tensor, setting: _Setting, n: int, found: Variance
) -> Variance | None:
    """Compare what an operation gave for each sample; None where it is the same, or has no rows."""
    each, m = whole.shape[0] // n, len(setting.rows)
    if part.shape[0] != each * m or whole.shape[1:] != part.shape[1:] or whole.dtype != part.dtype:
        return None
    if setting.placement == Placement.MOVED and digest_many([whole]) == digest_many([part]):
        return None  # it has no rows of samples: a weight
    expected = [whole[row * each : (row + 1) * each] for row in setting.rows]
    parts = [part[at * each : (at + 1) * each] for at in range(m)]
    for place in _unequal(expected, parts):
        difference = _measured(expected[place], parts[place])
        cause = found.cause
        if cause != VarianceCause.UNREPEATABLE:
            cause = _judged(expected[place], difference)
        return replace(found, row=setting.rows[place], difference=difference, cause=cause)
    return None


def _logged(model: Callable[[Any], Any], batch: Any, n: int) -> list[_OpRows]:
    """Compute a batch, and return what each operation gave that has rows for `n` samples."""
    log: list[_OpRows] = []
    stack: list[str] = []
    with (
        isolated(),
        _unchanged(model),
        _named_modules(model, stack),
        compiled_code_runs_eagerly(),
        _op_log(log, stack, n),
    ):
        model(batch)
    return log


def _op_log(log: list[_OpRows], modules: list[str], n: int) -> Any:
    """Return a dispatch mode that adds to the log what each operation gives."""
    ranks = FrameRanks()

    class Log(dispatch_mode_class()):  # type: ignore[misc]
        def __torch_dispatch__(
            self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            if is_higher_order(func):
                return run_by_its_ops(func, args, kwargs or {}, self)
            given = func(*args, **(kwargs or {}))
            tensors = given if isinstance(given, (list, tuple)) else (given,)
            read = () if str(func).startswith(_UNWRITTEN) else tensors
            rows = tuple(each.clone() for each in read if _may_have_rows(each, n))
            module = next((name for name in reversed(modules) if name), "")
            log.append(_OpRows(str(func), is_random(func), nearest_site(ranks), module, rows))
            return given

    return Log()


def _may_have_rows(value: Any, n: int) -> bool:
    return (
        isinstance(value, torch.Tensor) and value.ndim > 0 and value.shape[0] > 0 and value.shape[0] % n == 0
    )


@contextlib.contextmanager
def _named_modules(model: Any, stack: list[str]) -> Iterator[None]:
    """Keep the names of the modules that are being called on the stack."""
    handles: list[Any] = []
    named: Sequence[tuple[str, Any]] = (
        list(model.named_modules()) if isinstance(model, torch.nn.Module) else ()
    )
    for name, module in named:
        handles.append(module.register_forward_pre_hook(lambda *_, name=name: stack.append(name)))
        handles.append(module.register_forward_hook(lambda *_: (stack.pop(), None)[1]))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextlib.contextmanager
def _unchanged(model: Any) -> Iterator[None]:
    """Put the buffers of a model, such as running averages, back after each block."""
    held = dict(model.named_buffers()) if isinstance(model, torch.nn.Module) else {}
    before = {name: buffer.clone() for name, buffer in held.items()}
    try:
        yield
    finally:
        for name, buffer in held.items():
            buffer.copy_(before[name])
