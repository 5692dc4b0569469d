"""The proof of the list of exact ops: the same digests under each instruction set, with 1 and 2 threads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from samebits.portable.exact.names import COMPARISONS, COPIES, FACTORIES, INTEGERS, QUERIES, SINGLE, VIEWS

WORKER = Path(__file__).with_name("portable_exact_worker.py")
CAPABILITIES = ("default", "avx2", "avx512")


@pytest.fixture(scope="module")
def found() -> dict[str, dict[str, Any]]:
    """What the worker printed under each instruction set: {capability: {op: {threads: digest}}}."""
    results = {}
    for capability in CAPABILITIES:
        environment = {**os.environ, "ATEN_CPU_CAPABILITY": capability}
        done = subprocess.run(
            [sys.executable, str(WORKER)], env=environment, stdout=subprocess.PIPE, text=True, check=True
        )
        results[capability] = json.loads(done.stdout)
    return results


def test_every_op_gives_the_same_bits(found):
    """Whatever is called, under portable mode."""
    different = {
        (threads, op)
        for threads in ("1", "2")
        for op in set().union(*found.values())
        if len({result.get(op, {}).get(threads) for result in found.values()}) > 1
    }

    assert different == set()


def test_every_op_on_the_list_is_exercised(found):
    """An entry that nothing calls is an entry that nothing proves."""
    listed = VIEWS | COPIES | FACTORIES | QUERIES | COMPARISONS | SINGLE | INTEGERS

    assert listed - found["default"].keys() == set()
