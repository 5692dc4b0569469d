"""Taps in real runs: compiled code, NumPy alone, a kill, a fork; and what the command says of them."""

from __future__ import annotations

import json
import sys
import textwrap

import pytest
from cli_support import environment, judged, samebits, write

from samebits.recording.kept_values import unpack
from samebits.records.reader import RecordReader

MODEL = """
    import torch
    import samebits
    torch.manual_seed(0)

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = torch.nn.Linear(4, 8)
            self.second = torch.nn.Linear(8, 2)

        def forward(self, x):
            h = torch.relu(self.first(x))
            if TAPS:
                h = samebits.tap("h", h)
            return self.second(h)

    net = Net()
    model = COMPILED
    y = model(torch.ones(3, 4))
    y.square().mean().backward()
    samebits.tap("y", y)
    import torch._dynamo.utils
    print("graphs", torch._dynamo.utils.counters["stats"]["unique_graphs"], "y", y.tolist())
"""
COMPILED = "torch.compile(net, backend='aot_eager')"


def record(folder, name, source=MODEL, options=(), **values):
    script = write(folder, f"{name}.py", source, **values)
    return samebits("run", "--record", f"{name}.sbr", *options, script, cwd=folder)


def events(folder, name):
    listed = samebits("show", f"{name}.sbr", "--events", "tap", "--json", cwd=folder)
    return [json.loads(line) for line in listed.stdout.splitlines()]


def elements(path):
    """The elements of float32 that a record keeps, by the name of their tap."""
    kept = {}
    with RecordReader(path) as reader:
        for seq in reader.captured():
            event = reader.event(seq)
            for position, data in reader.captures(seq).items():
                kept[event.op] = unpack(data, event.tensors[position]).elements.bits.view("f4").tolist()
    return kept


def compare(folder, *words, align="names"):
    result = samebits("compare", "--align", align, "--json", *words, cwd=folder)
    return result.returncode, judged(result)


def test_eager_and_compiled_code_are_compared_at_taps_and_modules(tmp_path):
    eager = record(tmp_path, "eager", TAPS="True", COMPILED="net", options=("--tap-modules", "*"))
    tapped = record(tmp_path, "tapped", TAPS="True", COMPILED=COMPILED)
    whole = record(tmp_path, "whole", TAPS="False", COMPILED=COMPILED, options=("--tap-modules", "*"))

    assert "graphs 0" in eager.stdout
    assert "graphs 2" in tapped.stdout  # split at the tap
    assert "graphs 1" in whole.stdout  # recording adds nothing
    assert [event["op"] for event in events(tmp_path, "tapped")] == ["h", "y"]
    assert [event["op"] for event in events(tmp_path, "whole")] == ["(model)", "y"]
    for other, only in (("tapped", ["first", "second", "(model)"]), ("whole", ["first", "h", "second"])):
        status, found = compare(tmp_path, "eager.sbr", f"{other}.sbr", "--tolerance", "rel=1e-5")
        assert (status, found["verdict"]) == (0, "identical")
        assert [name["name"] for name in found["only_in"][0]] == only
        assert found["only_in"][1] == []  # `_orig_mod` is no part of a name


def test_without_a_recording_a_tap_does_not_split_a_graph(tmp_path):
    import subprocess

    script = write(tmp_path, "a.py", MODEL, TAPS="True", COMPILED=COMPILED.replace(")", ", fullgraph=True)"))
    done = subprocess.run(
        [sys.executable, script], env=environment(), capture_output=True, text=True, check=True, timeout=180
    )

    assert "graphs 1" in done.stdout


def test_a_whole_graph_with_a_tap_is_refused_while_recording(tmp_path):
    done = record(tmp_path, "a", TAPS="True", COMPILED=COMPILED.replace(")", ", fullgraph=True)"))

    assert done.returncode == 1
    assert "torch._dynamo.exc.Unsupported" in done.stderr
    assert "samebits.tap" in done.stderr or "samebits/recording/taps.py" in done.stderr
    assert [event["op"] for event in events(tmp_path, "a")] == []


def test_numpy_alone_can_be_tapped(tmp_path):
    for name, value in (("a", 1.0), ("b", 1.5)):
        source = "import numpy as np, samebits\nsamebits.tap('x', np.full(3, VALUE, np.float32))\n"
        assert record(tmp_path, name, source, VALUE=value).returncode == 0

    status, found = compare(tmp_path, "a.sbr", "b.sbr")

    assert (status, found["first"]["difference"]["relative"]) == (1, pytest.approx(1 / 3))
    assert found["first"]["difference"]["values"] == ["1.0", "1.5"]
    assert elements(tmp_path / "b.sbr") == {"x": [1.5, 1.5, 1.5]}


def test_a_killed_run_is_compared_as_far_as_it_goes(tmp_path):
    source = """
        import os, signal, torch, samebits
        for i in range(4):
            samebits.tap("x", torch.full((2,), float(i)))
            if i == LAST:
                os.kill(os.getpid(), signal.SIGKILL)
    """
    record(tmp_path, "killed", source, LAST=2)
    record(tmp_path, "whole", source, LAST=9)

    status, found = compare(tmp_path, "whole.sbr", "killed.sbr")

    assert (status, found["verdict"], found["tensors"]) == (2, "not_judged", 3)
    assert found["reason"] == (
        "the second run did not finish its record; all tensors that both programs have are equal"
    )
    assert elements(tmp_path / "killed.sbr") == {"x": [2.0, 2.0]}  # of the last call
    assert "tap x has 4 calls in A and 3 in B; the run of B ended early" in found["notes"]


CRASHING = """
    import torch, samebits
    for i in range(4):
        samebits.tap("x", torch.ones(3) * i)
        if i == CRASH:
            raise RuntimeError("no more")
    samebits.tap("logits", torch.ones(3))
    if CRASH == 9:
        raise SystemExit(3)
"""
FAILED = "run failed with status 1 (RuntimeError: no more)"


@pytest.mark.parametrize("align", ["names", "shapes"])
@pytest.mark.parametrize(
    ("first", "second", "ending"),
    [
        (8, 1, f"the second {FAILED}"),
        (1, 1, f"the first {FAILED}; the second {FAILED}"),
        (8, 9, "the second run ended with status 3"),
    ],
)
def test_equal_tensors_of_a_program_that_failed_are_not_judged(tmp_path, align, first, second, ending):
    record(tmp_path, "a", CRASHING, CRASH=first)
    record(tmp_path, "b", CRASHING, CRASH=second)

    status, found = compare(tmp_path, "a.sbr", "b.sbr", align=align)

    assert (status, found["verdict"]) == (2, "not_judged")
    assert found["reason"] == f"{ending}; all tensors that both programs have are equal"


def test_programs_that_end_with_one_status_are_judged(tmp_path):
    record(tmp_path, "a", CRASHING, CRASH=9)

    status, found = compare(tmp_path, "a.sbr", "a.sbr")

    assert (status, found["verdict"]) == (0, "identical")
    assert "the first run ended with status 3" in found["notes"]


def test_a_forked_process_records_nothing(tmp_path):
    source = """
        import torch, samebits
        class Data(torch.utils.data.Dataset):
            def __len__(self): return 4
            def __getitem__(self, i): return samebits.tap("item", torch.tensor(i))
        for batch in torch.utils.data.DataLoader(Data(), num_workers=2, multiprocessing_context="fork"):
            samebits.tap("batch", batch)
    """
    assert record(tmp_path, "a", source).returncode == 0

    assert {event["op"] for event in events(tmp_path, "a")} == {"batch"}


def test_verify_runs_a_script_with_taps_and_keeps_no_elements(tmp_path):
    source = """
        import torch, samebits
        torch.manual_seed(0)
        w = torch.zeros(2, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.1)
        for _ in range(2):
            loss = samebits.tap("loss", (w - samebits.tap("x", torch.randn(2))).square().sum())
            optimizer.zero_grad(); loss.backward(); optimizer.step()
    """
    write(tmp_path, "a.py", source)

    done = samebits("verify", "--keep", "kept", "a.py", cwd=tmp_path)

    assert done.returncode == 0
    records = sorted((tmp_path / "kept").glob("*.sbr"))
    status, found = compare(tmp_path, *records[:2])
    assert (status, found["verdict"], found["names"]) == (0, "identical", 5)
    assert [elements(record) for record in records[:2]] == [{}, {}]
    record(tmp_path, "run", textwrap.dedent(source))
    assert elements(tmp_path / "run.sbr").keys() == {"loss", "x"}
