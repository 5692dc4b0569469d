"""Tests of the digest choose its backend themselves."""

import pytest

from samebits.digest import _backends, native, tensors, values
from samebits.digest._native_backend import NativeBackend
from samebits.digest._torch_backend import NoReader, TorchBackend


@pytest.fixture
def choose_backend(monkeypatch):
    """A function that makes every digest use `bindings` (all C parts), `native` (no C module) or `torch`."""

    def choose(name):
        library = native.load()
        if name == "torch" or library is None:
            backend = TorchBackend()
        else:
            reader = native.open_reader(library) if name == "bindings" else None
            backend = NativeBackend(library, reader or NoReader())
        monkeypatch.setattr(tensors, "_CPU", backend)
        monkeypatch.setattr(values, "cpu_backend", lambda: backend)
        monkeypatch.setattr(_backends, "_DEVICES", {"cpu": lambda _: backend})
        return backend

    return choose
