"""samebits: the same bits twice, or the first operation that differed.

The public names are `digest`, `record`, `compare` and `SamebitsError`. `import samebits` is light: torch is
imported by the first of them that needs it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from samebits.errors import SamebitsError

if TYPE_CHECKING:
    from samebits.comparison import compare_records as compare
    from samebits.digest import digest
    from samebits.recording.session import record

__version__ = "0.1.0"
__all__ = ["SamebitsError", "__version__", "compare", "digest", "record"]
_HOMES = {
    "compare": ("samebits.comparison", "compare_records"),
    "record": ("samebits.recording.session", "record"),
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name == "digest":
        return import_module("samebits.digest")  # a package that can be called
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _HOMES[name]
    globals()[name] = getattr(import_module(module), attribute)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
