"""pytest-randomly beside `--samebits`: it orders the tests, and control has the last word on generators.

It seeds Python's generator and NumPy's when the session starts, and before each phase of a test, so that
these would not follow `--samebits-seed`. It also seeds generators that control does not know (of faker, of
factory_boy): those it still seeds, once before each test.
"""

from __future__ import annotations

import secrets
from contextlib import contextmanager
from typing import TYPE_CHECKING

from samebits.rng.states import restore_states, save_states

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

_NAMES = ("randomly", "pytest_randomly")  # as an installed plugin, and by `-p`


def draw_order(config: pytest.Config) -> None:
    """Give pytest-randomly the seed for the order of tests, where none was asked for.

    It draws one from a new generator, which control would seed: the order would always be the same.

    Args:
        config: pytest's, before that plugin is configured.
    """
    if getattr(config.option, "randomly_seed", None) == "default":
        config.option.randomly_seed = secrets.randbits(32)


@contextmanager
def generators_kept() -> Iterator[None]:
    """Put the generators back that others seed in the block."""
    states = save_states()
    yield
    restore_states(states, strict=False)


@contextmanager
def seeded_once(item: pytest.Item) -> Iterator[None]:
    """Have pytest-randomly seed before the block, and not in it.

    Args:
        item: the test that runs in the block.
    """
    option = item.config.option
    plugins = (item.config.pluginmanager.get_plugin(name) for name in _NAMES)
    plugin = next((each for each in plugins if each is not None), None)
    if plugin is None or not getattr(option, "randomly_reset_seed", False):
        yield
        return
    plugin.pytest_runtest_setup(item)
    option.randomly_reset_seed = False
    try:
        yield
    finally:
        option.randomly_reset_seed = True
