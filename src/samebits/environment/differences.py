"""Which facts of two runs' environments differ and can change bits."""

from __future__ import annotations

from typing import Any

# Path in the facts, and what a person calls it. Facts that are not here cannot change bits by themselves.
_NAMES = {
    ("source", "commit"): "commit of the script's repository",
    ("source", "changed"): "uncommitted changes in the script's repository",
    ("python", "version"): "Python version",
    ("python", "implementation"): "Python implementation",
    ("python", "hash_seed"): "hash seed of Python",
    ("python", "optimize"): "`-O` level of Python",
    ("torch", "version"): "torch version",
    ("torch", "git"): "torch build",
    ("torch", "cuda"): "CUDA version of torch",
    ("torch", "cudnn"): "cuDNN version",
    ("torch", "mkl"): "MKL version",
    ("torch", "onednn"): "oneDNN version",
    ("torch", "openmp"): "OpenMP version",
    ("torch", "capability"): "CPU instruction set that torch uses",
    ("torch", "gpus"): "GPUs",
    ("machine", "architecture"): "processor architecture",
    ("machine", "processor"): "processor",
    ("machine", "instructions"): "vector instructions of the processor",
    ("machine", "libc"): "C library",
    ("machine", "gpu_driver"): "GPU driver",
    ("libraries",): "numeric libraries loaded",
}
# Tables of facts: how one entry is called, and what stands for one that is missing.
_TABLES = {
    ("torch", "threads"): ("{} threads", "unknown"),
    ("torch", "switches"): ("torch.{}", "missing"),
    ("variables",): ("environment variable {}", "not set"),
    ("packages",): ("package {}", "not imported"),
}
_COME_LATER = {("libraries",), ("packages",), ("variables",)}  # a run has more of these the longer it goes on
_LONGEST_VALUE = 80
TAKEN = "taken"  # in the facts of a run that was killed: they are those of its start


def bit_relevant_differences(
    a: dict[str, Any], b: dict[str, Any], *, one_was_stopped: bool = False
) -> list[str]:
    """Name the facts that differ between two environments and can change bits, one line each.

    Args:
        a: facts of one run, as `Environment.to_dict` gave them; a record from elsewhere may hold anything.
        b: of the other.
        one_was_stopped: one run ended before its script did. What only the other imported, loaded or set came
            later there, or may have.
    """
    pairs = [
        (name, _get(a, path), _get(b, path))
        for path, name in _NAMES.items()
        if not (one_was_stopped and path in _COME_LATER)
    ]
    pairs = [pair for pair in pairs if None not in pair[1:]]  # unknown: a run killed early has few facts
    one_was_killed = (_get(a, (TAKEN,)) is None) != (_get(b, (TAKEN,)) is None)
    for path, (name, missing) in _TABLES.items():
        if one_was_killed and path == ("variables",):
            continue  # the other's are those of its end: its script may have set some itself
        first, second = _get(a, path), _get(b, path)
        if isinstance(first, dict) and isinstance(second, dict):
            both = one_was_stopped and path in _COME_LATER
            keys = sorted({*first} & {*second} if both else {*first, *second})
            pairs += [
                (name.format(_shorten(key)), first.get(key, missing), second.get(key, missing))
                for key in keys
            ]
    return [f"{name}: {_describe_pair(first, second)}" for name, first, second in pairs if first != second]


def threads_per_op(facts: dict[str, Any]) -> int | None:
    """How many threads an op of torch could use on the CPU when facts were taken; None when unknown.

    Args:
        facts: of one run, as `Environment.to_dict` gave them; a record from elsewhere may hold anything.
    """
    found = _get(facts, ("torch", "threads", "intra-op"))
    return found if isinstance(found, int) else None


def _get(facts: object, path: tuple[str, ...]) -> Any:
    """Return the fact at a path, None where a record has none: its run may have been killed before."""
    for name in path:
        facts = facts.get(name) if isinstance(facts, dict) else None
    return facts


def _describe_pair(first: object, second: object) -> str:
    if isinstance(first, list) and isinstance(second, list):
        only = [_describe([item for item in first if item not in second])]
        only.append(_describe([item for item in second if item not in first]))
        sides = zip(only, ("the first", "the second"), strict=True)
        return "; ".join(f"only {side} has {items}" for items, side in sides if items) or "in another order"
    return f"{_describe(first)} and {_describe(second)}"


def _describe(value: object) -> str:
    if isinstance(value, list):
        return _shorten(", ".join(map(_describe, value)))
    if isinstance(value, dict):
        return _shorten(" ".join(f"{key}={entry}" for key, entry in value.items()))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return _shorten(str(value)) or "none"


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_VALUE else f"{line[: _LONGEST_VALUE - 3]}..."
