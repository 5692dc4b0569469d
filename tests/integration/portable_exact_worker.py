"""Runs every exact op of torch and prints a digest of what each gave; a process of test_portable_exact.py.

Prints one JSON object: {op: {threads: digest}}.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import sys
import warnings
from collections import defaultdict
from typing import Any

import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._python_dispatch import TorchDispatchMode

from samebits.errors import SamebitsError
from samebits.portable.dispatch import PortableMode
from samebits.portable.exact.standing import base_name

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-30, -1e-40, 1e-45, 2.0**-126, 3.4028235e38, -3.4028235e38]
SPECIAL += [float("inf"), -float("inf"), float("nan"), 1e10, -7.7e15, 2.0**31, -(2.0**63), 255.5, 0.1, 1 / 3]
FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
MAKES_NO_VALUES = ("empty", "new_empty", "resize", "set", "is_pinned", "_pin_memory", "_efficientzerotensor")
SAMPLES = 4


class Watch(TorchDispatchMode):
    """Keeps a running digest of what each op of torch gave.

    Entered after portable mode it sees what the script calls, and what that gave.
    """

    def __init__(self) -> None:
        super().__init__()
        self.hashes: dict[str, Any] = defaultdict(hashlib.blake2b)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        name = base_name(func)
        running = self.hashes[name]
        if name.startswith(("empty", "new_empty")):
            out.zero_()  # what is in that memory is nobody's
        if not name.startswith(MAKES_NO_VALUES):
            given = args[:1] if out is None else (out,)
            for value in itertools.chain.from_iterable(
                v if isinstance(v, (tuple, list)) else [v] for v in given
            ):
                running.update(contents(value))
        return out


def contents(value: Any) -> bytes:
    """The bytes of a tensor with every NaN alike; the text of anything else."""
    if not isinstance(value, torch.Tensor) or value.layout != torch.strided:
        return repr(value).encode()
    if value.is_floating_point():
        value = torch.where(value.isnan(), float("nan"), value)
    flat = torch.empty(value.numel(), dtype=value.dtype).copy_(value.reshape(-1))
    return str((value.dtype, tuple(value.shape))).encode() + flat.view(torch.uint8).numpy().tobytes()


def refill(value: Any, numbers: np.random.Generator) -> Any:
    """Samples are drawn by torch, whose `randn` is not the same everywhere: numpy's in their place."""
    if isinstance(value, torch.Tensor):
        if value.dtype not in FLOATS or value.layout != torch.strided or not value.numel():
            return value
        fresh = numbers.standard_normal(value.shape) * 3
        chosen = numbers.random(value.shape) < 0.1
        fresh = np.where(chosen, numbers.choice(SPECIAL, value.shape), fresh)
        with torch.no_grad():
            value.detach().copy_(torch.from_numpy(np.asarray(fresh)))
        return value
    if isinstance(value, (list, tuple)):
        return type(value)(refill(item, numbers) for item in value)
    return value


def run_samples(watch: Watch, mode: PortableMode) -> None:
    """Samples of torch's own tests, of every op that portable mode can run."""
    numbers = np.random.default_rng(5)
    for info in op_db:
        for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.bool):
            if not info.supports_dtype(dtype, "cpu") or info.name.startswith(("linalg", "fft", "special")):
                continue
            np.random.seed(1)
            torch.manual_seed(1)
            for sample in itertools.islice(info.sample_inputs("cpu", dtype, requires_grad=False), SAMPLES):
                given = [refill(sample.input, numbers), *refill(list(sample.args), numbers)]
                named = {name: refill(value, numbers) for name, value in sample.kwargs.items()}
                try:
                    with mode, watch:
                        info(*given, **named)
                except SamebitsError:
                    break
                except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError, AssertionError):
                    continue  # some samples do not bear other numbers


def values(size: int, dtype: torch.dtype, shift: int = 0) -> torch.Tensor:
    """Special and ordinary numbers, each at any place of a vector."""
    numbers = np.random.default_rng(size * 131 + shift)
    drawn = np.where(
        numbers.random(size) < 0.4, numbers.choice(SPECIAL, size), numbers.standard_normal(size) * 9
    )
    with np.errstate(all="ignore"):
        return torch.from_numpy(drawn).to(dtype)


UNARY = """
    abs ceil floor frac neg reciprocal round sgn sign sqrt trunc nan_to_num relu isnan signbit frexp
    """.split()  # noqa: SIM905 - easier to read
WITH_NUMBERS = "add sub mul div fmod remainder floor_divide copysign eq lt rsub".split()  # noqa: SIM905
BINARY = [*WITH_NUMBERS, "maximum", "minimum", "fmax", "fmin", "nextafter", "heaviside"]


def run_elementwise() -> None:
    """Ops of one and two arguments on all sizes of vector tails, strided, broadcast, with numbers."""
    sizes = [1, 3, 8, 17, 31, 46, 67, 1031, 40001]
    for size, dtype in itertools.product(sizes, FLOATS):
        a, b = values(size, dtype), values(size, dtype, 1)
        for name in UNARY:
            for x in (a, a[::2], a.clone()[1:]):
                getattr(torch, name)(x)
        for name in BINARY:
            if name in {"nextafter", "heaviside"} and dtype is torch.float16:
                continue
            function = getattr(torch, name)
            for x, y in ((a, b), (a[::2], b[::2]), (a, b[:1]), (b[:1].clone(), a), (a[1:], b[:-1])):
                if x.numel():
                    function(x, y)
            for number in (
                (3, -0.7, 0.1)
                if name not in {"maximum", "minimum", "fmax", "fmin", "nextafter", "heaviside"}
                else ()
            ):
                function(a, number)
        run_more(a, b)


def run_more(a: torch.Tensor, b: torch.Tensor) -> None:
    """Others, with arguments of their own."""
    aten = torch.ops.aten
    for mode in ("trunc", "floor"):
        torch.div(a, b, rounding_mode=mode)
        torch.div(a, 0.3, rounding_mode=mode)
    for bounds in ((-1, 1), (0, None), (None, 0.5), (b, None), (None, b)):
        torch.clamp(a, *bounds)
    torch.nn.functional.hardtanh(a)
    aten.threshold(a, 0.5, 2.0)
    aten.threshold_backward(b, a, 0.5)
    aten.hardtanh_backward(b, a, -1, 1)
    aten.leaky_relu(a, 0.01)
    aten.leaky_relu_backward(b, a, 0.01, False)
    aten._prelu_kernel(a, torch.full_like(a, 0.25))
    for dtype in (*FLOATS, torch.int64, torch.int8, torch.uint8, torch.bool):
        a.to(dtype)
    wide = torch.from_numpy(np.random.default_rng(a.numel()).integers(-(2**62), 2**62, a.numel()))
    for whole in (wide, wide.to(torch.int32), wide.to(torch.uint8)):
        whole.to(a.dtype)
        whole / 7
        whole // 7
        whole * 0.5


def run_large(a: torch.Tensor, index: torch.Tensor) -> None:
    """Moves that are big enough for threads to share them out.

    Args:
        a: 40000 numbers.
        index: as many positions of them.
    """
    square = a.view(200, 200)
    for moved in (
        a[index],
        a.gather(0, index),
        a.index_select(0, index),
        a.take(index),
        a.flip(0),
        a.roll(7),
    ):
        torch.cat([moved, a]).masked_fill(torch.cat([a, a]) > 0, 2.0)
    torch.stack([square.tril(), square.triu(), square.t()]).unfold(1, 3, 2).clone()
    a.scatter(0, index, a)
    a.index_copy(0, index, a)
    torch.where(a > 0, a, 0)
    torch.nn.functional.embedding(index % 100, square)
    image = a.view(1, 4, 100, 100)
    for layout in (torch.contiguous_format, torch.channels_last):
        given = image.contiguous(memory_format=layout)
        torch.nn.functional.max_pool2d(given, 3, 2, 1)
        torch.nn.functional.adaptive_max_pool2d(given, 7)
        torch.nn.functional.interpolate(given, scale_factor=1.7)
        torch.nn.functional.interpolate(given, size=(33, 150), mode="nearest-exact")
        torch.nn.functional.pad(given, (3, 2, 1, 0), "reflect")
    torch.nn.functional.max_pool3d(a.view(1, 1, 4, 100, 100), 3, 2, 1)
    torch.searchsorted(torch.arange(0.0, 5.0, 0.25), a)
    index.cumsum(0), index.sum(), index.prod(), torch.bincount(index)
    a.nonzero(), a.masked_select(a > 0), a.unique()


def run_others() -> None:
    """What no sample of torch calls."""
    aten, a = torch.ops.aten, values(24, torch.float32)
    flag = torch.tensor([True, True])
    aten._is_all_true(flag)
    aten._is_any_true(flag)
    aten._linalg_check_errors(torch.tensor(0, dtype=torch.int32), "inv", is_matrix=True)
    aten._assert_async(flag[0])
    aten._assert_async.msg(flag[0], "text")
    aten._assert_scalar(True, "text")
    aten._assert_tensor_metadata(a)
    aten.lift(a)
    aten.lift_fresh(a)
    aten.lift_fresh_copy(a)
    aten._reshape_alias(a, [4, 6], [6, 1])
    aten._unsafe_view(a, [4, 6])
    aten._reshape_copy(a, [4, 6])
    aten._efficientzerotensor([3], dtype=torch.float32)
    aten._new_zeros_with_same_feature_meta(a, a)
    aten._has_same_storage_numel(a, a)
    aten.is_same_size(a, a)
    aten.is_set_to(a, a)
    aten.set_(a.clone(), a)
    aten._chunk_cat([a.view(4, 6)], 0, 2)
    aten.channel_shuffle(a.view(1, 4, 6, 1), 2)
    aten.masked_scatter_backward(a, a > 0, [24])
    aten._unsafe_masked_index(a, a > 0, [torch.arange(24)], 0)
    aten.nonzero_static(a, size=3)
    aten.max_unpool3d(
        a.view(1, 1, 2, 3, 4), torch.arange(24).view(1, 1, 2, 3, 4), [2, 3, 4], [1, 1, 1], [0, 0, 0]
    )
    aten._functional_assert_async.msg(flag[0], "text", flag)
    aten._functional_assert_scalar(True, "text", flag)
    aten._unsafe_index(a, [torch.tensor([3, 0])])
    aten.detach_copy(a)
    aten.alias(a)
    aten.diagonal_backward(a.view(4, 6)[:, :1].diagonal(), [4, 1], 0, 0, 1)
    aten.select_backward(a, [24, 2], 1, 0)
    aten.slice_backward(a, [30], 0, 3, 27, 1)
    aten.select_copy(a, 0, 3)
    aten.slice_copy(a, 0, 3, 9, 2)
    aten.split_copy(a, 5)
    aten.sym_constrain_range(3, min=0, max=9)
    aten.sym_constrain_range_for_size(3, min=0, max=9)
    for name, (dims, shape) in itertools.product(
        ("reflection_pad", "replication_pad"), enumerate(((24,), (4, 6), (2, 3, 4)), 1)
    ):
        getattr(aten, f"{name}{dims}d")(a.view(1, *shape), [1] * 2 * dims)
    for out_sizes in ([40], [7]):
        aten.upsample_nearest1d(a.view(1, 1, 24), out_sizes)
        aten._upsample_nearest_exact1d(a.view(1, 1, 24), out_sizes)
    aten.tril_indices(3, 4)
    aten.triu_indices(3, 4)


def run_whole_numbers() -> None:
    """Ops on integers that no sample of torch calls, and volumes."""
    aten = torch.ops.aten
    cube = values(24, torch.float32).view(1, 1, 2, 3, 4)
    aten.upsample_nearest3d(cube, [3, 5, 7])
    aten._upsample_nearest_exact3d(cube, [3, 5, 7])
    whole = torch.arange(24).view(4, 6) % 5
    whole << 2, whole >> 1
    aten.unique_dim(whole, 0)
    aten.unique_dim_consecutive(whole, 0)
    aten.unique_consecutive(whole)
    whole.clone().index_put_((torch.tensor([1, 2]),), torch.tensor(7), accumulate=True)
    aten._unsafe_index_put(whole, [torch.tensor([1, 2])], whole[:2])
    aten._index_put_impl_(whole.clone(), [torch.tensor([1, 2])], whole[:2])


def main() -> None:
    """Everything with one thread and with two."""
    warnings.simplefilter("ignore")
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for threads in (2, 1):
        torch.set_num_threads(threads)
        watch, mode = Watch(), PortableMode()
        with mode, watch:
            run_elementwise()
            run_others()
            run_whole_numbers()
            large = values(40000, torch.float32)
            run_large(large, torch.from_numpy(np.random.default_rng(2).permutation(40000)))
        if threads == 1:  # they are too small to be shared out
            run_samples(watch, mode)
        for name, running in watch.hashes.items():
            found[name][str(threads)] = running.hexdigest()[:32]
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
