"""The seeds that a script sets itself: noticed, and on request made to follow from the run seed."""

from __future__ import annotations

import dataclasses
import functools
import random
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from samebits.determinism.process import acting
from samebits.determinism.seeds import derive
from samebits.hooks.frames import FrameRanks, Site, nearest_site
from samebits.hooks.imports import PostImport
from samebits.hooks.patching import Patches

if TYPE_CHECKING:
    from types import FrameType

    from samebits.determinism.process import Active

_MOST = 100
_OWN_SEEDING = "samebits.determinism.rng"


class ScriptSeed(NamedTuple):
    """A call by which the script, or a library on its behalf, seeded a global generator.

    Args:
        function: such as `torch.manual_seed`.
        given: the seed, as text.
        site: the line.
    """

    function: str
    given: str
    site: Site | None

    def to_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {**self._asdict(), "site": None if self.site is None else dataclasses.asdict(self.site)}


class ScriptSeeds:
    """Watches the functions that seed global generators with an explicit seed.

    A script that calls `torch.manual_seed(42)` has decided: the run seed has no effect on that generator any
    more. With `Control.reseed`, 42 stands for a seed that follows from the run seed and 42: equal seeds stay
    equal, other run seeds give other numbers.

    Args:
        active: the activation; its seed is the run seed.
    """

    def __init__(self, active: Active) -> None:
        self.seen: list[ScriptSeed] = []
        self._active = active
        self._patches = Patches()
        self._imports = PostImport()

    @functools.cached_property
    def _ranks(self) -> FrameRanks:
        return FrameRanks()  # takes half a millisecond, and many scripts never need it

    def install(self) -> None:
        """Begin, with libraries that are imported later as well."""
        self._watch(random, "seed", "random.seed")
        self._imports.install()
        self._imports.on_import("numpy.random", self._watch_numpy)
        self._imports.on_torch(self._watch_torch)

    def remove(self) -> None:
        """Stop."""
        self._imports.remove()
        self._patches.restore()

    def _watch_numpy(self, module: Any) -> None:
        self._watch(module, "seed", "numpy.random.seed")

    def _watch_torch(self, torch: Any) -> None:
        for owner in (torch, torch.random):
            self._watch(owner, "manual_seed", "torch.manual_seed")
        for name in ("manual_seed", "manual_seed_all"):
            for owner in (torch.cuda, torch.cuda.random):
                self._watch(owner, name, f"torch.cuda.{name}")

    def _watch(self, owner: Any, name: str, text: str) -> None:
        original = getattr(owner, name)

        @functools.wraps(original)
        def seed(*args: Any, **kwargs: Any) -> Any:
            if args and args[0] is not None and not _is_own(sys._getframe(1)):
                args = (self._seed_for(args[0], text, sys._getframe(1)), *args[1:])
            elif kwargs.get("seed") is not None and not _is_own(sys._getframe(1)):
                kwargs["seed"] = self._seed_for(kwargs["seed"], text, sys._getframe(1))
            return original(*args, **kwargs)

        self._patches.set(owner, name, seed)

    def _seed_for(self, given: Any, text: str, frame: FrameType) -> Any:
        """The seed that the call is to use: another one when the script's are to follow from the run's."""
        active = acting(self._active)
        call = ScriptSeed(text, repr(given)[:40], nearest_site(self._ranks, frame))
        if call not in self.seen and len(self.seen) < _MOST:
            self.seen.append(call)
        if not active.control.reseed or active.seed is None:
            return given
        return derive(active.seed, "script", repr(given)) & (2**32 - 1)


def _is_own(frame: FrameType | None) -> bool:
    """Whether the call is part of another one that seeds: torch's, or samebits' own."""
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        if not name.startswith("samebits.") or name.startswith(_OWN_SEEDING):
            return name.startswith((_OWN_SEEDING, "torch."))
        frame = frame.f_back  # a function that something else of samebits has put around the seeding one
    return True
