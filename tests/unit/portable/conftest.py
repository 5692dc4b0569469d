"""Fixtures of the tests of portable mode."""

from __future__ import annotations

import pytest
from audit import audit_portable_mode


@pytest.fixture(autouse=True)
def audited(monkeypatch: pytest.MonkeyPatch) -> None:
    """A handler that calls an inexact op of torch fails the test."""
    audit_portable_mode(monkeypatch)


@pytest.fixture
def unaudited(monkeypatch: pytest.MonkeyPatch, audited: None) -> None:
    """Portable mode as a script has it."""
    monkeypatch.undo()
