"""Runs every exact op of torch and prints digests of what each got and gave, for test_portable_exact.py.

Portable mode is a dispatch mode here, so that torch computes all of them.

Prints one JSON object: {part: {op: {digest of inputs: digest of outputs}}}. The parts are `1` and `2` (the
same calls with so many threads), `small` (not shared out) and `planted` (wrong entries of the list).
"""

from __future__ import annotations

import hashlib
import itertools
import json
import sys
import warnings
from collections import defaultdict
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from samebits.errors import SamebitsError
from samebits.portable import _exact, ops
from samebits.portable._exact import base_name
from samebits.portable._mode import DispatchMode
from samebits.portable.ops.sparse import entries_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-30, -1e-40, 1e-45, 2.0**-126, 3.4028235e38, -3.4028235e38]
SPECIAL += [float("inf"), -float("inf"), float("nan"), 1e10, -7.7e15, 2.0**31, -(2.0**63), 255.5, 0.1, 1 / 3]
FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
MAKES_NO_VALUES = ("empty", "new_empty", "resize", "set", "is_pinned", "_pin_memory", "_efficientzerotensor")
SPARSE_LAYOUTS = (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc)
SAMPLES = 4
UNFIT = (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError, AssertionError)
PLANTED = ("exp2", "sinh")


class Watch(TorchDispatchMode):
    """Keeps digests of what each op of torch got and gave.

    Entered after portable mode it sees what the script calls, and what that gave.
    """

    def __init__(self) -> None:
        super().__init__()
        self.hashes: dict[str, dict[str, Any]] = defaultdict(lambda: defaultdict(hashlib.blake2b))

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = base_name(func)
        with _disable_current_modes():  # what is computed for a digest is no part of the script
            given = digest(str(func), args, kwargs)
        out = func(*args, **(kwargs or {}))
        if name.startswith(("empty", "new_empty")) and out.layout == torch.strided:
            out.untyped_storage().fill_(0)  # what is in that memory is nobody's
        running = self.hashes[name][given]  # of all calls with these inputs: a random op has others each time
        if not name.startswith(MAKES_NO_VALUES):
            with _disable_current_modes():
                for value in leaves(args[:1] if out is None else out):
                    running.update(contents(value))
        return out

    def digests(self) -> dict[str, dict[str, str]]:
        """What is known now, as text."""
        return {
            name: {given: running.hexdigest()[:16] for given, running in calls.items()}
            for name, calls in self.hashes.items()
        }


def leaves(value: Any) -> Iterator[Any]:
    """What is in tuples, lists and dicts."""
    if isinstance(value, dict):
        value = list(value.items())
    if isinstance(value, (tuple, list)):
        for item in value:
            yield from leaves(item)
    else:
        yield value


def digest(*given: Any) -> str:
    """Of all that an op gets: numbers, tensors and what else lies in their memory, and how they lie there."""
    running = hashlib.blake2b(digest_size=8)
    for value in leaves(given):
        if isinstance(value, torch.Tensor) and value.layout == torch.strided:
            storage = value.untyped_storage()
            count = storage.nbytes() // value.element_size()
            whole = torch.empty(0, dtype=value.dtype).set_(storage, 0, (count,))
            layout = (value.shape, value.stride(), value.storage_offset())
            running.update(str(layout).encode() + contents(whole))
        elif isinstance(value, torch.Tensor) and value.layout in SPARSE_LAYOUTS:
            running.update(contents(value))
        else:
            text = repr(value)
            running.update(f"{type(value)}{'' if ' at 0x' in text else text};".encode())
    return running.hexdigest()


def contents(value: Any) -> bytes:
    """The bytes of a tensor with every NaN alike; the text of anything else."""
    if isinstance(value, torch.Tensor) and value.layout in SPARSE_LAYOUTS:
        places, numbers, *_ = entries_of(value, "the digest")
        return str((value.layout, value.shape)).encode() + contents(places) + contents(numbers)
    if not isinstance(value, torch.Tensor) or value.layout != torch.strided:
        return repr(value).encode()
    if value.is_complex():
        return b"complex" + contents(torch.view_as_real(value.resolve_conj()))
    if value.is_floating_point():
        value = torch.where(value.isnan(), float("nan"), value)
    flat = torch.empty(value.numel(), dtype=value.dtype).copy_(value.reshape(-1))
    return str((value.dtype, tuple(value.shape))).encode() + flat.view(torch.uint8).numpy().tobytes()


def refill(value: Any, numbers: np.random.Generator) -> Any:
    """Other numbers for a sample, special ones among them; none for a tensor with several places in one."""
    if isinstance(value, torch.Tensor):
        if value.dtype not in FLOATS or value.layout != torch.strided or not value.numel():
            return value
        if 0 in value.stride():
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


def run_samples(watch: Watch, mode: DispatchMode) -> None:
    """Samples of torch's own tests, of every op that portable mode can run."""
    numbers = np.random.default_rng(5)
    for info in op_db:
        if info.name.startswith(("linalg", "fft", "special")):
            continue
        for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.bool):
            if not info.supports_dtype(dtype, "cpu"):
                continue
            for sample in drawn_samples(info, dtype, mode):
                given = [refill(sample.input, numbers), *refill(list(sample.args), numbers)]
                named = {name: refill(value, numbers) for name, value in sample.kwargs.items()}
                try:
                    with mode, watch:
                        info(*given, **named)
                except SamebitsError:
                    break
                except UNFIT:
                    continue  # some samples do not bear other numbers


def drawn_samples(info: Any, dtype: torch.dtype, mode: DispatchMode) -> list[Any]:
    """Drawn in portable mode: torch's own random numbers are others with other instructions."""
    torch.manual_seed(1)
    np.random.seed(1)
    try:
        with mode:
            return list(itertools.islice(info.sample_inputs("cpu", dtype, requires_grad=False), SAMPLES))
    except (SamebitsError, *UNFIT):
        return []  # made with an op that portable mode refuses


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


def run_elementwise(*sizes: int) -> None:
    """Ops of one and two arguments, strided, broadcast, with numbers."""
    for size, dtype in itertools.product(sizes, FLOATS):
        a, b = values(size, dtype), values(size, dtype, 1)
        run_unary(UNARY, a)
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


def run_unary(names: Iterable[str], a: torch.Tensor) -> None:
    """Ops of one argument, contiguous or not."""
    for name in names:
        for x in (a, a[::2], a.clone()[1:]):
            getattr(torch, name)(x)


def run_planted(watch: Watch) -> None:
    """Ops that do not belong on the list, as if they were on it and no handler stood before them."""
    listed = patch.object(_exact, "_TORCHS_OWN", _exact._TORCHS_OWN | set(PLANTED))
    with listed, patch.object(ops, "families", tuple), DispatchMode(), watch:
        for dtype in (torch.float32, torch.float64):
            run_unary(PLANTED, values(40001, dtype))


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
    aten.unsafe_split_with_sizes(a, [5, 19])
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


def run_sparse() -> None:
    """What is passed on for sparse tensors."""
    dense = torch.where(values(24, torch.float32) > 0, values(24, torch.float32, 1), 0.0).view(4, 6)
    places, numbers = torch.tensor([[0, 3, 3, 0], [5, 1, 1, 2]]), values(4, torch.float32)
    coo = torch.sparse_coo_tensor(places, numbers, (4, 6), check_invariants=True)
    torch.sparse_coo_tensor(places[:, :0], numbers[:0], (4, 6))
    dense.is_pinned()
    whole = dense.to_sparse()
    whole.indices(), whole.values(), coo._indices(), coo._values(), coo.is_coalesced(), coo.sparse_dim()
    coo.dense_dim(), coo._dimI(), coo._dimV(), coo._nnz()
    torch.zeros_like(coo), torch.empty_like(coo), coo.clone().zero_(), coo.clone().copy_(whole), coo.detach()
    torch.sparse_coo_tensor((4, 6)), torch.sparse_coo_tensor(places, numbers, (4, 6))._coalesced_(False)
    for one in (coo, dense.to_sparse_csr(), dense.to_sparse_csc()):
        one.t(), one.transpose(0, 1), one.clone(), one.detach()
    by_rows, by_columns = dense.to_sparse_csr(), dense.to_sparse_csc()
    rows = by_rows.crow_indices(), by_rows.col_indices(), by_rows.values()
    columns = by_columns.ccol_indices(), by_columns.row_indices(), by_columns.values()
    torch.sparse_csr_tensor(*rows, (4, 6)), torch.sparse_csc_tensor(*columns, (4, 6))
    torch.sparse_compressed_tensor(*rows, (4, 6), layout=torch.sparse_csr, check_invariants=True)


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


def run_complex(*sizes: int) -> None:
    """What is passed on for complex numbers, and arithmetic of their parts."""
    aten = torch.ops.aten
    for size, dtype in itertools.product(sizes, (torch.float32, torch.float64)):
        a, b = values(size, dtype), values(size, dtype, 1)
        z = torch.complex(a, b)
        pairs = torch.stack([a, b], -1)
        other = torch.view_as_complex(pairs)
        aten.view_as_complex_copy(pairs), aten.view_as_real_copy(z), torch.view_as_real(z)
        for x, y in ((z, other), (z[1:], other[:-1]), (z[::2], other[::2])):
            aten._conj_physical(x), x.clone().conj_physical_(), aten._conj(x).clone(), aten._conj_copy(x)
            x + y, x - y, x * y, x / y, -x, x.abs(), x.sgn(), x.reciprocal(), x == y, x != y, x * 0.5
            torch.cat([x, y.conj()]), torch.where(x == y, x, y), x.flip(0), x.isnan(), x.isinf()
            x.to(torch.complex64), x.to(torch.complex128), x.imag.clone(), x.real.to(x.dtype)
        aten._neg_view(a).clone(), aten._neg_view_copy(a)


def main() -> None:
    """What threads would share out with one and with two, all else once."""
    warnings.simplefilter("ignore")
    parts: dict[str, Watch] = defaultdict(Watch)
    mode = DispatchMode()
    for threads in (2, 1):
        torch.set_num_threads(threads)
        with mode, parts[str(threads)]:
            run_elementwise(40001)
            large = values(40000, torch.float32)
            run_complex(40001)
            run_large(large, torch.from_numpy(np.random.default_rng(2).permutation(40000)))
    with mode, parts["small"]:
        run_elementwise(1, 3, 8, 17, 31, 46, 67, 1031)  # tails of vectors of all lengths
        run_complex(1, 3, 8, 17, 31, 46, 67, 1031)
        run_others()
        run_whole_numbers()
        run_sparse()
    run_samples(parts["small"], mode)
    run_planted(parts["planted"])
    json.dump({part: watch.digests() for part, watch in parts.items()}, sys.stdout)


if __name__ == "__main__":
    main()
