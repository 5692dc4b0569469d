"""The C module that looks at tensors without calls of Python in between (bindings/)."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from samebits._reader import Reader, Scanner
    from samebits.digest.native import NativeLibrary

ABI = 4


def load_module() -> Any:
    """The module, None if this installation has none or that of another version."""
    try:
        from samebits import _reader
    except ImportError:
        return None
    return _reader if _reader.ABI == ABI else None


def open_reader(library: NativeLibrary | None) -> Reader | None:
    """What looks at plain CPU tensors of the common dtypes and digests them; None where it cannot.

    It learns addresses and sizes through DLPack's C exchange (`__dlpack_c_exchange_api__`, DLPack 1.3), which
    torch has from 2.10 on.

    Args:
        library: digests.
    """
    module = load_module()
    exchange = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)
    if library is None or module is None or exchange is None:
        return None
    try:
        reader: Reader = module.Reader(
            exchange,
            (torch.Tensor, torch.nn.Parameter),
            (torch.int8, torch.uint8),
            torch.get_num_threads,
            _address(library.digest_to),
            _address(library.digest_threaded),
        )
    except ValueError:  # another version of DLPack
        return None
    return reader


def open_scanner() -> Scanner | None:
    """What looks at the arguments of ops in portable mode; None where it cannot, as for `open_reader`."""
    module = load_module()
    exchange = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)
    if module is None or exchange is None:
        return None
    try:
        scanner: Scanner = module.Scanner(exchange, (torch.Tensor, torch.nn.Parameter))
    except ValueError:  # another version of DLPack
        return None
    return scanner


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0
