"""Causes and lines that the draw log of real scripts gives a difference."""

from __future__ import annotations

import pytest
from cli_support import samebits, write
from sentence_support import evidence_of

from samebits.comparison import compare_records

TRAINED = """
    import os, random, secrets, tempfile, time, uuid
    from concurrent.futures import ThreadPoolExecutor, as_completed
    import numpy as np
    import torch
    torch.manual_seed(0)
    x = torch.randn(6, 4)
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    DRAWN
    for step in range(2):
        started = time.time()
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
        seconds = time.time() - started
"""
# Lines that follow line 8, the cause, and which of them is to blame.
PLANTED = {
    "clock to torch": (
        ["torch.manual_seed(int(time.time() * 1000))", "x = torch.randn(6, 4)"],
        "wall-clock",
        9,
    ),
    "clock to numpy": (
        ["now = time.time_ns()", "np.random.seed(now % 2**32)", "x = x * np.random.rand()"],
        "wall-clock",
        9,
    ),
    "uuid": (["random.seed(uuid.uuid4().int)", "x = x * random.random()"], "os-entropy", 9),
    "numpy": (["x = x + 1", "x = x * np.random.rand()"], "unseeded-numpy", 10),
    "default_rng": (
        ["rng = np.random.default_rng()", "x = x + 1", "x = x * rng.normal()"],
        "unseeded-numpy",
        9,
    ),
    "address of a tensor": (
        ["shift = x.data_ptr() // 4096 % 9973", "x = x + shift / 9973"],
        "id-order",
        9,
    ),
    "address of a buffer": (
        ["import ctypes", "place = ctypes.addressof(ctypes.c_int())", "x = x + place // 4096 % 9973 / 9973"],
        "id-order",
        10,
    ),
    "python": (["x = x + 1", "x = x * random.random()"], "unseeded-python", 10),
    "generator": (
        ["own = torch.Generator()", "own.seed()", "x = x + 1", "x = x * torch.rand(1, generator=own)"],
        "unseeded-torch",
        10,
    ),
    "seed in a fork": (
        ["with torch.random.fork_rng():", "    torch.seed()", "    x = x + torch.rand(6, 4)"],
        "unseeded-torch",
        10,
    ),
    "rows": (
        [
            "rows = [x[0] + i for i in range(99)]",
            "at = random.sample(range(99), 6)",
            "x = torch.stack([rows[i] for i in at])",
        ],
        "unseeded-python",
        10,
    ),
    "branch": (
        [
            "for _ in range(40):",
            "    token = x.argmax() if random.random() < 0.5 else torch.tensor(0)",
            "    x = x * 0.9 + token",
        ],
        "unseeded-python",
        10,
    ),
    "secrets": (
        ["x = x * secrets.choice(range(10**6))"],
        "os-entropy",
        9,
    ),
    "pid": (["x = x * (os.getpid() % 9973)"], "environment", 9),
    "listing": (
        [
            "folder = tempfile.mkdtemp()",
            "_ = [open(f'{folder}/{secrets.token_hex(8)}', 'w').close() for _ in range(3)]",
            "first = os.listdir(folder)",
            "x = x * sum(map(ord, first[0]))",
        ],
        "unknown",  # names and listing both differ: two sources, so none is claimed
        12,
    ),
    "completion": (
        [
            "pool = ThreadPoolExecutor(4)",
            "waits = [int.from_bytes(os.urandom(1), 'little') / 500 for _ in range(12)]",
            "fs = [pool.submit(time.sleep, wait) for wait in waits]",
            "order = [fs.index(f) for f in as_completed(fs)]",
            "x = x + torch.tensor([float(i) for i in order[:4]])",
        ],
        "unknown",  # the waits differ and so does the order
        13,
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_line_and_cause_of_planted_draws(name, tmp_path):
    """Two runs with every operation recorded: line and cause where one source differs, else evidence."""
    lines, cause, line = PLANTED[name]
    script = write(tmp_path, "planted.py", TRAINED, DRAWN="\n".join(lines))
    pair = [tmp_path / "a.sbr", tmp_path / "b.sbr"]
    for record in pair:
        result = samebits("run", "--level", "op", "--record", record, script, cwd=tmp_path)
        assert result.returncode == 0, result.stderr
    comparison = compare_records(*pair)
    assert comparison.verdict == "different"
    first = comparison.findings[0]
    assert first.origin.site is not None
    assert (first.cause, first.origin.site.line) == (cause, line), evidence_of(first)
    assert cause != "unknown" or any(
        "gave different values in the two runs" in text for text in evidence_of(first)
    )
