"""The sources of the kernels for CUDA: in a wheel beside this module, in a checkout in `native/`."""

from __future__ import annotations

from pathlib import Path

_PACKAGED = Path(__file__).with_name("sources")
_CHECKOUT = Path(__file__).parents[3] / "native"
# In the order in which a name is looked for: the compiler has none of the C library's headers.
_FOLDERS = ("cuda/freestanding", "cuda", "portable", ".")


def sources_folder() -> Path:
    """Return the folder of the sources; an installation without them has none there."""
    return _PACKAGED if _PACKAGED.is_dir() else _CHECKOUT


def read_sources() -> dict[str, str]:
    """Return the text of each file by name, with all that they include; empty where there are none."""
    root = sources_folder()
    found: dict[str, str] = {}
    for folder in _FOLDERS:
        for path in sorted((root / folder).glob("*.[ch]*")):
            if path.suffix in {".cu", ".h"}:
                found.setdefault(path.name, path.read_text(encoding="utf-8"))
    return found
