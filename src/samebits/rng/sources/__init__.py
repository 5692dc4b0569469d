"""The RNG sources that samebits knows, one class each; `plugins` has those of other packages."""

from __future__ import annotations

from samebits.rng.sources.accelerators import PACKAGES, Accelerator, PrivateBackend, Xla
from samebits.rng.sources.libraries import CuPy, OpenCV, TensorFlow
from samebits.rng.sources.numpy_global import NUMPY, NumpyGlobal
from samebits.rng.sources.python_random import PYTHON, PythonRandom
from samebits.rng.sources.source import BuiltInSource, GeneratorObjects, Library, RngSource
from samebits.rng.sources.torch_devices import TORCH, Cuda, DTensorTracker, Mps, TorchCpu, Xpu

__all__ = [
    "BUILT_IN",
    "LIBRARIES",
    "NUMPY",
    "PYTHON",
    "RECORDED",
    "TORCH",
    "WITH_OBJECTS",
    "RngSource",
    "is_seeded_by",
    "package_of",
    "sources_seeded_by",
    "title_of",
]

BUILT_IN: tuple[BuiltInSource, ...] = (
    PythonRandom(),
    NumpyGlobal(),
    TorchCpu(),
    Cuda(),
    Xpu(),
    Mps(),
    Accelerator("mtia"),
    *(Accelerator(name, package) for name, package in PACKAGES.items()),
    PrivateBackend(tuple(PACKAGES)),
    Xla(),
    DTensorTracker(),
    CuPy(),
    OpenCV(),
    TensorFlow(),
)
"""In the order in which they are seeded and saved."""
LIBRARIES: tuple[Library, ...] = tuple(
    dict.fromkeys(source.library for source in BUILT_IN if source.library is not None)
)
"""The libraries that a cause is named after."""
WITH_OBJECTS: tuple[GeneratorObjects, ...] = tuple(
    source for source in BUILT_IN if isinstance(source, GeneratorObjects)
)
"""The sources that know the generator objects of their libraries."""

RECORDED: tuple[BuiltInSource, ...] = tuple(
    sorted((source for source in BUILT_IN if source.record_order), key=lambda source: source.record_order)
)
"""The sources whose states and seedings a record holds, in its order."""


def package_of(source: BuiltInSource) -> str:
    """Return the package whose import makes a source exist; empty where it always does."""
    return source.module.partition(".")[0]


def sources_seeded_by(intervention: str) -> tuple[str, ...]:
    """Return the names of the sources that an intervention seeds."""
    return tuple(source.name for source in BUILT_IN if source.intervention == intervention)


def is_seeded_by(source: str, call: str) -> bool:
    """Tell whether a recorded call seeds a source.

    The longest beginning of a call that a source declares counts: `torch.cuda.manual_seed` seeds no CPU.

    Args:
        source: its name in a record, such as `numpy` or `cuda:0`.
        call: its text in a record, such as `torch.manual_seed(0)`.
    """
    fitting = [
        (len(start), each.name) for each in BUILT_IN for start in each.seed_calls if call.startswith(start)
    ]
    return bool(fitting) and (max(fitting)[0], source.partition(":")[0]) in fitting


def title_of(library: str) -> str:
    """Return the name of a library in a report; empty where no cause is named after it.

    Args:
        library: its name.
    """
    return next((known.title for known in LIBRARIES if known.name == library), "")
