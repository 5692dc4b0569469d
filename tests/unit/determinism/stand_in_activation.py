"""Stands in for `samebits.determinism.activation` where that is not there; the same contract."""

from __future__ import annotations

import sys

from samebits.determinism import rng
from samebits.determinism.loaders import LoaderControl
from samebits.determinism.process import PROCESS, Active
from samebits.determinism.processes import ChildProcesses
from samebits.hooks.imports import PostImport
from samebits.hooks.patching import Patches


class Activation:
    """Seeds sources, now or when they are imported; keys `default_rng()`; controls loaders and children."""

    def __init__(self, control, *, fresh_process):
        self._active = Active(control, control.seed)
        self._children = ChildProcesses(self._active)
        self._loaders = LoaderControl(self._active)
        self._imports = PostImport()
        self._patches = Patches()

    def start(self):
        """Begin."""
        PROCESS.push(self._active)
        if self._active.source_seed is not None:
            rng.seed_sources(self._active.source_seed)
        self._children.install()
        self._imports.install()
        self._imports.on_import("numpy", self._numpy)
        self._imports.on_import("torch", self._torch)

    def stop(self):
        """End."""
        for part in (self._children, self._loaders, self._imports):
            part.remove()
        self._patches.restore()
        PROCESS.drop(self._active)

    def _numpy(self, numpy):
        original = numpy.random.default_rng

        def default_rng(seed=None):
            return original(self._active.next_seed("numpy") if seed is None else seed)

        self._patches.set(numpy.random, "default_rng", default_rng)
        self._seed("numpy")

    def _torch(self, torch):
        self._loaders.install(torch)
        self._seed("torch")

    def _seed(self, name):
        assert name in sys.modules
        sources = [source for source in rng.sources() if source.name == name]
        if self._active.source_seed is not None:
            rng.seed_sources(self._active.source_seed, sources)
