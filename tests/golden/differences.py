"""Says which digests in a file that compute.py printed differ from the golden ones; status 1 if any does."""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main(path: str) -> int:
    """Compare, and print a line for each that differs."""
    printed = json.loads(Path(path).read_text(encoding="utf-8"))
    golden = json.loads(Path(__file__).with_name("portable.json").read_text(encoding="utf-8"))["digests"]
    found = printed["digests"]
    other = [name for name, digest in found.items() if golden[name] != digest]
    for name in other:
        print(f"{name}: {found[name]}, expected {golden[name]}")
    print(f"torch {printed['torch']}: {len(found) - len(other)} of {len(found)} as expected")
    return 1 if other else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
