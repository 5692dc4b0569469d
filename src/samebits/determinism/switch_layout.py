"""The switch of address-space layout: whether this process has the same addresses each time it is started."""

from __future__ import annotations

import os
import sys
from importlib.util import cache_from_source, find_spec
from typing import TYPE_CHECKING

from samebits.determinism.switch import Switch, When
from samebits.hooks.layout import layout_is_fixed, why_layout_cannot_be_fixed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

FIXED, RANDOM = "fixed", "random"
_NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"


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
    ("repeatable", "portable"),
    "addresses, and so the order of sets of objects and of sorting by `id`, are other ones in every process",
    "Linux man-pages, personality(2), ADDR_NO_RANDOMIZE",
    cost="modules of the script without byte code are compiled in every run",
    default=RANDOM,
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
