"""How samebits begins in a process that is started afresh, before anything of the script runs there.

Two ways lead there. A process of `multiprocessing` (spawn, forkserver) or of loky, joblib's pool of
processes, first unpickles a dict with preparations, and imports the script as `__mp_main__` after that
(Lib/multiprocessing/spawn.py, `_main`, the same from 3.10 to 3.14; loky/backend/popen_loky_posix.py, 3.5). An
entry of that dict runs the payloads that are registered here. A command that is started as `python -c` runs
the code that `python_code` gives.

A payload is data: the name of a function and its arguments, which are plain values. The few lines of source
that come first import nothing of samebits, so that a child which cannot import it can still run.
"""

from __future__ import annotations

import functools
import sys
from enum import IntEnum
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from samebits._runtime.frames import ignored
from samebits._runtime.imports import PostImport, is_visible
from samebits._runtime.package import FOLDER
from samebits._runtime.patching import Patches

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    Preparation = dict[str, Any]
    MakePayload = Callable[[Any], "Payload"]

_ENTRY = "samebits"
_SPAWNERS = ("multiprocessing.spawn", "joblib.externals.loky.backend.spawn", "loky.backend.spawn")
_SERVER = "multiprocessing.forkserver"
_MAIN_KEYS = ("init_main_from_path", "init_main_from_name", "main_path")

# In a spawned child `sys.path` is not the parent's yet and begins with the working directory, so the package
# is loaded from where it is.
_IN_SPAWNED = """
import sys
is_new = "samebits" not in sys.modules
try:
    if is_new:
        from importlib.util import module_from_spec, spec_from_file_location
        spec = spec_from_file_location(
            "samebits", folder + "/__init__.py", submodule_search_locations=[folder]
        )
        sys.modules["samebits"] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules["samebits"])
    from samebits._runtime.child_bootstrap import begin
except Exception as error:
    sys.modules.pop("samebits", None)
    if needed:
        raise
    for warning in warnings if sys.stderr is not None else ():
        print("samebits: warning: %s (%s: %s)" % (warning, type(error).__name__, error), file=sys.stderr)
else:
    begin(payloads)
    if is_new and not visible:
        sys.modules.pop("samebits", None)
"""
# samebits is taken from where the parent has it; `sys.path` stays the user's. `-c` and not `-m`: `-m` looks
# in the working directory before anything else, and would import a `samebits.py` or `types.py` that is there.
_IN_COMMAND = """\
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
spec = PathFinder.find_spec("samebits", [sys.argv[1]])
sys.modules["samebits"] = module_from_spec(spec)
spec.loader.exec_module(sys.modules["samebits"])
"""
# As a script finds it: the folder that `-c` has put there is not on its path.
AS_A_SCRIPT = """\
import sys
startup_modules = frozenset(sys.modules)
if not getattr(sys.flags, "safe_path", sys.flags.isolated):
    del sys.path[0]
"""


def python_code(before: str, then: str) -> str:
    """Return the source that `python -c` runs to begin in samebits; its first argument is `LOCATION`.

    Args:
        before: source that runs before samebits is imported; it imports `sys`.
        then: source that runs after that.
    """
    return before + _IN_COMMAND + then


class Phase(IntEnum):
    """The payloads that a child begins with, in this order."""

    OVERLAY = 0
    PORTABLE = 1
    CONTROL = 2
    DATA = 3
    RECORDING = 4


class Payload(NamedTuple):
    """A call that a child makes before it imports the script.

    Args:
        module: of the function, by its full name.
        function: its result lives as long as the child.
        arguments: given by name; plain values, which pickle and JSON can hold.
        needed: whether the child fails when the call fails.
        warning: printed in the child when the call fails and is not needed; empty for none.
        shown: whether the script may find `samebits` in `sys.modules`; else there is none, as in bare Python.
    """

    module: str
    function: str
    arguments: dict[str, Any]
    needed: bool = False
    warning: str = ""
    shown: bool = False


class ChildBootstrap:
    """The payloads of the processes that this one starts."""

    def __init__(self) -> None:
        self._makers: dict[Phase, list[MakePayload]] = {phase: [] for phase in Phase}
        self._patches = Patches()
        self._imports = PostImport()

    def register(self, phase: Phase, make: MakePayload) -> None:
        """Make children begin with a payload from now on.

        Args:
            phase: its position in the order; of several that are registered for one, children get the first.
            make: returns the payload of the next child, from the path of its interpreter.
        """
        is_first = not any(self._makers.values())
        self._makers[phase].append(make)
        if is_first:
            self._imports.install()
            for name in _SPAWNERS:
                self._imports.on_import(name, self._patch)

    def unregister(self, phase: Phase, make: MakePayload) -> None:
        """Make children begin without it; do nothing for one that is not registered."""
        if make in self._makers[phase]:
            self._makers[phase].remove(make)
            if not any(self._makers.values()):
                self._imports.remove()
                self._patches.restore()

    def _patch(self, spawn: ModuleType) -> None:
        original = spawn.get_preparation_data

        @functools.wraps(original)
        def get_preparation_data(*args: Any, **named: Any) -> Preparation:
            data: Preparation = original(*args, **named)
            if sys._getframe(1).f_globals.get("__name__") == _SERVER:
                return self._for_server(data)
            return {_ENTRY: _Begin(self._payloads(spawn.get_executable())), **data}

        self._patches.set(spawn, "get_preparation_data", get_preparation_data)

    def _for_server(self, data: Preparation) -> Preparation:
        """Return the preparations for the server from which others are forked; it unpickles nothing.

        Newer Pythons let it import the script (3.13.2, gh-126631). There would be no control, and the
        children would not import it again.
        """
        if not self._makers[Phase.CONTROL]:
            return data
        return {key: value for key, value in data.items() if key not in _MAIN_KEYS}

    def _payloads(self, executable: Any) -> list[Payload]:
        # All are asked: the scope that control gives a child follows from how often it was asked.
        made = [[make(executable) for make in self._makers[phase]] for phase in Phase]
        return [payloads[0] for payloads in made if payloads]


CHILDREN = ChildBootstrap()
_RESULTS: list[Any] = []  # of the payloads of this process: they live as long as it does


class _Begin:
    """An object that runs the payloads when it is unpickled, and becomes None."""

    def __init__(self, payloads: list[Payload]) -> None:
        self._payloads = payloads

    def __reduce__(self) -> tuple[Any, ...]:
        fields = {
            "folder": FOLDER,
            "payloads": [tuple(payload) for payload in self._payloads],  # a class would be imported
            "needed": any(payload.needed for payload in self._payloads),
            "warnings": [payload.warning for payload in self._payloads if payload.warning],
            "visible": is_visible() and any(payload.shown for payload in self._payloads),
        }
        return exec, (_IN_SPAWNED, fields)


def begin(payloads: list[tuple[Any, ...]]) -> None:
    """Run the payloads of this process, which was started afresh.

    Raises:
        Exception: whatever a payload that is needed raises.
    """
    for fields in payloads:
        payload = Payload(*fields)
        try:
            function = getattr(import_module(payload.module), payload.function)
            _RESULTS.append(function(**payload.arguments))
        except Exception as error:
            if payload.needed:
                raise
            with ignored():
                _warn(payload.warning, error)


def _warn(warning: str, error: Exception) -> None:
    if warning and sys.stderr is not None:
        from samebits._text.printable import printable  # late: few processes need it

        text = printable(f"{warning} ({type(error).__name__}: {error})")
        print(f"samebits: warning: {text}", file=sys.stderr)
