"""A file appears whole or not at all; what killed processes leave goes, what living ones write stays."""

import multiprocessing
import os
import random
import resource
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
import torch

from samebits.checkpoint import CheckpointFolder, _atomic, load, save
from samebits.checkpoint._atomic import replaced
from samebits.errors import SamebitsError


def names(folder):
    return sorted(os.listdir(folder))


def test_an_error_leaves_the_file_that_was_there(tmp_path):
    path = tmp_path / "c"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), replaced(str(path)) as file:  # noqa: PT012
        file.write(b"new")
        assert len(names(tmp_path)) == 2
        raise KeyboardInterrupt
    assert names(tmp_path) == ["c"]
    assert path.read_text() == "old"


def test_the_file_is_flushed_before_it_is_renamed(tmp_path, monkeypatch):
    calls = []
    for name in ("fsync", "replace"):
        original = getattr(os, name)
        monkeypatch.setattr(
            os, name, lambda *args, name=name, call=original: (calls.append(name), call(*args))[1]
        )
    save(tmp_path / "c", value=1)
    assert calls == ["fsync", "replace", "fsync"]


def test_nothing_is_drawn_for_its_name(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "urandom", None)
    before = random.getstate(), np.random.get_state()[2], torch.get_rng_state().tolist()
    save(tmp_path / "c", value=1)
    assert (random.getstate(), np.random.get_state()[2], torch.get_rng_state().tolist()) == before


def test_permissions_follow_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        save(tmp_path / "c", value=1)
    finally:
        os.umask(before)
    assert os.stat(tmp_path / "c").st_mode & 0o777 == 0o640


@pytest.mark.parametrize("target", ["real/c", "nothing/there"])
def test_a_symbolic_link_is_refused(tmp_path, target):
    """Whatever it leads to: what is there stays as it is."""
    (tmp_path / "real").mkdir()
    save(tmp_path / "real" / "c", value=1)
    link = tmp_path / "latest"
    link.symlink_to(tmp_path / target)
    with pytest.raises(SamebitsError, match=r"it is a symbolic link, expected a regular file") as raised:
        save(link, value=2)
    assert raised.value.slug == "checkpoint-unwritable"
    assert link.is_symlink()
    assert load(tmp_path / "real" / "c").extra == {"value": 1}
    assert names(tmp_path) == ["latest", "real"]


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["fifo", "folder"])
def test_what_is_no_regular_file_is_refused(tmp_path, make):
    """It is neither opened nor replaced."""
    path = tmp_path / "c"
    make(path)
    before = path.lstat()
    with pytest.raises(SamebitsError, match=r"expected a regular file") as raised:
        save(path, value=1)
    assert raised.value.slug == "checkpoint-unwritable"
    assert path.lstat() == before
    assert names(tmp_path) == ["c"]


@pytest.mark.parametrize("device", ["/dev/full", "/dev/null", "/dev/stdout", "/dev/fd/1"])
def test_devices_are_refused(device):
    """They stay what they are, also for a user who may replace them."""
    before = os.lstat(device)
    with pytest.raises(SamebitsError, match=r"expected a regular file"):
        save(device, value=1)
    assert (os.lstat(device).st_mode, os.lstat(device).st_ino) == (before.st_mode, before.st_ino)


@pytest.mark.parametrize("length", [200, 255])
def test_long_names(tmp_path, length):
    save(tmp_path / ("é" * (length // 2)), value=1)
    assert len(names(tmp_path)) == 1


def test_names_of_any_kind(tmp_path):
    for name in ("a b", "-x", "line\nbreak", os.fsdecode(b"\xff\xfe"), "."):
        folder = tmp_path / "f"
        folder.mkdir(exist_ok=True)
        if name == ".":
            with pytest.raises(SamebitsError, match=r"it is a folder"):
                save(folder / name, value=1)
        else:
            save(folder / name, value=name if name.isprintable() else 1)
            assert load(folder / name).extra


REFUSALS = {
    "no folder": (lambda path: str(path / "none" / "c"), "No such file or directory"),
    "a folder": (str, "it is a folder"),
    "a file as folder": (lambda path: str(path / "file" / "c"), "Not a directory"),
    "a name too long": (lambda path: str(path / ("x" * 300)), "File name too long"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals_of_the_system(tmp_path, name):
    (tmp_path / "file").write_text("")
    make, reason = REFUSALS[name]
    with pytest.raises(SamebitsError, match=reason) as raised:
        save(make(tmp_path), value=1)
    assert raised.value.slug == "checkpoint-unwritable"
    assert names(tmp_path) == ["file"]


def test_a_full_disk(tmp_path):
    """A limit of file sizes fails a write half way, as a full disk does."""
    path = tmp_path / "c"
    save(path, value=torch.zeros(10))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3_000_000, before[1]))
    try:
        with pytest.raises(SamebitsError, match=r"File too large; what was there is unchanged") as raised:
            save(path, value=torch.zeros(10_000_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert raised.value.slug == "checkpoint-unwritable"
    assert names(tmp_path) == ["c"]
    assert load(path).extra["value"].shape == (10,)


@pytest.mark.parametrize("path", [3, "", None, "a\0b", "\ud800", ["a"]], ids=repr)
def test_paths_that_are_none(path):
    for call in (save, load, CheckpointFolder):
        with pytest.raises(SamebitsError, match=r"expected the name of a file") as raised:
            call(path)
        assert raised.value.slug == "checkpoint-path"


def test_paths_may_be_bytes(tmp_path):
    save(os.fsencode(tmp_path / "c"), value=1)
    assert load(os.fsencode(tmp_path / "c")).extra == {"value": 1}


WRITER = """
import sys, time
from samebits.checkpoint._atomic import replaced
with replaced(sys.argv[1]) as file:
    file.write(b"half")
    print("writing", flush=True)
    sys.stdin.read()
"""


def start_writer(path):
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "writing\n"
    return process


def test_temporary_files_of_killed_processes_are_removed(tmp_path):
    path = tmp_path / "c"
    for _ in range(2):
        writer = start_writer(path)
        writer.send_signal(signal.SIGKILL)
        writer.communicate()
    assert len(names(tmp_path)) == 1  # the second removed what the first one left
    (tmp_path / ".other.1-0.tmp").write_text("of another file")
    save(path, value=1)
    assert names(tmp_path) == [".other.1-0.tmp", "c"]


def test_a_living_writer_is_not_disturbed(tmp_path):
    path = tmp_path / "c"
    writer = start_writer(path)
    save(path, value=1)
    assert len(names(tmp_path)) == 2
    assert load(path).extra == {"value": 1}
    writer.communicate("", timeout=60)
    assert writer.returncode == 0
    assert path.read_bytes() == b"half"  # the last one to finish
    assert names(tmp_path) == ["c"]


def save_often(path, value):
    for _ in range(15):
        save(path, value=torch.full((20_000,), value))


def test_processes_and_threads_that_save_to_the_same_path(tmp_path):
    path = tmp_path / "c"
    save(path, value=torch.zeros(20_000))
    context = multiprocessing.get_context("spawn")
    others = [context.Process(target=save_often, args=(path, value)) for value in (1, 2)]
    others += [threading.Thread(target=save_often, args=(path, value)) for value in (3, 4)]
    for other in others:
        other.start()
    while any(other.is_alive() for other in others):
        found = load(path, rng=False).extra["value"]
        assert (found == found[0]).all()
    for other in others:
        other.join()
    assert [getattr(other, "exitcode", 0) for other in others] == [0] * 4
    assert names(tmp_path) == ["c"]


def test_the_next_file_of_a_process_that_has_just_finished_one_is_not_removed(tmp_path, monkeypatch):
    name, target = tmp_path / ".c.1-0.tmp", tmp_path / "c"
    name.write_bytes(b"first")
    opened = os.open

    def finished_meanwhile(path, *more):
        descriptor = opened(path, *more)
        os.replace(name, target)
        name.write_bytes(b"second")
        return descriptor

    monkeypatch.setattr(os, "open", finished_meanwhile)
    _atomic.remove_abandoned(str(tmp_path), "c")

    assert (target.read_bytes(), name.read_bytes()) == (b"first", b"second")
