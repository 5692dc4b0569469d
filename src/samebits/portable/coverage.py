"""The coverage of portable mode: of torch's ops, and of one model."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from samebits._runtime.compiled_code import compiled_code_runs_eagerly
from samebits._runtime.frames import FrameRanks, Site, calling_frame, nearest_site
from samebits._runtime.patching import Patches
from samebits._torch.portable import overload_name, schema_name
from samebits.errors import SamebitsError
from samebits.portable import _exact
from samebits.portable._complex import LINEAR
from samebits.portable._early_refusals import early_ops_to
from samebits.portable._mode import DispatchMode
from samebits.portable._noted_reductions import note_reductions
from samebits.portable._plans import handlers
from samebits.portable._refusals import refuse_op
from samebits.portable._registry import declared, declared_complex, declared_sparse
from samebits.portable.activation import layers_op_by_op
from samebits.portable.ops import families

if TYPE_CHECKING:
    from collections.abc import Iterator

COMPLEX_SECTION = "Complex numbers"
KERNEL, EXACT, INTEGER, MOVE = "kernel", "exact", "integer", "move"


@dataclass(frozen=True, slots=True)
class CoveredOp:
    """One op of torch with portable values.

    Args:
        name: `mm`, or `sum.dim_IntList` for an overload that is not the default; `mm (sparse)` where a
            tensor is sparse, `mm (complex)` of complex numbers.
        kind: `kernel`: a portable kernel; `exact`: torch's own, proven; `move`: torch's own, which computes
            nothing; `integer`: torch's own for integers and bools only.
        section: its section of docs/reference/portable-numerics.md; empty for torch's own.
    """

    name: str
    kind: str
    section: str = ""


@dataclass(frozen=True, slots=True)
class MissingOp:
    """An op without portable values that a model calls.

    Args:
        name: such as `aten.exp.default`.
        reason: why it is refused, as the error says it.
        site: the nearest line of the user's code; None when there is none (backward).
        count: how often it was called.
    """

    name: str
    reason: str
    site: Site | None
    count: int


@dataclass(frozen=True, slots=True)
class Coverage:
    """The part of one model that portable mode covers.

    Args:
        missing: the ops that it does not cover, in the order of their first call.
        backward: whether gradients were computed too.
    """

    missing: tuple[MissingOp, ...]
    backward: bool

    def __bool__(self) -> bool:
        return not self.missing


def covered_ops() -> tuple[CoveredOp, ...]:
    """Return all ops that have portable values, by name."""
    covered: dict[str, CoveredOp] = {}
    for listed, kind in (
        (_exact.INTEGERS, INTEGER),
        (_exact.MOVES | _exact.SPARSE, MOVE),
        (_exact.EXACT, EXACT),
    ):
        covered |= {name: CoveredOp(name, kind) for name in listed}
    covered |= {name: CoveredOp(name, KERNEL, section) for name, section in _kernels()}
    for family in families():
        kinds = {"sparse": declared_sparse([family]), "complex": declared_complex([family])}
        named = [f"{name} ({kind})" for kind, names in kinds.items() for name in names]
        covered |= {name: CoveredOp(name, KERNEL, _section(family)) for name in named}
    covered |= {(name := f"{each} (complex)"): CoveredOp(name, KERNEL, COMPLEX_SECTION) for each in LINEAR}
    return tuple(covered[name] for name in sorted(covered))


def is_covered(model: Any, batch: Any) -> Coverage:
    """Run a model once and collect the ops that have no portable values; torch computes these here.

    The model runs forward and, if some of its outputs need a gradient, backward. Its parameters, buffers and
    their gradients are put back, and so are the states of torch's generators.

    Args:
        model: a module, or any function.
        batch: its input: a tensor, a tuple of arguments, or a dict of them by name.

    Returns:
        The coverage, true if nothing is missing. An op that got a tensor without portable values, such as a
        complex one, is missing too.
    """
    mode = CollectingMode()
    with (
        _put_back(model),
        torch.random.fork_rng(devices=[]),
        compiled_code_runs_eagerly(),
        layers_op_by_op(),
        _noted_calls(mode),
        mode,
    ):
        backward = _run(model, batch)
    return Coverage(mode.missing, backward)


class CollectingMode(DispatchMode):
    """Portable mode that lets torch compute the ops that it would refuse, and notes them."""

    def __init__(self) -> None:
        super().__init__()
        self._missing: dict[str, MissingOp] = {}
        self._ranks = FrameRanks()

    @property
    def missing(self) -> tuple[MissingOp, ...]:
        """Return the ops refused so far."""
        return tuple(self._missing.values())

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run an op; torch calls this for each one."""
        try:
            return super().__torch_dispatch__(func, types, args, kwargs)
        except SamebitsError as refusal:
            if refusal.slug not in {"portable-op", "portable-tensor"}:
                raise
            self.note(str(func), str(refusal))
            return func(*args, **(kwargs or {}))

    def note(self, name: str, reason: str) -> None:
        """Remember a call that portable mode refuses.

        Args:
            name: of the op.
            reason: what the refusal says.
        """
        known = self._missing.get(name)
        site = known.site if known else nearest_site(self._ranks, calling_frame())
        count = known.count + 1 if known else 1
        self._missing[name] = MissingOp(name, known.reason if known else reason, site, count)


@contextlib.contextmanager
def _noted_calls(mode: CollectingMode) -> Iterator[None]:
    """Note calls of the ops that no dispatch mode sees."""
    patches = Patches()
    note_reductions(patches)
    try:
        with early_ops_to(lambda op: mode.note(str(op), str(refuse_op(op)))):
            yield
    finally:
        patches.restore()


def _kernels() -> Iterable[tuple[str, str]]:
    homes = {name: _section(family) for family in families() for name in declared(family)}
    for op in handlers(families()).all():
        name, overload = schema_name(op).partition("::")[2], overload_name(op)
        full = name if overload == "default" else f"{name}.{overload}"
        if full in homes:
            yield full, homes[full]


def _section(family: Any) -> str:
    """Return the heading that a module gives, or its name."""
    named = getattr(family, "SECTION", None)
    return named or str(family.__name__.rpartition(".")[2].replace("_", " ").capitalize())


def _run(model: Any, batch: Any) -> bool:
    if isinstance(batch, Mapping):
        out = model(**batch)
    elif isinstance(batch, tuple | list):
        out = model(*batch)
    else:
        out = model(batch)
    wanting = [tensor for tensor in _tensors(out) if tensor.requires_grad]
    if wanting:
        torch.autograd.backward(wanting, [torch.ones_like(tensor) for tensor in wanting])
    return bool(wanting)


def _tensors(value: Any) -> Iterable[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _tensors(item)
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _tensors(item)


class _put_back:  # noqa: N801 - a context, used like a function
    """A context that puts the contents and gradients of a module's parameters and buffers back."""

    def __init__(self, model: Any) -> None:
        module = isinstance(model, torch.nn.Module)
        self._tensors = [*model.parameters(), *model.buffers()] if module else []

    def __enter__(self) -> None:
        self._contents = [tensor.detach().clone() for tensor in self._tensors]
        self._gradients = [tensor.grad for tensor in self._tensors]
        for tensor in self._tensors:
            tensor.grad = None

    def __exit__(self, *error: object) -> None:
        for tensor, contents, gradient in zip(self._tensors, self._contents, self._gradients, strict=True):
            with torch.no_grad():
                tensor.copy_(contents)
            tensor.grad = gradient
