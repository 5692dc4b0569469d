"""The switches of a process that is to be started: the hash seed, and whether its addresses stay the same."""

from __future__ import annotations

import os
import sys
from importlib.util import cache_from_source, find_spec
from typing import TYPE_CHECKING

from samebits._runtime.address_layout import layout_is_fixed, why_layout_cannot_be_fixed
from samebits.switches.switch import BOTH, Switch, When
from samebits.switches.variables import Variable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

FIXED, RANDOM = "fixed", "random"
_NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"


class HashSeed(Variable):
    """The hash seed of this interpreter: `random`, or a number.

    A script that sets the variable changes nothing for itself, only for its children, so that what counts is
    the value at the start: `sys.flags.hash_randomization`, and on Linux `/proc/self/environ`.
    """

    def problem(self, value: str) -> str:
        """What is expected instead."""
        fits = value.isascii() and value.isdecimal() and int(value) < 2**32
        return "" if fits else self.expected

    def read(self) -> str:
        """The seed in force."""
        if not sys.flags.hash_randomization:
            return "0"
        value = _at_start(self.variable)
        return value if value.isdecimal() and int(value) else "random"

    def restore(self, before: str) -> None:
        """Nothing was changed: what is in force cannot be."""


def _at_start(name: str) -> str:
    """A variable as it was when this process started; as it is now where that cannot be known."""
    try:
        with open("/proc/self/environ", "rb") as file:
            block = file.read()
    except OSError:
        return os.environ.get(name, "")
    prefix = os.fsencode(name) + b"="
    values = [entry[len(prefix) :] for entry in block.split(b"\0") if entry.startswith(prefix)]
    return os.fsdecode(values[0]) if values else ""


def _hash_seed(value: str) -> bool:
    return value.isdecimal()


class AddressLayout:
    """Address-space randomisation of this process; it is switched on or off for a process that is started."""

    module = ""
    setters: tuple[str, ...] = ()

    def missing(self) -> str:
        """Why this system does not let it be switched off."""
        return "" if layout_is_fixed() else why_layout_cannot_be_fixed()

    def problem(self, value: str) -> str:
        """What is expected instead."""
        return "" if value in (FIXED, RANDOM) else f"`{FIXED}` or `{RANDOM}`"

    def read(self) -> str:
        """Whether this process was started with fixed addresses."""
        return FIXED if layout_is_fixed() else RANDOM

    def write(self, value: str) -> None:
        """Refuse: a process has its addresses from its start on.

        Raises:
            ValueError: always.
        """
        raise ValueError(f"a process has its addresses from its start on; they cannot become {value}")

    def restore(self, before: str) -> None:
        """Nothing was changed."""

    def probe(self) -> Callable[[], object] | None:
        """None: it does not change while a process runs."""
        return None


LAYOUT = Switch(
    "address-layout",
    AddressLayout(),
    When.PROCESS,
    FIXED,
    BOTH,
    "addresses, and so the order of sets of objects and of sorting by `id`, are other ones in every process",
    "Linux man-pages, personality(2), ADDR_NO_RANDOMIZE",
    cost="modules of the script without byte code are compiled in every run",
    default=RANDOM,
)


HASH_SEED = Switch(
    "PYTHONHASHSEED",
    HashSeed("PYTHONHASHSEED", r"\d{1,10}", "a whole number from 0 to 4294967295"),
    When.PROCESS,
    "0",
    BOTH,
    "hashes of strings, and so the order of sets, are other ones in every process",
    "Python docs, PYTHONHASHSEED; lightning#2156",
    _hash_seed,
)


def layout_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that belong to fixed addresses.

    The first run of a script would compile its modules and the next ones load them, which allocates other
    things. Where not even torch was ever compiled, as some installers leave it, compiling it in every run
    would take too long, and the run writes byte code as ever.
    """
    return {_NO_BYTECODE: "1"} if not environ.get(_NO_BYTECODE) and _torch_is_compiled() else {}


def _torch_is_compiled() -> bool:
    try:
        spec = find_spec("torch")
        return spec is None or spec.origin is None or os.path.exists(cache_from_source(spec.origin))
    except (ImportError, ValueError, NotImplementedError):
        return sys.implementation.cache_tag is not None
