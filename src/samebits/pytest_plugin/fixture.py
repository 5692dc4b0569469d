"""The fixture `samebits`: assertions about the bits of what a test runs."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar

from samebits.errors import SamebitsError, pointer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from samebits.pytest_plugin.fresh_runs import CallSite
    from samebits.pytest_plugin.run_test import Player

T = TypeVar("T")


class SamebitsFixture:
    """Assertions about the bits of what a test runs; the fixture `samebits` is one.

    An assertion that fails raises `AssertionError` with the report of samebits: step, operation, line, cause.
    So does one that cannot be judged; its report says why.

    Args:
        site: makes the description of call number N.
        player: makes a call again, in a process that was started for that; None in the first process.
        wrote: told what was written into a lock file; None if `assert_matches_lock` only compares.
    """

    def __init__(
        self,
        site: Callable[[int], CallSite],
        player: Player | None,
        wrote: Callable[[str], None] | None = None,
    ) -> None:
        self._site = site
        self._player = player
        self._wrote = wrote
        self._calls = 0
        self._locked: set[str] = set()

    def assert_repeatable(
        self,
        function: Callable[[], T],
        *,
        fresh: bool = True,
        runs: int = 2,
        seed: int | None = None,
        state_only: bool = False,
    ) -> T:
        """Assert that a function gives the same bits each time.

        Compared are parameters, gradients and optimizer states at each step, every value that is read out of
        a tensor or saved, and what the function returns.

        The function is called here once, so that its errors are those of the test. Then this test is run
        again up to this call in `runs` fresh processes, which differ in what must not matter: hash seed,
        addresses, contents of new memory, scheduling of threads.

        Args:
            function: takes no arguments; a closure or a lambda will do.
            fresh: False calls it in this process instead, `runs` times. That takes less time and shows less:
                the hash seed, caches and the state of libraries are those of one process, and no further
                runs prove the cause. All generators get other states before each further call, so the
                function has to seed those that it uses itself.
            runs: how many are compared, at least 2.
            seed: put each run under control with this seed; None runs the function as it is.
            state_only: values that are only read out, and reach no state, may differ.

        Returns:
            What the function returned here.

        Raises:
            AssertionError: it gave other bits, or could not be judged.
            SamebitsError: `runs` is below 2 or `seed` is no seed; `usage`, `seed`.
        """
        __tracebackhide__ = True
        _check_runs(runs, seed)
        if not fresh and self._player is not None:  # an earlier call of a test that is run again
            return _under_control(function, seed)
        if not fresh:
            from samebits.pytest_plugin.same_process import compare_calls

            result, report = compare_calls(function, runs=runs, seed=seed, state_only=state_only)
            _fail(report)
            return result
        number = self._next()
        if self._player is not None:
            own = self._player.asks_for(number)
            return self._player.play(number, function if own else lambda: _under_control(function, seed))
        result = function()
        from samebits.pytest_plugin.fresh_runs import check_repeating

        _fail(check_repeating(self._site(number), runs=runs, seed=seed, state_only=state_only))
        return result

    def assert_resumable(
        self,
        train: Callable[[Path], Any],
        *,
        kill_at: Sequence[int] = (),
        seed: int | None = None,
        budget: float | None = None,
    ) -> None:
        """Assert that a training which was killed goes on with the same bits as one that never stopped.

        Args:
            train: gets a folder. It trains to its end, and saves checkpoints there as it goes; if the folder
                has a checkpoint, it goes on from that.
            kill_at: numbers of optimizer steps after which it is killed (SIGKILL), each in a run of its own;
                empty for two that suit the length of the training.
            seed: put each run under control with this seed; None runs it as it is.
            budget: seconds after which no further kill is begun; None for no end.

        Raises:
            AssertionError: a resumed run gave other bits: the report names what was not restored. Or it could
                not be judged: nothing was resumed, the training does not repeat, or `kill_at` is beyond its
                last step.
            SamebitsError: `kill_at` has a number that is not positive; `usage`.
        """
        __tracebackhide__ = True
        number = self._next()
        if self._player is not None and self._player.asks_for(number):
            folder = Path(self._player.run_folder)
            self._player.play(number, lambda: train(folder))
        with TemporaryDirectory() as name:  # errors of the training are those of the test
            train(Path(name))
        if self._player is not None:  # an earlier call of a test that is run again
            return
        from samebits.pytest_plugin.resumed_runs import check_resuming

        _fail(check_resuming(self._site(number), tuple(kill_at), seed, budget))

    def assert_portable(
        self, function: Callable[[], T], *, seed: int | None = None, threads: Sequence[int] = ()
    ) -> T:
        """Assert that a function gives the same bits with any number of threads and any instruction set.

        It runs in portable mode: here once, then in fresh processes, one with the plainest kernels of
        samebits and of the libraries, the others with the best ones. An operation that portable mode does not
        cover is an error that names it and its line.

        Args:
            function: takes no arguments.
            seed: put each run under control with this seed; None runs the function as it is.
            threads: the number of threads of each run; empty for one run with 1 and one with several.

        Returns:
            What the function returned here, computed in portable mode.

        Raises:
            AssertionError: it gave other bits, an operation has no portable values, or nothing could be
                judged.
            SamebitsError: `threads` has fewer than two numbers, or one below 1; `usage`.
        """
        __tracebackhide__ = True
        from samebits.pytest_plugin.portable_runs import compare_settings, in_portable_mode

        number = self._next()
        if self._player is not None and self._player.asks_for(number):
            return self._player.play(number, function)
        if self._player is not None:  # an earlier call of a test that is run again
            return in_portable_mode(function)
        result = _refused(lambda: in_portable_mode(function))
        _fail(compare_settings(self._site(number), seed, tuple(threads)))
        return result

    def assert_matches_lock(
        self,
        name: str,
        function: Callable[[], T],
        *,
        seed: int | None = None,
        portable: bool = False,
        lock: str | Path | None = None,
    ) -> T:
        """Assert that a function gives the bits that a lock file holds.

        The function is called here once, so that its errors are those of the test, and once in a fresh
        process, whose bits are compared. `pytest --samebits-update` writes the entry: it calls the function
        in two fresh processes, whose bits must be equal.

        Args:
            name: of the entry; letters, digits, `.`, `_` and `-`. One entry belongs to one call.
            function: takes no arguments.
            seed: put each run under control with this seed; None runs the function as it is.
            portable: compute in portable mode, so that the entry holds on every machine and every release
                of torch. An operation that it does not cover is an error that names it and its line.
            lock: path of the lock file, relative to the folder of the test; None for `samebits.lock` there.

        Returns:
            What the function returned here.

        Raises:
            AssertionError: it gave other bits than the entry: the report names the first step that differs,
                its values, and whose it is. Or there is nothing to compare with: no entry, one that was
                edited, one of another test or another seed.
            SamebitsError: the name cannot name an entry, or was used in this test already, or `seed` is no
                seed; `usage`, `seed`.
        """
        __tracebackhide__ = True
        _check_seed(seed)
        number = self._next()
        call = _locally(function, seed, portable=portable)
        if self._player is not None:
            own = self._player.asks_for(number)
            return self._player.play(number, function if own else call)
        from samebits.pytest_plugin.locked_runs import (
            check_locked,
            locked_call,
            refuse_missing,
            update_locked,
        )

        locked = locked_call(self._site(number), name, lock, seed, portable=portable)
        self._refuse_twice(f"{locked.path}:{name}", name)
        if self._wrote is None:
            _refused(lambda: refuse_missing(locked))
        result = _refused(_locally(function, None, portable=True)) if portable else function()
        if self._wrote is None:
            _fail(check_locked(locked))
            return result
        report, done = update_locked(locked)
        _fail(report)
        self._wrote(done)
        return result

    def _refuse_twice(self, key: str, name: str) -> None:
        if key in self._locked:
            message = f"two calls of this test are locked as {name}; expected another name for each"
            raise SamebitsError(message, slug="usage")
        self._locked.add(key)

    def assert_batch_invariant(self, model: Callable[[Any], Any], batch: Any) -> None:
        """Assert that the output for one sample has the same bits alone and in any batch.

        Each row of the batch is computed alone (twice in one batch if the model refuses that), in two
        halves, in a batch of twice the size, and at other places of the batch; generators are put back before
        each. Gradients are not looked at.

        Args:
            model: a module or a function of the batch. Its outputs (tensors, in any lists, tuples and dicts)
                have one row for each sample.
            batch: a tensor whose first dimension counts the samples, or lists, tuples and dicts of such; what
                is no tensor is given to each call as it is. At least 2 samples.

        Raises:
            AssertionError: a row has other bits: the message names the operation, its line and module, the
                row, and by how much they differ. Or the model refuses one sample, and nothing differs.
            SamebitsError: the batch has no or differing numbers of samples, or the outputs have no row for
                each; `usage`.
        """
        __tracebackhide__ = True
        from samebits.commands.batch_invariance import first_variance
        from samebits.report.batch_invariance import render

        found = first_variance(model, batch)
        _fail("" if found is None else render(found, os.getcwd()))

    def _next(self) -> int:
        self._calls += 1
        return self._calls


def _under_control(function: Callable[[], T], seed: int | None) -> T:
    """Call a function under control with a seed; as it is without one."""
    if seed is None:
        return function()
    from samebits.determinism.context import deterministic

    with deterministic(seed=seed):
        return function()


def _locally(function: Callable[[], T], seed: int | None, *, portable: bool) -> Callable[[], T]:
    """Return a function that runs as in a fresh process: with that control, and in portable mode."""

    def call() -> T:
        if not portable:
            return _under_control(function, seed)
        from samebits.pytest_plugin.portable_runs import in_portable_mode

        return _under_control(lambda: in_portable_mode(function), seed)

    return call


def _refused(function: Callable[[], T]) -> T:
    """Call a function; what samebits refuses is a failure of the test.

    Raises:
        AssertionError: in place of a `SamebitsError`.
    """
    __tracebackhide__ = True
    try:
        return function()
    except SamebitsError as error:
        message = f"{error}\n{pointer(error.slug)}"
    raise AssertionError(message)


def _fail(report: str) -> None:
    """Fail the test with a report; an empty one is no failure."""
    __tracebackhide__ = True
    if report:
        raise AssertionError(report)


def _check_runs(runs: int, seed: int | None) -> None:
    if not isinstance(runs, int) or runs < 2:
        raise SamebitsError(f"runs is {runs!r}; expected a whole number from 2", slug="usage")
    _check_seed(seed)


def _check_seed(seed: int | None) -> None:
    from samebits.rng.seeds import check_seed

    if seed is not None:
        check_seed(seed)
