"""Names of packages that are imported when they are first used."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from samebits._runtime.lazy import late_names, make_callable


@pytest.fixture
def package(monkeypatch):
    """A package with one name, whose home counts how often it is asked."""
    made, home = ModuleType("made_package"), ModuleType("made_package.home")
    home.double = lambda number: 2 * number
    monkeypatch.setitem(sys.modules, made.__name__, made)
    monkeypatch.setitem(sys.modules, home.__name__, home)
    made.__path__ = []
    made.__getattr__ = late_names(made.__name__, {"double": "home"})
    return made


def test_a_name_is_found_once(package):
    assert package.double(4) == 8
    assert "double" in vars(package)


def test_another_name_is_missed_as_ever(package):
    with pytest.raises(AttributeError, match="module 'made_package' has no attribute 'triple'"):
        package.triple  # noqa: B018


def test_a_package_can_be_called(package):
    make_callable(package.__name__, "double")
    assert package(21) == 42
