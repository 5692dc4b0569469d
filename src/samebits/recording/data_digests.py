"""The digests of the data that a run read, made at its end; Ctrl-C leaves out the rest."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from samebits.environment.files import digest_data
from samebits.recording.terminal_row import show_digesting

if TYPE_CHECKING:
    from collections.abc import Collection

    from samebits.environment.files import DataFacts
    from samebits.recording.run_signals import RunSignals


def digest_read(
    paths: Collection[str], folder: str, signals: RunSignals, changed: Collection[str] = ()
) -> DataFacts:
    """Return the digests of files, and show how far that is if it takes long.

    Args:
        paths: absolute.
        folder: the working folder of the run.
        signals: those that were kept back, and are while this goes on. A Ctrl-C before leaves out all files;
            one that comes meanwhile leaves out the rest, and is done with.
        changed: those of the files that are not what the run read any more.
    """
    begun = signals.skip_begins()

    def progress(done: int, total: int) -> None:
        show_digesting(done, total)
        if signal.SIGINT in signals.came:
            raise KeyboardInterrupt

    try:
        return digest_data(paths, folder, progress, changed)
    finally:
        signals.skip_ends(begun)
