"""Control of DataLoaders: seeded workers, a keyed order, and global generators that stay untouched.

All seeds follow from the loader and its iteration (`_workers.LoaderEpoch`). Torch's iterators are given a
view of the loader in which the missing generator and the `worker_init_fn` are samebits' own; the loader, its
samplers and the dataset are never written to. A loader or a sampler keeps a generator that it was given.

Torch's samplers draw lazily, at their first `next`, often below the batch sampler of another library.
They are recognised by the iterator that drives them in this thread at that moment (`_next_index`).

Based on torch 2.13.0, torch/utils/data/dataloader.py, sampler.py and _utils/worker.py.
"""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING, Any

from samebits._runtime.patching import Patches
from samebits._torch.loaders import LOADER_NEXT_INDEX, LOADER_RESET, loader_iterator_classes
from samebits.dataloading._loader_views import DRAWS, LoaderViews

if TYPE_CHECKING:
    from samebits.rng.active import Active

_SAMPLERS = ("RandomSampler", "SubsetRandomSampler", "WeightedRandomSampler")


class _Driving(threading.local):
    """The iterator that is at work in this thread."""

    iterator: Any = None


class LoaderControl:
    """Keys the random numbers of every DataLoader.

    Args:
        active: the activation whose seed, scope and counts are used, or those of an activation inside of it.
            While there is no run seed, and with `Control(workers=False)`, nothing is done.
    """

    def __init__(self, active: Active) -> None:
        self._active = active
        self._patches = Patches()
        self._driving = _Driving()
        self._torch: Any = None
        self._views: Any = None

    def install(self, torch: Any) -> None:
        """Control the loaders that are iterated from now on.

        Args:
            torch: the module.
        """
        classes = loader_iterator_classes()
        if not self._active.control.workers or not classes:
            return
        self._torch, self._views = torch, LoaderViews(self._active, torch)
        base = classes[0]
        for kind in classes:
            self._follow(kind, is_base=kind is base)
        self._follow_later_classes(base)
        self._patch_next_index(base)
        for name in _SAMPLERS:
            self._patch_sampler(getattr(torch.utils.data, name))

    def remove(self) -> None:
        """Put everything back; existing iterators finish their epoch as they began it."""
        self._patches.restore()

    def _follow(self, kind: type[Any], *, is_base: bool = False) -> None:
        for name in ("__init__", LOADER_RESET):
            if name in vars(kind):
                self._patches.set(kind, name, self._with_view(vars(kind)[name], is_base=is_base))

    def _follow_later_classes(self, base: type[Any]) -> None:
        follow, earlier = self._follow, vars(base).get("__init_subclass__")

        def __init_subclass__(cls: type[Any], /, **arguments: Any) -> None:  # noqa: N807 - Python's name
            if earlier is None:
                super(base, cls).__init_subclass__(**arguments)
            else:
                earlier.__get__(None, cls)(**arguments)
            follow(cls)

        self._patches.set(base, "__init_subclass__", classmethod(__init_subclass__))

    def _with_view(self, original: Any, *, is_base: bool) -> Any:
        """Wrap a method that takes a loader, to give it a view; the outermost call begins an iteration."""
        driving, name = self._driving, original.__name__

        @functools.wraps(original)
        def method(iterator: Any, loader: Any = None, *arguments: Any, **named: Any) -> Any:
            views = self._views
            view = views.view(loader, resumes=name == LOADER_RESET)
            if not views.holds(view):
                return original(iterator, view, *arguments, **named)
            before, driving.iterator = driving.iterator, iterator
            try:
                views.begin(iterator, view, is_base=is_base)
                result = original(iterator, view, *arguments, **named)
                if is_base:
                    views.finish(iterator, view, resumed=name == LOADER_RESET)
            finally:
                driving.iterator = before
                if view is not loader:
                    views.forget_epoch(iterator)
            return result

        return method

    def _patch_next_index(self, base: type[Any]) -> None:
        original = getattr(base, LOADER_NEXT_INDEX, None)
        if original is None:
            return
        driving = self._driving

        @functools.wraps(original)
        def next_index(iterator: Any) -> Any:
            before, driving.iterator = driving.iterator, iterator
            try:
                return original(iterator)
            finally:
                driving.iterator = before

        self._patches.set(base, LOADER_NEXT_INDEX, next_index)

    def _patch_sampler(self, kind: type[Any]) -> None:
        original: Any = vars(kind)["__iter__"]
        driving, torch = self._driving, self._torch

        @functools.wraps(original)
        def iterate(sampler: Any) -> Any:
            draws: Any = getattr(driving.iterator, DRAWS, None)
            if draws is None or sampler.generator is not None:
                return original(sampler)
            return original(draws.keyed(torch, sampler))

        self._patches.set(kind, "__iter__", iterate)
