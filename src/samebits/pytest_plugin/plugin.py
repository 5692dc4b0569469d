"""What pytest finds of samebits: the options, the fixture, and control of each test.

pytest imports this module in every session of everybody who has samebits installed. So it imports only what
pytest has imported already, and everything else when the option or the fixture is used.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

    from samebits.pytest_plugin.fixture import SamebitsFixture
    from samebits.pytest_plugin.session_control import SessionControl

    _CONTROL: pytest.StashKey[SessionControl]
    _START: pytest.StashKey[tuple[tuple[str, ...], dict[str, str]]]

_CONTROL = pytest.StashKey()
_START = pytest.StashKey()
PLAYER = "samebits-player"
"""The name of the plugin that makes a call again."""
_WROTE = "samebits-wrote"  # the property of a test that says what it wrote


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("samebits", "the same bits each time (samebits)")
    group.addoption(
        "--samebits",
        action="store_true",
        default=False,
        help="run each test under control: generators seeded from its node id, deterministic algorithms",
    )
    group.addoption(
        "--samebits-seed", metavar="N", help="with --samebits: seeds follow from N too (default: 0)"
    )
    group.addoption(
        "--samebits-budget",
        metavar="SECONDS",
        help="time for explaining why a function is not repeatable; 0 ends with the likely cause "
        "(default: 3 minutes, or 20 times the first run if that is longer)",
    )
    group.addoption(
        "--samebits-update",
        action="store_true",
        default=False,
        help="write the bits that assert_matches_lock compares with into its lock file",
    )
    parser.addini("samebits", "as --samebits", type="bool", default=False)
    parser.addini("samebits_seed", "as --samebits-seed", default="")
    parser.addini("samebits_budget", "as --samebits-budget", default="")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Note how pytest was started, and begin control, before conftest.py files and tests are imported."""
    early_config.stash[_START] = (tuple(sys.path), dict(os.environ))
    given = early_config.known_args_namespace
    if not early_config.pluginmanager.has_plugin(PLAYER) and (
        given.samebits or early_config.getini("samebits")
    ):
        from samebits.pytest_plugin.session_control import begin

        early_config.stash[_CONTROL] = begin(early_config)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Refuse options that cannot be met; leave the order of tests to chance, if that was asked for.

    Raises:
        UsageError: a budget that is no number; several processes would write one lock file; the configuration
            asks for control, and user code has been imported already.
    """
    _budget(config)
    _refuse_parallel_update(config)
    if _CONTROL in config.stash:
        from samebits.pytest_plugin.other_seeding import draw_order

        draw_order(config)
    if _START in config.stash:
        return
    config.stash[_START] = (tuple(sys.path), dict(os.environ))  # a conftest.py loaded the plugin
    if config.getini("samebits") and not config.pluginmanager.has_plugin(PLAYER):
        raise pytest.UsageError(
            "samebits = true: too late: a conftest.py loads the plugin, and control must begin before user "
            "code is imported; load it by the command line: -p samebits.pytest_plugin.plugin"
        )


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say that tests are under control."""
    control = config.stash.get(_CONTROL, None)
    return (
        None if control is None else f"samebits: each test under control, seed {control.seed} and its node id"
    )


@pytest.hookimpl(hookwrapper=True)
def pytest_sessionstart(session: pytest.Session) -> Generator[None]:
    """Keep generators as control has seeded them for what is imported, whatever plugins seed now."""
    if _CONTROL not in session.config.stash:
        yield
        return
    from samebits.pytest_plugin.other_seeding import generators_kept

    with generators_kept():
        yield


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None]:
    """Put a test, with its setup and teardown, under control, if that was asked for."""
    control = item.config.stash.get(_CONTROL, None)
    if control is None:
        yield
        return
    from samebits.pytest_plugin.other_seeding import seeded_once

    with seeded_once(item), control.of_test(item.nodeid):
        yield


def pytest_unconfigure(config: pytest.Config) -> None:
    """End control."""
    control = config.stash.get(_CONTROL, None)
    if control is not None:
        control.end_collection()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say what was written into lock files."""
    wrote = [
        text
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", None) == "call"
        for name, text in report.user_properties
        if name == _WROTE
    ]
    if wrote:
        terminalreporter.section("samebits: lock files")
    for text in wrote:
        terminalreporter.line(text)


@pytest.fixture
def samebits(request: pytest.FixtureRequest) -> SamebitsFixture:
    """Assertions about bits: assert_repeatable, assert_matches_lock, assert_resumable and others."""
    from samebits.pytest_plugin.fixture import SamebitsFixture
    from samebits.pytest_plugin.repeated_call import start_of, test_of

    config, item = request.config, request.node
    search_path, environment = config.stash[_START]
    start = start_of(config, search_path, environment)

    def site(number: int) -> Any:
        from samebits.pytest_plugin.fresh_runs import CallSite

        return CallSite(start, test_of(item), item.nodeid, number, _budget(config))

    def wrote(text: str) -> None:
        item.user_properties.append((_WROTE, text))

    update = config.getoption("samebits_update")
    return SamebitsFixture(site, config.pluginmanager.get_plugin(PLAYER), wrote if update else None)


def _refuse_parallel_update(config: pytest.Config) -> None:
    """Refuse to write lock files from several processes of xdist: one would lose what another wrote.

    Raises:
        UsageError: there are several.
    """
    option = config.option
    if not option.samebits_update or config.pluginmanager.has_plugin(PLAYER):
        return
    if getattr(option, "dist", "no") != "no" or hasattr(config, "workerinput"):
        raise pytest.UsageError(
            "--samebits-update writes lock files, which several processes cannot do at once; expected "
            "pytest without workers of xdist: give -n 0 too"
        )


def _budget(config: pytest.Config) -> float | None:
    """Return the seconds for explaining a difference; None for the default.

    Raises:
        UsageError: it is no number from 0.
    """
    text = config.getoption("samebits_budget") or config.getini("samebits_budget")
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise pytest.UsageError(f"--samebits-budget {text}: expected a number of seconds from 0")
    return seconds
