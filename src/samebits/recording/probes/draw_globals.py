"""Draws that libraries make from the object behind a global generator, without the functions of its module.

Where they are given no seed, networkx takes `random._inst`, scikit-learn and scipy NumPy's `mtrand._rand`.
"""

from __future__ import annotations

import functools
import random
import sys
from typing import TYPE_CHECKING, Any

from samebits.hooks.frames import calling_frame
from samebits.hooks.standing import leave_no_line
from samebits.recording.probes.draw_functions import global_draw

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from samebits.hooks.patching import Patches
    from samebits.hooks.static_types import StaticTypePatches
    from samebits.recording.probes.draw_log import DrawLog

_INNER = "getrandbits"  # what the others draw with, many times


def watch_python_object(
    patches: Patches, log: DrawLog, names: Iterable[str], state: Callable[[], bytes]
) -> None:
    """Record draws from `random._inst`: its methods are shadowed in the object itself, no other has them.

    Args:
        patches: undo it.
        log: told of draws.
        names: methods that draw.
        state: reads the generator's state.
    """
    instance: Any = random._inst
    for name in names:
        if name != _INNER:
            stand = global_draw(getattr(instance, name), f"random.{name}", log, state)
            patches.set(instance, name, stand)


def watch_numpy_object(
    static: StaticTypePatches, log: DrawLog, names: Iterable[str], state: Callable[[], bytes]
) -> None:
    """Record draws from `numpy.random.mtrand._rand`, which is of a type that has no room for that itself.

    Args:
        static: undoes it.
        log: told of draws.
        names: methods that draw.
        state: reads the generator's state.
    """
    module = sys.modules["numpy.random.mtrand"]
    instance, kind = module._rand, module.RandomState
    for name in names:
        if name in vars(kind):
            static.set(kind, name, _of_object(instance, vars(kind)[name], name, (log, state)))


def _of_object(
    instance: Any, original: Any, name: str, draw: tuple[DrawLog, Callable[[], bytes]]
) -> Callable[..., Any]:
    """Stands for a method of `RandomState`: draws of one object are recorded."""
    log, state = draw
    get_frame, seen, op = calling_frame, log.seen, f"numpy.random.{name}"

    @functools.wraps(original)
    def method(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        if self is instance:
            frame = get_frame(1)
            if (id(frame.f_code), frame.f_lasti) not in seen:
                log.taken_by_call(op, frame, state)
        try:
            return original(self, *args, **kwargs)
        except BaseException as error:
            leave_no_line(error)
            raise

    return method
