"""Objects with `state_dict` in a checkpoint, and the errors for those that cannot be saved or restored."""

from __future__ import annotations

import argparse
import dataclasses
import enum
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from samebits._text.printable import with_article
from samebits.errors import SamebitsError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


class DamageError(Exception):
    """A file is torn, altered, or was never whole. The text says how."""


def damaged(path: object, reason: object) -> SamebitsError:
    """Return the error for a checkpoint that is torn or altered."""
    message = f"{path} is damaged, and nothing of it was loaded: {reason}. Load an earlier checkpoint."
    return SamebitsError(message, slug="checkpoint-damaged")


def unsaveable(where: str, reason: str) -> SamebitsError:
    """Return the error for an entry that cannot be saved."""
    text = " ".join(f"{where} cannot be saved: {reason}".split())
    return SamebitsError(f"{text}. Nothing was written.", slug="checkpoint-entry")


def path_text(path: Any) -> str:
    """Return a path as text.

    Raises:
        SamebitsError: it is no path; `checkpoint-path`.
    """
    try:
        text = os.fsdecode(path)
        if text and b"\0" not in os.fsencode(text):
            return text
    except (TypeError, ValueError):
        pass
    raise SamebitsError(f"the path is {path!r:.200}; expected the name of a file", slug="checkpoint-path")


def describe(value: Any) -> str:
    """Say in words what a value is, and what to save instead."""
    kind = type(value)
    name = f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
    return f"it is {with_article(name)}; {_advice(value)}"


_BUILT_IN = (tuple, dict, int, float, str, bytes, list, set)
_ADVICE: tuple[tuple[Callable[[Any], bool], str], ...] = (
    (
        lambda value: isinstance(value, enum.Enum),
        "save its `.value` or `.name`, and make the member of it after loading",
    ),
    (
        lambda value: dataclasses.is_dataclass(value) and not isinstance(value, type),
        "save `dataclasses.asdict(…)` of it",
    ),
    (lambda value: isinstance(value, os.PathLike), "save `str(…)` of it"),
    (
        lambda value: isinstance(value, type) or callable(value),
        "code is not saved: leave it out, and make it again after loading",
    ),
    (lambda value: isinstance(value, argparse.Namespace), "save `vars(…)` of it"),
)


def _advice(value: Any) -> str:
    for holds, text in _ADVICE:
        if holds(value):
            return text
    if isinstance(value, _BUILT_IN):
        return f"save `{_base(value).__name__}(…)` of it"
    return (
        "expected something with `state_dict` and `load_state_dict`, or tensors, arrays, numbers, text, "
        "bytes, None and containers of these"
    )


def _base(value: Any) -> type:
    return next(kind for kind in type(value).__mro__ if kind.__module__ == "builtins")


_SHOWN = 3


@dataclass(frozen=True, slots=True)
class State:
    """A state that was read from a checkpoint.

    Args:
        kind: `module`, `optimizer`, `scheduler`, or `other`.
        class_name: the class of the object that was saved.
        shapes: the shapes of the parameters of each group of an optimizer; empty for others.
        value: the result of its `state_dict()`.
    """

    kind: str
    class_name: str
    shapes: list[list[list[int]]]
    value: Any


def is_stateful(value: Any) -> bool:
    """Tell whether a value is an object with `state_dict` and `load_state_dict`."""
    if isinstance(value, type):
        return False
    return callable(getattr(value, "state_dict", None)) and callable(getattr(value, "load_state_dict", None))


def kind_of(value: Any) -> str:
    """Return `module`, `optimizer`, `scheduler`, or `other`."""
    schedulers = (torch.optim.lr_scheduler.LRScheduler, torch.optim.lr_scheduler.ReduceLROnPlateau)
    kinds: dict[str, Any] = {
        "module": torch.nn.Module,
        "optimizer": torch.optim.Optimizer,
        "scheduler": schedulers,
    }
    return next((name for name, kind in kinds.items() if isinstance(value, kind)), "other")


def state_facts(value: Any) -> dict[str, Any]:
    """Return the facts to save about an object beside its state."""
    facts: dict[str, Any] = {"kind": kind_of(value), "class": type(value).__qualname__}
    if facts["kind"] == "optimizer":
        facts["shapes"] = _group_shapes(value)
    return facts


def _group_shapes(optimizer: Any) -> list[list[list[int]]]:
    """Return the shapes of the parameters of each group."""
    return [[_shape(parameter) for parameter in group["params"]] for group in optimizer.param_groups]


def _shape(parameter: Any) -> list[int]:
    """Return the shape of a parameter; those of lazy modules have none yet."""
    return [] if torch.nn.parameter.is_lazy(parameter) else list(parameter.shape)


def misfit(state: Any, target: Any, where: str) -> str:
    """Say why a state does not fit a target; return an empty text when it does.

    Torch itself notices less: an optimizer loads the state of another class, and a module converts dtypes.

    Args:
        state: a `State`, or the result of a `state_dict()` that was saved as a plain value.
        target: an object with `load_state_dict`.
        where: the name of the part.
    """
    value = state.value if isinstance(state, State) else state
    kind = kind_of(target)
    if isinstance(state, State) and kind in ("optimizer", "scheduler"):
        saved, wanted = state.class_name, type(target).__qualname__
        if saved != wanted:
            return f"{where} is of {with_article(saved)} in the checkpoint and of {with_article(wanted)} here"
        if kind == "optimizer":
            return _group_misfit(state.shapes, _group_shapes(target), where)
    if kind == "module" and isinstance(value, dict):
        return _module_misfit(value, target.state_dict(), where)
    return ""


def _group_misfit(saved: Any, here: Any, where: str) -> str:
    counts = [len(group) for group in saved], [len(group) for group in here]
    if counts[0] != counts[1]:
        return (
            f"{where} has parameter groups of {counts[0]} tensors in the checkpoint and of {counts[1]} here"
        )
    for number, (old, new) in enumerate(zip(saved, here, strict=True)):
        for index, (first, second) in enumerate(zip(old, new, strict=True)):
            if first != second:
                path = f"{where}.param_groups.{number}.params.{index}"
                return f"{path} has the shape {first} in the checkpoint and {second} here"
    return ""


def meta_misfit(target: Any, where: str) -> str:
    """Name the tensors of a module that cannot load anything, because they are on the device `meta`.

    Torch leaves them so, with a warning. A class with its own `load_state_dict` may do otherwise.
    """
    is_module = kind_of(target) == "module"
    loads_as_torch = is_module and type(target).load_state_dict is torch.nn.Module.load_state_dict
    held = target.state_dict() if loads_as_torch else {}
    empty = [
        f"{where}.{name}" for name, value in held.items() if isinstance(value, torch.Tensor) and value.is_meta
    ]
    if not empty:
        return ""
    return (
        _listed("these tensors are on the device `meta`, which holds no contents: ", empty)
        + "; call `to_empty(device=…)` first"
    )


def _module_misfit(saved: Mapping[str, Any], here: Mapping[str, Any], where: str) -> str:
    """Name the entries of two states of modules that do not fit each other; empty if all fit."""
    missing = [f"{where}.{name}" for name in here if name not in saved]
    extra = [f"{where}.{name}" for name in saved if name not in here]
    unlike = [
        f"{where}.{name} is {_tensor_text(saved[name])} in the checkpoint and {_tensor_text(here[name])} here"
        for name in here
        if name in saved and not _alike(saved[name], here[name])
    ]
    texts = [_listed("the checkpoint lacks ", missing), _listed("the checkpoint also has ", extra)]
    return "; ".join(text for text in (*texts, _listed("", unlike)) if text)


def _alike(saved: Any, here: Any) -> bool:
    """Tell whether two entries fit; lazy modules take any shape (`torch.nn.LazyLinear`)."""
    lazy = isinstance(here, torch.Tensor) and torch.nn.parameter.is_lazy(here)
    return lazy or _tensor_text(saved) == _tensor_text(here)


def _tensor_text(value: Any) -> str:
    if not isinstance(value, torch.Tensor):
        return "a value"
    return facts_text(value.shape, value.dtype)


def facts_text(shape: Sequence[int], dtype: torch.dtype) -> str:
    """Return dtype and shape of a tensor as messages show them, such as `float32[2, 3]`."""
    return f"{str(dtype).removeprefix('torch.')}{list(shape)}"


def _listed(begin: str, names: list[str]) -> str:
    if not names:
        return ""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return begin + ", ".join(names[:_SHOWN]) + more
