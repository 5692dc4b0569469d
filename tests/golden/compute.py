"""Prints the digests of golden trainings under portable mode, one JSON object: run in a process of its own.

python tests/golden/compute.py [NAME ...]
"""

from __future__ import annotations

import json
import sys

import portable_models
import torch

import samebits


def main(names: list[str]) -> None:
    """Train each model and print its digest."""
    digests = {}
    for name in names or list(portable_models.TRAININGS):
        with samebits.portable():
            trained = portable_models.train(name)
        digests[name] = str(samebits.digest(trained))
        print(name, digests[name], file=sys.stderr, flush=True)
    print(json.dumps({"torch": torch.__version__, "digests": digests}))


if __name__ == "__main__":
    main(sys.argv[1:])
