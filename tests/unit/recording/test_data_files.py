"""The files that count as data of a run."""

from __future__ import annotations

import signal
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import samebits
from samebits._cuda.sources import sources_folder
from samebits.environment.unread import WhyUnread
from samebits.recording import data_digests
from samebits.recording.probes.data_files import DataFilesProbe
from samebits.recording.run_signals import RunSignals

if TYPE_CHECKING:
    from collections.abc import Callable


def test_programs_of_the_system_are_no_data(tmp_path):
    """`ctypes.util.find_library`, which torch with CUDA calls on import, reads `/sbin/ldconfig`."""
    data = tmp_path / "data.bin"
    data.write_bytes(b"12")
    program = next(path for path in Path("/sbin").iterdir() if path.is_file())
    probe = DataFilesProbe(str(tmp_path / "log"), ())

    probe.install()
    for path in (data, program):
        with open(path, "rb") as file:
            file.read(1)
    read = probe.paths()
    probe.remove()

    assert str(data) in read
    assert str(program) not in read


def test_files_of_samebits_itself_are_no_data(tmp_path):
    """With a GPU it reads its kernels' sources while the script runs; in a checkout they are in `native`."""
    kernel = next(sources_folder().glob("*.h"))
    typed = Path(samebits.__file__).with_name("py.typed")
    probe = DataFilesProbe(str(tmp_path / "log"), ())

    probe.install()
    for path in (kernel, typed):
        path.read_bytes()
    read = probe.paths()
    probe.remove()

    assert not {str(kernel), str(typed)} & set(read)


def test_a_file_that_is_gone_by_the_end_was_read_all_the_same(tmp_path):
    """Not so a name under which there was no file, and a file that the run itself had written."""
    data, written = tmp_path / "data.bin", tmp_path / "temporary"
    data.write_bytes(b"12")
    probe = DataFilesProbe(str(tmp_path / "log"), ())

    probe.install()
    data.read_bytes()
    written.write_bytes(b"1")
    written.read_bytes()
    with suppress(FileNotFoundError):
        (tmp_path / "missing").read_bytes()
    for path in (data, written):
        path.unlink()
    read = probe.paths()
    probe.remove()

    assert [path for path in read if path.startswith(str(tmp_path))] == [str(data)]


def test_ctrl_c_meanwhile_leaves_out_the_rest_and_one_before_it_all(tmp_path, monkeypatch):
    """One that comes meanwhile is for this alone; one before is for the run, and stays."""
    monkeypatch.setenv("SAMEBITS_CACHE", str(tmp_path / "cache"))
    paths = [str(tmp_path / name) for name in "abc"]
    for path in paths:
        Path(path).write_text("12")
    signals = RunSignals()
    monkeypatch.setattr(data_digests, "show_digesting", lambda *_: signals.came.append(signal.SIGINT))

    meanwhile = data_digests.digest_read(paths, str(tmp_path), signals)
    assert (list(meanwhile.files), list(meanwhile.unread), signals.came) == ([], ["a", "b", "c"], [])

    signals.came[:] = [signal.SIGTERM, signal.SIGINT]
    monkeypatch.setattr(data_digests, "show_digesting", lambda *_: None)
    before = data_digests.digest_read(paths, str(tmp_path), signals)
    assert set(before.unread.values()) == {WhyUnread.SKIPPED}
    assert signals.came == [signal.SIGTERM, signal.SIGINT]


def test_a_file_that_is_opened_to_read_and_write_was_read(
    watch: Callable[[], DataFilesProbe], tmp_path: Path
) -> None:
    """An empty one has nothing to read, and one that is emptied as it is opened neither."""
    data, empty, emptied = (tmp_path / name for name in ("data.bin", "empty", "emptied"))
    data.write_bytes(b"12")
    empty.touch()
    emptied.write_bytes(b"12")

    probe = watch()
    with open(data, "r+b") as file:
        file.read(1)
    for path, mode in ((empty, "r+b"), (emptied, "w+b")):
        with open(path, mode) as file:
            file.read(1)

    assert _below(tmp_path, probe) == [str(data)]
    assert probe.changed() == []


def test_a_file_that_was_read_and_then_changed_is_known_as_changed(
    watch: Callable[[], DataFilesProbe], tmp_path: Path
) -> None:
    data, gone = tmp_path / "data.bin", tmp_path / "gone"
    for path in (data, gone):
        path.write_bytes(b"12")

    probe = watch()
    gone.read_bytes()
    gone.unlink()
    with open(data, "r+b") as file:
        file.read(1)
        file.write(b"456")

    assert _below(tmp_path, probe) == [str(data), str(gone)]
    assert probe.changed() == [str(data)]
    facts = data_digests.digest_read([str(data)], str(tmp_path), RunSignals(), probe.changed())
    assert (facts.files, facts.unread) == ({}, {"data.bin": WhyUnread.CHANGED})


def test_a_database_is_data_unless_the_run_made_it(
    watch: Callable[[], DataFilesProbe], tmp_path: Path
) -> None:
    old, by_address, new = (tmp_path / name for name in ("old.db", "by address.db", "new.db"))
    for path in (old, by_address):
        with closing(sqlite3.connect(path)) as base:
            base.execute("create table numbers (x)")

    probe = watch()
    for given in (old, f"file:{str(by_address).replace(' ', '%20')}?mode=ro", ":memory:", new):
        with closing(sqlite3.connect(given, uri=str(given).startswith("file:"))) as base:
            base.execute("create table if not exists other (x)" if given is new else "select 1")

    assert _below(tmp_path, probe) == [str(by_address), str(old)]


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("/run/media/me/data.bin", True),
        ("/library/data.bin", True),
        ("/lib64/libc.cache", False),
        ("/run/udev/data/b8", False),
    ],
)
def test_folders_of_the_system(name: str, counts: bool, tmp_path: Path) -> None:  # noqa: FBT001
    assert DataFilesProbe(str(tmp_path / "log"), ())._counts(name) is counts


def _below(folder: Path, probe: DataFilesProbe) -> list[str]:
    return [path for path in probe.paths() if path.startswith(str(folder))]
