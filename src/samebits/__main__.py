"""`python -m samebits`, and the program `samebits`.

Ctrl-C ends it without a traceback also while it is being imported, and after its command has ended.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` takes longer to import
import os
import sys


def main() -> int:
    """Run the command that the words of this process name; return its exit status."""
    handler = _signal.getsignal(_signal.SIGINT)
    if handler is not _signal.default_int_handler:  # ignored, as in the background of a shell
        from samebits.cli.main import main as run

        return run()
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    from samebits.cli.main import main as run

    try:
        _signal.signal(_signal.SIGINT, handler)
        status = run()
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    except KeyboardInterrupt:  # before the command began, or a second one
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
        os.kill(os.getpid(), _signal.SIGINT)
        raise
    return status


if __name__ == "__main__":
    sys.exit(main())
