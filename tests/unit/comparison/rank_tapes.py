"""Synthetic records of the ranks of one run."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from event_tape import FakeRecord

from samebits._runtime.frames import Site
from samebits.records.events import Event, RunInfo, TensorInfo

SITE = Site("/code/train.py", 12, "main")


def digest(value: Any) -> bytes:
    return hashlib.blake2b(repr(value).encode(), digest_size=16).digest()


class RankTape:
    """One rank being made."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.step = 0

    def add(self, kind, op, tensors=(), arguments="", site=SITE):
        """Record an event; `tensors` are (role, name, value)."""
        infos = tuple(TensorInfo(role, name, "float32", (4,)) for role, name, _ in tensors)
        digests = tuple(digest(value) for _, _, value in tensors)
        self.events.append(
            Event(len(self.events), kind, self.step, op, site, None, "", "", arguments, infos, digests, ())
        )

    def replicas(self, values, ddp=(), shards=(), ranks=(0, 1)):
        """What the probe says before a step."""
        groups = [{"ranks": list(ranks), "names": list(ddp)}] if ddp else []
        text = json.dumps({"groups": groups, "shards": list(shards)})
        self.add("collective", "replicas", [("param", name, value) for name, value in values.items()], text)

    def train(self, values, gradients=None, optimizer=None):
        """One step that ends with these parameters."""
        self.add("loss", "backward", [("value", "0", self.step)])
        self.add("grad", "backward", [("grad", name, value) for name, value in (gradients or {}).items()])
        state = [("param", name, value) for name, value in values.items()]
        state += [("optimizer", name, value) for name, value in (optimizer or {}).items()]
        self.add("step", "SGD.step", state)
        self.step += 1

    def epoch(self, loader, number, batches, *, whole=True, **facts):
        """One iteration of a loader."""
        known = {"loader": loader, "epoch": number, "size": 8, "sampler": "DistributedSampler", **facts}
        self.add("collective", "epoch", arguments=json.dumps(known))
        for batch in batches:
            words = " ".join(map(str, batch)) if batch is not None else "?"
            self.add("collective", "indices", arguments=f"{loader} {number}: {words}")
        if whole:
            self.add("collective", "indices", arguments=f"{loader} {number}: end")

    def record(self, status="finished", failure=""):
        """All that was taped."""
        return FakeRecord(
            RunInfo(("train.py",), "step", status, steps=self.step, failure=failure), self.events
        )
