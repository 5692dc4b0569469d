"""Proxies that take the place of a function written in C, in a module or a class.

A C function in a class is not bound to instances (`clock = time.monotonic` in a class body works), it
pickles by its name, and it leaves no line in a traceback. A proxy does the same: it is an object
and no function, and answers as the original does. A proxy can stand for another proxy.
"""

from __future__ import annotations

import copy
import functools
import os
import pkgutil
import sys
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, cast

from samebits._runtime.package import FOLDER

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType

    Call = Callable[..., Any]

_PACKAGE = FOLDER + os.sep
_UNSEEN_FILE = "<samebits, like importlib._bootstrap>"
_ORIGINAL = "_samebits_original"  # a name that no call gives an argument


class BuiltinProxy:
    """A proxy of a function. Each proxy has its own class, for its own `__call__`: see `proxy_of`."""

    def __init__(self, function: Any) -> None:
        functools.update_wrapper(cast("Any", self), function)
        self._function = function

    def retire(self) -> None:
        """Call only the original from now on."""
        type.__setattr__(type(self), "__call__", staticmethod(self._function))

    def __getattr__(self, name: str) -> Any:
        if name == "_function":  # while it is being made
            raise AttributeError(name)
        return getattr(self._function, name)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # for isinstance(time.time, types.BuiltinFunctionType)
        return self._function.__class__

    def __repr__(self) -> str:
        return repr(self._function)

    # Tables of functions are looked up with either: NumPy hands `__array_function__` the original, and
    # `os.supports_fd` holds it.
    def __eq__(self, other: object) -> bool:
        return bool(self._function == getattr(other, "_function", other))

    def __hash__(self) -> int:
        return hash(self._function)

    def __copy__(self) -> Any:
        copied = copy.copy(self._function)
        return self if copied is self._function else copied

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        copied = copy.deepcopy(self._function, memo)
        return self if copied is self._function else copied

    def __reduce_ex__(self, protocol: Any) -> Any:
        function = self._function
        while issubclass(type(function), BuiltinProxy):
            function = function._function
        by_name = type(function) is FunctionType  # as pickle does by itself
        reduced = function.__qualname__ if by_name else function.__reduce_ex__(protocol)
        if not isinstance(reduced, str):
            return reduced  # a method, by its object
        module = sys.modules.get(str(function.__module__))
        if module is None or vars(module).get(reduced) is self:
            return reduced
        # The module no longer holds it: it was taken from there at another time.
        return pkgutil.resolve_name, (f"{function.__module__}:{reduced}",)


def proxy_of(function: Any, call: Call | staticmethod[..., Any]) -> Any:
    """Return a proxy of a function.

    Args:
        function: the original.
        call: takes the proxy and the arguments, or as a `staticmethod` the arguments only. A closure finds
            what it needs faster than a method, which would ask `__getattr__`.
    """
    return type("BuiltinProxy", (BuiltinProxy,), {"__call__": call, "__module__": __name__})(function)


class MethodProxy:
    """A proxy, in a class, of a method that is written in C.

    Looked up in the class it is a proxy of the original, in an instance a bound method.

    Args:
        function: the original.
        call: takes the instance and the arguments.
    """

    def __init__(self, function: Any, call: Call) -> None:
        self._proxy = proxy_of(function, staticmethod(call))
        self._call = call
        self._function = function

    def retire(self) -> None:
        """Call only the original from now on; a method that was bound before does so too."""
        self._proxy.retire()
        if isinstance(self._call, FunctionType):
            call_only(self._call, self._function)

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
        return self._proxy if instance is None else MethodType(self._call, instance)


def unseen(wrapper: Any) -> Any:
    """Keep a wrapper's frame from counting for the `stacklevel` of a warning.

    CPython leaves out frames of files whose name has both `importlib` and `_bootstrap` in it
    (`is_internal_frame` in Python/_warnings.c). The line in tracebacks is the wrapper's own business: see
    `leave_no_line`.
    """
    wrapper.__code__ = wrapper.__code__.replace(co_filename=_UNSEEN_FILE)
    return wrapper


def is_own(code: CodeType) -> bool:
    """Tell whether code belongs to samebits."""
    return code.co_filename.startswith((_PACKAGE, _UNSEEN_FILE))


def call_only(function: FunctionType, original: Any) -> None:
    """Make a function call only another one from now on, also where it is held under other names.

    Its code is replaced in one step, after everything that this needs: a call in another thread runs
    either the former code or the new one. A call that has begun goes on as it began.

    Args:
        function: is changed in place.
        original: what it calls; nothing is done where that cannot be called.
    """
    if not callable(original):
        return
    function.__kwdefaults__ = {**(function.__kwdefaults__ or {}), _ORIGINAL: original}
    function.__code__ = _calling_code(len(function.__closure__ or ()))


@functools.cache
def _calling_code(n_cells: int) -> CodeType:
    """Return code that calls its default argument; a function keeps its cells, so the code names as many."""
    cells = ", ".join(f"cell_{number}" for number in range(n_cells))
    source = (
        f"def enclosing({cells}):\n"
        f"    def call(*args, {_ORIGINAL}, **named):\n"
        f"        return {_ORIGINAL}(*args, **named)\n"
        f"        {cells or None}\n"
        "    return call\n"
    )
    namespace: dict[str, Any] = {}
    exec(compile(source, _UNSEEN_FILE, "exec"), namespace)  # noqa: S102 - the text is all our own
    code: CodeType = namespace["enclosing"](*[None] * n_cells).__code__
    return code


def leave_no_line(error: BaseException) -> None:
    """Take the first line, ours, out of an error's traceback before it is raised again by a bare `raise`.

    CPython adds a line where an error leaves a call, and none where it is raised again (Python/ceval.c,
    `exception_unwind`).
    """
    trace = error.__traceback__
    error.__traceback__ = None if trace is None else trace.tb_next
