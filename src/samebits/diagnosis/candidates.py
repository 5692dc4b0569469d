"""The interventions that may make runs identical, judged by the findings and the user's source."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from samebits.causes import Cause, OriginKind, causes_acted_on_by, causes_shown_by, specification_of
from samebits.causes.environment import FACTS
from samebits.diagnosis.patches.syntax import Syntax
from samebits.rng.sources import BUILT_IN, package_of
from samebits.rng.sources.source import SEED_LIBRARIES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from samebits.comparison.results import Finding, Source
    from samebits.diagnosis.patches.edits import SourceFile
    from samebits.diagnosis.search import InterventionSet

_MOST_FINDINGS = 3
# No draw shows these: hashes, addresses, and facts that a script reads from files such as /proc/meminfo.
_UNSEEN: tuple[InterventionSet, ...] = (("hash-seed",), ("layout",), FACTS)
_SHARED = ("serial-processes",)  # memory that other processes write
_STREAMS = ("serial-streams",)  # tried only where the user's source uses them
# For differences without a known cause, by origin kind.
_BY_KIND: dict[OriginKind, tuple[InterventionSet, ...]] = {
    # No op was found: compiled code has none to look at.
    OriginKind.NONE: (_STREAMS, ("deterministic",), ("threads",), ("eager",)),
    OriginKind.KERNEL: (_STREAMS, ("deterministic",), ("threads",)),
    OriginKind.RNG: (("seed-torch",),),
    OriginKind.UNINITIALIZED: (("fill",),),
    OriginKind.ORDER: (("hash-seed",), ("layout",), ("completion",), ("serial-threads",)),
    OriginKind.ARGUMENT: _UNSEEN,
    OriginKind.OUTSIDE: (*_UNSEEN, _STREAMS, _SHARED),
    OriginKind.CONTROL_FLOW: _UNSEEN,
    OriginKind.BATCH: (*_UNSEEN, ("workers",), ("fill",)),
}
Trace = Literal["record", "source"]
"""The kind of a trace: one in the record is at the finding, a name in the source may be anywhere."""
_SET, _KEYS, _TEXT = "<set>", "<keys>", "<text>"  # names for expressions that have none
_SETS = (
    rf"{_SET}|{_KEYS}|builtins\.(set|frozenset|hash)$|__hash__|Set$|"
    r"\.(union|intersection|difference|symmetric_difference)$"
)
_CONCURRENT = (
    r"^(threading|concurrent|multiprocessing|asyncio|queue|joblib)\b|torch\.multiprocessing|"
    r"(Thread|Process|Pool|Queue|Pipe)$|=num_workers$"
)
_BESIDE = r"torch\.(cuda|accelerator)\.(Stream|ExternalStream|stream|set_stream)$|=non_blocking$"
_PROCESSES = r"^multiprocessing\b|torch\.multiprocessing|share_memory|os\.fork$"
_CLOCKS = (
    r"^(time|datetime|timeit|sched)\b|\.(time|now|today|elapsed_time|monotonic|perf_counter)$|"
    r"setitimer|\.alarm$|timeout|max_time"
)
_THREADS = r"num_threads|num_interop_threads|cpu_count|sched_getaffinity"
_STATUS = r"\.(stat|lstat|fstat|scandir)$"
_ADDRESSES = r"weakref|data_ptr|addressof|buffer_info|__array_interface__|^ctypes\b|\.ctypes\b"
_LIBRARIES = "|".join(package_of(source) for source in BUILT_IN if source.intervention == SEED_LIBRARIES)
_COMPILED = r"torch\.(compile|jit)|\.compile$"
_OPERATORS = (ast.BitOr, ast.BitAnd, ast.Sub, ast.BitXor)
_VIEWS = ("keys", "items")
_SHOWING = ("print", "debug", "info", "warning", "error", "write", "log", "format_exc")


def likely_interventions(findings: Iterable[Finding]) -> tuple[InterventionSet, ...]:
    """Return the sets of interventions that the evidence suggests, the likeliest first.

    With several findings, the first sets hold an intervention for each; findings with a known cause come
    before the others. The last sets hold one intervention for each source seen at one finding.

    Args:
        findings: the origins, the first one first.
    """
    ranked = sorted(findings, key=lambda finding: finding.cause == Cause.UNKNOWN)
    choices = [sets for sets in map(_choices, ranked) if sets]
    together = _merged(sets[0] for sets in choices)
    # Behind the first origin, the order of a batch and its contents may come from one generator each.
    sources = [_merged(_of_sources(finding)) for finding in ranked if finding.cause == Cause.UNKNOWN]
    all_sources = _merged([together, *sources]) if len(choices) > 1 else ()
    alone = [interventions for sets in choices[:_MOST_FINDINGS] for interventions in sets]
    # Two sources may meet at one site, such as an index from a sampler and one that a dataset draws.
    meeting = [_merged(_of_sources(finding)) for finding in ranked[:_MOST_FINDINGS]]
    return tuple(
        dict.fromkeys(
            interventions for interventions in (all_sources, together, *alone, *meeting) if interventions
        )
    )


def every_intervention(possible: Iterable[str], first: Iterable[InterventionSet] = ()) -> InterventionSet:
    """Return all possible interventions, those of likely sets first.

    Args:
        possible: names of the interventions that can be used here.
        first: likely sets.
    """
    allowed = set(possible)
    ordered = dict.fromkeys(
        [intervention for interventions in first for intervention in interventions]
        + list(MECHANISMS)
        + sorted(allowed)
    )
    return tuple(intervention for intervention in ordered if intervention in allowed)


def cause_of_intervention(finding: Finding, intervention: str) -> Cause:
    """Return the cause shown by an intervention that made the runs identical.

    Args:
        finding: the origin.
        intervention: its name.
    """
    causes = causes_shown_by(intervention)
    if finding.cause in causes:
        return finding.cause
    # No op was found, so none can have run with another number of threads.
    if finding.origin.origin_kind == OriginKind.NONE and Cause.NONDETERMINISTIC_KERNEL in causes:
        return Cause.NONDETERMINISTIC_KERNEL
    fitting = [
        cause for cause in causes if specification_of(cause).seen_as in (None, finding.origin.origin_kind)
    ]
    return (*fitting, *causes, Cause.UNKNOWN)[0]


def fixed_by(source: Source, interventions: InterventionSet) -> bool:
    """Tell whether one of some interventions fixes the values of a source, as far as is known."""
    known = interventions_of(source)
    return not known or not set(known).isdisjoint(interventions)


def interventions_of(source: Source) -> InterventionSet:
    """Return the interventions that fix the values of a source, by the advice of its cause."""
    advice = specification_of(source.cause).advice_for(source.op)
    return () if advice is None else advice.controls


def _choices(finding: Finding) -> tuple[InterventionSet, ...]:
    """Return sets of interventions for one finding: for its sources, its cause and its origin kind."""
    by_source = _of_sources(finding)
    by_cause = [
        interventions
        for source in _ranked(finding)
        for interventions in specification_of(source.cause).interventions
    ]
    known = specification_of(finding.cause).interventions
    sets = (*by_source, *known, *by_cause, *_BY_KIND[finding.origin.origin_kind])
    return tuple(dict.fromkeys(interventions for interventions in sets if interventions))


def _ranked(finding: Finding) -> list[Source]:
    return sorted(finding.origin.sources, key=lambda source: source.cause != finding.cause)


def _of_sources(finding: Finding) -> list[InterventionSet]:
    return [interventions_of(source) for source in _ranked(finding)]


def _merged(sets: Iterable[InterventionSet]) -> InterventionSet:
    return tuple(dict.fromkeys(intervention for interventions in sets for intervention in interventions))


@dataclass(frozen=True, slots=True)
class Mechanism:
    """The signs that an intervention can have acted.

    Args:
        kinds: the origin kinds of differences that it can remove.
        words: a regular expression for names in the user's source that use what it fixes; empty for none.
    """

    kinds: tuple[OriginKind, ...] = ()
    words: str = ""


MECHANISMS: Mapping[str, Mechanism] = {
    "seed-torch": Mechanism((OriginKind.RNG,), r"torch\.Generator|\.(seed|initial_seed)$"),
    "seed-numpy": Mechanism(words=r"numpy\.random|=(random_state|rng|seed)$"),
    "seed-python": Mechanism(words=r"^random\b"),
    "hash-seed": Mechanism(words=_SETS),
    "clock": Mechanism(words=_CLOCKS),
    "entropy": Mechanism(words=r"urandom|^(secrets|uuid|tempfile)\b|SystemRandom|getrandom|^/dev/"),
    "listing": Mechanism(words=r"^glob\b|\.(listdir|scandir|walk|fwalk|glob|rglob|iterdir)$"),
    "deterministic": Mechanism((OriginKind.KERNEL, OriginKind.NONE)),
    "threads": Mechanism((OriginKind.KERNEL, OriginKind.NONE), _THREADS),
    "completion": Mechanism(words=_CONCURRENT),
    "layout": Mechanism(words=rf"{_SETS}|{_TEXT}|builtins\.id$|{_ADDRESSES}"),
    "serial-threads": Mechanism(words=_CONCURRENT),
    "serial-processes": Mechanism(words=_PROCESSES),
    "serial-streams": Mechanism(words=_BESIDE),
    "workers": Mechanism(words=r"=num_workers$"),
    "fill": Mechanism(
        (OriginKind.UNINITIALIZED,),
        r"\.(empty\w*|new_empty\w*|resize_\w*|ndarray|\w*Tensor|malloc)$|=where$",
    ),
    "process": Mechanism(words=r"getpid|getppid|gethostname|^platform\b|uname"),
    "file-times": Mechanism(words=rf"{_STATUS}|get[mca]time|st_[mca]time"),
    "memory-load": Mechanism(
        words=r"^(psutil|resource)\b|getloadavg|disk_usage|mem_get_info|memory_(allocated|reserved)|^/(proc|sys)/"
    ),
    "inodes": Mechanism(words=rf"{_STATUS}|st_ino|inode"),
    "ports": Mechanism(words=r"^socket\b|getsockname"),
    "thread-calls": Mechanism(words=_THREADS),
    "eager": Mechanism((OriginKind.KERNEL, OriginKind.NONE), _COMPILED),
    "autotuning": Mechanism(words=rf"{_COMPILED}|benchmark|autotune|tunable"),
    SEED_LIBRARIES: Mechanism((OriginKind.RNG,), rf"^({_LIBRARIES})\b"),
}
"""Every intervention, the likeliest to help first."""


def traces(
    findings: Iterable[Finding], sources: Iterable[Source], words: frozenset[str]
) -> dict[str, Trace] | None:
    """Return the kind of trace of each intervention that can have acted; None if nothing can be said.

    Args:
        findings: the origins.
        sources: draws that differed before the runs diverged, beside those of the findings.
        words: names in the user's source (`names_used`); none if the source is not known.
    """
    if not words:
        return None
    listed = list(findings)
    drawn = [*sources, *(source for finding in listed for source in finding.origin.sources)]
    causes = {finding.cause for finding in listed} | {source.cause for source in drawn}
    kinds = {finding.origin.origin_kind for finding in listed}
    advised = {intervention for source in drawn for intervention in interventions_of(source)}
    where: dict[str, Trace] = {}
    for intervention, mechanism in MECHANISMS.items():
        if (
            intervention in advised
            or causes & causes_acted_on_by(intervention)
            or kinds & set(mechanism.kinds)
        ):
            where[intervention] = "record"
        elif mechanism.words and any(re.search(mechanism.words, word) for word in words):
            where[intervention] = "source"
    return where


def unable(interventions: InterventionSet, traced: Mapping[str, Trace] | None) -> InterventionSet:
    """Return those of some interventions that have no trace, so nothing shows that they can have acted."""
    if traced is None:
        return ()
    return tuple(intervention for intervention in interventions if intervention not in traced)


def names_used(files: Iterable[SourceFile]) -> frozenset[str]:
    """Return the full names in the user's source, keywords as `=name`, and marks for sets and texts."""
    words: set[str] = set()
    for file in files:
        try:
            syntax = Syntax(file)
        except (SyntaxError, ValueError):
            continue
        words.update(word for node in syntax.nodes for word in _words(syntax, node))
    return frozenset(words)


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
    """Tell whether an expression may be the text of an object, which contains its address."""
    if isinstance(node, ast.Call):
        return syntax.name(node.func) in ("builtins.repr", "builtins.str", "builtins.format")
    return isinstance(node, ast.JoinedStr)


def _is_only_shown(syntax: Syntax, node: ast.AST) -> bool:
    calls = [above.func for above in syntax.ancestors(node) if isinstance(above, ast.Call)]
    return any(getattr(call, "id", getattr(call, "attr", "")) in _SHOWING for call in calls)
