"""What steers a training beside its tensors: hyperparameters, schedules, loss scales."""

from __future__ import annotations

import weakref
from itertools import count
from typing import TYPE_CHECKING, Any

from samebits.recording.probes.modules import instances
from samebits.recording.recorder import is_tensor

if TYPE_CHECKING:
    from samebits.recording.probes.state import StateTracker

_PLAIN = (int, float, bool, str, type(None))
_MOST_ITEMS = 16
_NO_SETTINGS = ("params", "param_names")


class TrainingFacts:
    """Reads them as text.

    Args:
        state: knows the optimizers.
    """

    def __init__(self, state: StateTracker) -> None:
        self._state = state
        self._found: dict[int, tuple[str, weakref.ref[Any]]] = {}

    def settings(self, step: int) -> dict[str, str]:
        """`SGD group 0 lr`, `LambdaLR last_epoch`, `GradScaler scale` and so on.

        Args:
            step: number of the step that comes next. Objects are looked for before steps 0, 1, 2, 4, 8 and so
                on, as that goes through all objects of the process.
        """
        if not step & (step - 1):
            self._search()
        found: dict[str, str] = {}
        for name, optimizer in _named(self._state.optimizers()):
            for number, group in enumerate(optimizer.param_groups):
                for key, value in group.items():
                    text = None if key in _NO_SETTINGS else _text(value)
                    if text is not None:
                        found[f"{name} group {number} {key}"] = text
        living = [(name, reference()) for name, reference in self._found.values()]
        for name, holder in living:
            for key, value in list(vars(holder).items()) if holder is not None else []:
                text = _text(value)
                if text is not None:
                    found[f"{name} {key.lstrip('_')}"] = text
        return found

    def _search(self) -> None:
        import torch
        from torch.optim.lr_scheduler import LRScheduler

        self._found = {key: known for key, known in self._found.items() if known[1]() is not None}
        taken = {label for label, _ in self._found.values()}
        for found in [*self._in_order(instances(LRScheduler)), *instances(torch.amp.GradScaler)]:
            if id(found) not in self._found:
                name = type(found).__name__
                labels = (name if number == 1 else f"{name}#{number}" for number in count(1))
                label = next(label for label in labels if label not in taken)
                taken.add(label)
                self._found[id(found)] = (label, weakref.ref(found))

    def _in_order(self, schedules: list[Any]) -> list[Any]:
        """In that of their optimizers: the garbage collector lists them in an order that changes."""
        places = {id(optimizer): place for place, optimizer in enumerate(self._state.optimizers())}
        return sorted(schedules, key=lambda s: places.get(id(getattr(s, "optimizer", None)), len(places)))


def _named(objects: list[Any]) -> list[tuple[str, Any]]:
    counts: dict[str, int] = {}
    result = []
    for found in objects:
        name = type(found).__name__
        counts[name] = number = counts.get(name, 0) + 1
        result.append((name if number == 1 else f"{name}#{number}", found))
    return result


def _text(value: Any) -> str | None:
    """A number, text or short list of them; None for anything else."""
    if type(value) in _PLAIN:
        return repr(value)[:80]
    if is_tensor(value) and value.numel() == 1 and value.device.type == "cpu":
        return repr(value.item())
    if type(value) in (list, tuple) and len(value) <= _MOST_ITEMS:
        parts = [_text(item) for item in value]
        return None if None in parts else f"[{', '.join(str(part) for part in parts)}]"
    return None
