"""Prints the digests of golden trainings under portable mode, one JSON object: run in a process of its own.

python tests/golden/compute.py [--device cuda] [NAME ...]
"""

from __future__ import annotations

import argparse
import json
import sys

import portable_models
import torch

import samebits


def main(names: list[str], device: str) -> None:
    """Train each model there and print its digest."""
    torch.set_default_device(device)
    digests = {}
    for name in names or list(portable_models.TRAININGS):
        with samebits.portable():
            trained = portable_models.train(name)
        digests[name] = str(samebits.digest(trained))
        print(name, digests[name], file=sys.stderr, flush=True)
    print(json.dumps({"torch": torch.__version__, "digests": digests}))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    main(arguments.names, arguments.device)
