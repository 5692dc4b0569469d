"""What a pin needs to have acted at all: without a trace of it, runs that agree do so by chance.

A pin can take a difference away only where the script uses what it fixes. That shows in the record (a draw
that differed, the way in which the difference came in) or in the user's source (a set, `hash`, `id`, a queue,
an array that is made without being filled). Which causes show it is part of their specifications; how else it
shows is here, for each pin. Facts of the machine count by what gave them, as their advice has it.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from samebits.causes import OriginKind, causes_acted_on_by
from samebits.diagnosis.candidates import pins_of
from samebits.diagnosis.patches.syntax import Syntax

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from samebits.comparison.results import Finding, Source
    from samebits.diagnosis.patches.source_file import SourceFile
    from samebits.diagnosis.search import Pins

Trace = Literal["record", "source"]
"""Where the trace is: in the record it is at the place, a word of the source may stand anywhere."""

_SET, _KEYS, _TEXT = "<set>", "<keys>", "<text>"  # words for expressions that have no name


@dataclass(frozen=True, slots=True)
class Mechanism:
    """What shows that a pin can have acted.

    Args:
        entries: how a difference comes in that it can take away.
        words: a regular expression for names in the user's source that use what it fixes; empty for none.
    """

    entries: tuple[OriginKind, ...] = ()
    words: str = ""


_SETS = (
    rf"{_SET}|{_KEYS}|builtins\.(set|frozenset|hash)$|__hash__|Set$|"
    r"\.(union|intersection|difference|symmetric_difference)$"
)
_CONCURRENT = (
    r"^(threading|concurrent|multiprocessing|asyncio|queue|joblib)\b|torch\.multiprocessing|"
    r"(Thread|Process|Pool|Queue|Pipe)$|=num_workers$"
)
_PROCESSES = r"^multiprocessing\b|torch\.multiprocessing|share_memory|os\.fork$"
_CLOCKS = (
    r"^(time|datetime|timeit|sched)\b|\.(time|now|today|elapsed_time|monotonic|perf_counter)$|"
    r"setitimer|\.alarm$|timeout|max_time"
)
_THREADS = r"num_threads|num_interop_threads|cpu_count|sched_getaffinity"
_STATUS = r"\.(stat|lstat|fstat|scandir)$"
_ADDRESSES = r"weakref|data_ptr|addressof|buffer_info|__array_interface__|^ctypes\b|\.ctypes\b"
_COMPILED = r"torch\.(compile|jit)|\.compile$"

MECHANISMS: Mapping[str, Mechanism] = {
    "seed-python": Mechanism(words=r"^random\b"),
    "seed-numpy": Mechanism(words=r"numpy\.random|=(random_state|rng|seed)$"),
    "seed-torch": Mechanism((OriginKind.RNG,), r"torch\.Generator|\.(seed|initial_seed)$"),
    "seed-libraries": Mechanism((OriginKind.RNG,), r"^(cv2|cupy|tensorflow)\b"),
    "hash-seed": Mechanism(words=_SETS),
    "layout": Mechanism(words=rf"{_SETS}|{_TEXT}|builtins\.id$|{_ADDRESSES}"),
    "clock": Mechanism(words=_CLOCKS),
    "entropy": Mechanism(words=r"urandom|^(secrets|uuid|tempfile)\b|SystemRandom|getrandom|^/dev/"),
    "process": Mechanism(words=r"getpid|getppid|gethostname|^platform\b|uname"),
    "ports": Mechanism(words=r"^socket\b|getsockname"),
    "file-times": Mechanism(words=rf"{_STATUS}|get[mca]time|st_[mca]time"),
    "inodes": Mechanism(words=rf"{_STATUS}|st_ino|inode"),
    "memory-load": Mechanism(
        words=r"^(psutil|resource)\b|getloadavg|disk_usage|mem_get_info|memory_(allocated|reserved)|^/(proc|sys)/"
    ),
    "listing": Mechanism(words=r"^glob\b|\.(listdir|scandir|walk|fwalk|glob|rglob|iterdir)$"),
    "completion": Mechanism(words=_CONCURRENT),
    "serial-threads": Mechanism(words=_CONCURRENT),
    "serial-processes": Mechanism(words=_PROCESSES),
    "workers": Mechanism(words=r"=num_workers$"),
    "threads": Mechanism((OriginKind.KERNEL, OriginKind.NONE), _THREADS),
    "thread-calls": Mechanism(words=_THREADS),
    "deterministic": Mechanism((OriginKind.KERNEL, OriginKind.NONE)),
    "fill": Mechanism(
        (OriginKind.UNINITIALIZED,),
        r"\.(empty\w*|new_empty\w*|resize_\w*|ndarray|\w*Tensor|malloc)$|=where$",
    ),
    "eager": Mechanism((OriginKind.KERNEL, OriginKind.NONE), _COMPILED),
    "autotuning": Mechanism(words=rf"{_COMPILED}|benchmark|autotune|tunable"),
}
_OPERATORS = (ast.BitOr, ast.BitAnd, ast.Sub, ast.BitXor)
_VIEWS = ("keys", "items")
_SHOWING = ("print", "debug", "info", "warning", "error", "write", "log", "format_exc")


def traces(
    findings: Iterable[Finding], sources: Iterable[Source], words: frozenset[str]
) -> dict[str, Trace] | None:
    """For each pin that can have acted, where that shows; None where nothing can be said.

    Args:
        findings: the origins.
        sources: draws that differed before the runs parted, beside those of the findings.
        words: of the user's source (`words_of`); without any the source is not known.
    """
    if not words:
        return None
    listed = list(findings)
    drawn = [*sources, *(source for finding in listed for source in finding.origin.sources)]
    causes = {finding.cause for finding in listed} | {source.cause for source in drawn}
    entries = {finding.origin.entry for finding in listed}
    by_row = {pin for source in drawn for pin in pins_of(source)}
    found: dict[str, Trace] = {}
    for pin, mechanism in MECHANISMS.items():
        if pin in by_row or causes & causes_acted_on_by(pin) or entries & set(mechanism.entries):
            found[pin] = "record"
        elif mechanism.words and any(re.search(mechanism.words, word) for word in words):
            found[pin] = "source"
    return found


def unable(pins: Pins, found: Mapping[str, Trace] | None) -> Pins:
    """Those of some pins of which nothing shows that they can have acted."""
    return () if found is None else tuple(pin for pin in pins if pin not in found)


def words_of(files: Iterable[SourceFile]) -> frozenset[str]:
    """The full names that the user's source uses, keywords as `=name`, and what stands for sets and texts."""
    found: set[str] = set()
    for file in files:
        try:
            syntax = Syntax(file)
        except (SyntaxError, ValueError):
            continue
        found.update(word for node in syntax.nodes for word in _words(syntax, node))
    return frozenset(found)


def _words(syntax: Syntax, node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name | ast.Attribute):
        yield syntax.name(node)
    elif isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield from (f"{node.module or ''}.{alias.name}" for alias in node.names)
    elif isinstance(node, ast.keyword):
        yield f"={node.arg}"
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("/"):
        yield node.value
    elif isinstance(node, ast.Set | ast.SetComp):
        yield _SET
    elif isinstance(node, ast.BinOp) and isinstance(node.op, _OPERATORS) and _is_view(node.left):
        yield _KEYS
    if _is_text(syntax, node) and not _is_only_shown(syntax, node):
        yield _TEXT


def _is_view(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _VIEWS


def _is_text(syntax: Syntax, node: ast.AST) -> bool:
    """Whether an expression may be the text of an object, with its address."""
    if isinstance(node, ast.Call):
        return syntax.name(node.func) in ("builtins.repr", "builtins.str", "builtins.format")
    return isinstance(node, ast.JoinedStr)


def _is_only_shown(syntax: Syntax, node: ast.AST) -> bool:
    calls = [above.func for above in syntax.ancestors(node) if isinstance(above, ast.Call)]
    return any(getattr(call, "id", getattr(call, "attr", "")) in _SHOWING for call in calls)
