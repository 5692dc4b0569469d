"""Functions of libraries whose compiled code opens a file by itself, and a watch over their calls.

Python's audit event `open` tells nothing of such a file. To watch one more function, add a row to `READERS`.
"""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from types import BuiltinFunctionType
from typing import TYPE_CHECKING, Any

from samebits._runtime.builtin_proxies import leave_no_line, proxy_of, unseen
from samebits._runtime.frames import ignored
from samebits._runtime.imports import PostImport
from samebits._runtime.patching import Patches, StaticTypePatches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

    Note = Callable[[tuple[Any, ...], dict[str, Any]], None]

_MOST_BELOW = 10_000  # files of a folder


@dataclass(frozen=True, slots=True)
class Reader:
    """A function that reads a file.

    Args:
        module: the module that users import.
        name: of the function there; of a class, `Class.__init__` or `Class.method`.
        argument: the name of the argument that says which file, or files. Of a method of a C type, whose
            `__init__` cannot be replaced, the name of another method, which says it: `path()`.
        position: its position, where `self` does not count.
        mode: position of an argument `mode`, as that of `open`; None where the function only reads.
        below: whether a folder stands for the files below it.
    """

    module: str
    name: str
    argument: str
    position: int = 0
    mode: int | None = None
    below: bool = False


READERS = (
    Reader("av", "open", "file", mode=1),
    Reader("cv2", "FileStorage.__init__", "filename"),
    Reader("cv2", "VideoCapture.__init__", "filename"),
    Reader("cv2", "imread", "filename"),
    Reader("cv2", "imreadmulti", "filename"),
    Reader("decord", "AudioReader.__init__", "uri"),
    Reader("decord", "VideoReader.__init__", "uri"),
    Reader("h5py", "File.__init__", "name", mode=1),
    Reader("lmdb", "Environment.begin", "path()", below=True),
    Reader("netCDF4", "Dataset.__init__", "filename", mode=1),
    Reader("polars", "read_csv", "source", below=True),
    Reader("polars", "read_ipc", "source", below=True),
    Reader("polars", "read_parquet", "source", below=True),
    Reader("polars", "scan_csv", "source", below=True),
    Reader("polars", "scan_ipc", "source", below=True),
    Reader("polars", "scan_ndjson", "source", below=True),
    Reader("polars", "scan_parquet", "source", below=True),
    Reader("pyarrow", "memory_map", "path", mode=1),
    Reader("pyarrow.csv", "read_csv", "input_file"),
    Reader("pyarrow.dataset", "dataset", "source", below=True),
    Reader("pyarrow.feather", "read_table", "source"),
    Reader("pyarrow.json", "read_json", "input_file"),
    Reader("pyarrow.orc", "ORCFile.__init__", "source"),
    Reader("pyarrow.parquet", "ParquetDataset.__init__", "path_or_paths", below=True),
    Reader("pyarrow.parquet", "ParquetFile.__init__", "source"),
    Reader("safetensors", "safe_open.__init__", "filename"),
    Reader("sentencepiece", "SentencePieceProcessor.LoadFromFile", "arg"),
    Reader("SimpleITK", "ReadImage", "fileName"),
    Reader("soundfile", "SoundFile.__init__", "file", mode=1),
    Reader("tokenizers", "Tokenizer.from_file", "path"),
    Reader("torch", "UntypedStorage.from_file", "filename"),
    Reader("torch", "from_file", "filename"),
    Reader("torch", "jit.load", "f"),
)
"""Compiled code that opens a file without Python's audit event. Each row was tried with the real library."""


class ReaderWatch:
    """Tells of the files that the functions of `READERS` are asked for.

    Classes stay what they are: one of their methods is replaced, and nothing else, so `isinstance` and `with`
    see what they always saw.

    Args:
        tell: called with the absolute name of each file, before it is opened.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._imports = PostImport()
        self._patches = Patches()
        self._of_types = StaticTypePatches()
        self._told: set[str] = set()

    def install(self) -> None:
        """Watch the libraries that are there, and those that are imported later."""
        self._imports.install()
        for module in dict.fromkeys(reader.module for reader in READERS):
            self._imports.on_import(module, self._watch)

    def remove(self) -> None:
        """Put everything back."""
        self._imports.remove()
        self._patches.restore()
        self._of_types.restore()

    def _watch(self, module: ModuleType) -> None:
        for reader in READERS:
            if reader.module == module.__name__:
                with ignored():  # another release may have none of it
                    self._replace(module, reader)

    def _replace(self, module: ModuleType, reader: Reader) -> None:
        *path, name = reader.name.split(".")
        owner: Any = functools.reduce(getattr, path, module)
        original = getattr(owner, name)
        if reader.argument.endswith("()"):
            self._of_types.set(owner, name, _told(original, functools.partial(self._note_object, reader)))
        elif not isinstance(owner, type):
            told = _told(original, functools.partial(self._note, reader))
            self._patches.set(owner, name, told)
            self._replace_in_class(getattr(owner, name), original)
        else:
            self._patches.set(owner, name, _member(owner, name, functools.partial(self._note, reader)))

    def _replace_in_class(self, told: Any, original: Any) -> None:
        """Replace a function of C also in the class that it is from, where pickle finds it."""
        if isinstance(original, BuiltinFunctionType):
            reduced = original.__reduce_ex__(2)
            if isinstance(reduced, tuple) and reduced[0] is getattr:
                (owner, name), *_ = reduced[1:]
                if isinstance(owner, type):
                    self._of_types.set(owner, name, staticmethod(told))

    def _note_object(self, reader: Reader, args: tuple[Any, ...], _named: dict[str, Any]) -> None:
        with ignored():
            path = getattr(args[0], reader.argument[:-2])()
            if path not in self._told:  # a script may call it for each sample
                self._told.update({path} if os.path.isabs(path) else ())
                self._tell_all(path, reader)

    def _note(self, reader: Reader, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        with ignored():  # whatever a script gives the function, the error is the function's to raise
            mode = "r" if reader.mode is None else _argument(args, named, reader.mode, "mode")
            if isinstance(mode, str) and mode[:1] in ("w", "x"):
                return
            self._tell_all(_argument(args, named, reader.position, reader.argument), reader)

    def _tell_all(self, given: Any, reader: Reader) -> None:
        for file in _files(given, reader):
            self._tell(os.path.abspath(file))


def _argument(args: tuple[Any, ...], named: dict[str, Any], position: int, name: str) -> Any:
    return args[position] if len(args) > position else named.get(name)


def _files(given: Any, reader: Reader) -> Iterator[str]:
    """Yield the files that an argument stands for."""
    for each in given if isinstance(given, list | tuple) else (given,):
        if not isinstance(each, str | bytes | os.PathLike):
            continue
        path = os.fsdecode(each)
        if reader.below and os.path.isdir(path):
            yield from _below(path)
        else:
            yield path


def _below(folder: str) -> Iterator[str]:
    left = _MOST_BELOW
    for place, _, names in os.walk(folder):
        for name in names[:left]:
            yield os.path.join(place, name)
        left -= len(names)
        if left <= 0:
            return


def _member(owner: type, name: str, note: Note) -> Any:
    """Return what takes the place of a method."""
    raw = next(vars(kind)[name] for kind in owner.__mro__ if name in vars(kind))
    if raw is vars(object).get(name):
        return _init_of_none(note)
    if isinstance(raw, staticmethod):
        function = getattr(owner, name)
        return proxy_of(function, staticmethod(_told(function, note)))
    return _told_method(raw, note)


def _told(function: Any, note: Note) -> Any:
    """Return a function that also tells of its arguments."""

    @functools.wraps(function)
    def reading(*args: Any, **named: Any) -> Any:
        note(args, named)
        try:
            return function(*args, **named)
        except BaseException as error:
            leave_no_line(error)
            raise

    return unseen(reading)


def _told_method(method: Any, note: Note) -> Any:
    @functools.wraps(method)
    def reading(self: Any, /, *args: Any, **named: Any) -> Any:
        note(args, named)
        try:
            return method(self, *args, **named)
        except BaseException as error:
            leave_no_line(error)
            raise

    return unseen(reading)


def _init_of_none(note: Note) -> Any:
    """Return an `__init__` for a class that has none of its own: its `__new__` takes all arguments."""

    def __init__(_self: Any, /, *args: Any, _note: Note = note, **named: Any) -> None:  # noqa: N807
        _note(args, named)

    return unseen(__init__)
