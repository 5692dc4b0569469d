"""Autocast on a GPU in portable mode: the list of ops is the CPU's, whatever the release."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from cast_support import FULL, GIVEN, LOW, converted, seen_below

from samebits._torch.autocast_kernels import CPU_CASTS, GPU_CASTS, cast_ops
from samebits.errors import SamebitsError
from samebits.portable import device_casts

ON_CPU = cast_ops(CPU_CASTS)
# They are parts of torch's short cuts for layers, which are off in portable mode, or ops of the CPU.
UNKNOWN = {"_addmm_activation", "_native_multi_head_attention", "mkldnn_rnn_layer"}


def policy(name):
    """What the lists say."""
    base = name.partition(".")[0]
    found = [each for each in ("LOW", "FULL", "WIDEST") if base in getattr(device_casts, each)]
    return found[0] if len(found) == 1 else None


def expected(name, dtypes):
    """The dtype that tensors of these dtypes get, one after another."""
    casts = {"LOW": LOW, "FULL": FULL, "WIDEST": FULL if FULL in dtypes else LOW}
    keeps = {torch.float64, torch.int64}
    return [each if each in keeps else casts[policy(name)] for each in dtypes]


@pytest.mark.parametrize("name", sorted(ON_CPU - UNKNOWN))
def test_the_list_is_that_of_this_torch(name):
    """Every op that torch converts the arguments of on the CPU is known, with what it does."""
    assert policy(name), f"torch has a new op for autocast: {name}"
    with seen_below(frozenset({name}), "cpu"):
        for dtypes in GIVEN.values():
            seen = converted(name, dtypes, "cpu")
            if seen is RuntimeError and policy(name) == "WIDEST":
                assert dtypes[0] == torch.float16
                continue
            found, _ = seen
            assert found
            assert found == [expected(name, dtypes)[at % 2] for at in range(len(found))], dtypes


def test_the_page_has_the_lists():
    """Each in its own paragraph of the definition."""
    page = (Path(__file__).parents[3] / "docs/reference/portable-numerics.md").read_text(encoding="utf-8")
    section = page.partition("\n## Autocast\n")[2].partition("\n## ")[0]
    listed = [
        set(re.findall("`([a-z_0-9]+)`", item.partition(": it")[0])) for item in section.split("\n- ")[1:]
    ]
    assert listed == [device_casts.LOW, device_casts.WIDEST, device_casts.FULL]


def test_what_is_left_to_torch_is_there_on_a_gpu():
    """Those that get the dtype of autocast; a convolution that pads by itself consists of another one."""
    kernels = device_casts.casts(ON_CPU, cast_ops(GPU_CASTS))
    left = ON_CPU - kernels.keys()
    assert {policy(name) for name in left} == {"LOW"}
    assert left <= cast_ops(GPU_CASTS)
    assert "convolution" in cast_ops(GPU_CASTS)


def test_an_op_that_is_not_known_is_refused(monkeypatch):
    """On a GPU; with the reason."""
    monkeypatch.setattr(device_casts, "is_portable", lambda: True)
    call = type("Call", (), {"op": torch.ops.aten.sin.default})()
    with pytest.raises(SamebitsError, match=r"aten::sin\.default .*under autocast on a GPU") as caught:
        device_casts.casts({"sin"}, ())["sin"](call, torch.ones(2))
    assert caught.value.slug == "portable-op"
