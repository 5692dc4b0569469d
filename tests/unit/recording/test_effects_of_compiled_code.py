"""What compiled code has opened is seen at a boundary: Python's audit events do not tell of it."""

from __future__ import annotations

import pytest
import torch

from samebits.recording.probes import file_effects
from samebits.recording.probes.file_effects import EffectsProbe


@pytest.fixture
def looked(tmp_path):
    """Looks once, as at the first boundary, and gives what was noted."""

    def look() -> str:
        probe = EffectsProbe(str(tmp_path / "notes"), ())
        probe._watching = True  # without the audit hook, which would stay
        probe((), b"")
        probe.remove()
        return (tmp_path / "notes").read_text()

    return look


def test_nothing_is_open(looked):
    assert looked() == "none\n"


@pytest.mark.parametrize("kind", ["cuda", "xpu"])
def test_a_device_that_torch_uses(looked, monkeypatch, kind):
    monkeypatch.setattr(getattr(torch, kind), "is_initialized", lambda: True)
    assert looked() == "opened\n"


@pytest.mark.parametrize("target", ["/dev/nvidia0", "/dev/dri/renderD128", "/dev/kfd", "socket:[77]"])
def test_a_device_or_a_socket_that_a_library_has_opened(looked, monkeypatch, target):
    monkeypatch.setattr(file_effects, "_target", lambda name: target)
    assert looked() == "opened\n"


@pytest.mark.parametrize("target", ["/home/nvidia/data.bin", "/dev/null", "pipe:[77]"])
def test_a_file_that_is_read(looked, monkeypatch, target):
    monkeypatch.setattr(file_effects, "_target", lambda name: target)
    assert looked() == "none\n"


def test_a_library_that_fails_when_it_is_asked(looked, monkeypatch):
    def fail() -> bool:
        raise RuntimeError

    monkeypatch.setattr(torch.cuda, "is_initialized", fail)
    assert looked() == "unknown\n"
