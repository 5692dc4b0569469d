"""Fixtures of the tests of portable mode."""

from __future__ import annotations

import pytest

from samebits.portable.audit import AUDIT_VARIABLE


@pytest.fixture(autouse=True)
def audited(monkeypatch: pytest.MonkeyPatch) -> None:
    """A handler that calls an inexact op of torch fails the test."""
    monkeypatch.setenv(AUDIT_VARIABLE, "1")
