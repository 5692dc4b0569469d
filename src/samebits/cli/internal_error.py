"""Report an internal error of samebits: the details go to a file, and one line says where it is."""

from __future__ import annotations

import platform
import sys
import tempfile
from pathlib import Path

from samebits._runtime.package import __version__
from samebits._text import files
from samebits.cli.terminal import write
from samebits.errors import EXIT_INTERNAL_ERROR, pointer
from samebits.recording.naming import DEFAULT_FOLDER, next_free

_SLUG = "internal-error"


def report(traceback: str) -> int:
    """Keep a traceback in a file, and say on stderr where it is.

    Args:
        traceback: the traceback of the error, as text.

    Returns:
        the exit status.
    """
    sys.stdout.flush()
    lines = traceback.strip().splitlines()
    what = " ".join(lines[-1].split()) if lines else "no reason known"
    path = _keep(f"{_versions()}\n\n{traceback}")
    where = f"the details are in {path}" if path else "the details could not be written"
    write(f"samebits: internal error ({what}): please report it; {where}", sys.stderr)
    write(pointer(_SLUG), sys.stderr)
    return EXIT_INTERNAL_ERROR


def _versions() -> str:
    torch = getattr(sys.modules.get("torch"), "__version__", "not imported")
    return (
        f"samebits {__version__}, Python {platform.python_version()}, torch {torch}, "
        f"{platform.system()} {platform.machine()}"
    )


def _keep(text: str) -> str:
    """Write a new file beside the records, or else in the temporary folder; return its path, or nothing."""
    for folder in (str(DEFAULT_FOLDER), tempfile.gettempdir()):
        try:
            path = str(next_free(Path(folder), "internal-error", ".txt"))
            descriptor = files.create(path)
        except OSError:
            continue
        with open(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        return path
    return ""
