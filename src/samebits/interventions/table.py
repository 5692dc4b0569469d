"""All interventions: those that settings of the run make, and those that have a part inside the process."""

from __future__ import annotations

from samebits._runtime.address_layout import why_layout_cannot_be_fixed
from samebits.interventions.clock import CLOCK
from samebits.interventions.completion import COMPLETION
from samebits.interventions.entropy import ENTROPY
from samebits.interventions.file_system import FILE_TIMES, INODES, LISTING
from samebits.interventions.intervention import Intervention
from samebits.interventions.machine import MEMORY_LOAD, PORTS, PROCESS
from samebits.interventions.memory import FILL
from samebits.interventions.parallelism import SERIAL_PROCESSES, THREAD_CALLS, THREADS, WORKERS
from samebits.interventions.scheduler import SERIAL_THREADS
from samebits.interventions.serial_streams import SERIAL_STREAMS
from samebits.rng.sources import BUILT_IN, NUMPY, PYTHON, TORCH, sources_seeded_by
from samebits.rng.sources.source import SEED_LIBRARIES

_HASH = ("PYTHONHASHSEED", "0")
SEED_PYTHON = Intervention(
    PYTHON.intervention,
    "with Python's generators seeded",
    sources=sources_seeded_by(PYTHON.intervention),
    limits="a seed that the script gives stays, also one taken from the clock",
)
SEED_NUMPY = Intervention(
    NUMPY.intervention,
    "with NumPy's generators seeded",
    sources=sources_seeded_by(NUMPY.intervention),
    limits="a seed that the script gives stays, also one taken from the clock",
)
SEED_TORCH = Intervention(
    TORCH.intervention,
    "with torch's generators seeded",
    sources=sources_seeded_by(TORCH.intervention),
    limits="a seed that the script gives stays, also one taken from the clock",
)
_OTHERS = [source.title for source in BUILT_IN if source.intervention == SEED_LIBRARIES]
SEED_OTHERS = Intervention(
    SEED_LIBRARIES,
    f"with the generators of {', '.join(_OTHERS[:-1])} and {_OTHERS[-1]} seeded",
    sources=sources_seeded_by(SEED_LIBRARIES),
)
HASH_SEED = Intervention(
    "hash-seed",
    "with the hash seed fixed",
    environment=(_HASH,),
    limits="a value of PYTHONHASHSEED that the user set stays",
)
LAYOUT = Intervention(
    "layout",
    "with addresses fixed",
    environment=(
        _HASH,
        ("PYTHONDONTWRITEBYTECODE", "1"),
    ),  # else the first run compiles
    fixed_layout=True,
    obstacle=why_layout_cannot_be_fixed,
    limits="addresses follow from everything that is allocated before: threads and large differences "
    "between the runs still move them. Hashes are fixed too, for they decide what is allocated",
)
DETERMINISTIC = Intervention(
    "deterministic",
    "with deterministic algorithms",
    switches=(
        ("deterministic-algorithms", "warn"),
        ("fill-uninitialized", "off"),
        ("cudnn-deterministic", "on"),
        ("cudnn-benchmark", "off"),
        ("mkldnn-deterministic", "on"),
        ("prepare-vector-math", "on"),
        ("CUBLAS_WORKSPACE_CONFIG", ":4096:8"),
    ),
    limits="ops that have no deterministic kernel, of torch or of samebits, run and warn; `warn` leaves the "
    "backward of fused attention nondeterministic on CUDA",
)
EAGER = Intervention(
    "eager",
    "with torch.compile switched off",
    environment=(("TORCHDYNAMO_DISABLE", "1"),),
)
AUTOTUNING = Intervention(
    "autotuning",
    "with no kernel chosen by timing",
    environment=(("PYTORCH_TUNABLEOP_ENABLED", "0"), ("TORCHINDUCTOR_DETERMINISTIC", "1")),
    switches=(
        ("cudnn-benchmark", "off"),
        ("inductor-max-autotune", "off"),
        ("inductor-max-autotune-gemm", "off"),
        ("inductor-max-autotune-pointwise", "off"),
        ("inductor-coordinate-descent", "off"),
        ("inductor-benchmark-fusion", "off"),
        ("inductor-benchmark-template-fusion", "off"),
        ("inductor-benchmark-combo-kernel", "off"),
        ("inductor-shape-padding", "off"),
        ("inductor-triton-multi-kernel", "0"),
    ),
    limits="a choice that the script makes itself, by the clock (`clock`)",
)
INTERVENTIONS: tuple[Intervention, ...] = (
    SEED_PYTHON,
    SEED_NUMPY,
    SEED_TORCH,
    SEED_OTHERS,
    HASH_SEED,
    LAYOUT,
    CLOCK,
    ENTROPY,
    PROCESS,
    PORTS,
    FILE_TIMES,
    INODES,
    MEMORY_LOAD,
    LISTING,
    COMPLETION,
    SERIAL_THREADS,
    SERIAL_PROCESSES,
    WORKERS,
    THREADS,
    THREAD_CALLS,
    SERIAL_STREAMS,
    DETERMINISTIC,
    FILL,
    EAGER,
    AUTOTUNING,
)
"""All interventions, in the order in which they are listed."""
