"""Which algorithm computed each matrix product on a GPU, as far as a library tells it.

cuBLAS and cuBLASLt choose one by shapes, workspace and alignment, and have no function that says which. Two
sources do, each only where the user has switched it on: TunableOp keeps what it chose (`torch.cuda.tunable`),
and cuBLASLt writes a line for each call into the file of `CUBLASLT_LOG_FILE`, also for calls of cuBLAS that
come to it. The lines are text for people, of no documented form; what is not understood is left out.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LOG_FILE = "CUBLASLT_LOG_FILE"
_PROCESS = "%i"  # in its value, the number of the process
_MOST_BYTES = 1 << 26
_MOST = 1000
_LINE = re.compile(r"\[cublasLt\]\[(\d+)\]\[Trace\]\[(\w+)\] (.*)")
_PART = re.compile(r"\b([ABCD]desc|computeDesc|algo)=\[([^\]]*)\]")
_ADDRESS = re.compile(r"\s?\b\w+=0[xX][0-9a-fA-F]+")
_SIZES = re.compile(r"rows=(\d+) cols=(\d+)")


def collect_gemm_choices(torch: Any, environ: Mapping[str, str], process: int) -> dict[str, str]:
    """Return the algorithm of each kind of matrix product: none where nothing tells them.

    Args:
        torch: the module.
        environ: the environment variables.
        process: its number; the log may have lines of others.
    """
    return {**_tuned(torch), **_logged(environ, process)}


def _tuned(torch: Any) -> dict[str, str]:
    """Return what TunableOp chose; asked only where it is on, because the first question reads its file."""
    rows: list[Any] = []
    try:
        if torch.cuda.is_initialized() and torch.cuda.tunable.is_enabled():
            rows = sorted(torch.cuda.tunable.get_results(), key=lambda row: row[:2])
    except Exception:  # noqa: BLE001  # a fact that torch refuses to tell must not end the user's run
        return {}
    return {f"{operator} {shape}": solution for operator, shape, solution, *_ in rows[:_MOST]}


def _logged(environ: Mapping[str, str], process: int) -> dict[str, str]:
    path = environ.get(LOG_FILE, "").replace(_PROCESS, str(process))
    found: dict[str, set[str]] = {}
    for line in _lines(path) if os.path.isfile(path) else ():  # to read a pipe would wait
        match = _LINE.search(line)
        if match is not None and int(match.group(1)) == process:
            parts = dict(_PART.findall(match.group(3)))
            algorithm = parts.pop("algo", "")
            if algorithm and (len(found) < _MOST or _product(parts) in found):
                found.setdefault(_product(parts), set()).add(algorithm)
    return {product: " | ".join(sorted(each)) for product, each in sorted(found.items())}


def _lines(path: str) -> Iterator[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            yield from file.read(_MOST_BYTES).splitlines()
    except OSError:  # nothing was logged, or somebody took the file away
        return


def _product(parts: Mapping[str, str]) -> str:
    """Name a product: its matrices and how it is computed, without addresses."""
    order = sorted(parts, key=lambda name: "A B compute C D".find(name[:-4]))  # without `desc`, `Desc`
    texts = (f"{name[:-4]} {parts[name]}" for name in order)
    return _SIZES.sub(r"\1x\2", _ADDRESS.sub("", ", ".join(texts))).replace("type=", "")
