"""Sharded checkpoints in one process: what is refused, and what a damaged one does."""

from __future__ import annotations

import json
import shutil

import pytest
import torch
from torch.distributed import checkpoint

from samebits.checkpoint import load_sharded, save_sharded
from samebits.digest import digest
from samebits.errors import SamebitsError


def training(seed, hidden=8, dtype=torch.float32):
    """A model with an odd state and an optimizer that has taken steps."""
    torch.manual_seed(seed)
    model = torch.nn.Sequential(
        torch.nn.Linear(4, hidden), torch.nn.BatchNorm1d(hidden), torch.nn.Linear(hidden, 2)
    ).to(dtype)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(seed):
        optimizer.zero_grad()
        model(torch.randn(6, 4, dtype=dtype)).square().mean().backward()
        optimizer.step()
    return model, optimizer


@pytest.fixture
def saved(tmp_path):
    """A checkpoint, and the digest of what is in it."""
    model, optimizer = training(3)
    optimizer.param_groups[0]["lr"] = 0.125
    save_sharded(tmp_path / "c", model=model, optimizer=optimizer, step=3, note={"a": (1, 2.5, "x")})
    return tmp_path / "c", digest(model), digest(optimizer)


def slug_of(path, **parts):
    with pytest.raises(SamebitsError) as caught:
        load_sharded(path, **parts)
    return caught.value.slug, str(caught.value)


def test_everything_comes_back(saved):
    """Parameters, buffers, the optimizer's state and settings, plain values, counters and generators."""
    path, of_model, of_optimizer = saved
    expected = torch.rand(3)
    model, optimizer = training(1)
    loaded = load_sharded(path, model=model, optimizer=optimizer)

    assert (digest(model), digest(optimizer)) == (of_model, of_optimizer)
    assert (loaded.step, loaded.extra["note"]) == (3, {"a": (1, 2.5, "x")})
    assert optimizer.param_groups[0]["lr"] == 0.125
    assert torch.equal(torch.rand(3), expected)
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["c"]


@pytest.mark.parametrize("writer", [None, lambda path, save_sharded=False: None])
def test_a_torch_that_cannot_write_such_files_is_refused(saved, tmp_path, monkeypatch, writer):
    """2.7 has no writer of them, that of 2.8 takes other arguments; nothing is written."""
    monkeypatch.setattr(checkpoint, "HuggingFaceStorageWriter", writer)
    with pytest.raises(SamebitsError, match=r"expect torch 2\.9 or newer"):
        save_sharded(tmp_path / "other", model=training(1)[0])
    with pytest.raises(SamebitsError, match=r"expect torch 2\.9 or newer"):
        load_sharded(saved[0], model=training(1)[0])
    assert [entry.name for entry in tmp_path.iterdir()] == ["c"]


def test_an_optimizer_that_has_no_state_yet(saved):
    """It needs no step to be made first."""
    path, _, of_optimizer = saved
    model, _ = training(1)
    optimizer = torch.optim.AdamW(model.parameters())
    load_sharded(path, model=model, optimizer=optimizer)

    assert digest(optimizer) == of_optimizer


def test_state_of_another_dtype_than_its_parameter(tmp_path):
    """float32 averages of bfloat16 parameters stay float32."""
    model, optimizer = training(1, dtype=torch.bfloat16)
    for state in optimizer.state.values():
        state["exp_avg"] = torch.randn_like(state["exp_avg"], dtype=torch.float32)
    expected = digest(optimizer)
    save_sharded(tmp_path / "c", model=model, optimizer=optimizer)
    model, _ = training(2, dtype=torch.bfloat16)
    other = torch.optim.AdamW(model.parameters())
    load_sharded(tmp_path / "c", model=model, optimizer=other)

    assert digest(other) == expected


def test_tied_weights(tmp_path):
    """Stored once, and both names get them."""
    model = torch.nn.ModuleDict({"a": torch.nn.Linear(3, 3), "b": torch.nn.Linear(3, 3)})
    model["b"].weight = model["a"].weight
    expected = digest(model)
    save_sharded(tmp_path / "c", model=model)
    with torch.no_grad():
        model["a"].weight.zero_()
    load_sharded(tmp_path / "c", model=model)

    assert digest(model) == expected


def test_an_older_checkpoint_is_replaced_as_a_whole(saved):
    """Nothing of the first is left."""
    path, _, _ = saved
    save_sharded(path, value=torch.ones(3), step=9)

    assert load_sharded(path, rng=False).step == 9
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["c"]


def test_a_kill_between_the_two_renamings(saved):
    """The checkpoint that was there is found under the name that it has for that moment."""
    path, of_model, _ = saved
    path.rename(path.with_name(".c.before"))
    (path.with_name(".c.tmp") / "shards").mkdir(parents=True)
    model, optimizer = training(1)
    load_sharded(path, model=model, optimizer=optimizer, rng=False)

    assert digest(model) == of_model
    save_sharded(path, model=model, optimizer=optimizer)
    assert (path / "manifest.json").exists()
    assert not path.with_name(".c.tmp").exists()


@pytest.mark.parametrize(
    "file", ["manifest.json", "common.safetensors", "values.safetensors", "rank-0.safetensors", "shards"]
)
@pytest.mark.parametrize("damage", ["altered", "cut", "lost"])
def test_damage_is_found_before_anything_is_loaded(saved, file, damage):
    """One bit, a cut end, a missing file."""
    path, _, _ = saved
    target = path / file
    target = next(target.iterdir()) if target.is_dir() else target
    data = bytearray(target.read_bytes())
    if damage == "lost":
        target.unlink()
    else:
        data[len(data) // 2] ^= 1
        target.write_bytes(data if damage == "altered" else data[:-1])
    model, optimizer = training(1)
    before = digest(model)
    slug, text = slug_of(path, model=model, optimizer=optimizer)

    assert slug == (
        "checkpoint-foreign" if (file, damage) == ("manifest.json", "lost") else "checkpoint-damaged"
    )
    assert file in text
    assert digest(model) == before


def test_a_file_that_does_not_belong_to_it(saved):
    """The reader of torch would read every file among the shards."""
    path, _, _ = saved
    shard = next((path / "shards").iterdir())
    shutil.copy(shard, shard.with_name("shard-00009-model-00001-of-00001.safetensors"))
    model, optimizer = training(1)

    assert slug_of(path, model=model, optimizer=optimizer)[0] == "checkpoint-damaged"


def test_what_does_not_fit(saved):
    """Another model, a missing part, an unknown part: the entry is named and nothing is changed."""
    path, _, _ = saved
    model, optimizer = training(1, hidden=9)
    before = digest(model)
    slug, text = slug_of(path, model=model, optimizer=optimizer)
    assert slug == "checkpoint-mismatch"
    assert "model.0.weight is float32[9, 4] here and float32[8, 4] in the checkpoint" in text
    assert digest(model) == before

    model, optimizer = training(1)
    assert "nothing was given that takes optimizer" in slug_of(path, model=model)[1]
    assert "the checkpoint has no more." in slug_of(path, model=model, optimizer=optimizer, more=model)[1]
    groups = [{"params": list(model[0].parameters())}, {"params": list(model[1:].parameters())}]
    assert "other groups" in slug_of(path, model=model, optimizer=torch.optim.AdamW(groups))[1]
    assert load_sharded(path, model=model, strict=False, rng=False).step == 3


def test_what_cannot_be_saved(tmp_path):
    """An optimizer of another model, a place that is something else's: refused, and nothing is left."""
    model, _ = training(1)
    stray = torch.optim.SGD([torch.nn.Parameter(torch.ones(2))], lr=0.1)
    (tmp_path / "file").write_text("mine")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("mine")
    for name, parts, slug in (
        ("c", {"model": model, "optimizer": stray}, "checkpoint-entry"),
        ("c", {"model": model, "code": print}, "checkpoint-entry"),
        ("file", {"model": model}, "checkpoint-unwritable"),
        ("full", {"model": model}, "checkpoint-unwritable"),
    ):
        with pytest.raises(SamebitsError) as caught:
            save_sharded(tmp_path / name, **parts)
        assert caught.value.slug == slug
    assert not (tmp_path / "c").exists()
    assert (tmp_path / "full" / "mine").read_text() == "mine"


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"kind": "samebits.checkpoint.sharded", "version": 2}', "[" * 9999]
)
def test_other_manifests(tmp_path, text):
    """Refused without a traceback of something else."""
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "manifest.json").write_text(text)

    assert slug_of(tmp_path / "c")[0] in {"checkpoint-damaged", "checkpoint-foreign", "checkpoint-version"}
    assert slug_of(tmp_path / "nowhere")[0] == "checkpoint-missing"


def test_names_in_a_manifest_lead_nowhere_else(saved):
    """A manifest that was made by hand names files outside of the folder: they are not what it says."""
    path, _, _ = saved
    fields = json.loads((path / "manifest.json").read_text())
    fields["files"]["../../secret"] = [0, ""]
    (path / "manifest.json").write_text(json.dumps(fields))

    assert slug_of(path)[0] == "checkpoint-damaged"


@pytest.mark.parametrize("path", ["", "a\0b", 3, None])
def test_paths_that_cannot_be(path):
    """Refused by name."""
    assert slug_of(path)[0] == "checkpoint-path"
    with pytest.raises(SamebitsError) as caught:
        save_sharded(path, value=1)
    assert caught.value.slug == "checkpoint-path"
