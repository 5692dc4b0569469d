"""A script or module run in this process as `python` runs it, with the tracebacks that bare Python shows."""

from __future__ import annotations

import atexit
import builtins
import contextlib
import inspect
import os
import sys
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader, SourcelessFileLoader
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING

from samebits._runtime.address_layout import UnlistedFolder, layout_is_fixed
from samebits._runtime.package import FOLDER
from samebits._torch.core import OP_CALLS
from samebits.errors import EXIT_NOT_JUDGED, SamebitsError, pointer
from samebits.recording.run_signals import RunSignals
from samebits.recording.target import (
    check_target,
    find_importer,
    is_compiled,
    load_compiled,
    read_script,
    script_path,
    uncover,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.abc import Loader
    from types import CodeType

    from samebits.recording._overlay import Overlay

_PACKAGE = FOLDER + os.sep


def clean_tracebacks(error: BaseException) -> None:
    """Remove the frames of wrappers from the tracebacks of an error, its causes and the errors in its group.

    A frame of samebits that called something else is a wrapper's. The innermost frames are kept when samebits
    itself raised the error.

    Args:
        error: changed in place.
    """
    pending: list[BaseException | None] = [error]
    seen: set[int] = set()
    while pending:
        link = pending.pop()
        if link is None or id(link) in seen:
            continue
        seen.add(id(link))
        link.__traceback__ = _without_wrappers(link.__traceback__, link)
        pending += [link.__cause__, link.__context__]
        grouped = getattr(link, "exceptions", ())  # of an ExceptionGroup, new in Python 3.11
        if isinstance(grouped, tuple):
            pending += [inner for inner in grouped if isinstance(inner, BaseException)]


def _without_wrappers(trace: TracebackType | None, error: BaseException) -> TracebackType | None:
    entries = []
    while trace is not None:
        entries.append(trace)
        trace = trace.tb_next
    n_kept = 0 if _is_raised_by_script(entries, error) else _n_innermost_own(entries)
    passed = len(entries) - n_kept
    remaining = [entry for i, entry in enumerate(entries) if i >= passed or not _is_wrapper(entries, i)]
    if len(remaining) == len(entries):
        return entries[0] if entries else None
    following: TracebackType | None = None
    for entry in reversed(remaining):
        entry.tb_next = following
        following = entry
    return following


def _is_raised_by_script(entries: list[TracebackType], error: BaseException) -> bool:
    """Tell whether the innermost frames of samebits are wrappers of C functions, which have no frames."""
    n = _n_innermost_own(entries)
    innermost = entries[len(entries) - n :]
    nested = all(entry.tb_frame.f_code.co_flags & inspect.CO_NESTED for entry in innermost)
    return nested and not isinstance(error, SamebitsError)


def _n_innermost_own(entries: list[TracebackType]) -> int:
    n = 0
    while n < len(entries) and _is_own(entries[-1 - n].tb_frame.f_code):
        n += 1
    return n


def _is_wrapper(entries: list[TracebackType], i: int) -> bool:
    """Tell whether a frame is samebits', or torch's for an op that samebits called in its dispatch mode."""
    code = entries[i].tb_frame.f_code
    if _is_own(code):
        return True
    called_by_us = i > 0 and _is_own(entries[i - 1].tb_frame.f_code)
    return called_by_us and code.co_filename.replace(os.sep, "/").endswith(OP_CALLS)


def _is_own(code: CodeType) -> bool:
    return code.co_filename.startswith(_PACKAGE)


_INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Target:
    """The script or module to be run.

    Args:
        script: path of a script, a `.pyc`, or a folder or zip archive with a `__main__.py`; as the user wrote
            it.
        module: dotted name, as after `python -m`; exactly one of the two is given.
        arguments: what the script finds in `sys.argv[1:]`.
    """

    script: str | None
    module: str | None
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunResult:
    """The end of a run.

    Args:
        exit_status: as the shell would see it; 130 when interrupted.
        failure: what was not caught, on one line as at the end of a traceback; empty if nothing.
        stopped: whether it was ended at a limit, in the middle of the script (see `_leaving`).
    """

    exit_status: int
    failure: str = ""
    stopped: bool = False


def run_target(
    target: Target, overlay: Overlay | None = None, signals: RunSignals | None = None
) -> RunResult:
    """Run a target in this process as `python target` would.

    `sys.path` must not hold an entry for a script yet.

    Args:
        target: what is run.
        overlay: other text for the script; what it imports is the business of `Overlay.install`.
        signals: keeps signals back once the script has ended; None to leave its handlers as they are.

    Raises:
        SamebitsError: there is nothing to run; `script-missing`, `script-unreadable`, `script-no-main`
            or `module-missing`.
    """
    check_target(target.script)
    main = _new_main()
    by_runpy = target.script is None or find_importer(script_path(target.script)) is not None
    start = _prepared_module(target) if by_runpy else _prepared_script(target, main, overlay)
    replaced = sys.modules["__main__"]  # kept alive: it is the code that called us
    if layout_is_fixed() and sys.path:
        UnlistedFolder(sys.path[0]).install()  # as long as the process lives
    _forget_shadowed(replaced)
    sys.modules["__main__"] = main
    if signals is None:
        RunSignals().begin()
    error = _outcome_of(start, signals)
    if by_runpy:
        _refuse_nothing_to_run(target, error)
    result = _concluded(error, signals)
    if not by_runpy and not isinstance(error, SystemExit):
        # CPython takes them away before the atexit functions run, except after sys.exit.
        vars(main).pop("__file__", None)
        vars(main).pop("__cached__", None)
    del replaced
    return result


def enter(main: Callable[[list[str]], int]) -> None:
    """Run a child process, from the code that `samebits.recording.launch` starts it with.

    After an uncaught `KeyboardInterrupt` it returns, and the interpreter then ends by SIGINT, after all else.

    Args:
        main: calls `run_target` for `[script, *arguments]` or `["-m", module, *arguments]`; gives the status.

    Raises:
        SystemExit: for the interpreter to end with the status.
    """
    interrupted: list[bool] = []
    atexit.register(lambda: _mark_as_interrupted() if interrupted else None)  # first in, last out
    try:
        status = main(sys.argv[2:])
    except SamebitsError as error:
        _say(f"samebits: {error}\n{pointer(error.slug)}")
        raise SystemExit(EXIT_NOT_JUDGED) from None
    if status != _INTERRUPTED or type(getattr(sys, "last_value", None)) is not KeyboardInterrupt:
        raise SystemExit(status)
    interrupted.append(True)


def _mark_as_interrupted() -> None:
    """Set the flag in CPython by which it ends a process by SIGINT.

    It is set when code given as text ends in `KeyboardInterrupt`, and cleared when other such code begins;
    even `namedtuple` does that. So it is set last.
    """
    with contextlib.suppress(KeyboardInterrupt):
        exec("raise KeyboardInterrupt")  # noqa: S102 - no other way leads there from Python


def _new_main() -> ModuleType:
    main = ModuleType("__main__")
    if sys.version_info < (3, 14):
        main.__annotations__ = {}
    vars(main)["__builtins__"] = builtins
    return main


def _prepared_module(target: Target) -> Callable[[], None]:
    import runpy

    if target.script is None:
        name = str(target.module)
        sys.argv[:] = ["-m", *target.arguments]
        _add_to_path(os.getcwd())
        return lambda: runpy._run_module_as_main(name)  # type: ignore[attr-defined]
    sys.argv[:] = [target.script, *target.arguments]
    sys.path.insert(0, script_path(target.script))  # for a folder or archive even with -P and -I
    return lambda: runpy._run_module_as_main("__main__", False)  # type: ignore[attr-defined]


def _prepared_script(target: Target, main: ModuleType, overlay: Overlay | None) -> Callable[[], None]:
    path = script_path(str(target.script))
    data = (overlay.read(path) if overlay is not None else None) or read_script(path)
    compiled = is_compiled(path, data)
    namespace = vars(main)
    namespace["__file__"] = path
    if sys.version_info < (3, 15):
        namespace["__cached__"] = None
    loader: Loader = (SourcelessFileLoader if compiled else SourceFileLoader)("__main__", path)
    namespace["__loader__"] = loader
    sys.argv[:] = [str(target.script), *target.arguments]
    _add_to_path(os.path.dirname(os.path.realpath(path)))

    def start() -> None:
        try:
            code = load_compiled(data) if compiled else compile(data, path, "exec", dont_inherit=True)
            exec(code, namespace)  # noqa: S102 - the user's script
        finally:
            _flush()

    return start


def _add_to_path(folder: str) -> None:
    if not _is_safe_path():
        sys.path.insert(0, folder)


def _is_safe_path() -> bool:
    return bool(getattr(sys.flags, "safe_path", sys.flags.isolated))  # safe_path is new in Python 3.11


def _forget_shadowed(launcher: ModuleType) -> None:
    """Give the script the modules that lie beside it, where samebits has imported others of that name."""
    startup_modules: frozenset[str] | None = vars(launcher).get("startup_modules")  # see launch.BOOTSTRAP
    if startup_modules is not None and not _is_safe_path():
        uncover(sys.path[0], startup_modules)


def _flush() -> None:
    """Flush both streams as CPython does after a script, so that its output comes before its traceback."""
    for stream in (sys.stderr, sys.stdout):
        with contextlib.suppress(Exception):  # closed, full or replaced by the script: CPython ignores it too
            stream.flush()


def _say(text: str) -> None:
    if sys.stderr is None:
        os.write(2, f"{text}\n".encode(errors="backslashreplace"))
    else:
        print(text, file=sys.stderr)


def _outcome_of(start: Callable[[], None], signals: RunSignals | None) -> BaseException | None:
    """Run code of the script with its own handlers of signals; return what it raises."""
    try:
        try:
            if signals is not None:
                signals.release()
                signals.begin()
            start()
        finally:
            if signals is not None:
                signals.hold()
    except BaseException as error:  # noqa: BLE001 - all that a script can raise
        if signals is not None:
            signals.hold()  # where a signal came right before
        error.__traceback__ = _from_script_on(error.__traceback__)
        clean_tracebacks(error)
        return error
    return None


def _from_script_on(trace: TracebackType | None) -> TracebackType | None:
    own = os.path.dirname(_outcome_of.__code__.co_filename)
    while trace is not None and os.path.dirname(trace.tb_frame.f_code.co_filename) == own:
        trace = trace.tb_next
    return trace


def _concluded(error: BaseException | None, signals: RunSignals | None) -> RunResult:
    if error is None:
        return RunResult(0)
    if isinstance(error, SystemExit):
        status, text = _exit_status(error)
        return RunResult(status, f"SystemExit: {_first_line(text)}" if text else "")
    failure = last_line(error)
    return RunResult(_show(error, signals), failure)


def _refuse_nothing_to_run(target: Target, error: BaseException | None) -> None:
    """Turn the `sys.exit` by which `runpy` says that it found nothing into an error of ours."""
    trace = None if error is None else error.__traceback__
    if not isinstance(error, SystemExit) or trace is None or trace.tb_next is not None:
        return  # with more than the one frame of runpy it is the script's own
    if target.script is None:
        message = f"{error.__context__}; expected a module for `python -m` (looked in {os.getcwd()} first)"
        raise SamebitsError(message, slug="module-missing") from None
    message = f"{error.__context__}; expected a script, or an archive or folder with __main__.py"
    raise SamebitsError(message, slug="script-no-main") from None


def _exit_status(error: SystemExit) -> tuple[int, str]:
    """Return the status; print the text, if any, that `sys.exit` was given, and return it too."""
    code: object = getattr(error, "code", error)
    if code is None:
        return 0, ""
    if isinstance(code, int):
        fits = -(2**63) <= code < 2**63  # else CPython takes -1
        return (code & 0xFF if fits else 0xFF), ""
    try:
        text = str(code)
    except Exception:  # noqa: BLE001 - the user's __str__, of which CPython says nothing
        text = ""
    _say(text)
    return 1, text


def last_line(error: BaseException) -> str:
    """Return an error on one line, as at the end of its traceback."""
    kind = type(error)
    prefix = "" if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}."
    try:
        text = str(error.msg if isinstance(error, SyntaxError) else error)
    except Exception:  # noqa: BLE001 - the user's __str__
        text = "<exception str() failed>"
    first = _first_line(text)
    return prefix + kind.__qualname__ + (f": {first}" if first else "")


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]


def _show(error: BaseException, signals: RunSignals | None) -> int:
    """Do what CPython does with an uncaught exception; return the exit status."""
    kind, trace = type(error), error.__traceback__
    sys.last_type, sys.last_value, sys.last_traceback = kind, error, trace
    if sys.version_info >= (3, 12):
        sys.last_exc = error
    hook = getattr(sys, "excepthook", None)
    sys.audit("sys.excepthook", hook, kind, error, trace)
    if hook is None:
        _say("sys.excepthook is missing")
        hook = sys.__excepthook__
    second = _outcome_of(lambda: hook(kind, error, trace), signals)
    if isinstance(second, SystemExit):
        return _exit_status(second)[0]
    if second is not None:
        _say("Error in sys.excepthook:")
        sys.__excepthook__(type(second), second, second.__traceback__)
        _say("\nOriginal exception was:")
        sys.__excepthook__(kind, error, trace)
    return _INTERRUPTED if kind is KeyboardInterrupt else 1
