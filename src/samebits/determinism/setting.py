"""One switch under control: set, read back, put back."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from samebits.determinism.switch import When

if TYPE_CHECKING:
    from samebits.determinism.switches import Wanted

WAITING, SET, HELD, KEPT = "waiting", "set", "held", "kept"
MISSING, TOO_LATE, FAILED = "missing", "too-late", "failed"


class SwitchRow(NamedTuple):
    """How it went with one switch.

    Args:
        name: of the switch.
        before: its value before control; empty for a variable that was not set.
        wanted: what control wants; empty when it holds what it finds.
        now: its value at this moment.
        state: `set`; `held`, watched only; `kept`, the user's value keeps the promise; `missing`, this build
            does not have it; `too-late`; `failed`; `waiting` for its module to be imported.
        why: the reason of the state, else what the switch is for.
    """

    name: str
    before: str
    wanted: str
    now: str
    state: str
    why: str


class Setting:
    """A switch and what became of it.

    Args:
        wanted: what control wants of it.
    """

    def __init__(self, wanted: Wanted) -> None:
        self.switch = wanted.switch
        self.wanted = wanted.value
        self.explicit = wanted.explicit
        self.before = ""
        self.now = ""
        self.state = WAITING
        self.why = self.switch.why
        self._written = False

    @property
    def watched(self) -> bool:
        """Whether its value is to stay what it is now."""
        return self.state in {SET, HELD, KEPT}

    @property
    def replaced(self) -> bool:
        """Whether a choice of the user's was replaced that was not asked for by name."""
        chosen = self.before not in {"", self.switch.default}
        return self.state == SET and chosen and self.now != self.before and not self.explicit

    def begin(self) -> None:
        """Read it, before any switch is set."""
        missing = self.switch.handle.missing()
        if missing:
            self.state, self.why = MISSING, missing
        else:
            self.before = self.now = self.switch.handle.read()

    def apply(self) -> None:
        """Set it, if it has to be set and still can be."""
        if self.state == MISSING:
            return
        if self.wanted is None:
            self.state = HELD
        elif self.before == self.wanted:
            self.state = SET
        elif not self.explicit and self._keeps():
            self.state = KEPT
        else:
            self._write(self.wanted)

    def settle(self) -> None:
        """Read it back, after all were set: setting one may change another."""
        if self.state in {WAITING, MISSING}:
            return
        self.now = self.switch.handle.read()
        if self.state == SET and self.now != self.wanted:
            self.state, self.why = FAILED, f"it was set to {self.wanted} and reads back as {self.now}"

    def put_back(self) -> str:
        """Give it the value from before control; one that is held keeps what the script chose.

        Returns:
            why that could not be done, in words; empty when it could.
        """
        moved = self.state == HELD and self.now != self.before  # by setting another switch
        wanted = moved or self._written or self.state in {SET, KEPT}
        self.state = WAITING
        try:
            if wanted:
                self.switch.handle.restore(self.before)
        except ValueError as error:
            return f"{self.switch.name} stays {self.now}, it could not be put back to {self.before}: {error}"
        return ""

    def set_again(self) -> None:
        """After a drift: what it was when it was settled."""
        self.switch.handle.restore(self.now)

    def row(self) -> SwitchRow:
        """As it is at this moment."""
        known = self.state not in {WAITING, MISSING}
        now = self.switch.handle.read() if known else ""
        return SwitchRow(self.switch.name, self.before, self.wanted or "", now, self.state, self.why)

    def _keeps(self) -> bool:
        handle, before = self.switch.handle, self.before
        may = bool(before) and (self.switch.accepts is not None or before == self.switch.value)
        return may and not handle.problem(before) and self.switch.keeps(before)

    def _write(self, value: str) -> None:
        late = too_late(self.switch.when)
        if late:
            self.state, self.why = TOO_LATE, late
            return
        self._written = True
        try:
            self.switch.handle.write(value)
        except ValueError as error:
            self.state, self.why = FAILED, str(error)
        else:
            self.state = SET


def too_late(when: When) -> str:
    """Why a switch that can be set until then cannot be set any more; empty when it can."""
    torch: Any = sys.modules.get("torch")
    if not hasattr(torch, "Tensor"):  # a `torch.py` of the user's own
        torch = None
    if when is When.PROCESS:
        return "the interpreter has started"
    if when is When.IMPORT and torch is not None:
        return "torch has been imported"
    if torch is not None and when is When.CUDA and torch.cuda.is_initialized():
        return "CUDA is in use"
    if torch is not None and when is When.GROUP:
        distributed = torch.distributed
        if distributed.is_available() and distributed.is_initialized():
            return "the process group exists"
    return ""
