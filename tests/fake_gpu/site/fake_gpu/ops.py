"""Ops of tensors on the fake device: the CPU's kernels compute them on the same bytes.

`install` overrides each kernel that torch has for CUDA tensors. An op first waits for its stream, as a
kernel would. Its new results reach the memory of the device later, by a task of that stream. So whoever
reads them on another stream without waiting sees what was there before. What an op writes in place is there
at once.
"""

from __future__ import annotations

import contextlib
import ctypes
import time
import warnings
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

from fake_gpu.translations import translations, whole_layers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Allocation, what needs no kernel, and what is made of other ops (the last line): these are torch's own.
NATIVE = frozenset((
    "empty.memory_format",
    "empty_strided",
    "_efficientzerotensor",
    "resize_",
    "set_",
    "set_.source_Storage",
    "set_.source_Storage_storage_offset",
    "set_.source_Tensor",
    "record_stream",
    "is_pinned",
    "_pin_memory",
    "_local_scalar_dense",
    "_fused_sdp_choice",
    *("_to_sparse", "_to_sparse.sparse_dim", "_to_sparse_csr", "_to_sparse_csc"),
))  # fmt: skip
OFFSET_OF_LIBRARIES = (
    4  # by which an op of cuDNN moves a generator here: a multiple of four, as torch wants it
)


class Device:
    """The library that stands for CUDA, and torch's functions from before anyone replaced them."""

    def __init__(self) -> None:
        self._runtime = ctypes.CDLL("libcuda.so.1")
        self._address = torch._C.TensorBase.data_ptr
        self._raw_stream = torch._C._cuda_getCurrentRawStream
        self._callbacks: list[Any] = []  # a graph may call them at any time

    def wait(self, index: int) -> None:
        """Until the current stream has done what it was given.

        Raises:
            RuntimeError: the device is broken.
        """
        if self._runtime.cudaStreamSynchronize(ctypes.c_void_p(self._raw_stream(index))):
            torch.cuda.current_stream(index).synchronize()  # has torch's words for it

    def host(self, tensor: torch.Tensor) -> torch.Tensor:
        """A CPU tensor in the same memory, negated and conjugated as lazily."""
        storage = tensor.untyped_storage()
        if not storage.nbytes():
            return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype)
        memory = (ctypes.c_char * storage.nbytes()).from_address(storage.data_ptr())
        raw = torch.frombuffer(memory, dtype=torch.uint8)
        view = torch.empty(0, dtype=tensor.dtype)
        view.set_(raw.untyped_storage(), tensor.storage_offset(), tensor.shape, tensor.stride())
        view = view.conj() if tensor.is_conj() else view
        return torch._neg_view(view) if tensor.is_neg() else view

    def publish(self, value: torch.Tensor, index: int) -> torch.Tensor:
        """A new tensor of the device, which a task of the current stream fills."""
        made = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=f"cuda:{index}")
        self.fill(made, value, index)
        return made

    def fill(self, made: torch.Tensor, value: torch.Tensor, index: int) -> None:
        """Copy all bytes that the strides of both span, later."""
        spanned = 1 + sum(
            (size - 1) * stride for size, stride in zip(value.shape, value.stride(), strict=True)
        )
        if value.numel():
            self._runtime.cudaMemcpyAsync(
                ctypes.c_void_p(self._address(made)),
                ctypes.c_void_p(self._address(value)),
                ctypes.c_size_t(spanned * value.element_size()),
                1,
                ctypes.c_void_p(self._raw_stream(index)),
            )

    def call_later(self, function: Callable[[], None], index: int) -> None:
        """Have a task of the current stream call it, each time that the task runs."""

        def call(_: Any) -> None:
            with torch.no_grad():
                function()

        kept = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(call)
        self._callbacks.append(kept)
        self._runtime.cudaLaunchHostFunc(ctypes.c_void_p(self._raw_stream(index)), kept, None)

    def sleep(self, cycles: int) -> None:
        """Keep the current stream busy, as `torch.cuda._sleep`: a cycle takes a nanosecond."""
        self.call_later(lambda: time.sleep(cycles * 1e-9), torch.cuda.current_device())

    @contextlib.contextmanager
    def rehearsal(self) -> Iterator[None]:
        """Where the launches of torch's own kernels are not refused, and do nothing."""
        before = self._runtime.fake_gpu_rehearse(1)
        try:
            yield
        finally:
            self._runtime.fake_gpu_rehearse(before)
            self._runtime.cudaGetLastError()


class Draws:
    """The random numbers of an op: those of a CPU generator that begins where the device's generator is.

    The device's moves on as far as torch moves it, which depends on the op, the number of elements and the
    multiprocessors. torch's own function for the op says how far: it moves the generator before it launches
    its kernel, and the launch does nothing.

    Args:
        device: the fake device.
        op: the overload, which is not overridden yet.
    """

    def __init__(self, device: Device, op: Any) -> None:
        self._device = device
        self._op = op
        self._native = torch.library.get_kernel(op.name(), "CUDA")
        self._keys = torch._C.DispatchKeySet(torch._C.DispatchKey.CUDA)

    def generator_for(self, index: int, args: Any, kwargs: Any) -> torch.Generator:
        """The CPU generator of a call with these arguments; the device's has moved."""
        given = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Generator)]
        source = given[0] if given else torch.cuda.default_generators[index]
        seed, offset = source.initial_seed(), source.get_offset()
        if "cudnn" not in self._op.name():  # there is no library to rehearse with
            self._rehearse(args, kwargs)
        elif has_dropout(self._op, args, kwargs):
            source.set_offset(offset + OFFSET_OF_LIBRARIES)
        return torch.Generator().manual_seed((seed * 0x9E3779B97F4A7C15 + offset) & ((1 << 63) - 1))

    def _rehearse(self, args: Any, kwargs: Any) -> None:
        """Have the generator moved; what cannot be computed here or is refused comes after that."""
        with self._device.rehearsal(), contextlib.suppress(RuntimeError), torch.no_grad():
            self._native.call_boxed(self._keys, *args, **kwargs)


def has_dropout(op: Any, args: Any, kwargs: Any) -> bool:
    """Whether a call of cuDNN draws numbers: not those of gradients, and not outside training."""
    given = {}
    for place, argument in enumerate(op._schema.arguments):
        value = args[place] if place < len(args) else argument.default_value
        given[argument.name] = kwargs.get(argument.name, value)
    dropout = given.get("dropout", given.get("dropout_p"))
    return bool(dropout) and given.get("train", True) and "backward" not in op.name()


class Override:
    """A kernel for CUDA tensors that the CPU's kernel computes.

    Args:
        device: the fake device.
        op: the overload.
        compute: what computes it with CPU tensors: the op, or what is equal to it where the CPU has none.
    """

    def __init__(self, device: Device, op: Any, compute: Any) -> None:
        self._device, self._op = device, op
        self._compute = overloaded(op) if compute is op else compute
        self._draws = Draws(device, op) if torch.Tag.nondeterministic_seeded in op.tags else None
        self._takes_generator = any(argument.name == "generator" for argument in op._schema.arguments)
        self._written = [
            (place, argument)
            for place, argument in enumerate(op._schema.arguments)
            if argument.alias_info is not None and argument.alias_info.is_write
        ]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compute it with its device as the current one, as a kernel of torch does."""
        index = device_of(args, kwargs)
        with torch.cuda.device(index):
            return self._called(index, args, kwargs)

    def _called(self, index: int, args: Any, kwargs: Any) -> Any:
        if torch._C._cuda_isCurrentStreamCapturing():
            return self._captured(index, args, kwargs)
        self._device.wait(index)
        generator = None if self._draws is None else self._draws.generator_for(index, args, kwargs)
        outcome = self._computed(generator, *tree_map(self._on_host, (args, kwargs)))
        if self._written:
            return self._written_back(args, kwargs, outcome)
        return tree_map(lambda leaf: self._published(leaf, index), outcome)

    def _captured(self, index: int, args: Any, kwargs: Any) -> Any:
        """Return an outcome of the right shapes, which each launch of the graph computes.

        Raises:
            NotImplementedError: it is random: each launch would draw the same.
        """
        if self._draws is not None:
            raise NotImplementedError(f"the fake device has no {self._op.name()} in a graph")
        on_host = tree_map(self._on_host, (args, kwargs))
        shapes = self._compute(*tree_map(copy_of, on_host[0]), **tree_map(copy_of, on_host[1]))
        outcome = self._written_back(args, kwargs, shapes) if self._written else tree_map(self._blank, shapes)
        on_host = tree_map(self._on_host, (args, kwargs))  # what it writes to may have got memory meanwhile
        targets = (
            []
            if self._written
            else [self._device.host(leaf) for leaf in tree_leaves(outcome) if is_on_device(leaf)]
        )

        def compute_again() -> None:
            values = [
                leaf for leaf in tree_leaves(self._compute(*on_host[0], **on_host[1])) if is_tensor(leaf)
            ]
            for target, value in zip(targets, values, strict=False):
                target.copy_(value)

        self._device.call_later(compute_again, index)
        return outcome

    def _blank(self, leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        return torch.empty_strided(leaf.shape, leaf.stride(), dtype=leaf.dtype, device="cuda")

    def _computed(self, generator: torch.Generator | None, args: Any, kwargs: Any) -> Any:
        if generator is None:
            return self._compute(*args, **kwargs)
        if self._takes_generator:
            args = [each for each in args if not isinstance(each, torch.Generator)]
            return self._compute(*args, **kwargs | {"generator": generator})
        before = torch.get_rng_state()
        torch.set_rng_state(generator.get_state())
        try:
            return self._compute(*args, **kwargs)
        finally:
            torch.set_rng_state(before)

    def _on_host(self, leaf: Any) -> Any:
        if isinstance(leaf, torch.device):
            return torch.device("cpu")
        return self._device.host(leaf) if is_on_device(leaf) else leaf

    def _published(self, leaf: Any, index: int) -> Any:
        return self._device.publish(leaf, index) if isinstance(leaf, torch.Tensor) else leaf

    def _written_back(self, args: Any, kwargs: Any, outcome: Any) -> Any:
        """The tensors that it writes to; those that a call gave another shape get its contents."""
        given = [kwargs[each.name] if each.kwarg_only else args[place] for place, each in self._written]
        for target, made in zip(given, tree_leaves(outcome), strict=False):
            if isinstance(made, torch.Tensor) and target.shape != made.shape:
                target.resize_(made.shape)
                self._device.host(target).copy_(made)
        returned = given[: len(self._op._schema.returns)]  # GradScaler's op writes to more than it returns
        return returned[0] if len(returned) == 1 else tuple(returned) or None


def overloaded(op: Any) -> Any:
    """The op, but it takes numbers for tensors: a kernel in Python gets what stands for a number as one."""
    places = [i for i, each in enumerate(op._schema.arguments) if str(each.type) == "Tensor"]

    def compute(*args: Any, **kwargs: Any) -> Any:
        numbers = any(i < len(args) and isinstance(args[i], (int, float, complex)) for i in places)
        return op.overloadpacket(*args, **kwargs) if numbers else op(*args, **kwargs)

    return compute


def is_tensor(leaf: Any) -> bool:
    """As `torch.is_tensor`."""
    return isinstance(leaf, torch.Tensor)


def copy_of(leaf: Any) -> Any:
    """A copy of a tensor, to compute with."""
    return leaf.clone() if isinstance(leaf, torch.Tensor) else leaf


def is_on_device(leaf: Any) -> bool:
    """Whether it is a tensor of the fake device."""
    return isinstance(leaf, torch.Tensor) and leaf.is_cuda


def device_of(args: Any, kwargs: Any) -> int:
    """The number of the device that a call is about."""
    for leaf in tree_leaves((args, kwargs)):
        if is_on_device(leaf):
            return leaf.get_device()
    device = kwargs.get("device")
    return torch.cuda.current_device() if device is None or device.index is None else device.index


def copy_between(device: Device, native: Any) -> Any:
    """`copy_`: torch's own where it needs no kernel."""

    def copy_(target: torch.Tensor, source: torch.Tensor, non_blocking: Any = None) -> torch.Tensor:
        if is_plain_copy(target, source):
            if not (target.is_cuda or (non_blocking and target.is_pinned())):
                device.wait(source.get_device())  # as torch's would, but so that a graph may call Python
            return native(target, source, bool(non_blocking))
        for each in (target, source):
            if each.is_cuda:
                device.wait(each.get_device())
        on_host = [device.host(each) if each.is_cuda else each for each in (target, source)]
        on_host[0].copy_(on_host[1])
        return target

    return copy_


def is_plain_copy(target: torch.Tensor, source: torch.Tensor) -> bool:
    """Of the same bytes, in the same places."""
    alike = target.dtype == source.dtype and target.shape == source.shape
    alike = alike and target.is_neg() == source.is_neg() and target.is_conj() == source.is_conj()
    return alike and target.is_contiguous() and source.is_contiguous()


def overloads() -> list[Any]:
    """Every op that has a kernel for CUDA tensors and makes no view."""
    found = []
    for name in torch._C._dispatch_get_registrations_for_dispatch_key("CUDA"):
        space, _, rest = name.partition("::")
        base, _, overload = rest.partition(".")
        if space != "aten" or rest in NATIVE or not hasattr(torch.ops.aten, base):
            continue
        op = getattr(getattr(torch.ops.aten, base), overload or "default", None)
        if op is not None and not any(is_view(each) for each in op._schema.returns):
            found.append(op)
    return found


def is_view(returned: Any) -> bool:
    """Whether it shares an argument's memory without writing to it."""
    return returned.alias_info is not None and not returned.alias_info.is_write


def install() -> tuple[Device, Any]:
    """Override them all, for as long as what is returned lives."""
    device, translated = Device(), translations()
    # A `torch.library.Library` would end among the first exit handlers, and ops are called by others.
    library = torch._C._dispatch_library("IMPL", "aten", "", __file__, 1)
    native_copy = torch.library.get_kernel("aten::copy_", "CUDA")
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.CUDA)
    copy = copy_between(device, lambda *args: native_copy.call_boxed(keys, *args))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"(?s).*[Oo]verriding a previously registered kernel")
        for op in overloads():
            name = op.name().removeprefix("aten::")
            library.impl(name, "CUDA", Override(device, op, translated.get(name, op)), False)
        for name, layer in whole_layers().items():
            for key in ("AutogradCUDA", "CUDA"):
                library.impl(name, key, layer, False)
        library.impl("copy_", "CUDA", copy, False)
    torch.cuda._sleep = device.sleep
    return device, library
