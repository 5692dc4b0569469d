"""The switches that take effect only when a process starts: the hash seed and fixed addresses."""

from __future__ import annotations

import os
import sys
from importlib.util import cache_from_source, find_spec
from typing import TYPE_CHECKING

from samebits._runtime.address_layout import layout_is_fixed, why_layout_cannot_be_fixed
from samebits.environment.influence import Results
from samebits.switches.switch import BOTH, Handle, Switch, When
from samebits.switches.variables import Variable

if TYPE_CHECKING:
    from collections.abc import Mapping

FIXED, RANDOM = "fixed", "random"
_NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"


class HashSeed(Variable):
    """The hash seed of this interpreter: `random`, or a number.

    A script that sets the variable changes only its children. The value at the start of the process counts:
    `sys.flags.hash_randomization`, and on Linux `/proc/self/environ`.
    """

    def problem(self, value: str) -> str:
        """Return what is expected instead, empty for a possible value."""
        fits = value.isascii() and value.isdecimal() and int(value) < 2**32
        return "" if fits else self.values[1]

    def read(self) -> str:
        """Return the seed in force."""
        if not sys.flags.hash_randomization:
            return "0"
        value = _at_start(self.variable)
        return value if value.isdecimal() and int(value) else "random"

    def restore(self, before: str) -> None:
        """Do nothing, because the seed in force cannot change."""


def _at_start(name: str) -> str:
    """Return a variable as it was when this process started, or as it is now where that is not known."""
    try:
        with open("/proc/self/environ", "rb") as file:
            block = file.read()
    except OSError:
        return os.environ.get(name, "")
    prefix = os.fsencode(name) + b"="
    values = [row[len(prefix) :] for row in block.split(b"\0") if row.startswith(prefix)]
    return os.fsdecode(values[0]) if values else ""


class AddressLayout(Handle):
    """Address-space randomisation, which is switched on or off when a process starts."""

    values = (f"{FIXED}|{RANDOM}", f"`{FIXED}` or `{RANDOM}`")

    def missing(self) -> str:
        """Return why this system does not let it be switched off, empty when it does."""
        return "" if layout_is_fixed() else why_layout_cannot_be_fixed()

    def read(self) -> str:
        """Return `fixed` when this process was started with fixed addresses, else `random`."""
        return FIXED if layout_is_fixed() else RANDOM

    def write(self, value: str) -> None:
        """Refuse, because a process has its addresses from its start.

        Raises:
            ValueError: always.
        """
        raise ValueError(f"the addresses of a process are decided when it starts; they cannot become {value}")

    def restore(self, before: str) -> None:
        """Do nothing, because nothing was changed."""


LAYOUT = Switch(
    "address-layout",
    AddressLayout(),
    When.PROCESS,
    FIXED,
    BOTH,
    "addresses, and so the order of sets of objects and of sorting by `id`, differ from process to process",
    "Linux man-pages, personality(2), ADDR_NO_RANDOMIZE",
    cost="the script's modules that have no byte code are compiled in every run",
    default=RANDOM,
    affects=(Results.SETS,),
)


HASH_SEED = Switch(
    "PYTHONHASHSEED",
    HashSeed("PYTHONHASHSEED", (r"\d{1,10}", "a whole number from 0 to 4294967295")),
    When.PROCESS,
    "0",
    BOTH,
    "hashes of strings, and so the order of sets, differ from process to process",
    "Python docs, PYTHONHASHSEED; lightning#2156",
    str.isdecimal,
    affects=(Results.SETS,),
)


def layout_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that fixed addresses need.

    The first run of a script would compile its modules and later runs would load them, which allocates other
    memory. Some installers leave even torch without byte code: compiling it in every run would take too long,
    so such a run writes byte code as usual.
    """
    return {_NO_BYTECODE: "1"} if not environ.get(_NO_BYTECODE) and _torch_is_compiled() else {}


def _torch_is_compiled() -> bool:
    try:
        spec = find_spec("torch")
        return spec is None or spec.origin is None or os.path.exists(cache_from_source(spec.origin))
    except (ImportError, ValueError, NotImplementedError):
        return sys.implementation.cache_tag is not None
