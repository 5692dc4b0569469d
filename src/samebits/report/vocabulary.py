"""Words that several sentences of a report need: kinds of events, roles of tensors, ranks, lists of names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits.comparison.results import describe
from samebits.records.events import split_command
from samebits.records.kinds import EventKind, Role

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from samebits.records.events import TensorInfo

KIND_WORDS: Mapping[str, str] = {
    EventKind.BATCH: "a batch of the DataLoader",
    EventKind.DRAW: "a random draw",
    EventKind.LOSS: "the loss",
    EventKind.GRAD: "the gradients",
    EventKind.STEP: "the state after the step",
    EventKind.RNG: "the random number generators",
    EventKind.READ: "a value read out of torch",
    EventKind.SAVE: "a saved value",
    EventKind.COLLECTIVE: "a collective operation",
    EventKind.TAP: "a tapped value",
    EventKind.EARLIER: "a value read out of torch before the call",
}
ROLE_WORDS: Mapping[str, str] = {
    Role.PARAM: "parameter",
    Role.GRAD: "gradient",
    Role.OPTIMIZER: "optimizer state",
}


def script_name(command: Sequence[str]) -> str:
    """Return the name of the script without its folder, or `-m module`."""
    return split_command(command)[0] or "a script"


def rank_words(numbers: Iterable[int]) -> str:
    """Return ranks in words: `rank 1`, `ranks 0-2 and 5`."""
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    parts = [str(a) if a == b else f"{a}{'-' if b > a + 1 else ' and '}{b}" for a, b in spans]
    name = "rank" if len(spans) == 1 and spans[0][0] == spans[0][1] else "ranks"
    return f"{name} " + (f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else "".join(parts))


def some_names(names: Iterable[str], most: int = 3) -> str:
    """Return the first names, and how many more there are."""
    listed = list(names)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more


def tensor_text(role: Role, name: str, info: TensorInfo | None) -> str:
    """Describe a tensor of the state, such as `parameter fc1.weight (f32[10])`."""
    return f"{ROLE_WORDS.get(role, role)} {name}" + (f" ({describe(info)})" if info else "")
