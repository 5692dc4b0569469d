"""The main program of a fresh process that makes one call of the fixture again; `fresh_runs` starts it.

It runs pytest with the command line of the first process, but collects this one test, and ends when the call
has been made. What the function raised ends the process, so the record has it.
"""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from samebits.errors import SamebitsError
from samebits.pytest_plugin.plugin import PLAYER
from samebits.pytest_plugin.repeated_call import CALL_VARIABLE, RepeatedCall, test_of
from samebits.recording.recorded_result import await_judged_call, judged_call, record_result

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

T = TypeVar("T")

# Options of pytest and of plugins that choose other tests, start other processes or write files; the values
# are those that switch them off. Options of plugins that are not there are not set.
_OFF: dict[str, Any] = {
    "lf": False, "failedfirst": False, "newfirst": False, "stepwise": False, "stepwise_skip": False,
    "maxfail": 0, "keyword": "", "markexpr": "", "deselect": None, "collectonly": False, "usepdb": False,
    "trace": False, "showfixtures": False, "show_fixtures_per_test": False, "setuponly": False,
    "setupplan": False, "setupshow": False, "xmlpath": None, "durations": None, "pastebin": None,
    "numprocesses": None, "dist": "no", "tx": [], "looponfail": False, "cov_source": [], "htmlpath": None,
    "report_log": None, "json_report": False, "count": 1, "reruns": 0, "samebits": False,
    "samebits_update": False, "cacheclear": False,
    "log_file": os.devnull,  # not None: then the one of the configuration would be emptied
    "verbose": -2, "no_header": True,
}  # fmt: skip
_SEEDING = ("randomly", "pytest_randomly")  # pytest-randomly seeds when the session starts, too
_REMEMBERING = ("lfplugin", "nfplugin", "stepwiseplugin")  # they write what failed into the cache


class Player:
    """Makes the call again when the test comes to it, and ends pytest then.

    Args:
        call: which.
        run_folder: the working folder that this process was started in.

    Attributes:
        made: whether it was made.
        error: what the function raised; None for nothing.
        failure: the traceback of the test, or of its collection, where that failed; else empty.
        run_folder: see above.
    """

    def __init__(self, call: RepeatedCall, run_folder: str) -> None:
        self.__name__ = PLAYER  # by which pytest registers it
        self.made = False
        self.error: BaseException | None = None
        self.failure = ""
        self.run_folder = run_folder
        self._call = call
        self._stdout = sys.stdout

    def asks_for(self, number: int) -> bool:
        """Tell whether this is the call to make again."""
        return number == self._call.number

    def play(self, number: int, function: Callable[[], T]) -> T:
        """Call the function; if this is the call that was asked for, record its result and end pytest.

        Args:
            number: of the call in this test.
            function: what it calls.
        """
        if self.made:  # the test caught what ended it
            raise _end()
        if not self.asks_for(number):  # an earlier call, or one within this
            return function()
        with judged_call():
            try:
                record_result(function())
            except BaseException as error:  # noqa: BLE001 - whatever the user's function raises
                self.error = error  # which `main` raises, so that the record has it
        self.made = True
        raise _end()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_load_initial_conftests(self, early_config: pytest.Config) -> Generator[None]:
        """Switch off plugins that begin early, such as pytest-cov."""
        self._switch_off(early_config.known_args_namespace)
        yield

    @pytest.hookimpl(hookwrapper=True)
    def pytest_cmdline_main(self, config: pytest.Config) -> Generator[None]:
        """Collect only this test; begin no other processes; let no plugin seed."""
        self._switch_off(config.option)
        for name in _SEEDING:
            if config.pluginmanager.has_plugin(name):
                config.pluginmanager.unregister(name=name)
        if not self._call.is_in_brackets:
            config.args = [self._call.test]
        # Given on the command line it would be emptied, which is another process's.
        config.option.basetemp = os.path.join(self._call.folders[1], f"tmp-{os.getpid()}")
        self._stdout, sys.stdout = sys.stdout, io.StringIO()  # for the reporter, which writes for nobody
        yield

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out other tests, where pytest could not be told to collect only this."""
        items[:] = [item for item in items if test_of(item) == self._call.test]

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """Leave the cache alone, and give the test its standard output back: the reporter has its stream."""
        sys.stdout = self._stdout
        for name in _REMEMBERING:
            if config.pluginmanager.has_plugin(name):
                config.pluginmanager.unregister(name=name)

    def last_line(self) -> str:
        """Return the last line of the failure that says more than where it is, for a message."""
        lines = [line[1:].strip() for line in self.failure.splitlines() if line.startswith("E ")]
        return f" ({lines[0]})" if lines else ""

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep the error of a collection."""
        self._keep(report)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the error of the test."""
        self._keep(report)

    def _keep(self, report: pytest.CollectReport | pytest.TestReport) -> None:
        if not self.failure and report.outcome != "passed":
            self.failure = report.longreprtext

    @staticmethod
    def _switch_off(options: Any) -> None:
        for name, value in _OFF.items():
            if hasattr(options, name):
                setattr(options, name, value)


def _end() -> BaseException:
    return pytest.exit.Exception("the call has been made", returncode=0)


def main() -> None:
    """Run pytest up to the call.

    Raises:
        SamebitsError: the test was not found (`pytest-not-found`), or did not come to the call
            (`pytest-not-reached`).
        BaseException: what the function raised.
    """
    call = RepeatedCall.from_json(os.environ.pop(CALL_VARIABLE))
    sys.path[:] = list(call.search_path)
    player = Player(call, os.getcwd())
    await_judged_call()
    os.chdir(call.folders[0])
    # pytest reads files itself to rewrite their assertions, and would miss the text of a patch under trial.
    options = ["--capture=no", "--assert=plain"]
    status = int(pytest.main([*options, *call.arguments], plugins=[player]))
    if player.error is not None:
        raise player.error
    if player.made:
        return
    if player.failure:
        print(player.failure, file=sys.stderr)
    if status in (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.NO_TESTS_COLLECTED):
        message = (
            f"a fresh process did not find the test {call.test} (pytest ended with status {status}); "
            "expected a node id that is the same in each process: no random number or address in it"
        )
        raise SamebitsError(message, slug="pytest-not-found")
    message = (
        f"in a fresh process the test {call.test} ended (status {status}) before call {call.number} of the "
        f"fixture; expected it to come there as it did the first time{player.last_line()}"
    )
    raise SamebitsError(message, slug="pytest-not-reached")


if __name__ == "__main__":
    main()
