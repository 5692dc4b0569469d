"""A folder of checkpoints: when it saves, what it keeps, what it loads; and writing in the background."""

import os
import threading
import time

import pytest
import torch
from checkpoint_support import make_training
from torch import nn

from samebits.checkpoint import CheckpointFolder, load
from samebits.digest import digest
from samebits.errors import SamebitsError, SamebitsWarning


def altered(path):
    with open(path, "rb") as file:
        data = bytearray(file.read())
    data[-1] ^= 1
    with open(path, "wb") as file:
        file.write(data)


def test_it_saves_when_due_and_keeps_the_last(tmp_path):
    folder = CheckpointFolder(tmp_path / "run", save_every=3, keep_last=2)
    saved = [step for step in range(1, 14) if folder.save_if_due(step=step, value=step)]
    assert saved == [3, 6, 9, 12]
    assert folder.steps() == [9, 12]
    assert sorted(os.listdir(tmp_path / "run")) == ["step-12.safetensors", "step-9.safetensors"]
    loaded = CheckpointFolder(tmp_path / "run").load()
    assert (loaded.step, loaded.extra, loaded.path) == (12, {"value": 12}, folder.file(12))


def test_it_keeps_all_when_asked(tmp_path):
    folder = CheckpointFolder(tmp_path, keep_last=None)
    for step in range(5):
        folder.save(step=step)
        assert not folder.save_if_due(step=step)
    assert folder.steps() == [0, 1, 2, 3, 4]


def test_it_removes_nothing_that_is_not_its_own(tmp_path):
    for name in (
        "step-1.pt",
        "step-01.safetensors",
        "step--1.safetensors",
        "best.safetensors",
        "step-1.safetensors.bak",
    ):
        (tmp_path / name).write_text("mine")
    before = set(os.listdir(tmp_path))
    folder = CheckpointFolder(tmp_path, keep_last=1)
    for step in (1, 2):
        folder.save(step=step)
    assert set(os.listdir(tmp_path)) == before | {"step-2.safetensors"}


def test_an_empty_folder_has_none(tmp_path):
    model = nn.Linear(1, 1)
    assert CheckpointFolder(tmp_path / "a" / "b").load(model=model) is None
    folder = CheckpointFolder(tmp_path / "c")
    os.rmdir(tmp_path / "c")
    assert folder.load() is None


@pytest.mark.parametrize("harm", ["alter", "cut", "empty", "foreign", "folder"])
def test_the_last_good_one_is_loaded(tmp_path, harm):
    training = make_training()
    folder = CheckpointFolder(tmp_path, keep_last=3)
    digests = []
    for step in (1, 2, 3):
        training.steps(1)
        folder.save(step=step, **training.parts)
        digests.append(training.digest())
    newest = folder.file(3)
    if harm == "alter":
        altered(newest)
    elif harm == "cut":
        os.truncate(newest, os.path.getsize(newest) // 2)
    elif harm == "empty":
        os.truncate(newest, 0)
    elif harm == "foreign":
        torch.save(1, newest)
    else:
        os.unlink(newest)
        os.mkdir(newest)
    again = CheckpointFolder(tmp_path)
    with pytest.warns(SamebitsWarning, match=r"step-3.safetensors") as warned:
        loaded = again.load(**training.parts)
    assert len(warned) == 1
    assert loaded.step == 2
    assert training.digest() == digests[1]
    if harm != "folder":
        training.steps(1)
        again.save(step=3, **training.parts)
        assert again.load(**training.parts).step == 3
        assert training.digest() == digests[2]


def test_when_all_are_damaged_training_does_not_start_again(tmp_path):
    folder = CheckpointFolder(tmp_path)
    for step in (1, 2):
        folder.save(step=step)
        os.truncate(folder.file(step), 20)
    with (
        pytest.warns(SamebitsWarning),
        pytest.raises(SamebitsError, match=r"step-2.safetensors is damaged") as raised,
    ):
        folder.load()
    assert raised.value.slug == "checkpoint-damaged"


def test_another_model_does_not_make_it_fall_back(tmp_path):
    folder = CheckpointFolder(tmp_path)
    for step in (1, 2):
        folder.save(step=step, model=nn.Linear(1, step))
    with pytest.raises(SamebitsError, match=r"model.weight") as raised:
        folder.load(model=nn.Linear(1, 1))
    assert raised.value.slug == "checkpoint-mismatch"


def test_checkpoints_of_another_run_are_not_mixed_in(tmp_path):
    old = CheckpointFolder(tmp_path, keep_last=2)
    for step in (900, 1000):
        old.save(step=step)
    fresh = CheckpointFolder(tmp_path, keep_last=2)
    with pytest.raises(
        SamebitsError, match=r"holds step-1000.safetensors, which this run neither loaded"
    ) as raised:
        fresh.save(step=100)
    assert raised.value.slug == "checkpoint-newer"
    assert fresh.steps() == [900, 1000]
    fresh.load()
    fresh.save(step=1100)
    assert fresh.steps() == [1000, 1100]


def test_going_on_after_a_damaged_one(tmp_path):
    """The damaged one stays until its step comes again, and what is saved is never what is removed."""
    folder = CheckpointFolder(tmp_path, keep_last=1)
    for step in (5, 10):
        folder.save(step=step)
        folder = CheckpointFolder(tmp_path, keep_last=None)
        folder.load()
    altered(folder.file(10))
    again = CheckpointFolder(tmp_path, keep_last=1)
    with pytest.warns(SamebitsWarning):
        assert again.load().step == 5
    again.save(step=7)
    assert again.steps() == [7, 10]
    again.save(step=10)
    assert again.steps() == [10]
    assert again.load().step == 10


WRONG = [{"save_every": 0}, {"save_every": 2.0}, {"keep_last": 0}, {"keep_last": -1}, {"save_every": True}]


@pytest.mark.parametrize("options", WRONG, ids=str)
def test_numbers_that_are_not_possible(tmp_path, options):
    with pytest.raises(SamebitsError, match=r"expected a whole number from 1, or None") as raised:
        CheckpointFolder(tmp_path, **options)
    assert raised.value.slug == "checkpoint-folder"


@pytest.mark.parametrize("step", [-1, 1.0, "1", None, True])
def test_steps_that_are_not_possible(tmp_path, step):
    with pytest.raises(SamebitsError, match=r"expected a whole number from 0"):
        CheckpointFolder(tmp_path).save(step=step)
    with pytest.raises(SamebitsError, match=r"expected a whole number from 0"):
        CheckpointFolder(tmp_path, save_every=2).save_if_due(step=step)


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(SamebitsError, match=r"cannot be used") as raised:
            CheckpointFolder(path)
        assert raised.value.slug == "checkpoint-unwritable"


def test_temporary_files_of_any_step_are_removed(tmp_path):
    (tmp_path / ".step-7.safetensors.99999999-0.tmp").write_text("half")
    (tmp_path / ".best.safetensors.99999999-0.tmp").write_text("half")
    CheckpointFolder(tmp_path)
    assert os.listdir(tmp_path) == [".best.safetensors.99999999-0.tmp"]


def held_up(monkeypatch):
    """Writing waits for the event."""
    go_on = threading.Event()
    import samebits.checkpoint.folder as module

    write = module.write

    def wait_and_write(path, collection):
        assert go_on.wait(60)
        write(path, collection)

    monkeypatch.setattr(module, "write", wait_and_write)
    return go_on


def test_the_background_writes_what_was_there_when_it_was_called(tmp_path, monkeypatch):
    go_on = held_up(monkeypatch)
    training = make_training()
    training.steps(1)
    with CheckpointFolder(tmp_path, asynchronous=True) as folder:
        values = {
            "note": ["a"],
            "sliced": torch.arange(10.0)[::2],
            "z": torch.ones(2, dtype=torch.complex64).conj(),
        }
        folder.save(step=1, **training.parts, **values)
        before = training.digest()
        values["note"].append("b")
        values["sliced"].zero_()
        training.steps(2)
        assert folder.steps() == []
        go_on.set()
        folder.wait()
        loaded = folder.load(**training.parts)
    assert training.digest() == before
    assert loaded.extra["note"] == ["a"]
    assert loaded.extra["sliced"].tolist() == [0, 2, 4, 6, 8]


def test_buffers_are_used_again_after_writing(tmp_path):
    """A next save waits for the one before: the memory of its copy is not written over."""
    training = make_training()
    digests = {}
    with CheckpointFolder(tmp_path, asynchronous=True, keep_last=None) as folder:
        for step in range(1, 8):
            training.steps(1)
            folder.save(
                step=step,
                **training.parts,
                growing=torch.ones(step),
                kind=torch.ones(2).to((torch.float32, torch.float64)[step % 2]),
            )
            digests[step] = training.digest()
    for step, expected in digests.items():
        load(folder.file(step), **training.parts)
        assert training.digest() == expected


def test_files_are_the_same_in_both_modes(tmp_path):
    files = []
    for asynchronous in (False, True):
        training = make_training()
        training.steps(2)
        tied = [training.model[0].weight, training.model[0].weight]
        with CheckpointFolder(tmp_path / str(asynchronous), asynchronous=asynchronous) as folder:
            folder.save(step=1, **training.parts, tied=tied, columns=torch.ones(2, 3).t())
        with open(folder.file(1), "rb") as file:
            files.append(file.read())
    assert files[0] == files[1]


@pytest.mark.parametrize(
    "kind", ["float8_e4m3fn", "float8_e8m0fnu", "float4_e2m1fn_x2", "complex32", "uint64", "bool"]
)
def test_snapshots_of_every_dtype(tmp_path, kind):
    if not hasattr(torch, kind):
        pytest.skip(f"this torch has no {kind}")
    value = torch.tensor([0, 1, 0, 1], dtype=torch.uint8).repeat(8).view(getattr(torch, kind))
    with CheckpointFolder(tmp_path, asynchronous=True) as folder:
        for step in (1, 2):
            folder.save(step=step, value=value)
    assert digest(load(folder.file(2)).extra["value"]) == digest(value)


def test_errors_of_the_background_come_with_the_next_call(tmp_path, capsys):
    folder = CheckpointFolder(tmp_path / "run", asynchronous=True)
    os.rmdir(tmp_path / "run")
    folder.save(step=1)
    with pytest.raises(SamebitsError, match=r"step-1.safetensors cannot be written: No such file") as raised:
        folder.save(step=2)
    assert raised.value.slug == "checkpoint-unwritable"
    assert "samebits: " in capsys.readouterr().err  # said at once: there may be no next call
    folder.wait()  # raised once
    os.mkdir(tmp_path / "run")
    folder.save(step=3)
    folder.wait()
    assert folder.steps() == [3]


def test_an_error_of_the_script_is_not_hidden_by_one_of_writing(tmp_path, capsys):
    with pytest.raises(KeyError), CheckpointFolder(tmp_path / "run", asynchronous=True) as folder:  # noqa: PT012
        os.rmdir(tmp_path / "run")
        folder.save(step=1)
        raise KeyError
    assert "cannot be written" in capsys.readouterr().err


def test_no_error_is_lost_when_the_block_ends(tmp_path, capsys):
    with (  # noqa: PT012
        pytest.raises(SamebitsError, match=r"cannot be written"),
        CheckpointFolder(tmp_path / "run", asynchronous=True) as folder,
    ):
        os.rmdir(tmp_path / "run")
        folder.save(step=1)


def test_what_cannot_be_saved_is_refused_at_the_call(tmp_path):
    with CheckpointFolder(tmp_path, asynchronous=True) as folder:
        with pytest.raises(SamebitsError, match=r"model cannot be saved"):
            folder.save(step=1, model=object())
        assert folder.steps() == []


def test_training_goes_on_while_it_writes(tmp_path, monkeypatch):
    go_on = held_up(monkeypatch)
    with CheckpointFolder(tmp_path, asynchronous=True) as folder:
        folder.save(step=1, value=torch.ones(3))
        assert any(thread.name == "samebits checkpoint" for thread in threading.enumerate())
        threading.Thread(target=lambda: (time.sleep(0.1), go_on.set())).start()
        folder.save(step=2, value=torch.ones(3))  # waits for the first
        assert folder.steps() == [1] or folder.steps() == [1, 2]
    assert folder.steps() == [1, 2]
