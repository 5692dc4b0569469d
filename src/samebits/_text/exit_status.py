"""Exit statuses in words."""

from __future__ import annotations

import signal


def ended_words(status: int) -> str:
    """Say how a process ended: `by SIGKILL` or `with exit status 3`.

    Args:
        status: as the shell would show it: 128 + N after signal N.
    """
    try:
        return f"by {signal.Signals(status - 128).name}"
    except ValueError:
        return f"with exit status {status}"
