"""Proxies of functions that draw from clocks, generators, addresses and fresh memory."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import random
import sys
import threading
from typing import TYPE_CHECKING, Any

from samebits._runtime.builtin_proxies import leave_no_line, proxy_of, unseen
from samebits._runtime.frames import USER, calling_frame
from samebits.records.events import UNUSED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import FrameType

    from samebits._runtime.imports import PostImport
    from samebits._runtime.patching import Patches, StaticTypePatches
    from samebits.recording.probes.draw_log import DrawLog


def user_fact(function: Any, op: str, log: DrawLog) -> Any:
    """Return a proxy of a clock, or of a function that gives a fact of this process or machine."""
    get_frame, known, counted = calling_frame, log.ranks.known, log.counted

    def call(_self: Any, /, *args: Any, **kwargs: Any) -> Any:
        try:
            value = function(*args, **kwargs)
        except BaseException as error:
            leave_no_line(error)
            raise
        frame = get_frame(1)
        identity = id(frame.f_code)
        rest = counted.get((identity, frame.f_lasti))
        if rest is not None:
            rest.add(value)
        elif known.get(identity, USER) == USER and log.ranks.of(frame) == USER:
            log.taken_by_user(op, frame, value)
        return value

    return proxy_of(function, call)


def watched(function: Any, note: Callable[[Any, FrameType, tuple[Any, ...], dict[str, Any]], None]) -> Any:
    """Return a proxy of a function that tells of each value that it gives.

    Args:
        function: the original.
        note: told the value, the frame that called, and the arguments.
    """

    def call(_self: Any, /, *args: Any, **kwargs: Any) -> Any:
        try:
            value = function(*args, **kwargs)
        except BaseException as error:
            leave_no_line(error)
            raise
        note(value, calling_frame(), args, kwargs)
        return value

    return proxy_of(function, call)


def now(function: Any, op: str, log: DrawLog, n_before: int) -> Any:
    """Return a proxy of a function of `time` that reads the clock unless it is given a time.

    Args:
        function: the original.
        op: its name in events.
        log: told of draws.
        n_before: number of arguments before the time.
    """

    def note(value: Any, frame: FrameType, args: tuple[Any, ...], _: dict[str, Any]) -> None:
        if len(args) <= n_before and log.ranks.of(frame) == USER:
            log.taken_by_user(op, frame, value if isinstance(value, str) else str(tuple(value)))

    return watched(function, note)


def entropy(function: Any, op: str, log: DrawLog) -> Any:
    """Return a proxy of a function that takes something from the operating system for anyone who asks."""
    return watched(function, lambda value, frame, _args, _kwargs: log.taken(op, frame, value))


def given(function: Any, op: str, log: DrawLog) -> Any:
    """Return a proxy of a setter: the value that it is given is recorded."""

    def note(_: Any, frame: FrameType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        log.taken(op, frame, [*args, *kwargs.values()][0])

    return watched(function, note)


def global_draw(function: Any, op: str, log: DrawLog, state: Callable[[], bytes]) -> Any:
    """Return a proxy of a function that draws from a library's global generator, whose state is noted."""
    get_frame, seen, own = calling_frame, log.seen, vars(random)

    def call(_self: Any, /, *args: Any, **kwargs: Any) -> Any:
        frame = get_frame(1)
        if (id(frame.f_code), frame.f_lasti) not in seen and frame.f_globals is not own:
            log.taken_by_call(op, frame, state)
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            leave_no_line(error)
            raise

    return proxy_of(function, call)


def reseeding(function: Any, op: str, log: DrawLog, state: Callable[[], bytes]) -> Any:
    """Return a proxy of `random.seed`, which takes entropy unless it is given a seed."""

    def note(_: Any, frame: FrameType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if (args[0] if args else kwargs.get("a")) is None:
            log.taken(op, frame, state(), through=True)

    return watched(function, note)


_OF_TENSORS = ("Tensor", "UntypedStorage", "TypedStorage")


def watch_addresses(patches: Patches, log: DrawLog, imports: PostImport) -> None:
    """Record addresses that the user's own code asks for; libraries ask for those that they pass on.

    Args:
        patches: undo the replacements.
        log: told of draws.
        imports: calls back when a module is imported.
    """

    def watch_tensors(torch: Any) -> None:
        for name in _OF_TENSORS:
            kind = getattr(torch, name)
            patches.set(kind, "data_ptr", user_method(kind.data_ptr, f"torch.{name}.data_ptr", log))

    def watch_ctypes(ctypes: Any) -> None:
        patches.set(ctypes, "addressof", user_fact(ctypes.addressof, "ctypes.addressof", log))

    imports.on_torch(watch_tensors)
    imports.on_import("ctypes", watch_ctypes)


def user_method(method: Any, op: str, log: DrawLog) -> Any:
    """Return a method that also records its value where the user's own code calls it."""

    @functools.wraps(method)
    def watched_method(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        try:
            value = method(self, *args, **kwargs)
        except BaseException as error:
            leave_no_line(error)
            raise
        if log.active:
            frame = calling_frame()
            if log.ranks.of(frame) == USER:
                log.taken_by_user(op, frame, value)
        return value

    return unseen(watched_method)


_MAKERS = ("empty", "empty_like")
_MOST_BYTES = 1 << 16  # bytes that are looked at: a large block comes from the system, which hands out zeros


def watch_unwritten(numpy: Any, patches: Patches, log: DrawLog) -> None:
    """Record what `numpy.empty` and `empty_like` give to the script, and to libraries on its behalf.

    Args:
        numpy: the module.
        patches: undo the replacements.
        log: told of draws.
    """
    for name in _MAKERS:
        function = getattr(numpy, name, None)
        if function is not None:
            patches.set(numpy, name, _making(numpy, function, f"numpy.{name}", log))


def _making(numpy: Any, function: Any, op: str, log: DrawLog) -> Any:
    def note(made: Any, frame: FrameType, _args: tuple[Any, ...], _named: dict[str, Any]) -> None:
        if not log.active or log.asker(frame, op) is None:
            return
        if isinstance(made, numpy.ndarray) and made.nbytes and not made.dtype.hasobject:
            log.taken(op, frame, _contents(made))

    return watched(function, note)


def _contents(made: Any) -> bytes:
    """Digest an array's memory without NumPy, whose next array would hold something else if it were asked."""
    n_bytes = min(made.nbytes, _MOST_BYTES)
    memory = (ctypes.c_char * n_bytes).from_address(made.__array_interface__["data"][0])
    return hashlib.blake2b(memory, digest_size=16).digest()


_INNER = "getrandbits"  # what the others draw with, many times


def watch_python_object(
    patches: Patches, log: DrawLog, names: Iterable[str], state: Callable[[], bytes]
) -> None:
    """Record draws from `random._inst`: its methods are shadowed in this one object.

    Args:
        patches: undo it.
        log: told of draws.
        names: methods that draw.
        state: reads the generator's state.
    """
    instance: Any = random._inst
    for name in names:
        if name != _INNER:
            proxy = global_draw(getattr(instance, name), f"random.{name}", log, state)
            patches.set(instance, name, proxy)


def watch_numpy_object(
    static: StaticTypePatches, log: DrawLog, names: Iterable[str], state: Callable[[], bytes]
) -> None:
    """Record draws from `numpy.random.mtrand._rand`, an object that cannot hold replaced methods.

    Args:
        static: undoes it.
        log: told of draws.
        names: methods that draw.
        state: reads the generator's state.
    """
    module = sys.modules["numpy.random.mtrand"]
    instance, kind = module._rand, module.RandomState
    for name in names:
        if name in vars(kind):
            static.set(kind, name, _of_object(instance, vars(kind)[name], name, (log, state)))


def _of_object(
    instance: Any, original: Any, name: str, draw: tuple[DrawLog, Callable[[], bytes]]
) -> Callable[..., Any]:
    """Return a proxy of a method of `RandomState` that records the draws of one object."""
    log, state = draw
    get_frame, seen, op = calling_frame, log.seen, f"numpy.random.{name}"

    @functools.wraps(original)
    def method(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        if self is instance:
            frame = get_frame(1)
            if (id(frame.f_code), frame.f_lasti) not in seen:
                log.taken_by_call(op, frame, state)
        try:
            return original(self, *args, **kwargs)
        except BaseException as error:
            leave_no_line(error)
            raise

    return method


_SEED_SEQUENCE = "numpy.random.SeedSequence"


def watch_numpy_entropy(patches: Patches, static: StaticTypePatches, log: DrawLog) -> None:
    """Record what seeds `default_rng()`, `RandomState()`, `PCG64()` and `numpy.random.seed()`.

    All take it in one function. `RandomState(3)` does too, before it applies its seed
    (numpy/random/mtrand.pyx): then a second event says that the first was not used.
    """
    bit_generator: Any = sys.modules["numpy.random.bit_generator"]
    original = bit_generator.randbits
    last: dict[int, tuple[object, int]] = {}  # by thread: the instruction that took entropy

    @functools.wraps(original)
    def randbits(count: int) -> int:
        value = int(original(count))
        frame = calling_frame()
        log.taken(_SEED_SEQUENCE, frame, value, through=True)
        last[threading.get_ident()] = (id(frame), frame.f_lasti)
        return value

    patches.set(bit_generator, "randbits", randbits)
    twister: Any = getattr(sys.modules.get("numpy.random._mt19937"), "MT19937", None)
    seed_legacy = None if twister is None else vars(twister).get("_legacy_seeding")
    if seed_legacy is None:
        return

    def _legacy_seeding(self: Any, seed: Any) -> Any:
        result = seed_legacy(self, seed)
        frame = calling_frame()
        if last.pop(threading.get_ident(), None) == (id(frame), frame.f_lasti) and seed is not None:
            log.taken(_SEED_SEQUENCE, frame, UNUSED, through=True)
        return result

    static.set(twister, "_legacy_seeding", _legacy_seeding)
