"""Frames of the stack: whose code each one runs, and exceptions that reach samebits from outside.

A script that limits its time by `signal.setitimer` and raises in the handler may be interrupted in code of
samebits as in any other. Such an exception belongs to the script; all others there belong to samebits.
"""

from __future__ import annotations

import functools
import os
import random
import sys
import sysconfig
import warnings
from _thread import get_ident  # bound now: an intervention replaces what the module has
from dataclasses import dataclass
from itertools import pairwise
from types import FrameType
from typing import TYPE_CHECKING, Any, cast

from samebits._runtime.package import FOLDER
from samebits._torch.compiler import COMPILING, kernel_caches
from samebits._torch.core import COMPILER_WRAPPERS, ENGINE_FUNCTION
from samebits.errors import SamebitsWarning

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterator
    from types import CodeType, TracebackType

_OWN_PACKAGES = frozenset(("builtins", "numpy", "samebits", "torch"))
_VARARGS = 0x04  # `inspect.CO_VARARGS`, without the import


def pass_on(error: BaseException) -> None:
    """Raise an exception again if it came from outside of the code in which it was caught.

    Args:
        error: the exception that an `except` has caught.
    """
    if is_from_outside(error):
        raise error


class ignored:  # noqa: N801 - used as `contextlib.suppress` is
    """A context whose errors are ignored; exceptions from outside pass."""

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        return isinstance(error, Exception) and not is_from_outside(error)


def is_from_outside(error: BaseException) -> bool:
    """Tell whether a signal handler raised an exception, or another thread threw it in.

    `signal.signal` calls a handler with the frame that it interrupted. An exception that another thread
    throws in (`PyThreadState_SetAsyncExc`) has no frame. It is known by its class, which is
    written in Python and not of a library that samebits calls.

    Args:
        error: the exception, with its traceback.
    """
    frames = list(_frames(error.__traceback__))
    if any(_is_handler(frame, interrupted) for interrupted, frame in pairwise(frames)):
        return True
    if _is_of_libraries(type(error).__module__) or not _is_written_in_python(type(error)):
        return False
    return all(_is_of_libraries(str(frame.f_globals.get("__name__"))) for frame in frames)


def _frames(trace: TracebackType | None) -> Iterator[FrameType]:
    while trace is not None:
        yield trace.tb_frame
        trace = trace.tb_next


def _is_handler(frame: FrameType, interrupted: FrameType) -> bool:
    """Tell whether a function was called with a signal and the frame that it interrupted."""
    if _is_own(frame):  # it is given frames for other reasons
        return False
    code = frame.f_code
    n_given = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & _VARARGS)
    values = [frame.f_locals.get(name) for name in code.co_varnames[:n_given]]
    values += [part for value in values if type(value) is tuple for part in value]
    was_given = any(_leads_to(value, interrupted) for value in values)
    return was_given and any(isinstance(v, int) for v in values)


def _leads_to(value: object, frame: FrameType) -> bool:
    """Tell whether a value is a frame, or one of a proxy in it, which takes its line out of tracebacks."""
    while isinstance(value, FrameType) and value is not frame and _is_own(value):
        value = value.f_back
    return value is frame


def _is_written_in_python(kind: type[BaseException]) -> bool:
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return kind.__module__ == "__main__" or str(file).endswith(".py")


def _is_of_libraries(module: str) -> bool:
    package = module.partition(".")[0]
    return package in _OWN_PACKAGES or package in sys.stdlib_module_names


class Program:
    """The program of this process.

    Attributes:
        folders: of its packages, real paths that end in a separator; the path of a module that is one file.
        cell_name: gives what a notebook calls the cell that a file name stands for; empty for a file.
    """

    def __init__(self) -> None:
        self.folders: tuple[str, ...] = ()
        self.cell_name: Callable[[str], str] = lambda _: ""


PROGRAM = Program()
"""Set before a script begins; a process has one."""


ENGINE = -2  # torch's call into its autograd engine
OPTIMIZER = -1  # the mathematics of torch's optimizers: run within `Optimizer.step` only
OWN = 0  # torch, samebits, the interpreter's own machinery: never a site
LIBRARY = 1  # an installed library: a site when no user code is on the stack
USER = 2

# Of torch.optim, what runs ops between steps too: `zero_grad`, schedules, averaging.
_BETWEEN_STEPS = ("optimizer.py", "lr_scheduler.py", "swa_utils.py")


@dataclass(frozen=True, slots=True)
class Site:
    """A line of the user's code: never one inside torch or samebits."""

    file: str
    line: int
    function: str


@functools.cache
def _library_folders() -> tuple[str, ...]:
    """Return where installed packages and Python's own are: real paths that end in a separator."""
    paths = sysconfig.get_paths()
    found = {paths[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")}
    return tuple(sorted({os.path.realpath(path) + os.sep for path in found}))


class FrameRanks:
    """The ranks of the code of stack frames, found once for each code object.

    Args:
        program: paths of installed packages that are the user's code, as in `Program.folders`; by default
            those of the program that runs in this process.
    """

    def __init__(self, program: tuple[str, ...] | None = None) -> None:
        self._program = PROGRAM.folders if program is None else program
        # Keyed by id: hashing a code object hashes its contents. The list keeps the ids from being reused.
        self.known: dict[int, int] = {}
        self._codes: list[CodeType] = []
        self._learning: set[int] = set()
        self._own = (FOLDER + os.sep,)
        self._libraries = _library_folders()

    def learn(self, code: CodeType) -> int:
        """Find the rank of a code object that is not in `known`."""
        self._codes.append(code)
        thread = get_ident()
        self._learning.add(thread)
        try:
            rank = self.rank_of_file(code.co_filename)
        finally:
            self._learning.discard(thread)
        if rank == OWN and code.co_name == ENGINE_FUNCTION:
            rank = ENGINE
        elif rank == OPTIMIZER and code.co_name == "__init__":
            rank = OWN
        self.known[id(code)] = rank
        return rank

    @property
    def learning(self) -> bool:
        """Tell whether this thread is resolving a file name, so that its calls to the system are for that."""
        return bool(self._learning) and get_ident() in self._learning

    def of(self, frame: FrameType) -> int:
        """Return the rank of a frame."""
        rank = self.known.get(id(frame.f_code))
        return self.learn(frame.f_code) if rank is None else rank

    def is_imported(self, frame: FrameType | None) -> bool:
        """Tell whether a library is only being imported, so that it acts for itself."""
        while frame is not None and self.of(frame) != USER:
            if frame.f_code.co_filename.startswith("<frozen importlib"):
                return True
            frame = frame.f_back
        return False

    def rank_of_file(self, filename: str) -> int:
        """Return the rank of the code in a file."""
        shown = filename.startswith(("<stdin", "<ipython", "<cell"))
        if filename.startswith("<") and not (shown or PROGRAM.cell_name(filename)):
            return OWN
        path = os.path.realpath(filename)
        if path.startswith(self._own) or filename.startswith(kernel_caches()):
            return OWN
        if self._program and path.startswith(self._program):
            return USER
        parts = path.split(os.sep)
        for folder in ("site-packages", "dist-packages"):
            if folder in parts:
                top, below = (*parts[parts.index(folder) + 1 :], "")[:2]
                if top not in ("torch", "functorch", "torchgen"):
                    return LIBRARY
                in_step = (top, below) == ("torch", "optim") and parts[-1] not in _BETWEEN_STEPS
                return OPTIMIZER if in_step else OWN
        return LIBRARY if path.startswith(self._libraries) else USER


def _nobody() -> Generator[None]:
    yield


_NOBODY = _nobody()


def calling_frame(depth: int = 1) -> FrameType:
    """Return what `sys._getframe(depth)` gives, as seen from the caller.

    C code may call a function when no Python code runs (`_thread.start_new_thread(time.time, ())`,
    `atexit.register(os.listdir, ".")`). The result is then a generator's frame of samebits, the last one.
    """
    try:
        return sys._getframe(depth + 1)
    except ValueError:
        return cast("FrameType", cast("Any", _NOBODY).gi_frame)


def frame_below_compiler(frame: FrameType) -> FrameType:
    """Return the frame that called a function which torch's compiler has wrapped.

    Args:
        frame: the frame that called the function itself.
    """
    below: FrameType | None = frame
    while below is not None and below.f_globals.get("__name__") in COMPILER_WRAPPERS:
        below = below.f_back
    return frame if below is None else below


def site_of(code: CodeType, line: int) -> Site:
    """Return the site of a line of that code."""
    name = getattr(code, "co_qualname", code.co_name)  # co_qualname is new in Python 3.11
    return Site(PROGRAM.cell_name(code.co_filename) or os.path.abspath(code.co_filename), line, name)


def nearest_site(ranks: FrameRanks, frame: FrameType | None = None) -> Site | None:
    """Return the nearest line of the user's own code on the stack, or of a library when there is none.

    Args:
        ranks: the ranks that are known so far.
        frame: where to begin; by default the caller's.
    """
    frame = sys._getframe(1) if frame is None else frame
    library: FrameType | None = None
    while frame is not None:
        rank = ranks.of(frame)
        if rank == USER:
            return site_of(frame.f_code, frame.f_lineno)
        if rank == LIBRARY and library is None:
            library = frame
        frame = frame.f_back
    return None if library is None else site_of(library.f_code, library.f_lineno)


def show_warning(message: str, site: Site | None = None) -> None:
    """Warn about a line of the user's code, by default the one that called samebits."""
    file, line = _caller() if site is None else (site.file, site.line)
    name = os.path.splitext(os.path.basename(file))[0]
    warnings.warn_explicit(message, SamebitsWarning, file, line, module=name)


def _caller() -> tuple[str, int]:
    """Return the first line on the stack that is not of samebits; quicker than ranking frames."""
    frame = calling_frame()
    while frame.f_back is not None and frame.f_code.co_filename.startswith((FOLDER + os.sep, "<frozen")):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


HANDING_ON = frozenset({"random", "secrets", "uuid", "tempfile", "os", "glob", "pathlib"})
"""Parts of the standard library that ask on behalf of their callers.

The others ask for their own use: names of sockets, keys between processes, intervals.
"""
_OWN = FOLDER + os.sep
# Modules of samebits whose functions replace others and call them.
_WRAPPERS = ("samebits.recording.probes.draw", "samebits.interventions", "samebits.rng.unseeded_generators")


class Asker:
    """A search of the stack for the code that a function was called for.

    Args:
        ranks: the ranks of code; they can be shared.
        handing_on: top names of the modules of the standard library that ask on behalf of their callers.
    """

    def __init__(self, ranks: FrameRanks | None = None, handing_on: Collection[str] = HANDING_ON) -> None:
        self.ranks = ranks or FrameRanks()
        self._handing_on = handing_on

    def find(
        self, frame: FrameType | None, op: str = "", *, through: bool = False
    ) -> tuple[FrameType, str] | None:
        """Return the code that asks for a value, and the function that it called; None for housekeeping.

        Args:
            frame: the frame of the call.
            op: the function; one of the standard library that asked for it takes precedence.
            through: frames of samebits right at the beginning are other wrappers.
        """
        while through and frame is not None and frame.f_code.co_filename.startswith(_OWN):
            frame = frame.f_back
        if self.ranks.learning:
            return None
        while frame is not None:
            rank = self.ranks.of(frame)
            name = str(frame.f_globals.get("__name__", ""))
            if rank == USER:
                return frame, op
            if not is_standard(name):
                imported = rank <= OWN or self.ranks.is_imported(frame)
                return None if imported else (frame, op)
            if name.partition(".")[0] not in self._handing_on:
                return None
            function = _name_of(frame).removesuffix(".__init__")
            if not function.startswith("_"):
                op = f"{name.partition('.')[0]}.{function}"
            frame = frame.f_back
        return None

    def is_user(self, frame: FrameType | None) -> bool:
        """Tell whether the user's own code called, directly or through a function that samebits replaced."""
        frame = None if self.ranks.learning else caller(frame)
        return frame is not None and self.ranks.of(frame) == USER

    def is_direct(self, frame: FrameType | None) -> bool:
        """Tell whether the user's code called, or an installed library that is not only being imported."""
        frame = None if self.ranks.learning else caller(frame)
        rank = OWN if frame is None else self.ranks.of(frame)
        if frame is None or rank == USER:
            return rank == USER
        standard = is_standard(str(frame.f_globals.get("__name__", "")))
        return rank == LIBRARY and not standard and not self.ranks.is_imported(frame)

    def is_asked(self, frame: FrameType | None) -> bool:
        """Tell whether user code asks, or a library on its behalf."""
        return self.find(caller(frame)) is not None

    def is_user_asked(self, frame: FrameType | None) -> bool:
        """Tell whether user code asks, possibly through the modules in `HANDING_ON`."""
        asking = self.find(caller(frame))
        return asking is not None and self.ranks.of(asking[0]) == USER


def caller(frame: FrameType | None) -> FrameType | None:
    """Return that frame, or the first one below it that is not of a function that samebits put in place."""
    while frame is not None and str(frame.f_globals.get("__name__", "")).startswith(_WRAPPERS):
        frame = frame.f_back
    return frame


def is_own_call(frame: FrameType) -> bool:
    """Tell whether samebits, not the script, called the function of the standard library that it replaced.

    Args:
        frame: of samebits' code in that function.
    """
    below: FrameType | None = frame
    for passed in (_is_own, _is_standard_frame):
        while below is not None and passed(below):
            below = below.f_back
    return below is not None and _is_own(below)


def is_of_compiler(frame: FrameType) -> bool:
    """Tell whether a compiler called, of torch, Triton or its C++ extensions: it starts programs of its own.

    Args:
        frame: of samebits' code in the function that was called.
    """
    below: FrameType | None = frame
    while below is not None:
        name = str(below.f_globals.get("__name__", ""))
        if f"{name}.".startswith(COMPILING):
            return True
        if not (_is_own(below) or is_standard(name) or name.partition(".")[0] == "torch"):
            return False
        below = below.f_back
    return False


def _is_own(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] == "samebits"


def _is_standard_frame(frame: FrameType) -> bool:
    return is_standard(str(frame.f_globals.get("__name__", "")))


def is_standard(module: str) -> bool:
    """Tell whether a module belongs to the standard library, by its name."""
    return module.partition(".")[0] in sys.stdlib_module_names


def _name_of(frame: FrameType) -> str:
    code = frame.f_code
    if isinstance(frame.f_locals.get("self"), random.SystemRandom):  # it inherits the methods that draw
        return f"SystemRandom.{code.co_name}"
    if hasattr(code, "co_qualname"):  # new in Python 3.11
        return str(code.co_qualname)
    owner = frame.f_locals.get("self")
    return code.co_name if owner is None else f"{type(owner).__name__}.{code.co_name}"
