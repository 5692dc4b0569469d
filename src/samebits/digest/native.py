"""The compiled code: the C library that digests (native/), the C module that reads tensors (bindings/)."""

from __future__ import annotations

import ctypes
import functools
import importlib.machinery
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from samebits._text import variable_names
from samebits.errors import SamebitsError

if TYPE_CHECKING:
    from collections.abc import Callable

    from samebits._reader import Calls, MemoryMap, Observer, Reader, Scanner

BINDINGS_ABI = 10


def load_module() -> Any:
    """Load the module; None if this installation has none, or one of another version."""
    try:
        from samebits import _reader
    except ImportError:
        return None
    return _reader if _reader.ABI == BINDINGS_ABI else None


def open_reader(library: NativeLibrary) -> Reader | None:
    """Return a reader of plain tensors of the common dtypes; None where there can be none.

    It learns addresses and sizes through DLPack's C exchange (`__dlpack_c_exchange_api__`, DLPack 1.3), which
    torch has from 2.10 on.

    Args:
        library: digests.
    """
    import torch  # late: `check_backend` comes before the script, which imports torch itself

    addresses = _address(library.digest_to), _address(library.digest_threaded)
    integers = (torch.int8, torch.uint8)
    reader: Reader | None = _with_exchange("Reader", integers, torch.get_num_threads, *addresses)
    return reader


def open_observer() -> Observer | None:
    """Return an observer of ops, which reads only what it does not know; None where there can be none.

    Raises:
        SamebitsError: as `load`.
    """
    import torch  # late, as in `open_reader`

    library = load()
    reader, module = (None if library is None else open_reader(library)), load_module()
    if library is None or reader is None:
        return None
    folder = str(Path(torch.__file__).parent) + os.sep
    observer: Observer = module.Observer(reader, torch.UntypedStorage, folder, _address(library.digest_rest))
    return observer


def open_calls(
    observer: Observer, memory: MemoryMap, next_seq: Callable[[], int], name_of: Callable[[Any], str]
) -> Calls:
    """Return what sees a call of an op at once.

    Args:
        observer: reads the tensors.
        memory: links them to the events that wrote them.
        next_seq: gives the number of the next event.
        name_of: gives the text of an argument that is neither a tensor nor a number.
    """
    calls: Calls = load_module().Calls(observer, memory, next_seq, name_of)
    return calls


def open_scanner() -> Scanner | None:
    """Return a scanner of op arguments for portable mode; None without the module or DLPack's C exchange."""
    scanner: Scanner | None = _with_exchange("Scanner")
    return scanner


def _with_exchange(name: str, *arguments: Any) -> Any:
    """Make an object of a class of the C module, which reads tensors through DLPack's C exchange.

    Returns:
        None without the module, or without an exchange that it understands.
    """
    import torch  # late, as in `open_reader`

    module = load_module()
    exchange = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)
    if module is None or exchange is None:
        return None
    try:
        return getattr(module, name)(exchange, (torch.Tensor, torch.nn.Parameter), *arguments)
    except ValueError:  # another version of DLPack
        return None


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


ABI = 4
BACKEND_VARIABLE = variable_names.DIGEST_BACKEND
_TORCH = "torch"  # value for the back end that needs no C library


@dataclass(frozen=True)
class NativeLibrary:
    """Functions of native/digest.h.

    The first two are called with the GIL held: they do not take longer than a switch of threads would.

    Args:
        digest: `samebits_digest` (address of the descriptors, how many words, count), in place.
        digest_to: `samebits_digest_to` (…, address of the result).
        digest_threaded: `samebits_digest_threaded` (…, number of threads), called without the GIL.
        digest_rest: `samebits_digest_rest`, of which only the address is used.
        share_threads: `samebits_digest_share_threads` (address of a `GOMP_parallel`).
        select: `samebits_digest_select`.
        isa: `samebits_digest_isa`.
    """

    digest: Callable[[int, int, int], int]
    digest_to: Callable[[int, int, int, int], int]
    digest_threaded: Callable[[int, int, int, int, int], int]
    digest_rest: Any
    share_threads: Callable[[int], None]
    select: Callable[[bytes], int]
    isa: Callable[[], bytes]


def find_library() -> Path | None:
    """Return the file that setup.py built; None if this installation has none."""
    package = Path(__file__).resolve().parent.parent
    for suffix in importlib.machinery.EXTENSION_SUFFIXES:
        path = package / f"_native{suffix}"
        if path.exists():
            return path
    return None


def open_library(path: Path) -> NativeLibrary | None:
    """Load the library; None when this machine cannot use it or it belongs to another version."""
    try:
        library, gil = ctypes.CDLL(str(path)), ctypes.PyDLL(str(path))
        if library.samebits_digest_abi() != ABI:
            return None
    except (OSError, AttributeError):
        return None
    in_place: list[Any] = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t]
    digest, digest_to = gil.samebits_digest, gil.samebits_digest_to
    threaded = library.samebits_digest_threaded
    digest.argtypes, digest.restype = in_place, ctypes.c_int64
    digest_to.argtypes, digest_to.restype = [*in_place, ctypes.c_void_p], ctypes.c_int64
    threaded.argtypes, threaded.restype = [*in_place, ctypes.c_void_p, ctypes.c_int], ctypes.c_int64
    select, isa = library.samebits_digest_select, library.samebits_digest_isa
    select.argtypes, isa.restype = [ctypes.c_char_p], ctypes.c_char_p
    share = library.samebits_digest_share_threads
    share.argtypes, share.restype = [ctypes.c_void_p], None
    return NativeLibrary(digest, digest_to, threaded, library.samebits_digest_rest, share, select, isa)


def openmp_entry(folder: Path, function: str = "GOMP_parallel") -> int | None:
    """Return the address of a function of the OpenMP library that torch brought and this process has loaded.

    Its threads wait for work between two ops of torch, on the cores that separate threads would need.
    None where torch has another OpenMP library (macOS, some distributions).

    Args:
        folder: of torch's libraries.
        function: its name; `GOMP_parallel` runs a function on a team of threads.
    """
    addresses = (_address_in(path, function) for path in sorted(folder.glob("libgomp*.so*")))
    return next((address for address in addresses if address is not None), None)


def _address_in(path: Path, function: str) -> int | None:
    if sys.platform == "win32":
        return None
    try:
        library = ctypes.CDLL(str(path), mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
        return ctypes.cast(getattr(library, function), ctypes.c_void_p).value
    except (OSError, AttributeError):
        return None


@functools.cache
def load() -> NativeLibrary | None:
    """Load the library that this process uses; None for the torch back end.

    Raises:
        SamebitsError: if the variable `SAMEBITS_DIGEST_BACKEND` asks for a back end that is not there.
    """
    wanted = _wanted()
    if wanted == _TORCH:
        return None
    library = _open_installed()
    if library is None and not wanted:
        return None
    if library is None or not library.select(wanted.encode()):
        raise _refusal(wanted)
    return library


def check_backend() -> None:
    """Check that this machine has the back end that the user asks for, if any. Does not import torch.

    Raises:
        SamebitsError: if the variable `SAMEBITS_DIGEST_BACKEND` asks for a back end that is not there;
            `digest-backend`.
    """
    wanted = _wanted()
    if wanted in {"", _TORCH}:
        return
    library = _open_installed()
    before = library.isa() if library else b""
    if library is None or not library.select(wanted.encode()):
        raise _refusal(wanted)
    library.select(before)  # the script, which may run in this process, makes its own choice


def _open_installed() -> NativeLibrary | None:
    path = find_library()
    return None if path is None else open_library(path)


def _wanted() -> str:
    return _TORCH if sys.byteorder == "big" else os.environ.get(BACKEND_VARIABLE, "")


def _refusal(wanted: str) -> SamebitsError:
    return SamebitsError(
        f"{BACKEND_VARIABLE}={wanted} asks for a digest back end that this machine cannot run: "
        "unset it, or set it to torch.",
        slug="digest-backend",
    )
