"""The code that `torch.compile` generated for a run: which it is, and which kernels were chosen for a GPU."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from samebits._torch.compiler import loaded_graphs

SHOWN = 16
_KIND = re.compile(r"^# AOT ID: \['\d+_(\w+)'\]", re.MULTILINE)
# Comments name files of the cache and lines of the script; a folder of the cache may stand in an include.
_COMMENTS = re.compile(r"^\s*# .*$", re.MULTILINE)
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
