"""The kernels of native/cuda/portable_*.cu: compiled when first used, launched on torch's current stream."""

from __future__ import annotations

import ctypes
import functools
import struct
import threading
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from samebits._cuda.driver import DriverError
from samebits._cuda.loading import load_unit
from samebits._cuda.nvrtc import CompileError
from samebits._cuda.units import OTHERS, PLACES, PRODUCTS, ROWS, elementwise_part
from samebits._torch.cuda_stream import stream_handle
from samebits.errors import SamebitsError
from samebits.portable.backends import parameters as p
from samebits.portable.backends import parameters_norms as norms
from samebits.portable.backends.library import declared_fields
from samebits.portable.backends.parameters_cuda import ON_DEVICE
from samebits.portable.kernels import activations, complex_numbers, elementwise

if TYPE_CHECKING:
    from collections.abc import Callable

    from samebits._cuda.driver import Kernel, Module
    from samebits._cuda.units import Unit

THREADS = 256
LANES = 16
"""Threads that work on one row of values together."""
MOST_BLOCKS = 65535
"""Of a grid, in the second and the third dimension."""
_BLOCKS_PER_PROCESSOR = 32


def suffixed(name: str, *, is_f64: bool) -> str:
    """Return the name of a kernel for float64 or float32."""
    return f"{name}_{'f64' if is_f64 else 'f32'}"


class Launch(NamedTuple):
    """How a kernel of parameters.h is launched.

    Args:
        parameters: its class.
        unit: where it is, from the parameters.
        name: of the function without the dtype, from the parameters.
        threads: how many there is work for, from the parameters.
    """

    parameters: Any
    unit: Callable[[Any], Unit]
    name: Callable[[Any], str]
    threads: Callable[[Any], int]


def _always(value: Any) -> Callable[[Any], Any]:
    return lambda _: value


def _window_outputs(k: Any) -> int:
    sizes = k.size if k.is_backward else k.outputs
    return int(k.planes * sizes[0] * sizes[1] * sizes[2])


def _pixels(k: Any) -> int:
    return int(k.out_size[0] * k.out_size[1] * k.out_size[2])


LAUNCHES: dict[str, Launch] = {
    "accumulate": Launch(p.Accumulate, _always(PLACES), _always("accumulate"), lambda k: k.batch * k.columns),
    "activation": Launch(
        p.Activation,
        lambda k: elementwise_part(4 + k.is_f64),
        lambda k: f"activation_{activations.NAMES[k.function]}",
        lambda k: k.numel,
    ),
    "channel_norm": Launch(
        norms.ChannelNorm,
        _always(OTHERS),
        _always("channel_norm"),
        lambda k: k.outer * k.channels * k.inner,
    ),
    "conv": Launch(
        p.Conv, _always(PRODUCTS), _always("conv"), lambda k: k.samples * k.groups * k.rows * _pixels(k)
    ),
    "elementwise_binary": Launch(
        p.ElementwiseBinary,
        lambda k: elementwise_part(2 + k.is_f64),
        lambda k: elementwise.BINARY[k.function],
        lambda k: k.numel,
    ),
    "elementwise_unary": Launch(
        p.ElementwiseUnary,
        lambda k: elementwise_part(0 + k.is_f64),
        lambda k: elementwise.UNARY[k.function],
        lambda k: k.numel,
    ),
    "gemm": Launch(p.Gemm, _always(PRODUCTS), _always("gemm"), lambda k: k.batches * k.m * k.n),
    "group_norm": Launch(
        norms.GroupNorm, _always(ROWS), _always("group_norm"), lambda k: k.samples * k.groups * LANES
    ),
    "layer_norm": Launch(
        norms.LayerNorm,
        _always(ROWS),
        lambda k: "layer_norm_gradient" if k.is_backward else "layer_norm",
        lambda k: k.rows * LANES,
    ),
    "pairs": Launch(
        p.Pairs, _always(OTHERS), lambda k: f"pairs_{complex_numbers.NAMES[k.function]}", lambda k: k.numel
    ),
    "scan": Launch(p.Scan, _always(OTHERS), _always("scan"), lambda k: k.outer * k.inner),
    "softmax": Launch(p.Softmax, _always(ROWS), _always("softmax"), lambda k: k.rows * LANES),
    "sqrt": Launch(p.Sqrt, lambda k: elementwise_part(0 + k.is_f64), _always("sqrt"), lambda k: k.numel),
    "window": Launch(
        p.Window,
        _always(PLACES),
        lambda k: "window_gradient" if k.is_backward else "window",
        _window_outputs,
    ),
}
"""Kernels with the parameters of those for the CPU; they are called by name (`CudaKernels`)."""


class CudaKernels:
    """The kernels of one GPU. Those of `LAUNCHES` are methods, called with all parameters by name.

    Args:
        index: of the device.
    """

    def __init__(self, index: int) -> None:
        self._index = index
        properties: Any = torch.cuda.get_device_properties(index)
        self.capability = (properties.major, properties.minor)
        self.processors = int(properties.multi_processor_count)
        self._most_blocks = _BLOCKS_PER_PROCESSOR * self.processors
        # In bytes, for a block that asks for it; torch's description of some releases does not have it.
        self.most_shared = int(getattr(properties, "shared_memory_per_block_optin", 48 << 10))
        self._modules: dict[Unit, Module] = {}
        self._kernels: dict[tuple[Unit, str], Kernel] = {}
        self._thread = threading.local()

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name not in LAUNCHES:
            raise AttributeError(name)
        plan = LAUNCHES[name]

        def call(**parameters: Any) -> None:
            given = plan.parameters(**parameters)
            function = suffixed(plan.name(given), is_f64=given.is_f64)
            self.launch(plan.unit(given), function, given, plan.threads(given))

        setattr(self, name, call)
        return call

    def random(self, **parameters: Any) -> None:
        """Fill with random values; its one function takes all dtypes."""
        given = p.Random(**parameters)
        self.launch(OTHERS, "random_values", given, given.numel)

    def launch(self, unit: Unit, name: str, parameters: Any, threads: int, rows: int = 1) -> None:
        """Queue a kernel on torch's current stream of the device.

        Args:
            unit: where it is.
            name: of the function.
            parameters: one of the classes of parameters; its struct is passed by value.
            threads: how many there is work for; each may do the work of several.
            rows: how often these are launched, side by side: `blockIdx.y` is the number of the row.

        Raises:
            SamebitsError: if it cannot be compiled or launched; `portable-gpu`.
        """
        if threads:
            blocks = min(-(-threads // THREADS), self._most_blocks)
            self.launch_tiles(unit, name, parameters, (blocks, rows, 1), (THREADS, 0))

    def launch_tiles(
        self, unit: Unit, name: str, parameters: Any, grid: tuple[int, int, int], block: tuple[int, int]
    ) -> None:
        """Queue a kernel of a grid of blocks.

        Args:
            unit: where it is.
            name: of the function.
            parameters: one of the classes of parameters; its struct is passed by value.
            grid: how many blocks there are in each dimension.
            block: the threads of one, and its bytes of dynamic shared memory.

        Raises:
            SamebitsError: if it cannot be compiled or launched; `portable-gpu`.
        """
        struct_of = ctypes.create_string_buffer(packed(parameters))
        try:
            with torch.cuda.device(self._index):
                if not getattr(self._thread, "has_context", False):
                    torch.cuda.current_stream().synchronize()  # makes the context current in this thread
                    self._thread.has_context = True
                self._kernel(unit, name).launch(grid, block, [struct_of], stream_handle(self._index))
        except (CompileError, DriverError) as error:
            raise SamebitsError(
                f"the kernel {name} of portable mode cannot be used on cuda:{self._index}: {error}; install "
                "a newer driver and a torch that knows the device, or compute on the CPU",
                slug="portable-gpu",
            ) from error

    def _kernel(self, unit: Unit, name: str) -> Kernel:
        kernel = self._kernels.get((unit, name))
        if kernel is None:
            if unit not in self._modules:
                self._modules[unit] = load_unit(unit, self.capability, torch.version.cuda or "")
            kernel = self._kernels[unit, name] = self._modules[unit].kernel(name)
        return kernel


def packed(parameters: Any) -> bytes:
    """Return the struct of some parameters, in which a list of any length has its greatest length.

    Args:
        parameters: one of the classes of parameters.
    """
    kind: Any = type(parameters)
    layout, sizes = _layout(kind)
    numbers: list[Any] = []
    for value, size in zip(parameters, sizes, strict=True):
        if size < 0:
            numbers.append(value)
        else:
            numbers.extend(value)
            numbers.extend([0] * (size - len(value)))
    return struct.pack(layout, *numbers)


@functools.cache
def _layout(parameters: Any) -> tuple[str, tuple[int, ...]]:
    """Return the layout of a struct, and how many numbers each field has; -1 for one that is a number."""
    _, fields = declared_fields(parameters)
    each = [types[1:] * ON_DEVICE if types.startswith("*") else types for types in fields.values()]
    return "=" + "".join(each).replace("p", "q"), tuple(
        -1 if len(types) == 1 else len(types) for types in each
    )
