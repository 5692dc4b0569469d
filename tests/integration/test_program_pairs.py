"""Pairs of different programs with one planted difference, or none: the first tensor that parts is named."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from cli_support import environment, judged, samebits

FOLDER = Path(__file__).parent / "program_pairs"
ROUNDING = ("--tolerance", "rel=1e-5")  # where the programs compute one thing in two ways

# Pair -> name of the first tensor that differs, its call or step, the relation, options.
PLANTED = {
    "transposed_weight": ("weights.second", 0, "transposed", ()),
    "layer_norm_epsilon": ("norm", 0, "values", ()),
    "rope_off_by_one": ("rotated.0", 0, "values", ()),
    "dropout_left_on": ("dropped", 0, "values", ()),
    "bf16_layer": ("layer1", 0, "values", ()),
    "tokenizer": ("ids", 0, "values", ()),
    "kv_cache": ("scores", 1, "other-size", ROUNDING),
    "activation": ("act", 0, "values", ROUNDING),
    "missing_scale": ("scores", 0, "values", ()),
    "causal_mask": ("masked", 0, "values", ()),
    "untied_weights": ("logits", 0, "values", ()),
    "pooling": ("pooled", 0, "values", ROUNDING),
    "batch_norm_mode": ("norm", 0, "values", ()),
    "head_order": ("heads.0", 0, "reordered", ()),
    "padding_side": ("ids", 0, "reordered", ()),
    "weight_decay": ("first.weight", 0, "not-kept", ()),
    "loss_reduction": ("objective", 0, "values", ROUNDING),
}
SAME = {
    "same_module_functions": (),
    "same_other_forms": (),
    "same_trainer": (),
    "same_numpy_port": ROUNDING,
    "same_cached_decoding": ROUNDING,
}


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """Folders with the records of all programs: under common names, and under names of their own."""
    folders = {}
    for kind, options in (("names", ()), ("shapes", ("--own-names",))):
        folder = folders[kind] = tmp_path_factory.mktemp(kind)
        command = [sys.executable, str(FOLDER / "record_all.py"), str(folder), *options]
        subprocess.run(command, env=environment(), check=True, timeout=300)
    return folders


@pytest.mark.parametrize("pair", ["rope_off_by_one", "same_trainer"])
def test_records_of_the_command_give_the_same_answer(records, pair, tmp_path):
    for letter in "ab":
        script = FOLDER / f"{pair}_{letter}.py"
        assert samebits("run", "--record", f"{pair}_{letter}.sbr", script, cwd=tmp_path).returncode == 0

    ours, theirs = (compared(folder, pair, "names")[1] for folder in (tmp_path, records["names"]))

    assert (ours["verdict"], ours["tensors"]) == (theirs["verdict"], theirs["tensors"])
    assert (ours["first"] or {}).get("difference") == (theirs["first"] or {}).get("difference")


def compared(folder, pair, align, options=()):
    paths = [folder / f"{pair}_{letter}.sbr" for letter in "ab"]
    result = samebits("compare", "--align", align, "--json", *options, *paths, cwd=folder)
    return result.returncode, judged(result)


@pytest.mark.parametrize("align", ["names", "shapes"])
@pytest.mark.parametrize("pair", PLANTED)
def test_the_first_tensor_that_parts_is_named(records, pair, align):
    name, call, relation, options = PLANTED[pair]
    status, found = compared(records[align], pair, align, options)
    assert (status, found["verdict"]) == (1, "different")
    first = found["first"]
    assert (first["a"]["name"], first["a"]["call"]) == (name, call)
    assert first["difference"]["relation"] == relation


@pytest.mark.parametrize("align", ["names", "shapes"])
@pytest.mark.parametrize("pair", SAME)
def test_nothing_is_claimed_of_programs_that_compute_the_same(records, pair, align):
    status, found = compared(records[align], pair, align, SAME[pair])
    assert (status, found["verdict"], found["reason"], found["differing"]) == (0, "identical", None, [])
    assert found["tensors"] > 0
