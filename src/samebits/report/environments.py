"""Two environments compared, in English and as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from samebits._text.printable import printable
from samebits.environment.influence import Results, Strength
from samebits.environment.numeric_libraries import LibraryKind
from samebits.recording.unread_words import REASONS
from samebits.report.style import Style, count

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from samebits.comparison.environments import EnvironmentComparison, EnvironmentDifference, FactDifference
    from samebits.comparison.unread_data import UnknownData, UnknownFiles

SCHEMA = 1
_MOST_FOLLOWS = 3
_MOST_UNKNOWN = 5
_FACTS = {
    ("source", "commit"): "commit of the script's repository",
    ("source", "changed"): "uncommitted changes in the script's repository",
    ("arguments",): "arguments of the script",
    ("control", "seed"): "seed",
    ("control", "portable"): "portable mode",
    ("ranks", "world_size"): "number of ranks",
    ("python", "version"): "Python version",
    ("python", "implementation"): "Python implementation",
    ("python", "hash_seed"): "hash seed of Python",
    ("python", "optimize"): "`-O` level of Python",
    ("torch", "version"): "torch version",
    ("torch", "git"): "torch build",
    ("torch", "cuda"): "CUDA version of torch",
    ("torch", "cudnn"): "cuDNN version",
    ("torch", "nccl"): "NCCL version",
    ("torch", "mkl"): "MKL version",
    ("torch", "onednn"): "oneDNN version",
    ("torch", "openmp"): "OpenMP version",
    ("torch", "capability"): "CPU instruction set that torch uses",
    ("torch", "default_dtype"): "default dtype of torch",
    ("torch", "gpus"): "GPUs",
    ("torch", "attention"): "ops of attention",
    ("machine", "architecture"): "processor architecture",
    ("machine", "processor"): "processor",
    ("machine", "instructions"): "vector instructions of the processor",
    ("machine", "libc"): "C library",
    ("machine", "gpu_driver"): "GPU driver",
    ("machine", "system"): "kernel",
    ("machine", "distribution"): "operating system",
    ("machine", "container"): "container",
    ("machine", "cpus"): "number of processors",
}
_LIBRARIES: dict[str, str] = {
    LibraryKind.CUBLAS: "cuBLAS",
    LibraryKind.CUDNN: "cuDNN",
    LibraryKind.NCCL: "NCCL",
    LibraryKind.CUSOLVER: "cuSOLVER",
    LibraryKind.CUSPARSELT: "cuSPARSELt",
    LibraryKind.CUSPARSE: "cuSPARSE",
    LibraryKind.CUFFT: "cuFFT",
    LibraryKind.CURAND: "cuRAND",
    LibraryKind.NVRTC: "CUDA run-time compiler",
    LibraryKind.NVSHMEM: "NVSHMEM",
    LibraryKind.CUDA_RUNTIME: "CUDA runtime",
    LibraryKind.CUDA_DRIVER: "library of the GPU driver",
    LibraryKind.MIOPEN: "MIOpen",
    LibraryKind.ROCBLAS: "rocBLAS",
    LibraryKind.RCCL: "RCCL",
    LibraryKind.ROCM: "libraries of ROCm",
    LibraryKind.MKL: "MKL",
    LibraryKind.ONEDNN: "oneDNN",
    LibraryKind.BLAS: "BLAS",
    LibraryKind.OPENMP: "OpenMP",
    LibraryKind.MATHS: "mathematical functions of the C library",
}
# Tables of facts: the name of one entry, and the word for a missing one.
_TABLES = {
    ("torch", "threads"): ("{} threads", "unknown"),
    ("torch", "compiled"): ("code that torch.compile generated for graph {}", "none"),
    ("torch", "gemms"): ("algorithm of the matrix product {}", "unknown"),
    ("torch", "switches"): ("torch.{}", "missing"),
    ("switches",): ("switch {}", "missing"),
    ("variables",): ("environment variable {}", "not set"),
    ("libraries",): ("loaded library {}", "not loaded"),
    ("packages",): ("package {}", "not imported"),
    ("distributions",): ("package {}", "not imported"),
    ("code",): ("code of {}", "not used"),
    ("data", "files"): ("data file {}", "not read"),
}
# The words for what is not on a machine on which nothing ran; where they are those of a run, none.
_MISSING_HERE = {
    ("distributions",): "not installed here",
    ("code",): "not found here",
    ("data", "files"): "no such file here",
}
_RESULTS = {
    Results.ALL: "everything",
    Results.SETS: "the order of sets and of what is made of them",
    Results.NORMAL_NUMBERS: "normal random numbers (initial weights)",
    Results.SUMS: "sums and means",
    Results.PRODUCTS: "matrix products and linear layers",
    Results.LOW_PRECISION_PRODUCTS: "linear layers in bf16",
    Results.CONVOLUTIONS: "convolutions",
    Results.CONVOLUTION_GRADIENTS: "gradients of convolutions",
    Results.NORMALISATIONS: "layer and batch norms",
    Results.BATCH_NORMS: "batch norms",
    Results.SOFTMAX: "softmax and cross entropy",
    Results.ACTIVATIONS: "activation functions",
    Results.ATTENTION: "attention",
    Results.RECURRENT: "LSTM and GRU",
    Results.DECOMPOSITIONS: "decompositions (SVD, QR)",
    Results.SPARSE_PRODUCTS: "products of sparse matrices",
    Results.FOURIER: "Fourier transforms",
    Results.GRID_SAMPLING: "grid sampling",
    Results.CTC_LOSS: "CTC loss",
    Results.OPTIMIZERS: "optimizer steps",
    Results.COMPILED: "compiled code",
    Results.COLLECTIVES: "collectives",
    Results.CUDA: "what runs on the GPU",
    Results.PACKAGE: "whatever this package computes",
    Results.LIBRARY_MATHS: "mathematical functions of Python and NumPy",
}
_STRENGTHS = {
    Strength.INPUT: "it is an input of the run",
    Strength.MEASURED: "measured",
    Strength.DOCUMENTED: "documented",
    Strength.POSSIBLE: "possible",
}


def fact_difference(fact: FactDifference) -> str:
    """Name a fact that differs between two environments, with its values."""
    if fact.is_list:
        sides = ((fact.first, "the first"), (fact.second, "the second"))
        only = "; ".join(f"only {side} has {items}" for items, side in sides if items)
        return f"{_name(fact)}: {only or 'in another order'}"
    first, second = _values(fact)
    return f"{_name(fact)}: {first} and {second}"


def effect(difference: EnvironmentDifference) -> str:
    """Say which results a difference can change, and how sure that is."""
    results = ", ".join(_RESULTS[each] for each in difference.results)
    here = "; the operation at which the runs part is among these" if difference.at_origin else ""
    return f"{results} ({_STRENGTHS[difference.strength]}){here}"


def render_text(
    names: tuple[str, str],
    comparison: EnvironmentComparison,
    style: Style,
    *,
    everything: bool = False,
    most: int | None = None,
) -> str:
    """Return the differences, the likeliest first, with what each can change.

    Args:
        names: of the two environments.
        comparison: of them.
        style: width and colours.
        everything: list what changes nothing too.
        most: differences that are shown; None for all.
    """
    lines = [style.paint(printable(_head(names, comparison)), "bold")]
    for number, difference in enumerate(comparison.differences[:most], 1):
        lines += ["", *_numbered(number, difference, style, everything=everything)]
    hidden = 0 if most is None else len(comparison.differences) - most
    if hidden > 0:
        lines += ["", f"and {hidden} more (`samebits diff {names[0]} {names[1]}`)"]
    most_unknown = None if everything else _MOST_UNKNOWN
    unknown = unknown_texts(comparison.unknown, names, most_unknown)
    lines += [""] if unknown else []
    lines += [line for text in unknown for line in style.wrap(printable(f"not known: {text}"), hanging=2)]
    return "\n".join([*lines, *_others(comparison.others, style, everything=everything)])


def unknown_texts(unknown: UnknownFiles, names: tuple[str, str], most: int | None = None) -> list[str]:
    """Name the data files that cannot be compared, one a text.

    Args:
        unknown: the files.
        names: of the two runs.
        most: files that are named; None for all.
    """
    texts = [_unknown_text(each, names) for each in unknown.files[:most]]
    more = len(unknown.files) - len(texts) + unknown.unlisted
    return [*texts, f"{count(more, 'more data file')}, not compared either"] if more else texts


def _unknown_text(file: UnknownData, names: tuple[str, str]) -> str:
    sides = zip((file.first, file.second), names, strict=True)
    why = " and ".join(f"in {name} ({REASONS[reason]})" for reason, name in sides if reason is not None)
    return f"data file {file.name} has no digest {why}, so it cannot be compared"


def _head(names: tuple[str, str], comparison: EnvironmentComparison) -> str:
    number = len(comparison.differences)
    what = count(number, "difference") if number else "nothing"
    return f"{names[0]} and {names[1]}: {what} that can change bits"


def _numbered(number: int, difference: EnvironmentDifference, style: Style, *, everything: bool) -> list[str]:
    lines = style.wrap(printable(f"{number}. {fact_difference(difference.fact)}"), hanging=3)
    lines += style.wrap(f"can change: {effect(difference)}", indent=3, hanging=5)
    most = len(difference.follows) if everything else _MOST_FOLLOWS
    for follow in difference.follows[:most]:
        lines += style.wrap(printable(f"with it: {fact_difference(follow)}"), indent=3, hanging=5)
    rest = len(difference.follows) - most
    return [*lines, f"   and {rest} more that come with it (--all)"] if rest > 0 else lines


def _others(others: Sequence[FactDifference], style: Style, *, everything: bool) -> list[str]:
    """Return the lines on what differs and changes nothing."""
    if not others:
        return []
    if not everything:
        verb = "changes" if len(others) == 1 else "change"
        return ["", f"{count(len(others), 'further difference')} {verb} no bits (--all)"]
    listed = [
        line for fact in others for line in style.wrap(printable(f"- {fact_difference(fact)}"), hanging=2)
    ]
    return ["", "these differ too, and change no bits by themselves:", *listed]


def render_json(names: tuple[str, str], comparison: EnvironmentComparison) -> str:
    """Return the same as one JSON object: the schema of docs/reference/environment.md."""
    return json.dumps(
        {
            "schema": SCHEMA,
            "first": names[0],
            "second": names[1],
            "differences": [
                {
                    **_fact_json(each.fact),
                    "can_change": [str(result) for result in each.results],
                    "strength": each.strength.name.lower(),
                    "at_origin": each.at_origin,
                    "with_it": [_fact_json(fact) for fact in each.follows],
                }
                for each in comparison.differences
            ],
            "others": [_fact_json(fact) for fact in comparison.others],
            "unknown": {
                "data_files": [asdict(each) for each in comparison.unknown.files],
                "unlisted": comparison.unknown.unlisted,
            },
        },
        indent=2,
    )


def _fact_json(fact: FactDifference) -> dict[str, Any]:
    path = fact.path if fact.entry is None else (*fact.path, fact.entry)
    return {"fact": list(path), "name": _name(fact), "first": fact.first, "second": fact.second}


def _name(fact: FactDifference) -> str:
    if fact.entry is None:
        return _FACTS.get(fact.path, ".".join(fact.path))
    names: Mapping[str, str] = _LIBRARIES if fact.path == ("libraries",) else {}
    entry = names.get(fact.entry, fact.entry)
    return _TABLES[fact.path][0].format(entry)


def _values(fact: FactDifference) -> Sequence[str]:
    missing = "unknown" if fact.entry is None else _TABLES[fact.path][1]
    if fact.is_with_machine:
        missing = _MISSING_HERE.get(fact.path, missing)
    return [missing if value is None else value for value in (fact.first, fact.second)]
