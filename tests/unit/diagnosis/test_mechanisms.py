"""Which interventions can have acted at all, by what the record and the user's source show."""

from __future__ import annotations

import pytest
from finding_support import finding
from patch_support import project

from samebits.comparison.results import Source
from samebits.diagnosis.candidates import MECHANISMS, names_used, traces, unable
from samebits.interventions import INTERVENTIONS

PLAIN = "import torch\nx = torch.ones(3)\nprint(f'{x}')\n"


def shown(text=PLAIN, *sources, **fields):
    """Where each intervention has left a trace, for one origin."""
    origin = finding(**{"op": "aten::lift_fresh", "origin_kind": "outside", **fields})
    return traces([origin], sources, names_used(project(train=text).files))


def test_every_intervention_of_the_table_has_a_specification():
    assert set(MECHANISMS) == {intervention.name for intervention in INTERVENTIONS}


def test_nothing_shows_where_nothing_is_used():
    assert shown() == {}


@pytest.mark.parametrize(
    ("text", "intervention"),
    [
        ("names = {'a', 'b'}", "hash-seed"),
        ("names = list(set('ab'))", "hash-seed"),
        ("groups = defaultdict(set)", "hash-seed"),
        ("both = a.keys() & b.keys()", "hash-seed"),
        ("rest = old.difference(new)", "hash-seed"),
        ("key = hash(name) % 7", "hash-seed"),
        ("order = sorted(nodes, key=id)", "layout"),
        ("key = repr(node)", "layout"),
        ("key = f'{node}'", "layout"),
        ("import time\nend = time.monotonic() + 3", "clock"),
        ("from time import monotonic as now", "clock"),
        ("import numpy as np\nx = np.empty(3)", "fill"),
        ("import numpy as np\nx = np.divide(a, b, where=b != 0)", "fill"),
        ("x = torch.FloatTensor(3)", "fill"),
        ("from multiprocessing import Queue", "completion"),
        ("import torch.multiprocessing as mp", "serial-threads"),
        ("names = folder.iterdir()", "listing"),
        ("data = open('/proc/meminfo')", "memory-load"),
        ("loader = DataLoader(data, num_workers=2)", "workers"),
        ("import torch\nstep = torch.compile(step)", "eager"),
    ],
)
def test_a_use_in_the_source_is_a_trace(text, intervention):
    assert shown(PLAIN + text)[intervention] == "source"


@pytest.mark.parametrize(
    ("text", "intervention"),
    [
        ("done = threading.Event()\ndone.set()", "hash-seed"),
        ("log.info(repr(node))\nprint(str(node))", "layout"),
        ("x: torch.Tensor = torch.where(a, b, c)", "hash-seed"),
        ("import re\nword = re.compile('a')", "hash-seed"),
    ],
)
def test_what_looks_like_one_is_none(text, intervention):
    assert intervention not in shown(PLAIN + text)


def test_what_differed_in_the_record_is_a_trace():
    clock = Source("time.monotonic", None, "wall-clock")
    assert shown(PLAIN, clock)["clock"] == "record"
    listing = shown(PLAIN, Source("os.listdir", None, "environment"))
    assert (listing["listing"], "process" in listing) == ("record", False)
    assert shown(PLAIN, Source("numpy.empty", None, "uninitialized"))["fill"] == "record"
    assert shown(origin_kind="kernel")["threads"] == "record"
    assert shown(cause="race", origin_kind="order")["completion"] == "record"


def test_an_intervention_without_a_trace_is_unable():
    assert unable(("hash-seed", "clock"), shown(PLAIN + "import time")) == ("hash-seed",)


def test_without_the_source_nothing_is_ruled_out():
    assert traces([finding(op="aten::lift_fresh", origin_kind="outside")], (), frozenset()) is None
    assert unable(("hash-seed",), None) == ()
