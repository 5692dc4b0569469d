"""What a switch is."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable


class When(enum.Enum):
    """The moment until which a switch can be set."""

    PROCESS = "before the interpreter starts"
    IMPORT = "before torch is imported"
    CUDA = "before the first use of CUDA"
    GROUP = "before the process group is made"
    ANY = "at any time"


class Handle(Protocol):
    """**Protocol:** one place where a setting lives: an environment variable, a flag of torch.

    Values are text, as a user would type them: `on`, `off`, `:4096:8`, `2`.
    """

    @property
    def module(self) -> str:
        """The module that must have been imported before the setting can be read or set; empty for none."""

    @property
    def setters(self) -> tuple[str, ...]:
        """Names of the functions of `torch._C` that write it, for `torch_private.setter_places`."""

    def missing(self) -> str:
        """Why this build does not have the setting; empty when it has it."""

    def problem(self, value: str) -> str:
        """What is expected instead of that value; empty when the setting can have it. Imports nothing."""

    def read(self) -> str:
        """The value in force; empty when the variable is not set."""

    def write(self, value: str) -> None:
        """Set it.

        Raises:
            ValueError: the setting cannot have that value now; the text says what is possible.
        """

    def restore(self, before: str) -> None:
        """Put back what `read` gave."""

    def probe(self) -> Callable[[], object] | None:
        """A function that takes well below a microsecond and whose result changes whenever `read` does.

        None for environment variables, which are compared all at once.
        """


class Switch(NamedTuple):
    """One setting that influences determinism.

    Args:
        name: what the user types and sees, such as `cudnn-benchmark`.
        handle: reads and sets it.
        when: until when it can be set.
        value: what control sets; None holds the value that it finds: the switch is watched, not set.
        promises: the promises that need it: `repeatable`, `portable`.
        why: what goes wrong without it, one sentence.
        source: where that is said or was measured.
        accepts: whether another value, the user's own, keeps the promise too; such a value is kept.
        cost: what it costs to set it; empty when nothing is known to.
        default: what it is when nobody chose; replaced without a warning.
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

    def keeps(self, value: str) -> bool:
        """Whether that value keeps the promise: the table's own, or one that it accepts."""
        return value == self.value or (self.accepts is not None and self.accepts(value))
