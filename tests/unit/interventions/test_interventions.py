"""The in-process parts of interventions, put in place in this process."""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
import os
import pathlib
import random
import secrets
import signal
import socket
import tempfile
import threading
import time
import uuid
import zlib
from concurrent import futures as pools
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing.pool import ThreadPool
from queue import Queue

import pytest

from samebits.interventions import why_not
from samebits.interventions.clock import START_NS
from samebits.interventions.machine import frozen
from samebits.interventions.plan import ActiveInterventions

THREADS = pytest.mark.skipif(why_not("serial-threads") != "", reason="no clock of threads here")
LINUX = pytest.mark.skipif(not os.path.exists("/proc/meminfo"), reason="files of Linux")


@contextmanager
def pinned(*names):
    process = ActiveInterventions(names)
    process.install()
    try:
        yield
    finally:
        process.remove()


def twice(*names, of):
    """What a function gives in two processes of these interventions."""
    results = []
    for _ in range(2):
        with pinned(*names):
            results.append(of())
    return results


def test_everything_is_put_back():
    before = (time.time, os.urandom, os.getpid, os.listdir, open, threading.Thread.start)
    now = vars(dt.datetime)["now"]
    with pinned("clock", "entropy", "process", "listing", "memory-load", "serial-threads", "completion"):
        assert time.time is not before[0]
    assert (time.time, os.urandom, os.getpid, os.listdir, open, threading.Thread.start) == before
    assert vars(dt.datetime)["now"] is now


def test_it_begins_at_a_fixed_moment_and_the_first_reading_takes_a_millisecond():
    with pinned("clock"):
        assert time.time_ns() == START_NS + 1_000_000
        assert time.time_ns() == START_NS + 2_031_250


def test_all_clocks_are_the_same_each_time():
    def read():
        clocks = (time.time, time.monotonic, time.perf_counter_ns, time.process_time, time.ctime)
        moments = (dt.datetime.now(), dt.datetime.now(dt.timezone.utc))  # noqa: DTZ005
        days = (dt.date.today(), dt.datetime.today(), dt.datetime.utcnow())  # noqa: DTZ002, DTZ003, DTZ011
        shown = (time.strftime("%H:%M:%S"), time.localtime(), time.gmtime(), time.asctime())
        return (
            [clock() for clock in clocks],
            moments,
            days,
            shown,
            time.clock_gettime(time.CLOCK_MONOTONIC),
        )

    first, second = twice("clock", of=read)
    assert first == second
    assert first[2][0] == dt.date(2026, 1, 1)


def test_a_given_time_is_left():
    with pinned("clock"):
        assert time.gmtime(0).tm_year == 1970
        assert time.strftime("%Y", time.gmtime(0)) == "1970"


def test_a_sleep_takes_its_time():
    with pinned("clock"):
        begin = time.perf_counter()
        time.sleep(0.01)
        assert time.perf_counter() - begin == pytest.approx(
            0.01103125
        )  # the second reading takes a little more


@pytest.mark.parametrize(("seconds", "expected"), [(3, 407), (300, 4350)])
def test_a_loop_that_waits_ends(seconds, expected):
    """After hundreds or thousands of readings, however far away the moment is that it waits for."""
    with pinned("clock"):
        end, readings = time.monotonic() + seconds, 1
        while time.monotonic() < end:
            readings += 1
    assert readings == expected


def test_each_thread_has_a_clock_of_its_own():
    seen = []
    with pinned("clock"):
        time.time_ns()
        thread = threading.Thread(target=lambda: seen.append(time.time_ns()))
        thread.start()
        thread.join()
    assert seen == [START_NS + 1_000_000]


def test_the_standard_library_keeps_its_clock():
    with pinned("clock"):
        record = logging.LogRecord("a", 10, "b", 1, "c", (), None)
        assert not Queue().full()
    assert abs(record.created - time.time()) < 1e6


def test_a_timer_follows_the_clock():
    came = []
    before = signal.signal(signal.SIGALRM, lambda *_: came.append(time.time_ns()))
    try:
        with pinned("clock"):
            signal.setitimer(signal.ITIMER_REAL, 0.0025)
            readings = [time.time_ns() for _ in range(2)]
            assert came == []
            readings.append(time.time_ns())
            assert len(came) == 1
            signal.alarm(5)
            signal.pause()
            assert len(came) == 2
    finally:
        signal.signal(signal.SIGALRM, before)


def test_it_is_the_same_each_time_and_not_the_same_twice():
    def take():
        return [
            os.urandom(8), os.urandom(8), secrets.token_bytes(4), uuid.uuid4(), uuid.uuid1(),
            random.SystemRandom().random(),
        ]  # fmt: skip

    first, second = twice("entropy", of=take)
    assert first == second
    assert first[0] != first[1]


@LINUX
def test_devices_are_files_with_the_same_bytes():
    def read():
        with open("/dev/urandom", "rb") as file:
            return file.read(9), pathlib.Path("/proc/sys/kernel/random/uuid").read_text()

    first, second = twice("entropy", of=read)
    assert first == second
    assert len(first[0]) == 9


def test_seeds_of_generators_are_not_touched():
    first, second = twice("entropy", of=lambda: random.Random().random())
    assert first != second


def test_temporary_names_are_in_order_and_on_a_clash_the_next_one_follows(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "_name_sequence", tempfile._RandomNameSequence())
    with pinned("entropy"):
        first = os.path.basename(tempfile.mkdtemp(dir=tmp_path))
    with pinned("entropy"):
        second = os.path.basename(tempfile.mkdtemp(dir=tmp_path))
        third = os.path.basename(tempfile.mkdtemp(dir=tmp_path))
    assert first < second < third


def test_directories_are_listed_in_order(tmp_path, monkeypatch):
    listdir = os.listdir
    monkeypatch.setattr(os, "listdir", lambda *a: sorted(listdir(*a), reverse=True))
    for name in "cabd":
        (tmp_path / name).write_text("")
    with pinned("listing"):
        assert os.listdir(tmp_path) == list("abcd")
        assert [path.name for path in tmp_path.iterdir()] == list("abcd")
        with os.scandir(tmp_path) as entries:
            assert [entry.name for entry in entries] == list("abcd")
        assert [path.name for path in tmp_path.glob("*")] == list("abcd")
        assert next(os.walk(tmp_path))[2] == list("abcd")


def test_times_are_fixed_and_the_rest_is_not(tmp_path):
    path = tmp_path / "a"
    path.write_text("abc")
    with pinned("file-times"):
        assert os.path.getmtime(path) == path.stat().st_mtime == os.stat(path).st_atime
        assert path.stat().st_mtime_ns == 1_767_225_600_123_456_789
        assert path.stat().st_size == 3
        assert next(iter(os.scandir(tmp_path))).stat().st_mtime == path.stat().st_mtime


def test_inodes_are_numbered_as_they_are_asked_about(tmp_path):
    for name in "ab":
        (tmp_path / name).write_text("")
    with pinned("inodes"):
        assert [(tmp_path / name).stat().st_ino for name in "bab"] == [1, 2, 1]


def test_numbers_and_names_are_fixed():
    def read():
        ident = threading.get_ident(), threading.get_native_id()
        return os.getpid(), os.getppid(), ident, socket.gethostname(), os.uname().nodename

    first, second = twice("process", of=read)
    assert first == second
    assert first[0] != os.getpid()


def test_a_signal_to_the_number_reaches_this_process():
    with pinned("process"):
        os.kill(os.getpid(), 0)


def test_a_port_of_the_systems_choice_is_fixed_and_free():
    def ask():
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return probe.getsockname()[1]

    first, second = twice("ports", of=ask)
    assert first == second


@LINUX
def test_load_is_fixed():
    def read():
        with open("/proc/uptime") as uptime, open("/proc/meminfo") as memory:
            return os.getloadavg(), uptime.read(), memory.read()

    first, second = twice("memory-load", of=read)
    assert first == second
    assert "MemAvailable:" in first[2]


@LINUX
def test_facts_of_the_machine_stay():
    with open("/proc/cpuinfo") as file:
        flags = next((line for line in file if "flags" in line), "")
    with pinned("memory-load"), open("/proc/cpuinfo") as file:
        assert flags == next((line for line in file if "flags" in line), "")


def test_values_keep_their_kind():
    usage = os.terminal_size((3, 4))
    assert frozen({"a": (1, 2.5, "x", True, None)}) == {"a": (1 << 30, 50.0, "x", True, None)}
    assert frozen(usage) is not None


def test_futures_complete_in_the_order_of_submission():
    gates = [threading.Event() for _ in range(3)]
    with pinned("completion"), ThreadPoolExecutor(3) as pool:
        futures = [pool.submit(gate.wait, 5) for gate in gates]
        for gate in reversed(gates):
            gate.set()
        assert list(pools.as_completed(set(futures))) == futures


def test_the_first_to_complete_is_the_first_that_was_submitted():
    with pinned("completion"), ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(time.sleep, 0.05), pool.submit(int)]
        done, rest = pools.wait(futures, return_when=FIRST_COMPLETED)
        assert done == {futures[0]}
        assert rest == {futures[1]}


def test_one_that_takes_too_long_is_passed_over(monkeypatch):
    monkeypatch.setattr("samebits.interventions.completion.PATIENCE_S", 0.05)
    gate = threading.Event()
    with pinned("completion"), ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(gate.wait, 5), pool.submit(int)]
        stream = pools.as_completed(futures)
        assert next(stream) is futures[1]
        gate.set()
        assert next(stream) is futures[0]


def test_pools_give_results_in_order():
    def late_first(number):
        time.sleep(0.05 * (number == 0))
        return number

    called = []
    with pinned("completion"), ThreadPool(3) as pool:
        assert list(pool.imap_unordered(late_first, range(4))) == [0, 1, 2, 3]
        handles = [pool.apply_async(late_first, (n,), callback=called.append) for n in range(4)]
        assert [handle.get() for handle in handles] == [0, 1, 2, 3]
    assert called == [0, 1, 2, 3]


@THREADS
def test_threads_run_one_after_the_other():
    seen = []

    def work(name):
        for _ in range(20):
            seen.append(name)
            zlib.compress(bytes(100_000))  # lets others in

    with pinned("serial-threads"):
        threads = [threading.Thread(target=work, args=(name,)) for name in "abc"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert "".join(seen) == "a" * 20 + "b" * 20 + "c" * 20


@THREADS
def test_threads_that_wait_for_each_other_do_not_stop():
    queue: Queue = Queue(2)

    def fill(name):
        for number in range(6):
            queue.put(name + str(number))

    with pinned("serial-threads"):
        threads = [threading.Thread(target=fill, args=(name,)) for name in "ab"]
        for thread in threads:
            thread.start()
        taken = [queue.get() for _ in range(12)]
        for thread in threads:
            thread.join()
    assert sorted(taken) == [name + str(number) for name in "ab" for number in range(6)]


@THREADS
def test_a_thread_that_waits_in_c_is_passed_over():
    lock, order = threading.Lock(), []

    def blocked():
        with lock:
            order.append("blocked")

    def other():
        order.append("other")
        lock.release()

    with pinned("serial-threads"):
        lock.acquire()
        threads = [threading.Thread(target=blocked), threading.Thread(target=other)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
    assert order == ["other", "blocked"]


@THREADS
def test_one_that_never_waits_ends_the_intervention(monkeypatch):
    monkeypatch.setattr("samebits.interventions.scheduler.LIMIT_S", 0.1)
    stop = []
    with pinned("serial-threads"):
        thread = threading.Thread(target=stop.append, args=(1,))
        thread.start()
        while not stop:
            pass
        thread.join()
    assert stop == [1]


@THREADS
def test_tasks_run_in_the_order_of_submission():
    seen = []

    def work(number):
        for _ in range(0, 20, number + 1):  # the first ones take longest
            zlib.compress(bytes(100_000))
        seen.append(number)

    with pinned("serial-threads"), ThreadPoolExecutor(3) as pool:
        futures = [pool.submit(work, number) for number in range(6)]
        pools.wait(futures)
    assert seen == list(range(6))


@THREADS
def test_tasks_that_asyncio_gives_to_threads_come_back_in_the_order_of_submission(monkeypatch):
    """The loop says itself that it waits: nothing has to notice it."""
    monkeypatch.setattr("samebits.interventions.scheduler._BLOCKED_POLLS", 10**9)

    def work(number):
        for _ in range(0, 20, number + 1):  # the first ones take longest
            zlib.compress(bytes(100_000))
        return number

    async def all_of_them():
        queue = asyncio.Queue()

        async def one(number):
            await queue.put(await asyncio.to_thread(work, number))

        tasks = [asyncio.create_task(one(number)) for number in range(6)]
        taken = [await queue.get() for _ in tasks]
        await asyncio.gather(*tasks)
        return taken

    with pinned("serial-threads"):
        assert asyncio.run(all_of_them()) == list(range(6))
