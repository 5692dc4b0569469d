"""DataLoaders: their workers are seeded, their order is keyed, and they leave the global generators alone.

Which iteration of which loader it is decides everything (`epochs.LoaderEpoch`). Torch's iterators are given a
view of the loader in which the missing generator and the `worker_init_fn` are samebits' own; the loader, its
samplers and the dataset are never written to. A loader or a sampler with a generator of its own keeps it.

Torch's samplers draw lazily, at their first `next`, often below a batch sampler of somebody else. They are
recognised by the iterator that drives them at that moment (`_next_index`), in that thread.

Read in torch 2.13.0, torch/utils/data/dataloader.py, sampler.py and _utils/worker.py.
"""

from __future__ import annotations

import functools
import itertools
import sys
import threading
import warnings
from typing import TYPE_CHECKING, Any

from samebits.determinism.epochs import LoaderEpoch, LoaderLedger
from samebits.determinism.process import acting
from samebits.determinism.views import View
from samebits.determinism.workers import NextEpoch, WorkerInit
from samebits.hooks.frames import FrameRanks, nearest_site
from samebits.hooks.patching import Patches
from samebits.torch_loaders import (
    LOADER_NEXT_INDEX,
    LOADER_RESET,
    index_sampler,
    loader_iterator_classes,
    replace_index_sampler,
    set_base_seed,
    set_shared_seed,
    shared_seed,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from samebits.determinism.process import Active

_SAMPLERS = ("RandomSampler", "SubsetRandomSampler", "WeightedRandomSampler")
_DRAWS = "_samebits_draws"  # an attribute of torch's iterators, which live and die with one loop of the user
OUT_OF_ORDER = (
    "DataLoader(in_order=False) hands over batches in the order in which workers finish, which differs from "
    "run to run; leave in_order out to get the same order again"
)


class _SamplerDraws:
    """Generators for torch's samplers during one pass over the indices of a loader."""

    def __init__(self, epoch: LoaderEpoch) -> None:
        self._epoch = epoch
        self._numbers = itertools.count()

    def generator(self, torch: Any, device: Any) -> Any:
        """For the next sampler that draws; a sampler that is iterated again counts as another one."""
        seed = self._epoch.seed_for("sampler", next(self._numbers))
        return torch.Generator(device=device).manual_seed(seed)


class _KeyedSampler(View):
    """A sampler whose generator is made when it draws, not when its iteration begins, as torch's would be."""

    __slots__ = ("_samebits_generator",)

    def __init__(self, sampler: Any, torch: Any, draws: _SamplerDraws) -> None:
        super().__init__(sampler)

        def generator() -> Any:
            weights = getattr(sampler, "weights", None)
            device = torch.get_default_device() if weights is None else weights.device
            return draws.generator(torch, device)

        object.__setattr__(self, "_samebits_generator", functools.cache(generator))

    @property
    def generator(self) -> Any:
        """The keyed one."""
        return self._samebits_generator()


class _Driving(threading.local):
    """The iterator that is at work in this thread."""

    iterator: Any = None


class LoaderControl:
    """Keys the random numbers of every DataLoader.

    Args:
        active: the activation whose seed, scope and counts are used, or those of one inside of it. While
            there is no run seed, and with `Control(workers=False)`, nothing is done.
    """

    def __init__(self, active: Active) -> None:
        self._active = active
        self._ledger = LoaderLedger(active)
        self._patches = Patches()
        self._driving = _Driving()
        self._torch: Any = None
        self._warned: set[str] = set()

    def install(self, torch: Any) -> None:
        """Control the loaders that are iterated from now on.

        Args:
            torch: the module.
        """
        classes = loader_iterator_classes()
        if not self._active.control.workers or not classes:
            return
        self._torch = torch
        base = classes[0]
        for kind in classes:
            self._follow(kind, is_base=kind is base)
        self._follow_later_classes(base)
        self._patch_next_index(base)
        for name in _SAMPLERS:
            self._patch_sampler(getattr(torch.utils.data, name))

    def remove(self) -> None:
        """Put everything back; iterators that exist go on as they began, for this epoch."""
        self._patches.restore()

    def _follow(self, kind: type[Any], *, is_base: bool = False) -> None:
        for name, finish in (("__init__", _began), (LOADER_RESET, _resumed)):
            if name in vars(kind):
                wrapped = self._with_view(vars(kind)[name], finish if is_base else None)
                self._patches.set(kind, name, wrapped)

    def _follow_later_classes(self, base: type[Any]) -> None:
        follow, earlier = self._follow, vars(base).get("__init_subclass__")

        def __init_subclass__(cls: type[Any], /, **arguments: Any) -> None:  # noqa: N807 - Python's name
            if earlier is None:
                super(base, cls).__init_subclass__(**arguments)
            else:
                earlier.__get__(None, cls)(**arguments)
            follow(cls)

        self._patches.set(base, "__init_subclass__", classmethod(__init_subclass__))

    def _with_view(self, original: Any, finish: Callable[[Any, Any], None] | None) -> Any:
        """A method that takes a loader, given a view of it; in the outermost one an iteration begins."""
        driving, viewed = self._driving, self._viewed

        @functools.wraps(original)
        def method(iterator: Any, loader: Any = None, *arguments: Any, **named: Any) -> Any:
            view = viewed(loader, original.__name__)
            if type(view) is not View:
                return original(iterator, view, *arguments, **named)
            if finish is not None:
                vars(iterator)[_DRAWS] = _SamplerDraws(view.samebits_epoch)
            before, driving.iterator = driving.iterator, iterator
            try:
                if view.samebits_resumes and hasattr(index_sampler(view), "samebits_indices"):
                    replace_index_sampler(iterator, index_sampler(view))
                result = original(iterator, view, *arguments, **named)
                if finish is not None:
                    finish(iterator, view)
            finally:
                driving.iterator = before
                if view is not loader:
                    _forget_epoch(iterator)
            return result

        return method

    def _viewed(self, loader: Any, method: str) -> Any:
        torch = self._torch
        epoch = None if type(loader) is View else self._ledger.begin(loader, torch.initial_seed())
        if epoch is None:
            return loader
        self._warn_of_order(loader)
        keyed = loader.generator is None
        generator = loader.generator
        if keyed:
            generator = torch.Generator(device=torch.get_default_device()).manual_seed(epoch.base_seed)
        return View(
            loader,
            generator=generator,
            worker_init_fn=WorkerInit(epoch, loader.worker_init_fn, keyed),
            samebits_epoch=epoch,
            samebits_keyed=keyed,
            samebits_resumes=method == LOADER_RESET,
            **self._sample_parts(loader, epoch),
        )

    def _sample_parts(self, loader: Any, epoch: LoaderEpoch) -> dict[str, Any]:
        """Parts of the loader under which each sample has a key, where that was asked for."""
        if not acting(self._active).control.keyed_samples or hasattr(loader.dataset, "samebits_keyed"):
            return {}
        from samebits.determinism.keyed_loaders import NO_NUMBERS, keyed_parts  # loaded by few scripts

        iterable = isinstance(loader.dataset, self._torch.utils.data.IterableDataset)
        if iterable and loader.num_workers > 1:
            self._warn_once(NO_NUMBERS)
        return keyed_parts(loader, epoch, iterable=iterable)

    def _warn_of_order(self, loader: Any) -> None:
        if loader.num_workers > 0 and not getattr(loader, "in_order", True):
            self._warn_once(OUT_OF_ORDER)

    def _warn_once(self, text: str) -> None:
        if text in self._warned:
            return
        self._warned.add(text)
        site = nearest_site(FrameRanks(), sys._getframe(1))
        where = ("samebits", 0) if site is None else (site.file, site.line)
        warnings.warn_explicit(text, UserWarning, *where)

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
            draws: _SamplerDraws | None = getattr(driving.iterator, _DRAWS, None)
            if draws is None or sampler.generator is not None:
                return original(sampler)
            return original(_KeyedSampler(sampler, torch, draws))

        self._patches.set(kind, "__iter__", iterate)


def _began(iterator: Any, view: Any) -> None:
    """After the constructor of the base: what torch drew for the workers is replaced."""
    if view.samebits_keyed:
        set_base_seed(iterator, view.samebits_epoch.base_seed)


def _resumed(iterator: Any, view: Any) -> None:
    """After the base has begun an epoch, and before it is told to workers that live on."""
    if view.samebits_resumes and view.num_workers > 0:
        _began(iterator, view)
        epoch, keyed = view.samebits_epoch, view.samebits_keyed
        set_shared_seed(iterator, NextEpoch(epoch, shared_seed(iterator), reseed=keyed))


def _forget_epoch(iterator: Any) -> None:
    """Leave the plain shared seed, so that nothing of ours is sent again once control has ended."""
    sent = shared_seed(iterator)
    if isinstance(sent, NextEpoch):
        set_shared_seed(iterator, sent.shared_seed)
