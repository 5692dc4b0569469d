"""A watch over the files that a run reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from samebits.recording.probes.data_files import DataFilesProbe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def watch(tmp_path: Path) -> Iterator[Callable[[], DataFilesProbe]]:
    """Return what installs a probe, which is taken away in the end."""
    probes = []

    def begin() -> DataFilesProbe:
        probes.append(DataFilesProbe(str(tmp_path / "log"), ()))
        probes[-1].install()
        return probes[-1]

    yield begin
    for probe in probes:
        probe.remove()
