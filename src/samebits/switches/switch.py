"""A switch, and what a run asks for: its seed and its switches."""

from __future__ import annotations

import enum
import re
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

from samebits.environment.influence import Results

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

LEFT_ALONE = "leave"


class Control(NamedTuple):
    """The control of one run.

    Args:
        seed: from 0 to 2**64 - 1; None leaves all RNG sources alone.
        per_rank: each process of a distributed run gets its own seed, from `seed` and its rank.
        switches: (name, value) of those that differ from the table; `leave` neither sets nor watches the
            switch.
        all_switches: False touches only the switches that `switches` names.
        on_drift: what happens when a switch or an RNG source is changed later: `warn`, `error`, `restore`
            (set it again, and warn) or `ignore`.
        workers: seed DataLoader workers, and keep loaders from drawing from the main process's generators.
        reseed: seeds that the script sets are derived from `seed` too; otherwise they stay the script's.
        scope: names this process among those that the run starts; set by samebits only.
        sources: the RNG sources to seed, with the generators that their libraries make without a seed; None
            is all. Used by interventions (docs/reference/interventions.md), with `workers=False`.
        pins: names of interventions that replace something inside the process (`interventions`).
        keyed_samples: random numbers drawn while a sample is loaded depend on the sample, not on the worker.
        portable: every op gives portable values (`samebits.portable`); the runner of the script sees to it.
    """

    seed: int | None = None
    per_rank: bool = False
    switches: tuple[tuple[str, str], ...] = ()
    all_switches: bool = True
    on_drift: str = "warn"
    workers: bool = True
    reseed: bool = False
    scope: tuple[int | str, ...] = ()
    sources: tuple[str, ...] | None = None
    pins: tuple[str, ...] = ()
    keyed_samples: bool = False
    portable: bool = False

    def seeds(self, source: str) -> bool:
        """Tell whether the RNG source of that name is seeded when there is a seed."""
        return self.sources is None or source in self.sources

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON can hold them."""
        return self._asdict()

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Control:
        """Read what `to_dict` wrote, also after it went through JSON."""
        switches = tuple((str(name), str(value)) for name, value in fields["switches"])
        read = {"switches": switches, "scope": tuple(fields.get("scope", ()))}
        if fields.get("sources") is not None:
            read["sources"] = tuple(fields["sources"])
        return cls(**{**fields, **read, "pins": tuple(fields.get("pins", ()))})


ONLY_PORTABLE = Control(all_switches=False, on_drift="ignore", workers=False, portable=True)
"""Portable mode and nothing else: the script seeds itself, and no switch is touched."""

# Promises that need a switch, and sources that several name.
BOTH = ("repeatable", "portable")
PORTABLE = ("portable",)
TORCH = "PyTorch notes on reproducibility"
CONTEXT = "aten/src/ATen/Context.h, 2.13"
MEASURED = "measured, torch 2.13.0 on a CPU with AVX-512"
TITAN = "torchtitan distributed/utils.py, set_batch_invariance"
# Torch refuses to read a setting, because its legacy and new precision settings contradict each other.
MIXED = "mixed"
# Kinds of values: the pattern of the accepted ones, and how an error describes them.
KINDS = {
    "switch": (r"on|off", "`on` or `off`"),
    "reduction": (r"(on|off)(,no-split-k)?", "`on` or `off`, or one of them with `,no-split-k`"),
    "count": (r"[1-9]\d*", "a whole number from 1"),
    "limit": (r"\d+", "a whole number from 0"),
    "signed": (r"-1|\d+", "-1 or a whole number from 0"),
    "optional": (r"none|\d+", "`none` or a whole number"),
    "order": (r"\d+(,\d+)*", "numbers of back ends, such as `1,2,0,3,4`"),
    "precision": (r"none|ieee|tf32|bf16|bfx9", "`none`, `ieee`, `tf32`, `bf16` or `bfx9`"),
    "matmul": (r"highest|high|medium", "`highest`, `high` or `medium`"),
    "word": (r"[a-z0-9_]+", "one word in small letters"),
    "capitals": (r"[A-Z]+", "one word in capitals"),
    "backends": (r"[A-Z0-9_]+(,[A-Z0-9_]+)*", "names of back ends, such as `ATEN,TRITON`"),
    "names": (r"none|[a-z0-9_:]+(,[a-z0-9_:]+)*", "`none` or names with commas between them"),
}
ANYTHING = (r".*", "text")


class When(enum.Enum):
    """The moment until which a switch can be set."""

    PROCESS = "before the interpreter starts"
    IMPORT = "before torch is imported"
    CUDA = "before the first use of CUDA"
    GROUP = "before the process group is made"
    ANY = "at any time"


class Handle:
    """**Base class:** reads and writes one setting, such as an environment variable or a flag of torch.

    Values are text, as a user would type them: `on`, `off`, `:4096:8`, `2`.

    Attributes:
        module: the module that must have been imported before the setting can be read or set; empty for none.
        setters: the functions of `torch._C` that write it, as `_torch.core.setter_locations` takes them.
            Without any, a change is seen at the next boundary; writes of environment variables are watched.
        values: the kind of its values, such as those in `KINDS`.
    """

    module = ""
    setters: tuple[str, ...] = ()
    values = ANYTHING

    def missing(self) -> str:
        """Return why this build does not have the setting; empty when it has it."""
        return ""

    def problem(self, value: str) -> str:
        """Return what is expected instead of the value, empty when it is possible. Imports nothing."""
        pattern, expected = self.values
        return "" if re.fullmatch(pattern, value) else expected

    @abstractmethod
    def read(self) -> str:
        """Return the value in force, empty when the variable is not set."""

    @abstractmethod
    def write(self, value: str) -> None:
        """Set it.

        Raises:
            ValueError: the setting cannot have that value now; the text says what is possible.
        """

    def restore(self, before: str) -> None:
        """Put back what `read` gave."""
        if before != self.read():
            self.write(before)

    def probe(self) -> Callable[[], object] | None:
        """Return a function that takes well below a microsecond; its result changes whenever `read` does.

        None for a setting that cannot change, and for environment variables, which are compared all at once.
        """
        return None


class Switch(NamedTuple):
    """One setting that influences determinism.

    Args:
        name: as the user types and sees it, such as `cudnn-benchmark`.
        handle: reads and sets it.
        when: the moment until which it can be set.
        value: the value that control sets; None leaves the value and only watches it.
        promises: the promises that need it: `repeatable`, `portable`.
        why: what goes wrong without it, in one sentence.
        source: the document that says so, or the measurement.
        accepts: tells whether a value that the user chose keeps the promise too; it then stays.
        cost: what setting it costs; empty when no cost is known.
        default: its value when nobody chose one; it is replaced without a warning.
        affects: the results that it can change.
    """

    name: str
    handle: Handle
    when: When
    value: str | None
    promises: tuple[str, ...]
    why: str
    source: str
    accepts: Callable[[str], bool] | None = None
    cost: str = ""
    default: str = ""
    affects: tuple[Results, ...] = (Results.ALL,)

    def keeps(self, value: str) -> bool:
        """Tell whether the value keeps the promise: it is the table's own, or accepted."""
        return value == self.value or (self.accepts is not None and self.accepts(value))


def affecting(results: tuple[Results, ...], switches: Iterable[Switch]) -> tuple[Switch, ...]:
    """Return switches that all change the same results."""
    return tuple(switch._replace(affects=results) for switch in switches)


def as_text(raw: Any) -> str:
    """Return the value as a user would type it."""
    if isinstance(raw, bool):
        return "on" if raw else "off"
    if raw is None:
        return "none"
    if isinstance(raw, tuple):  # reduced precision, split-K
        return as_text(raw[0]) + ("" if raw[1] else ",no-split-k")
    if isinstance(raw, list):
        return ",".join(map(str, raw))
    name = getattr(raw, "name", None)  # an enumeration
    return str(raw) if name is None else str(name).lower()


def from_text(value: str, like: Any) -> Any:
    """Convert a text that `as_text` would give to the type that the setting has now.

    Raises:
        ValueError: this build does not have the choice.
    """
    if isinstance(like, str):  # also "on" and "-1"
        return value
    if isinstance(like, tuple):
        first, _, second = value.partition(",")
        return first == "on", not second
    if isinstance(like, bool) and value not in {"on", "off"}:
        raise ValueError("expected `on` or `off`: this torch has no other choices")
    if value in {"on", "off"}:
        return value == "on"
    if isinstance(like, list):
        return [int(part) for part in value.split(",")]
    if hasattr(like, "name"):
        members = {name.lower(): member for name, member in type(like).__members__.items()}
        if value not in members:
            raise ValueError(f"expected one of {', '.join(sorted(members))}")
        return members[value]
    return _number(value)


def _number(value: str) -> int | str | None:
    if value == "none":
        return None
    return int(value) if re.fullmatch(r"-?\d+", value) else value
