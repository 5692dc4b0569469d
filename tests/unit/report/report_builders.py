"""Hand-made results for the reports."""

from __future__ import annotations

import finding_support
from sentence_support import text_evidence, text_reason

from samebits._runtime.frames import Site
from samebits.comparison.results import Comparison, Finding, Remedy
from samebits.recording.distance import Difference
from samebits.records.events import Event, RunInfo, TensorInfo
from samebits.verification.results import ScriptRun, Verification


def run(name: str = "run-1", purpose: str = "compare", **fields) -> ScriptRun:
    """One run of train.py."""
    info = RunInfo(
        command=("train.py",), level="step", status="finished", exit_status=0, steps=5, torch="2.13.0"
    )
    return ScriptRun(purpose, f"/code/.samebits/train-verify-1/{name}.sbr", 0, 2.0, info=info, **fields)


def identical(**fields) -> Verification:
    """Two runs that gave the same bits."""
    comparison = Comparison("identical", None, 120, final_digest=("ab" * 16, "ab" * 16), **fields)
    return Verification(comparison, ("train.py",), (run(), run("run-2")), 14.2, 4812)


def finding(file: str = "/code/train.py", **fields) -> Finding:
    """An operation whose inputs were equal and whose output was not."""
    values = {
        "kind": "op",
        "step": 2,
        "op": "aten::randn.default",
        "module": "net.drop",
        "site": Site(file, 3, "training_step"),
        "forward_site": None,
        "inputs_equal": True,
        "difference": Difference(
            24, 24, 1074266112, 2.513, (0, 0), ("0.33669036626815796", "1.9269152879714966")
        ),
        "cause": "unseeded-torch",
        "evidence": (
            text_evidence(
                "the generator was seeded by torch.seed() at train.py:2, with another value in each run"
            ),
        ),
        "remedy": Remedy("call torch.manual_seed(...) instead"),
        "inputs": ("f32[6, 4]",),
        "outputs": ("f32[6, 4]",),
    }
    return finding_support.finding(**{**values, **fields})


def different(*findings: Finding, **fields) -> Verification:
    """Two runs that part in step 2."""
    values = {
        "reason": text_reason("the state differs at step 2: parameter weight (f32[2, 4])"),
        "steps": 3,
        "first_step": 2,
    }
    comparison = Comparison(
        "different", findings=findings, final_digest=("ab" * 16, "cd" * 16), **{**values, **fields}
    )
    runs = [
        run(),
        run("run-2"),
        *(run(f"op-1{x}", "localise") for x in "ab"),
        *(run(f"values-1{x}", "capture") for x in "ab"),
    ]
    return Verification(comparison, ("train.py",), tuple(runs), 21.0, 99)


def event(seq: int, kind: str = "step", op: str = "SGD.step", step: int = 0, **fields) -> Event:
    """An event with one parameter and one optimizer tensor."""
    values = {
        "site": Site("/code/train.py", 12, "main"),
        "forward_site": None,
        "module": "",
        "thread": "",
        "arguments": "",
        "tensors": (
            TensorInfo("param", "fc.weight", "float32", (2, 4)),
            TensorInfo("optimizer", "m", "float32", (2,)),
        ),
        "digests": (bytes(range(16)), bytes(range(16, 32))),
        "links": (),
    }
    return Event(seq=seq, kind=kind, step=step, op=op, **{**values, **fields})
