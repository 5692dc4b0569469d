"""The files that count as data of a run."""

from __future__ import annotations

from pathlib import Path

from samebits.recording.probes.data_files import DataFilesProbe


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
