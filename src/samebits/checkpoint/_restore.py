"""Matches the states in a checkpoint with the objects that load them, and loads them."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from samebits._runtime.frames import pass_on
from samebits._text.printable import shortened, with_article
from samebits.checkpoint._decoding import GeneratorState
from samebits.checkpoint._stateful import State, describe, is_stateful, kind_of, meta_misfit, misfit
from samebits.errors import SamebitsError
from samebits.rng.generator_objects import RegisteredGenerator, family_of


def _keep_dtypes(saved: Any, optimizer: Any, where: str) -> None:
    """Put back tensors of an optimizer's state that `load_state_dict` converted.

    `torch.optim.Optimizer` converts what it loads to the dtype of the parameter: averages in float32 of a
    bfloat16 model lose their bits, and the products of NAdam for a float64 model are rounded differently.

    Args:
        saved: the state that the optimizer has just loaded.
        optimizer: an optimizer whose `state_dict()` holds its own tensors, as torch's do.
        where: the name of the part.

    Raises:
        SamebitsError: it converted a tensor that is not in its `state_dict()`; `checkpoint-mismatch`.
    """
    for _, name, value, held in _converted(saved, optimizer):
        held[name] = _moved(value, held[name])
    left = [f"{where}.state.{parameter}.{name}" for parameter, name, _, _ in _converted(saved, optimizer)]
    if left:
        message = f"the optimizer took {left[0]} in another dtype than it was saved in, and its bits are lost"
        raise SamebitsError(f"{message}. Parts before it are restored.", slug="checkpoint-mismatch")


def _converted(saved: Any, optimizer: Any) -> list[tuple[Any, Any, Any, dict[Any, Any]]]:
    """Return parameter, name, saved value and present dict of each value whose dtype has changed."""
    here = optimizer.state_dict().get("state")
    pairs = [(parameter, values, here.get(parameter)) for parameter, values in saved.get("state", {}).items()]
    return [
        (parameter, name, value, held)
        for parameter, values, held in pairs
        if isinstance(values, dict) and isinstance(held, dict)
        for name, value in values.items()
        if _is_other(value, held.get(name))
    ]


def _is_other(value: Any, now: Any) -> bool:
    if isinstance(value, (list, tuple)) and isinstance(now, (list, tuple)):
        return any(map(_is_other, value, now))
    both = isinstance(value, torch.Tensor) and isinstance(now, torch.Tensor)
    return both and value.dtype != now.dtype


def _moved(value: Any, now: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(map(_moved, value, now))
    return value.to(now.device) if isinstance(value, torch.Tensor) else value


# Loaders first: they refuse a state that does not fit before anything has changed.
_ORDER = ("other", "module", "optimizer", "scheduler")


@dataclass(frozen=True)
class Match:
    """A state and the object that is to load it.

    Args:
        where: its path, such as `optimizer.0`.
        state: a `State`, a `GeneratorState`, or the result of `state_dict()` saved as a plain value.
        target: an object with `load_state_dict`, or a generator.
    """

    where: str
    state: Any
    target: Any


class Matching:
    """States matched with the objects that are to load them; nothing is changed yet.

    Args:
        strict: whether every state needs a target, and every target a state.
    """

    def __init__(self, *, strict: bool) -> None:
        self.strict = strict
        self.matches: list[Match] = []
        self.notes: list[str] = []

    def match(self, saved: Any, target: Any, where: str) -> Any:
        """Match the states in a saved value with the objects of a target.

        Args:
            saved: the value that was read.
            target: an object, or a list or dict of them; None for none.
            where: the name of the part.

        Returns:
            The saved value, with its states replaced by the objects that load them.

        Raises:
            SamebitsError: their forms differ; `checkpoint-mismatch`.
        """
        if target is not None and (is_stateful(target) or family_of(target)):
            return self._match_state(saved, target, where)
        if isinstance(saved, State):
            self._state_without_target(saved, target, where)
            return saved.value
        if isinstance(saved, GeneratorState):
            self._complain(f"{where} is the state of a generator; pass `{where}=` with the generator")
            return saved
        return self._match_container(saved, target, where)

    def _match_state(self, saved: Any, target: Any, where: str) -> Any:
        is_generator = bool(family_of(target)) and not is_stateful(target)
        if is_generator != isinstance(saved, GeneratorState) or not isinstance(
            saved, (State, GeneratorState, Mapping)
        ):
            kind = describe(saved).partition(";")[0]
            what = "the state of an object" if isinstance(saved, State) else f"a plain value ({kind})"
            raise mismatch(f"{where} holds {what} in the checkpoint, which {_name(target)} cannot take")
        if isinstance(saved, GeneratorState) and saved.family != family_of(target):
            state = f"{where} is the state of a generator of {shortened(saved.family, 200)} in the checkpoint"
            raise mismatch(f"{state}, and the generator given is of {family_of(target)}")
        self.matches.append(Match(where, saved, target))
        return target

    def _state_without_target(self, saved: State, target: Any, where: str) -> None:
        state = f"{where} is the state of {with_article(saved.class_name)}"
        if target is not None:
            raise mismatch(f"{state} in the checkpoint; {_refused(target)}")
        self._complain(f"{state}, and nothing was given to take it")

    def _match_container(self, saved: Any, target: Any, where: str) -> Any:
        """Match the members of lists, tuples and dicts."""
        if type(saved) in (list, tuple) or (type(saved) is deque and _holds_states(saved)):
            targets = self._targets(target, len(saved), where)
            matched = [
                self.match(one, other, f"{where}.{i}")
                for i, (one, other) in enumerate(zip(saved, targets, strict=True))
            ]
            return deque(matched, saved.maxlen) if type(saved) is deque else type(saved)(matched)
        if type(saved) is dict or (isinstance(saved, dict) and _holds_states(saved)):
            given, restored = {} if target is None else target, copy.copy(saved)
            if not isinstance(given, Mapping):
                raise mismatch(f"{where} is a dict in the checkpoint; {_refused(target)}")
            for key in given:
                if key not in saved and given[key] is not None:
                    self._complain(f"the checkpoint has no {where}.{key}")
            for key, value in saved.items():
                restored[key] = self.match(value, given.get(key), f"{where}.{key}")
            return restored
        if target is not None and _holds_targets(target):
            raise mismatch(f"{where} is a plain value in the checkpoint; {_refused(target)}")
        return saved

    def _targets(self, target: Any, count: int, where: str) -> Any:
        if target is None:
            return [None] * count
        if not isinstance(target, (list, tuple, deque)) or len(target) != count:
            raise mismatch(f"{where} has {count} elements in the checkpoint; {_refused(target)}")
        return target

    def _complain(self, text: str) -> None:
        if self.strict:
            raise mismatch(text, " Pass every part that was saved, or `strict=False` to leave some out.")
        self.notes.append(text)

    def check(self) -> None:
        """Refuse states that do not fit their targets.

        Raises:
            SamebitsError: `checkpoint-mismatch`.
        """
        text = "; ".join(filter(None, (meta_misfit(match.target, match.where) for match in self.matches)))
        if text:
            raise mismatch(text)
        if self.strict:
            misfits = [misfit(match.state, match.target, match.where) for match in self.matches]
            text = "; ".join(text for text in misfits if text)
            if text:
                raise mismatch(text, " Build what was saved, or pass `strict=False`.")

    def restore(self) -> None:
        """Load the states: loaders and the like, then modules, optimizers, schedulers.

        Raises:
            SamebitsError: an object refused; `checkpoint-mismatch`.
        """
        for match in sorted(self.matches, key=lambda match: _ORDER.index(kind_of(match.target))):
            try:
                _load(match, strict=self.strict)
            except Exception as error:  # noqa: PERF203 - an object may raise anything for a foreign state
                pass_on(error)
                if isinstance(error, SamebitsError):
                    raise
                text = " ".join(str(error).split())[:400] or type(error).__name__
                message = f"{match.where} does not take its state: {text}"
                raise mismatch(message, " Parts before it are restored, later ones are not.") from error


def _load(match: Match, *, strict: bool) -> None:
    if isinstance(match.state, GeneratorState):
        RegisteredGenerator(match.where, match.target).set_state(match.state.data)
        return
    value = match.state.value if isinstance(match.state, State) else match.state
    if kind_of(match.target) == "module" and not strict:
        match.target.load_state_dict(value, strict=False)
    else:
        match.target.load_state_dict(value)
        if kind_of(match.target) == "optimizer":
            _keep_dtypes(value, match.target, match.where)


def mismatch(text: str, advice: str = "") -> SamebitsError:
    """Return the error for a checkpoint that does not fit the objects."""
    return SamebitsError(f"{text}.{advice}", slug="checkpoint-mismatch")


def check_target(target: Any, where: str) -> None:
    """Refuse an object passed to `load` that cannot load a state.

    Raises:
        SamebitsError: `checkpoint-mismatch`.
    """
    containers = (list, tuple, deque, Mapping)
    if target is None or is_stateful(target) or family_of(target) or isinstance(target, containers):
        return
    raise mismatch(
        f"{where}={target!r:.80} was passed, which takes no state; expected an object with `load_state_dict`",
        " Plain values are in `Loaded.extra`.",
    )


def is_only_states(saved: Any) -> bool:
    """Tell whether a saved part holds states of objects and nothing else."""
    if isinstance(saved, (list, tuple, deque, dict)) and saved:
        return all(map(is_only_states, saved.values() if isinstance(saved, dict) else saved))
    return isinstance(saved, (State, GeneratorState))


def _holds_states(saved: Any) -> bool:
    if isinstance(saved, (list, tuple, deque, dict)):
        return any(map(_holds_states, saved.values() if isinstance(saved, dict) else saved))
    return isinstance(saved, (State, GeneratorState))


def _holds_targets(target: Any) -> bool:
    if not isinstance(target, (list, tuple, deque, Mapping)):
        return False
    values = target.values() if isinstance(target, Mapping) else target
    return any(is_stateful(value) or _holds_targets(value) for value in values)


def _name(target: Any) -> str:
    return with_article(type(target).__qualname__)


def _refused(target: Any) -> str:
    size = f" of {len(target)}" if isinstance(target, (list, tuple, deque, dict)) else ""
    return f"{_name(target)}{size} was given to take it"
