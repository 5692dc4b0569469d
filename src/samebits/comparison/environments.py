"""Two environments compared: which differences can change which results, the likeliest first."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from samebits._text.masking import NOT_RECORDED
from samebits._text.secret_names import MASK
from samebits.comparison._installed import DIGEST_SHOWN, library_texts, package_texts
from samebits.comparison.influence_table import influences
from samebits.comparison.unread_data import UnknownFiles, comparable, unknown_files
from samebits.environment.influence import ANY, OPS, Influence, Results, Strength
from samebits.environment.snapshot import HERE, TAKEN, fact_at
from samebits.switches.startup import HASH_SEED
from samebits.switches.switch import MIXED
from samebits.switches.table import SET
from samebits.switches.variables import HARMLESS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from samebits.records.events import RunInfo

    Path = tuple[str, ...]

_COMPILED = ("torch", "compiled")
_ATTENTION = ("torch", "attention")
_GEMMS = ("torch", "gemms")
# The longer a run lasts, the more it has of these.
_COME_LATER = frozenset(("libraries", "packages", "distributions", "variables", "code", "data"))
# A switch that only one run has belongs to a library that only one imported, or to another release.
_KNOWN_TO_BOTH = frozenset(("switches", "torch"))
# Tables of which some entries have an influence of their own.
_LIBRARIES = ("libraries",)
_TABLES = frozenset((("variables",), ("switches",), ("torch", "threads"), _LIBRARIES))
# What a script does decides these: the flags that it sets. And which libraries it loads.
_OF_A_RUN = frozenset(
    (("switches",), ("torch", "switches"), ("torch", "default_dtype"), _COMPILED, _ATTENTION, _GEMMS)
)
# torch tells it only where CUDA is in use; which library was loaded is known without.
_UNKNOWN_IF_EMPTY = frozenset((("torch", "cudnn"),))
_LONGEST_VALUE = 80
_MISSING = object()
# Facts that change no bits by themselves; told only when all differences are asked for.
_HARMLESS_FACTS = (
    ("machine", "system"), ("machine", "distribution"), ("machine", "container"), ("machine", "cpus"),
    ("source", "commit"), ("source", "changed"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class FactDifference:
    """A fact that is not the same in two environments.

    Args:
        path: of the fact, or of its table.
        first: its value in the first environment, as text; None where a table lacks it. Of lists, what only
            the first has.
        second: the same of the second.
        entry: its name in its table; None for a fact outside the tables.
        is_list: whether the values are lists.
        is_with_machine: whether one of the two environments is a machine on which nothing ran: what a table
            lacks is not there at all.
    """

    path: tuple[str, ...]
    first: str | None
    second: str | None
    entry: str | None = None
    is_list: bool = False
    is_with_machine: bool = False


@dataclass(frozen=True, slots=True)
class EnvironmentDifference:
    """A difference that can change bits.

    Args:
        fact: that differs.
        results: that can be others.
        strength: how sure that is.
        follows: facts that differ because of it.
        at_origin: whether the operation at which the runs part is among the results.
    """

    fact: FactDifference
    results: tuple[Results, ...]
    strength: Strength
    follows: tuple[FactDifference, ...] = ()
    at_origin: bool = False


@dataclass(frozen=True, slots=True)
class EnvironmentComparison:
    """Two environments compared.

    Args:
        differences: that can change bits, the likeliest first.
        others: facts that differ and change nothing.
        unknown: data files that cannot be compared, and so are no differences.
    """

    differences: tuple[EnvironmentDifference, ...]
    others: tuple[FactDifference, ...] = ()
    unknown: UnknownFiles = field(default_factory=UnknownFiles)


def compare_environments(a: RunInfo, b: RunInfo, op: str = "") -> EnvironmentComparison:
    """Compare the environments of two runs.

    Args:
        a: of the first run; its facts may hold anything, as a record from elsewhere may.
        b: of the second.
        op: at which the runs part, if it is known: what can change it comes first.
    """
    stopped = a.status != b.status and "stopped" in {a.status, b.status}
    first, second = _facts(a), _facts(b)
    without_run = HERE in (first.get(TAKEN), second.get(TAKEN))
    # What control set in a run is not set where nothing ran.
    both_controls = _set_by_control(a), _set_by_control(b)
    by_control = both_controls[0] | both_controls[1] if without_run else both_controls[0] ^ both_controls[1]
    facts = _differing(first, second, stopped=stopped)
    pending = {_key(fact): fact for fact in facts if not _is_consequence(fact, by_control)}
    ranked = []
    for order, influence in enumerate(influences()):
        for fact in _claimed(pending, influence.path):
            follows = tuple(each for path in influence.follows for each in _claimed(pending, path))
            if _is_idle(influence, fact, first, second):
                continue
            at_origin = bool(op) and _concerns(influence.results, op)
            difference = EnvironmentDifference(
                fact, influence.results, influence.strength, follows, at_origin
            )
            ranked.append((_rank(difference), order, difference))
    ranked.sort(key=lambda each: each[:2])
    others = [_difference_at(first, second, path) for path in _HARMLESS_FACTS]
    told = {_key(fact) for *_, each in ranked for fact in (each.fact, *each.follows)}
    return EnvironmentComparison(
        tuple(difference for *_, difference in ranked),
        tuple(fact for fact in others if fact is not None and _key(fact) not in told),
        UnknownFiles() if stopped else unknown_files(first, second),
    )


def facts_behind(a: RunInfo, b: RunInfo, op: str) -> tuple[FactDifference, ...]:
    """Return the facts, not the same in two runs, that can change what an op gives for the same inputs.

    Only such as were measured or are documented to; the likeliest first. Records do not say on which device
    an op ran, so that what changes results on a GPU counts for every op of runs that had one.
    """
    found = compare_environments(a, b, op).differences
    return tuple(each.fact for each in found if _can_change_an_op(each))


def threads_per_op(facts: dict[str, Any]) -> int | None:
    """Return how many threads an op of torch could use on the CPU when facts were taken; None when unknown.

    Args:
        facts: of one run, from `Environment.to_dict`; a record from elsewhere may hold anything.
    """
    threads = fact_at(facts, "torch", "threads", "intra-op")
    return threads if isinstance(threads, int) else None


def _rank(difference: EnvironmentDifference) -> tuple[bool, bool, Strength]:
    is_input = difference.strength is Strength.INPUT
    return not is_input, not difference.at_origin, difference.strength


def _concerns(results: Iterable[Results], op: str) -> bool:
    """Tell whether an op such as `aten::mm.default` is among some results."""
    name = op.rpartition("::")[2].partition(".")[0].lower()
    return any(part in name for result in results for part in OPS.get(result, ()))


def _is_idle(
    influence: Influence, fact: FactDifference, first: Mapping[str, Any], second: Mapping[str, Any]
) -> bool:
    """Tell whether a difference cannot matter: it had no effect, or what it concerns was not in use."""
    if fact.path in (("variables",), ("switches",)) and fact.entry in HARMLESS:
        return True
    effects = [(fact_at(first, *path), fact_at(second, *path)) for path in influence.effect]
    if effects and all(ours is not None and ours == theirs for ours, theirs in effects):
        return True
    both = first, second
    of_cuda = influence.results == (Results.CUDA,) and influence.path[0] in ("variables", "switches")
    if (of_cuda or influence.on_gpu) and all(fact_at(facts, "torch", "gpus") == [] for facts in both):
        return True
    alone = all(fact_at(facts, "ranks") is None for facts in both)
    return influence.results == (Results.COLLECTIVES,) and alone


def _can_change_an_op(difference: EnvironmentDifference) -> bool:
    if difference.strength not in (Strength.MEASURED, Strength.DOCUMENTED):
        return False
    of_all_ops = Results.ALL in difference.results and difference.fact.path[0] != "python"
    return difference.at_origin or of_all_ops or Results.CUDA in difference.results


# ---- the facts of a run


def _facts(info: RunInfo) -> dict[str, Any]:
    """Return the environment of a run, with what it was asked to do."""
    environment = info.environment if isinstance(info.environment, dict) else {}
    control = {
        "seed": _value(info.control.get("seed")) if info.control else "none",
        "portable": "on" if info.control.get("portable") else "off",
    }
    start = 2 if info.command[:1] == ("-m",) else 1
    facts = {**environment, "control": control, "arguments": list(info.command[start:])}
    if isinstance(environment.get("distributions"), dict):
        facts.pop("packages", None)  # says less of the same
    if fact_at(facts, "switches") is not None and isinstance(facts.get("torch"), dict):
        facts["torch"] = {name: value for name, value in facts["torch"].items() if name != "switches"}
    return facts


def _set_by_control(info: RunInfo) -> frozenset[str]:
    """Return the names of the switches that control set in a run: they differ because the control does."""
    rows = fact_at(info.control, "results")
    if not isinstance(rows, dict):
        return frozenset()
    return frozenset(name for name, row in rows.items() if isinstance(row, dict) and row.get("state") == SET)


def _is_consequence(fact: FactDifference, by_control: frozenset[str]) -> bool:
    """Tell whether a fact differs only because control set a switch in one run, or torch does not tell it.

    Where one of several precisions was set, torch refuses to tell the older setting for all of them.
    """
    if fact.path == ("switches",) and MIXED in (fact.first, fact.second):
        return True
    if fact.path == ("python", "hash_seed"):
        return HASH_SEED.name in by_control
    return fact.path in (("variables",), ("switches",)) and fact.entry in by_control


def _value(seed: object) -> str:
    return "none" if seed is None else str(seed)


# ---- what differs


def _differing(
    first: Mapping[str, Any], second: Mapping[str, Any], *, stopped: bool
) -> Iterator[FactDifference]:
    """Return the facts that differ, of all that the influences know."""
    seen: set[Path] = set()
    one_was_killed = (first.get(TAKEN) is None) != (second.get(TAKEN) is None)
    without_run = HERE in (first.get(TAKEN), second.get(TAKEN))
    for influence in influences():
        path = influence.path
        table = path[:-1] if path[-1] == ANY else _table_of(path)
        place = path if table is None else table
        if place in seen:
            continue
        seen.add(place)
        if without_run and place in _OF_A_RUN:
            continue
        if place == ("variables",) and one_was_killed:
            continue  # the other's are from its end: its script may have set some itself
        if table is None:
            if not (stopped and (path[0] in _COME_LATER or path == _ATTENTION)):
                fact = _difference_at(first, second, path)
                yield from () if fact is None else (fact,)
        else:
            grows = table[0] in _COME_LATER or table == _COMPILED
            both = (table[0] in _KNOWN_TO_BOTH and table != _COMPILED) or (stopped and grows)
            both = both or (without_run and table == _LIBRARIES)
            yield from _table_differences(first, second, table, both=both)


def _table_of(path: Path) -> Path | None:
    return path[:-1] if path[:-1] in _TABLES else None


def _difference_at(first: Mapping[str, Any], second: Mapping[str, Any], path: Path) -> FactDifference | None:
    ours, theirs = fact_at(first, *path), fact_at(second, *path)
    if path == ("arguments",) and _same_arguments(ours, theirs):
        return None
    if ours is None or theirs is None or ours == theirs:  # unknown: a run killed early has few facts
        return None
    if path in _UNKNOWN_IF_EMPTY and "" in (ours, theirs):
        return None
    return _difference(path, None, ours, theirs)


def _same_arguments(ours: Any, theirs: Any) -> bool:
    """Tell whether two runs had the same arguments, as far as is known; folders of files do not count."""
    if not isinstance(ours, list) or not isinstance(theirs, list):
        return True
    if NOT_RECORDED in (*ours, *theirs):
        return True
    return len(ours) == len(theirs) and all(map(_same_argument, ours, theirs))


def _same_argument(ours: str, theirs: str) -> bool:
    if ours == theirs or MASK in f"{ours}{theirs}":
        return True
    is_path = os.sep in ours or os.sep in theirs
    return is_path and os.path.basename(ours) == os.path.basename(theirs)


def _table_differences(
    first: Mapping[str, Any], second: Mapping[str, Any], path: Path, *, both: bool
) -> Iterator[FactDifference]:
    ours, theirs = _entries(first, second, path), _entries(second, first, path)
    if ours is None or theirs is None:
        return
    without_run = HERE in (first.get(TAKEN), second.get(TAKEN))
    if path == ("data", "files"):
        ours, theirs = comparable(ours, theirs, fact_at(first, "data"), fact_at(second, "data"))
        ours, theirs = _without_moved(ours, theirs)
        if without_run:  # only the names of single files are known
            ours, theirs = ({k: v for k, v in each.items() if not k.endswith("/")} for each in (ours, theirs))
    keys = {*ours} & {*theirs} if both else {*ours, *theirs}
    for key in sorted(keys, key=str):
        values = ours.get(key, _MISSING), theirs.get(key, _MISSING)
        if values[0] != values[1]:
            yield replace(_difference(path, str(key), *values), is_with_machine=without_run)


def _entries(facts: Mapping[str, Any], others: Mapping[str, Any], path: Path) -> dict[Any, Any] | None:
    """Return the entries of a table as they are compared; None where a record has no such table."""
    if path == _LIBRARIES:
        return library_texts(facts, others)
    table = fact_at(facts, *path)
    if not isinstance(table, dict):
        return None
    if path == ("distributions",):
        return package_texts(facts, others)
    if path == ("data", "files"):
        return {name: _contents_text(value) for name, value in table.items()}
    if path == ("code",):
        return {name: str(fact_at(value, "sha256"))[:DIGEST_SHOWN] for name, value in table.items()}
    return table


def _contents_text(value: Any) -> str:
    if not isinstance(value, dict):
        return str(value)
    files = value.get("count", 1)
    of_files = f" in {files} files" if files != 1 else ""
    size = value.get("size")
    return f"{str(value.get('sha256'))[:DIGEST_SHOWN]} ({size} byte{'' if size == 1 else 's'}{of_files})"


def _without_moved(ours: dict[Any, Any], theirs: dict[Any, Any]) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """Leave out files that have the same contents under another name."""
    only_ours = {value for name, value in ours.items() if name not in theirs}
    only_theirs = {value for name, value in theirs.items() if name not in ours}
    moved = only_ours & only_theirs
    return (
        {name: value for name, value in ours.items() if name in theirs or value not in moved},
        {name: value for name, value in theirs.items() if name in ours or value not in moved},
    )


def _key(fact: FactDifference) -> Path:
    return fact.path if fact.entry is None else (*fact.path, fact.entry)


def _claimed(pending: dict[Path, FactDifference], path: Path) -> list[FactDifference]:
    """Take the differences at a path out of those that nobody has told."""
    if path[-1] == ANY:
        keys = [key for key in pending if key[:-1] == path[:-1]]
    else:
        keys = [path] if path in pending else []
    return [pending.pop(key) for key in keys]


def _difference(path: Path, entry: str | None, first: object, second: object) -> FactDifference:
    entry = None if entry is None else _shorten(entry)
    if isinstance(first, list) and isinstance(second, list) and path != ("arguments",):
        only_first = _describe([item for item in first if item not in second])
        only_second = _describe([item for item in second if item not in first])
        return FactDifference(path, only_first, only_second, entry, is_list=True)
    texts = [None if value is _MISSING else _describe(value) for value in (first, second)]
    return FactDifference(path, texts[0], texts[1], entry)


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
