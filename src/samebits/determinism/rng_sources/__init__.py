"""The RNG sources that samebits knows, one class each; `plugins` finds those of other packages."""

from __future__ import annotations

from samebits.determinism.rng_sources.accelerators import Accelerator, PrivateBackend, Xla
from samebits.determinism.rng_sources.dtensor import DTensorTracker
from samebits.determinism.rng_sources.libraries import CuPy, OpenCV, TensorFlow
from samebits.determinism.rng_sources.numpy_global import NumpyGlobal
from samebits.determinism.rng_sources.python_random import PythonRandom
from samebits.determinism.rng_sources.source import RngSource
from samebits.determinism.rng_sources.torch_devices import LazyDevices, Mps, TorchCpu

__all__ = ["BUILT_IN", "RngSource"]

_BACKENDS = {
    "npu": "torch_npu",
    "mlu": "torch_mlu",
    "hpu": "habana_frameworks.torch",
    "musa": "torch_musa",
    "sdaa": "torch_sdaa",
}
"""Name of a backend -> the package that registers it."""

BUILT_IN: tuple[RngSource, ...] = (
    PythonRandom(),
    NumpyGlobal(),
    TorchCpu(),
    LazyDevices("cuda"),
    LazyDevices("xpu"),
    Mps(),
    Accelerator("mtia"),
    *(Accelerator(name, package) for name, package in _BACKENDS.items()),
    PrivateBackend(tuple(_BACKENDS)),
    Xla(),
    DTensorTracker(),
    CuPy(),
    OpenCV(),
    TensorFlow(),
)
