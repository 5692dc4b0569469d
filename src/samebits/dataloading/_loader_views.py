"""Views of loaders and samplers: the same objects, except for some attributes."""

from __future__ import annotations

import functools
import itertools
import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

from samebits._runtime.frames import FrameRanks, calling_frame, nearest_site
from samebits._torch.loaders import (
    index_sampler,
    replace_index_sampler,
    set_base_seed,
    set_shared_seed,
    shared_seed,
)
from samebits.dataloading._workers import LoaderEpoch, LoaderLedger, NextEpoch, WorkerInit
from samebits.rng.active import acting

if TYPE_CHECKING:
    from samebits.rng.active import Active


class View:
    """Passes everything on to an object, except attributes that have another value here.

    The object itself is not changed, not even for a moment, so other threads never see those values.

    Args:
        target: the object.
        attributes: those that differ.
    """

    __slots__ = ("_samebits_attributes", "_samebits_target")

    def __init__(self, target: Any, **attributes: Any) -> None:
        object.__setattr__(self, "_samebits_target", target)
        object.__setattr__(self, "_samebits_attributes", attributes)

    def __getattr__(self, name: str) -> Any:
        if name in self._samebits_attributes:
            return self._samebits_attributes[name]
        return getattr(self._samebits_target, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._samebits_target, name, value)

    def __len__(self) -> int:
        return len(self._samebits_target)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """The class of the object, for `isinstance`."""
        return type(self._samebits_target)


DRAWS = "_samebits_draws"  # an attribute of torch's iterators, which live and die with one loop of the user
OUT_OF_ORDER = (
    "DataLoader(in_order=False) returns batches in the order in which workers finish, which differs from run "
    "to run; leave in_order out to get the same order every time"
)


class SamplerDraws:
    """Generators for torch's samplers during one pass over the indices of a loader."""

    def __init__(self, epoch: LoaderEpoch) -> None:
        self._epoch = epoch
        self._numbers = itertools.count()

    def generator(self, torch: Any, device: Any) -> Any:
        """Make a generator for the next sampler that draws; one that is iterated again counts as another."""
        seed = self._epoch.seed_for("sampler", next(self._numbers))
        return torch.Generator(device=device).manual_seed(seed)

    def keyed(self, torch: Any, sampler: Any) -> Any:
        """Return a view of a sampler without a generator, to which the view adds one."""
        return _KeyedSampler(sampler, torch, self)


class _KeyedSampler(View):
    """A sampler whose generator is made when it draws, not when its iteration begins, as torch's would be."""

    __slots__ = ("_samebits_generator",)

    def __init__(self, sampler: Any, torch: Any, draws: SamplerDraws) -> None:
        super().__init__(sampler)

        def generator() -> Any:
            weights = getattr(sampler, "weights", None)
            device = torch.get_default_device() if weights is None else weights.device
            return draws.generator(torch, device)

        object.__setattr__(self, "_samebits_generator", functools.cache(generator))

    @property
    def generator(self) -> Any:
        """The keyed generator."""
        return self._samebits_generator()


class LoaderViews:
    """Makes the views of the loaders that are iterated.

    Args:
        active: the activation whose seed, scope and counts are used, or those of an activation inside of it.
        torch: the module.
    """

    def __init__(self, active: Active, torch: Any) -> None:
        self._active, self._torch = active, torch
        self._ledger = LoaderLedger(active)
        self._warned: set[str] = set()
        # Import now what an iteration needs, because a fork copies the lock of an import in a thread.
        torch.get_default_device()
        if active.control.keyed_samples:
            import_module("samebits.dataloading._keyed_loaders")

    def view(self, loader: Any, *, resumes: bool) -> Any:
        """Return the loader's view for this iteration; the loader itself if it is a view or has no seed.

        Args:
            loader: that torch's iterator was given.
            resumes: whether workers that live on begin another epoch.
        """
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
            samebits_resumes=resumes,
            **self._sample_parts(loader, epoch),
        )

    def _sample_parts(self, loader: Any, epoch: LoaderEpoch) -> dict[str, Any]:
        """Return parts of the loader that give each sample a key, if control asks for keyed samples."""
        if not acting(self._active).control.keyed_samples or hasattr(loader.dataset, "samebits_keyed"):
            return {}
        from samebits.dataloading._keyed_loaders import NO_NUMBERS, keyed_parts  # loaded by few scripts

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
        site = nearest_site(FrameRanks(), calling_frame())
        where = ("samebits", 0) if site is None else (site.file, site.line)
        warnings.warn_explicit(text, UserWarning, *where)

    @staticmethod
    def holds(view: Any) -> bool:
        """Tell whether the object is a view."""
        return type(view) is View

    @staticmethod
    def begin(iterator: Any, view: Any, *, is_base: bool) -> None:
        """Prepare torch's method: samplers get their own draws, live workers new indices."""
        if is_base:
            vars(iterator)[DRAWS] = SamplerDraws(view.samebits_epoch)
        if view.samebits_resumes and hasattr(index_sampler(view), "samebits_indices"):
            replace_index_sampler(iterator, index_sampler(view))

    @staticmethod
    def finish(iterator: Any, view: Any, *, resumed: bool) -> None:
        """Replace the seeds that the method of torch's base class drew for workers.

        Args:
            iterator: the iterator.
            view: the view of its loader.
            resumed: the method begins an epoch of which persistent workers have not been told yet.
        """
        if resumed and not (view.samebits_resumes and view.num_workers > 0):
            return
        epoch, keyed = view.samebits_epoch, view.samebits_keyed
        if keyed:
            set_base_seed(iterator, epoch.base_seed)
        if resumed:
            set_shared_seed(iterator, NextEpoch(epoch, _plain(shared_seed(iterator)), reseed=keyed))

    @staticmethod
    def forget_epoch(iterator: Any) -> None:
        """Leave the plain shared seed, so that no epoch is sent again once control has ended."""
        sent = shared_seed(iterator)
        if isinstance(sent, NextEpoch):
            set_shared_seed(iterator, _plain(sent))


def _plain(sent: Any) -> Any:
    """Return the shared seed itself; each nested control wraps it in its epoch."""
    return sent.shared_seed if isinstance(sent, NextEpoch) else sent
