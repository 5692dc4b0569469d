"""Which operations portable mode computes with other bits under another release of torch.

    python bench/portable_releases.py write a.json            # with one torch
    OTHER bench/portable_releases.py write b.json             # with another
    python bench/portable_releases.py compare a.json b.json

It takes up to 12 samples of each operation from torch's own OpInfo tables. For each it keeps a digest of what
comes out, of the gradients, of the gradients that can be differentiated again (`create_graph=True`: torch has
other formulas for some of these) and of the gradients of these. Samples that the two releases do not share,
because the tables have changed, are left out. Uninitialised memory (`empty` and the like) differs by its
nature.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import signal
import sys
import warnings
from collections import defaultdict
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_leaves

import samebits

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_SAMPLES = 12
SECONDS = 60  # for one operation


class TooLongError(Exception):
    """An operation took longer than `SECONDS`."""


def digest_of(tensors: list[Any]) -> str:
    """Return a digest of tensors, which may be None."""
    dense = [t.to_dense() if t is not None and t.layout is not torch.strided else t for t in tensors]
    return str(samebits.digest([None if t is None else t.detach() for t in dense]))


def key_of(name: str, number: int, arguments: tuple[Any, ...]) -> str:
    """Return a name of a sample that two releases share if its arguments are the same."""
    leaves = tree_leaves(arguments)
    others = str([leaf for leaf in leaves if not isinstance(leaf, torch.Tensor)])
    tensors = digest_of([leaf for leaf in leaves if isinstance(leaf, torch.Tensor)])
    return f"{name} {number} {tensors} {hashlib.sha256(others.encode()).hexdigest()[:8]}"


def weights_like(tensor: torch.Tensor) -> torch.Tensor:
    """Return what an output is multiplied with: others for each element."""
    flat = [math.cos(0.37 * i) for i in range(tensor.numel())]
    return torch.tensor(flat, dtype=torch.float64).to(tensor.dtype).reshape(tensor.shape)


def derived(op: Any, arguments: tuple[Any, ...]) -> dict[str, str]:
    """Return digests of the output of an operation, of its gradients and of their gradients."""
    inputs = [t for t in tree_leaves(arguments) if isinstance(t, torch.Tensor) and t.requires_grad]
    torch.manual_seed(1)
    outputs = [t for t in tree_leaves(op(*arguments[:-1], **arguments[-1])) if isinstance(t, torch.Tensor)]
    row = {"output": digest_of(outputs)}
    for name, has_graph in (("gradient", False), ("gradient with a graph", True), ("second gradient", False)):
        outputs = [t for t in outputs if t is not None and t.requires_grad]
        if not outputs or not inputs:
            break
        weights = [weights_like(t) for t in outputs]
        gradients = torch.autograd.grad(
            outputs, inputs, weights, create_graph=has_graph, retain_graph=True, allow_unused=True
        )
        row[name] = digest_of(list(gradients))
        outputs = list(gradients) if has_graph else outputs
    return row


@contextmanager
def limited(seconds: int) -> Iterator[None]:
    """Raise `TooLongError` after so many seconds."""

    def raise_late(*_: object) -> None:
        raise TooLongError

    signal.signal(signal.SIGALRM, raise_late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)


def rows_of(op: Any, dtype: torch.dtype) -> dict[str, dict[str, str]]:
    """Return what is kept of each sample of an operation; an error is kept by its type."""
    rows: dict[str, dict[str, str]] = {}
    torch.manual_seed(0)
    samples = op.sample_inputs("cpu", dtype, requires_grad=op.supports_autograd)
    for number, sample in zip(range(MOST_SAMPLES), samples, strict=False):
        arguments = (sample.input, *sample.args, sample.kwargs)
        key = key_of(op.full_name, number, arguments)
        try:
            with samebits.portable():
                rows[key] = derived(op.op, arguments)
        except TooLongError:
            raise
        except Exception as error:  # noqa: BLE001 - refused by portable mode, or without derivative
            rows[key] = {"error": type(error).__name__}
    return rows


def write(path: Path, dtype: torch.dtype) -> None:
    """Write the rows of all operations."""
    rows: dict[str, dict[str, str]] = {}
    for op in op_db:
        if not op.supports_dtype(dtype, "cpu"):
            continue
        try:
            with limited(SECONDS):
                rows.update(rows_of(op, dtype))
        except Exception as error:  # noqa: BLE001 - a table that needs a library that is not here
            print(f"{op.full_name}: {type(error).__name__}", file=sys.stderr)
    path.write_text(json.dumps({"torch": str(torch.__version__), "rows": rows}))
    print(f"{len(rows)} samples of torch {torch.__version__} in {path}")


def compare(one: Path, other: Path) -> None:
    """Print the operations with a difference, and in how many samples what differs."""
    a, b = (json.loads(path.read_text()) for path in (one, other))
    shared = [key for key in a["rows"] if key in b["rows"]]
    judged = [key for key in shared if "error" not in a["rows"][key] and "error" not in b["rows"][key]]
    found: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for key in judged:
        row, again = a["rows"][key], b["rows"][key]
        for name in row.keys() | again.keys():
            if row.get(name) != again.get(name):
                found[key.split()[0]][name] += 1
    print(
        f"torch {a['torch']} and {b['torch']}: {len(shared)} samples in both, {len(judged)} computed in both"
    )
    for op, counts in sorted(found.items()):
        print(f"  {op:32} " + ", ".join(f"{name} of {n}" for name, n in sorted(counts.items())))


def main() -> None:
    """Write or compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("write", "compare"))
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--dtype", default="float32")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.what == "write":
        write(options.files[0], getattr(torch, options.dtype))
    else:
        compare(*options.files)


if __name__ == "__main__":
    main()
