"""One call of the fixture that fresh processes make again: which test, which call, how pytest was started."""

from __future__ import annotations

import dataclasses
import json
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from samebits._text import variable_names

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

CALL_VARIABLE = variable_names.PYTEST_CALL
"""Holds the call, for the process that makes it again."""
BEFORE_VARIABLE = variable_names.PYTEST_BEFORE
"""Holds what variables were before `--samebits` started pytest again with those that control needs."""
_OF_TEST = ("PYTEST_CURRENT_TEST", BEFORE_VARIABLE)
_HASH_SEED = "PYTHONHASHSEED"


@dataclasses.dataclass(frozen=True)
class RepeatedCall:
    """A call of the fixture, to be made again in a fresh process.

    Args:
        test: absolute path of the test's file and the rest of its node id, such as `/x/test_a.py::test_b[1]`.
        number: of the call among those of the fixture in this test, from 1.
        arguments: those that pytest was started with.
        search_path: `sys.path` as the plugin found it.
        folders: the one that pytest was started in, and the one for temporary files of the process.
    """

    test: str
    number: int
    arguments: tuple[str, ...]
    search_path: tuple[str, ...]
    folders: tuple[str, str]

    @property
    def is_in_brackets(self) -> bool:
        """Whether the path of the file has a bracket, which pytest takes for the parameters of a test."""
        return "[" in self.test.partition("::")[0]

    def to_json(self) -> str:
        """Return it as text, for an environment variable."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> RepeatedCall:
        """Read what `to_json` wrote."""
        fields: dict[str, Any] = json.loads(text)
        lists = {name: tuple(fields[name]) for name in ("arguments", "search_path", "folders")}
        return cls(**{**fields, **lists})


@dataclasses.dataclass(frozen=True)
class Start:
    """How this pytest was started.

    Args:
        folder: in which it was started.
        arguments: its command line.
        search_path: `sys.path` as the plugin found it, before conftest.py files were imported.
        environment: the variables at that time.
    """

    folder: str
    arguments: tuple[str, ...]
    search_path: tuple[str, ...]
    environment: dict[str, str]

    @contextmanager
    def again(self) -> Iterator[None]:
        """Put this process in the folder, and give it the variables, that pytest was started with.

        The hash seed is left out, so that each fresh process draws its own.
        """
        folder, variables = os.getcwd(), dict(os.environ)
        os.chdir(self.folder)
        _replace({name: value for name, value in self.environment.items() if name != _HASH_SEED})
        try:
            yield
        finally:
            _replace(variables)
            os.chdir(folder)


def test_of(item: pytest.Item) -> str:
    """Return the absolute path of a test's file and the rest of its node id."""
    return f"{item.path}::{item.nodeid.partition('::')[2]}"


def start_of(config: pytest.Config, search_path: tuple[str, ...], environment: dict[str, str]) -> Start:
    """Return how pytest was started.

    Args:
        config: pytest's.
        search_path: `sys.path` before user code ran.
        environment: the variables at that time.
    """
    given = config.invocation_params
    folder = str(given.dir)
    paths = tuple(os.path.join(folder, entry) for entry in search_path)  # an empty one is the working folder
    return Start(folder, tuple(map(os.fspath, given.args)), paths, _without_control(dict(environment)))


def _without_control(environment: dict[str, str]) -> dict[str, str]:
    """Return variables as they were before `--samebits` set some and started pytest again."""
    before: dict[str, str | None] = json.loads(environment.get(BEFORE_VARIABLE, "{}"))
    for name, value in before.items():
        environment.pop(name, None)
        if value is not None:
            environment[name] = value
    return {name: value for name, value in environment.items() if name not in _OF_TEST}


def _replace(variables: dict[str, str]) -> None:
    for name in os.environ.keys() - variables.keys():
        del os.environ[name]
    os.environ.update(variables)
