"""The proof of the list of exact ops: the same digests under each instruction set, with 1 and 2 threads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from samebits.portable._exact import EXACT, INTEGERS, MOVES, SPARSE

WORKER = Path(__file__).with_name("portable_exact_worker.py")
# MKL computes some of torch's functions, and picks its own instructions: one run holds it to the oldest ones.
RUNS = {
    "DEFAULT": {"ATEN_CPU_CAPABILITY": "default", "MKL_CBWR": "COMPATIBLE"},
    "AVX2": {"ATEN_CPU_CAPABILITY": "avx2"},
    "AVX512": {"ATEN_CPU_CAPABILITY": "avx512"},
}
Calls = dict[str, dict[str, str]]  # {op: {digest of inputs: digest of outputs}}


@pytest.fixture(scope="module")
def found() -> list[dict[str, Calls]]:
    """What the worker printed under each instruction set that this machine has."""
    names = list(RUNS)
    best = torch.backends.cpu.get_cpu_capability()
    usable = names[: names.index(best) + 1] if best in names else names[:1]
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(run_worker, (RUNS[name] for name in usable)))


def run_worker(environment: dict[str, str]) -> dict[str, Calls]:
    """One process: {part: calls}."""
    done = subprocess.run(
        [sys.executable, str(WORKER)],
        env={**os.environ, "OMP_WAIT_POLICY": "passive", **environment},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def results_of(parts: list[Calls]) -> dict[str, dict[str, list[str | None]]]:
    """{op: {inputs: [outputs of each part, None where it was not called]}}."""
    results: dict[str, dict[str, list[str | None]]] = defaultdict(dict)
    for op in set().union(*parts):
        for given in set().union(*(part.get(op, {}) for part in parts)):
            results[op][given] = [part.get(op, {}).get(given) for part in parts]
    return results


def comparable(found: list[dict[str, Calls]]) -> list[list[Calls]]:
    """The parts that must be alike: the same calls with 1 and 2 threads, and all others."""
    return [[run[threads] for run in found for threads in "12"], [run["small"] for run in found]]


def differing(parts: list[Calls]) -> dict[str, int]:
    """The ops that gave different bits for the same inputs, and for how many of these."""
    counts = {
        op: sum(len(set(outputs) - {None}) > 1 for outputs in calls.values())
        for op, calls in results_of(parts).items()
    }
    return {op: count for op, count in counts.items() if count}


def test_every_op_gives_the_same_bits(found):
    """Whatever is called, under portable mode."""
    assert [differing(parts) for parts in comparable(found)] == [{}, {}]


def test_every_op_gets_the_same_inputs(found):
    """Else nothing is proven by what it gives."""
    unequal = {
        op
        for parts in comparable(found)
        for op, calls in results_of(parts).items()
        if any(None in outputs for outputs in calls.values())
    }

    assert unequal == set()


def test_every_op_on_the_list_is_exercised(found):
    """An entry that nothing calls is an entry that nothing proves."""
    listed = MOVES | EXACT | INTEGERS | SPARSE
    called = set().union(*(found[0][part] for part in ("1", "small")))

    assert listed - called == set()


def test_a_wrong_entry_is_found(found):
    """Two ops as if they were on the list: both follow the instruction set, on any processor."""
    if len(found) < len(RUNS):
        pytest.skip("torch has one implementation of these on this machine")

    assert differing([run["planted"] for run in found]).keys() >= {"exp2", "sinh"}
