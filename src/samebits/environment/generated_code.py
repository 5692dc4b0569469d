"""The code that `torch.compile` generated for a run: which it is, and which kernels were chosen for a GPU."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from samebits._torch.attention import attention_in_code
from samebits._torch.compiler import loaded_graphs

SHOWN = 16
_KIND = re.compile(r"^# AOT ID: \['\d+_(\w+)'\]", re.MULTILINE)
# Comments name files of the cache and lines of the script; a folder of the cache may stand in an include.
_COMMENTS = re.compile(r"^\s*# .*$", re.MULTILINE)
_KERNEL = re.compile(r"(\w+) = async_compile\.")
_ATOMIC = re.compile(r"\batomic_add(?:_vec<[^>]*>)?\(")
_FOLDER = re.compile(r"([\"'])/[^\"'\n]*/")


def collect_generated_code() -> dict[str, str]:
    """Return the beginning of the digest of each graph that inductor generated, in the order of loading.

    Each Triton kernel of a graph that ran has an entry too: the configuration that was chosen for it, often
    by timing, and the digest that Triton gives its machine code.
    """
    facts: dict[str, str] = {}
    for number, graph in enumerate(loaded_graphs(), start=1):
        text = _text(graph.path)
        kind = _KIND.search(text)
        name = f"{number} ({kind.group(1)})" if kind else str(number)
        facts[name] = _digest(text)
        facts.update({f"{name}, {kernel}": chosen for kernel, chosen in graph.kernels.items()})
    return facts


def collect_attention() -> tuple[str, ...]:
    """Return the ops of attention in the code that inductor generated."""
    codes = (_COMMENTS.sub("", _text(graph.path)) for graph in loaded_graphs())
    return tuple(sorted({op for code in codes for op in attention_in_code(code)}))


def kernels_with_atomics() -> tuple[str, ...]:
    """Return the names of the generated kernels that add with atomic operations.

    Under deterministic algorithms inductor writes none but for gradients of what `score_mod` of
    `flex_attention` captures (`zeros_and_scatter_lowering` in `torch/_inductor/kernel/flex/common.py`,
    2.15.0). What was compiled before they were switched on may have some too.
    """
    found: dict[str, None] = {}
    for graph in loaded_graphs():
        kernel = ""
        for line in _COMMENTS.sub("", _text(graph.path)).splitlines():
            begins = _KERNEL.match(line)
            kernel = begins.group(1) if begins else kernel
            if kernel and _ATOMIC.search(line):
                found[kernel] = None
    return tuple(found)


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:  # the cache was emptied meanwhile
        return ""


def _digest(text: str) -> str:
    if not text:
        return ""
    code = _FOLDER.sub(r"\1", _COMMENTS.sub("", text))
    return hashlib.sha256(code.encode()).hexdigest()[:SHOWN]
