"""Finding and loading the C library of the kernels, and checking it against the parameters in Python."""

from __future__ import annotations

import ctypes
import functools
import importlib.machinery
import os
import re
import struct
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, cast

from samebits._text import variable_names
from samebits.errors import SamebitsError

if TYPE_CHECKING:
    from collections.abc import Callable

    from samebits._reader import Kernel

ABI = 6
BACKEND_VARIABLE = variable_names.PORTABLE_BACKEND
REFERENCE = "reference"
"""The value of that variable that asks for no C kernels."""
Parameters = ParamSpec("Parameters")
_TYPES = {int: "q", bool: "q", float: "d"}


class Kernels:
    """The C kernels, on one instruction set at a time. Each is called with its parameters, all by name.

    Args:
        library: native/portable, of this version.

    Raises:
        SamebitsError: if a kernel does not have the parameters that Python declares.
    """

    def __init__(self, library: ctypes.CDLL) -> None:
        from samebits.portable.backends import parameters as p
        from samebits.portable.backends import parameters_linalg as linalg
        from samebits.portable.backends import parameters_norms as norms

        library.samebits_portable_isa.restype = ctypes.c_char_p
        library.samebits_portable_parameters.restype = ctypes.c_char_p
        library.samebits_portable_select.argtypes = [ctypes.c_char_p]
        library.samebits_portable_share_threads.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        library.samebits_portable_share_threads.restype = None
        self._library = library
        self._kernels: list[Kernel | PlainKernel] = []
        check_parameters(declared_parameters(), exported_parameters(library))
        self.accumulate = self._bind(p.Accumulate)
        self.activation = self._bind(p.Activation)
        self.attention = self._bind(p.Attention)
        self.batch_norm = self._bind(norms.BatchNorm)
        self.batch_norm_gradient = self._bind(norms.BatchNormGradient)
        self.channel_norm = self._bind(norms.ChannelNorm)
        self.cholesky = self._bind(linalg.Cholesky)
        self.conv = self._bind(p.Conv)
        self.conv_weight = self._bind(p.ConvWeight)
        self.elementwise_binary = self._bind(p.ElementwiseBinary)
        self.elementwise_unary = self._bind(p.ElementwiseUnary)
        self.fft = self._bind(p.Fft)
        self.gemm = self._bind(p.Gemm)
        self.group_norm = self._bind(norms.GroupNorm)
        self.group_norm_gradient = self._bind(norms.GroupNormGradient)
        self.householder = self._bind(linalg.Householder)
        self.jacobi = self._bind(linalg.Jacobi)
        self.layer_norm = self._bind(norms.LayerNorm)
        self.layer_norm_weights = self._bind(norms.LayerNormWeights)
        self.lstm = self._bind(p.Lstm)
        self.lstm_gradient = self._bind(p.LstmGradient)
        self.lu = self._bind(linalg.Lu)
        self.optimizer = self._bind(p.Optimizer)
        self.pairs = self._bind(p.Pairs)
        self.random = self._bind(p.Random)
        self.reduce = self._bind(p.Reduce)
        self.reflections = self._bind(linalg.Reflections)
        self.scan = self._bind(p.Scan)
        self.softmax = self._bind(p.Softmax)
        self.sqrt = self._bind(p.Sqrt)
        self.triangular = self._bind(linalg.Triangular)
        self.window = self._bind(p.Window)

    def select(self, isa: str) -> bool:
        """Use `avx512`, `avx2`, `neon`, `scalar` or the best (empty); return False if this machine cannot."""
        return bool(self._library.samebits_portable_select(isa.encode()))

    @property
    def isa(self) -> str:
        """Return the instruction set in use."""
        return bytes(self._library.samebits_portable_isa()).decode()

    def share_threads(self, parallel: int, thread_number: int) -> None:
        """Run on the threads of the OpenMP library with these addresses of two of its functions.

        Args:
            parallel: `GOMP_parallel`.
            thread_number: `omp_get_thread_num`.
        """
        self._library.samebits_portable_share_threads(parallel, thread_number)

    def addresses(self) -> dict[str, int]:
        """Return the addresses of the kernels, and of the function that sets the number of threads."""
        names = (*declared_parameters(), "set_threads")
        return {name: _address(getattr(self._library, f"samebits_portable_{name}")) for name in names}

    def set_threads(self, count: int) -> None:
        """Use this many threads from now on, whatever `follow` was told."""
        self._ask(None)
        self._library.samebits_portable_set_threads(count)

    def follow(self, wanted: Callable[[], int]) -> None:
        """Ask at each call how many threads to use.

        Args:
            wanted: `torch.get_num_threads`; it takes about 50 ns.
        """
        self._ask(wanted)

    def follow_torch(self) -> None:
        """Run on the threads that torch's OpenMP library keeps, and ask torch at each call how many."""
        import torch

        from samebits.digest.native import openmp_entry

        folder = Path(torch.__file__).parent / "lib"
        parallel, thread_number = openmp_entry(folder), openmp_entry(folder, "omp_get_thread_num")
        if parallel is not None and thread_number is not None:
            self.share_threads(parallel, thread_number)
        self.follow(torch.get_num_threads)

    def _ask(self, wanted: Callable[[], int] | None) -> None:
        for kernel in self._kernels:
            kernel.threads = wanted

    def _bind(self, parameters: Callable[Parameters, tuple[Any, ...]]) -> Callable[Parameters, None]:
        kernel = bind(self._library, parameters)
        self._kernels.append(kernel)
        return cast("Callable[Parameters, None]", kernel.call)


def declared_fields(parameters: Any) -> tuple[str, dict[str, str]]:
    """Return a kernel's name, and the types of its parameters by name, as parameters.h has them.

    Args:
        parameters: one of the classes in parameters.py.
    """
    name = re.sub(r"(?<=.)([A-Z])", r"_\1", parameters.__name__).lower()
    return name, {
        field: _TYPES[kind] if kind in _TYPES else kind.__metadata__[0]
        for field, kind in parameters.__annotations__.items()
    }


def declared_parameters() -> dict[str, str]:
    """Return the fields of each kernel as Python declares them, in the form that the library gives."""
    from samebits.portable.backends import parameters, parameters_linalg, parameters_norms

    named = {**vars(parameters), **vars(parameters_linalg), **vars(parameters_norms)}
    classes = [each for each in named.values() if isinstance(each, type) and issubclass(each, tuple)]
    declared = map(declared_fields, classes)
    return {name: " ".join(f"{field}:{types}" for field, types in each.items()) for name, each in declared}


def exported_parameters(library: ctypes.CDLL) -> dict[str, str]:
    """Return the fields of each kernel as the library lists them: `is_f64:q x:p out:p count:q`."""
    lines = bytes(library.samebits_portable_parameters()).decode().splitlines()
    return dict(line.split(" ", 1) for line in lines)


def check_parameters(declared: dict[str, str], exported: dict[str, str]) -> None:
    """Compare the parameters of all kernels.

    Args:
        declared: the fields of each kernel in parameters.py.
        exported: those in the library.

    Raises:
        SamebitsError: if they are not the same; it says where.
    """
    for name in sorted(declared.keys() | exported.keys()):
        if declared.get(name) != exported.get(name):
            raise SamebitsError(
                "the library of portable kernels belongs to another version of samebits: "
                f"its kernel {name} takes "
                f"({exported.get(name, 'nothing')}), but ({declared.get(name, 'nothing')}) was expected; "
                "install samebits again",
                slug="portable-backend",
            )


class PlainKernel:
    """A kernel that is called through ctypes, where the C module was not built.

    Args:
        function: of the library.
        parameters: its class in parameters.py.
        set_threads: of the library.
    """

    def __init__(self, function: Any, parameters: Any, set_threads: Callable[[int], None]) -> None:
        function.argtypes, function.restype = [ctypes.c_char_p], ctypes.c_int64
        self.threads: Callable[[], int] | None = None
        self._function, self._parameters, self._set_threads = function, parameters, set_threads
        self._name, self._fields = declared_fields(parameters)

    def call(self, **parameters: Any) -> None:
        """Call it with all of its parameters.

        Raises:
            TypeError: for a parameter that is missing, unknown or no number.
            ValueError: if a parameter does not have as many numbers as the kernel reads.
            MemoryError: if the kernel got no memory.
        """
        slots: list[bytes] = []
        previous: Any = 0
        for value, types in zip(self._parameters(**parameters), self._fields.values(), strict=True):
            slots.append(self._packed(value, types, previous))
            previous = value
        if self.threads is not None:
            self._set_threads(self.threads())
        if self._function(b"".join(slots)):
            raise MemoryError(self._name)

    def _packed(self, value: Any, types: str, previous: Any) -> bytes:
        """Return the slots of a parameter; one of any length is as long as the previous parameter says."""
        if len(types) == 1:
            value = (value,)
        elif types.startswith("*"):
            types = types[1:] * previous
        if len(value) != len(types):
            raise ValueError(f"{self._name}() takes {len(types)} numbers, not {len(value)}")
        try:
            return struct.pack("=" + types.replace("p", "q"), *value)
        except struct.error as error:
            raise TypeError(f"{self._name}(): {error}") from None


def bind(library: ctypes.CDLL, parameters: Any) -> Kernel | PlainKernel:
    """Return what calls a kernel: the C module, whose conversions are faster, or ctypes.

    Args:
        library: has the kernel.
        parameters: its class in parameters.py.
    """
    from samebits.digest.native import load_module

    name, fields = declared_fields(parameters)
    function = getattr(library, f"samebits_portable_{name}")
    module = load_module()
    if module is None:
        return PlainKernel(function, parameters, library.samebits_portable_set_threads)
    types = "".join(f"{each} " for each in fields.values()).encode()
    kernel: Kernel = module.Kernel(
        name, tuple(fields), types, _address(function), _address(library.samebits_portable_set_threads)
    )
    return kernel


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def find_library() -> Path | None:
    """Return the file that setup.py built, None if this installation has none."""
    package = Path(__file__).resolve().parents[2]
    for suffix in importlib.machinery.EXTENSION_SUFFIXES:
        path = package / f"_portable{suffix}"
        if path.exists():
            return path
    return None


def open_library(path: Path) -> Kernels | None:
    """Load the library. Return None when this machine cannot use it or it belongs to another version.

    Raises:
        SamebitsError: if a kernel does not have the parameters that Python declares.
    """
    try:
        library = ctypes.CDLL(str(path))
        abi = library.samebits_portable_abi()
    except (OSError, AttributeError):
        return None
    return Kernels(library) if abi == ABI else None


@functools.cache
def load() -> Kernels | None:
    """Return the kernels that this process uses, None for the reference.

    Raises:
        SamebitsError: if the variable `SAMEBITS_PORTABLE_BACKEND` asks for kernels that are not there, or a
            kernel does not have the parameters that Python declares.
    """
    wanted = _wanted()
    if wanted == REFERENCE:
        return None
    path = find_library()
    kernels = open_library(path) if path else None
    if kernels is None and not wanted:
        return None
    if kernels is None or not kernels.select(wanted):
        raise _refusal(wanted, built=kernels is not None)
    kernels.follow_torch()
    return kernels


def check_backend() -> None:
    """Check that this machine has the kernels that the user asks for, if any. Imports nothing heavy.

    Raises:
        SamebitsError: if the variable `SAMEBITS_PORTABLE_BACKEND` asks for kernels that are not there;
            `portable-backend`.
    """
    wanted = _wanted()
    if wanted in {"", REFERENCE}:
        return
    path = find_library()
    kernels = open_library(path) if path else None
    before = kernels.isa if kernels else ""
    if kernels is None or not kernels.select(wanted):
        raise _refusal(wanted, built=kernels is not None)
    kernels.select(before)  # the library is shared with a block of portable mode that may be running


def _wanted() -> str:
    return REFERENCE if sys.byteorder == "big" else os.environ.get(BACKEND_VARIABLE, "")


def _refusal(wanted: str, *, built: bool) -> SamebitsError:
    message = (
        "asks for portable kernels that this machine cannot run; expected avx512, avx2 or neon where the "
        "processor has it, scalar or reference; unset the variable, or set it to scalar"
        if built
        else "asks for C kernels, and this installation has none; expected reference; unset the variable"
    )
    return SamebitsError(f"{BACKEND_VARIABLE}={wanted} {message}", slug="portable-backend")
