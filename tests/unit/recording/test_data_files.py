"""The files that count as data of a run."""

from __future__ import annotations

import signal
from contextlib import suppress
from pathlib import Path

import samebits
from samebits._cuda.sources import sources_folder
from samebits.environment.unread import WhyUnread
from samebits.recording import data_digests
from samebits.recording.probes.data_files import DataFilesProbe
from samebits.recording.run_signals import RunSignals


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
