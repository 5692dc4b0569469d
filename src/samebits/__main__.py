"""`python -m samebits`."""

from __future__ import annotations

import sys

from samebits.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
