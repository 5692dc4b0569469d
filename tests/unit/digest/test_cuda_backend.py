"""What the digest on a GPU does where it cannot be had; the kernels themselves are in test_cuda_source."""

import types

import pytest
import torch

from samebits._cuda import sources
from samebits._cuda.nvrtc import CompileError
from samebits.digest import _backends, _cuda_backend

NEEDED = {"digest.cu", "digest_body.h", "digest_core.h", "stdint.h"}


def test_a_checkout_has_all_sources():
    """Those that the file of the kernels includes, by the names in its `#include`s."""
    assert sources.read_sources().keys() >= NEEDED


def test_a_wheel_has_them_in_the_package(tmp_path, monkeypatch):
    """Beside the module, in the folders of the checkout."""
    for name in ("digest_core.h", "cuda/digest.cu", "cuda/freestanding/stdint.h"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    monkeypatch.setattr(sources, "_PACKAGED", tmp_path)
    assert sources.read_sources() == {
        "digest_core.h": "digest_core.h",
        "digest.cu": "cuda/digest.cu",
        "stdint.h": "cuda/freestanding/stdint.h",
    }


@pytest.fixture
def device(monkeypatch):
    """A GPU of which only the properties are asked for."""
    properties = types.SimpleNamespace(major=9, minor=0, multi_processor_count=4)
    stream = types.SimpleNamespace(synchronize=lambda: None)
    monkeypatch.setattr(torch.cuda, "device", lambda _: torch.no_grad())
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: properties)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: stream)
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    _cuda_backend._open.cache_clear()
    yield torch.device("cuda", 0)
    _cuda_backend._open.cache_clear()


def test_torch_operations_where_the_kernels_cannot_be_compiled(device, monkeypatch):
    """The digest is the same, and slower; it is tried once."""
    calls = []

    def refuse(*arguments):
        calls.append(arguments)
        raise CompileError("no")

    monkeypatch.setattr(_cuda_backend, "load_unit", refuse)
    assert [_backends.backend_of(device).name for _ in range(2)] == ["torch", "torch"]
    assert len(calls) == 1


def test_torch_operations_without_a_driver(device, monkeypatch):
    """As where the code cannot be loaded."""
    monkeypatch.setattr("samebits._cuda.loading.code_of", lambda *_: b"")
    monkeypatch.setattr(
        "samebits._cuda.driver.ctypes.CDLL", lambda name: (_ for _ in ()).throw(OSError(name))
    )
    assert _backends.backend_of(device).name == "torch"


def test_torch_operations_on_devices_of_another_maker(device, monkeypatch):
    """ROCm calls its devices `cuda` as well."""
    monkeypatch.setattr(torch.version, "cuda", None)
    assert _backends.backend_of(device).name == "torch"
