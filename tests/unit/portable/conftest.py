"""Fixtures of the tests of portable mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from audit import audit_portable_mode

from samebits.portable import _registration, gradients
from samebits.portable._native_ops import left_to_handlers
from samebits.portable.backends.library import load

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def audited(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Handlers compute all ops, and one that calls an inexact op of torch fails the test.

    What tests plant is planned anew.
    """
    _registration._plans.cache_clear()
    audit_portable_mode(monkeypatch)
    with left_to_handlers():
        yield


@pytest.fixture
def unaudited(monkeypatch: pytest.MonkeyPatch, audited: None) -> Iterator[None]:
    """Portable mode as a script has it, but that handlers compute all ops."""
    monkeypatch.undo()
    yield
    _registration._plans.cache_clear()


@pytest.fixture(params=["scalar", "avx2", "avx512", "neon"])
def isa(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each instruction set that the kernels can use on this machine."""
    kernels = load()
    if kernels is None or not kernels.select(request.param):
        pytest.skip(f"no {request.param} here")
    yield request.param
    kernels.select("")
    kernels.follow_torch()


@pytest.fixture
def only_the_gradients(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The kernels of gradients, and no op of portable mode, so that nothing else differs."""
    monkeypatch.setattr(gradients, "is_portable", lambda: True)
    with gradients.own_gradients():
        yield
