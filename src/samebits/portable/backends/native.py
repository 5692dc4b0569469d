"""The C kernels (native/portable) as a backend: from tensors to the parameters of a kernel."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch

from samebits.portable.backends.native_convolutions import NativeConvolutions
from samebits.portable.backends.native_linalg import NativeLinalg
from samebits.portable.backends.native_lstm import NativeLstm
from samebits.portable.backends.native_norms import address
from samebits.portable.kernels import activations, attention, elementwise, optimizer, reductions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from samebits.portable.backends.interface import Optional, ThreeTensors
    from samebits.portable.kernels.attention import Heads
    from samebits.portable.kernels.contractions import Sizes
    from samebits.portable.kernels.optimizer import AdamRule, Group, SgdRule
    from samebits.portable.kernels.random import Settings
    from samebits.portable.kernels.reductions import Windows

_float64 = torch.float64


def _codes(names: Sequence[str]) -> dict[str, int]:
    """Return the number of each function: its position in the C header."""
    return {name: code for code, name in enumerate(names)}


_UNARY, _BINARY = _codes(elementwise.UNARY), _codes(elementwise.BINARY)
_ACTIVATIONS = _codes(activations.NAMES)
_REDUCTIONS = _codes(reductions.NAMES)
_SOFTMAX = _codes(attention.NAMES)
_ACCUMULATE = _codes(reductions.KINDS)
_ZEROS = (0.0,) * 4  # as many numbers as an activation takes
_NO_STRIDES = (0, 0, 0)
_MOST_AXES = 64
_NO_MASK = (0, 0, 0, 0)
_MAXIMIZE, _DECAY_GRADIENT, _AMSGRAD, _MOMENTUM, _FIRST_STEP, _NESTEROV = (1 << i for i in range(6))


class NativeBackend(NativeConvolutions, NativeLinalg, NativeLstm):
    """The backend that calls the C kernels.

    Args:
        kernels: of this process.
    """

    @property
    def name(self) -> str:
        """Return the instruction set in use."""
        return self._kernels.isa

    def square_root(self, x: Tensor, out: Tensor) -> None:
        """See `Backend`."""
        self._kernels.sqrt(is_f64=x.dtype is _float64, x=x.data_ptr(), out=out.data_ptr(), numel=x.numel())

    def unary(self, name: str, x: Tensor, out: Tensor) -> None:
        """See `Backend`."""
        self._kernels.elementwise_unary(
            function=_UNARY[name],
            is_f64=x.dtype is _float64,
            x=x.data_ptr(),
            out=out.data_ptr(),
            numel=x.numel(),
        )

    def binary(self, name: str, x: Tensor, y: Tensor, out: Tensor) -> None:
        """See `Backend`."""
        self._kernels.elementwise_binary(
            function=_BINARY[name],
            is_f64=x.dtype is _float64,
            x=x.data_ptr(),
            y=y.data_ptr(),
            out=out.data_ptr(),
            numel=x.numel(),
        )

    def pointwise(self, name: str, inputs: tuple[Tensor, ...], params: Sequence[float], out: Tensor) -> None:
        """See `Backend`."""
        count = out.numel()
        a = inputs[0]
        if len(inputs) == 1:
            addresses, is_single = (a.data_ptr(),) * 3, (a.numel() != count,) * 3
        else:
            b, c = inputs[1], inputs[-1]  # of two inputs, the second one stands for the third
            addresses = (a.data_ptr(), b.data_ptr(), c.data_ptr())
            is_single = (a.numel() != count, b.numel() != count, c.numel() != count)
        self._kernels.activation(
            function=_ACTIVATIONS[name],
            is_f64=out.dtype is _float64,
            numel=count,
            out=out.data_ptr(),
            inputs=addresses,
            is_single=is_single,
            numbers=(*params, *_ZEROS[len(params) :]),
        )

    def running(self, x: Tensor, sizes: tuple[int, int, int], out: Tensor, *, product: bool) -> None:
        """See `Backend`."""
        outer, n, inner = sizes
        self._kernels.scan(
            is_product=product,
            is_f64=x.dtype is _float64,
            x=x.data_ptr(),
            out=out.data_ptr(),
            outer=outer,
            n=n,
            inner=inner,
        )

    def softmax_rows(self, name: str, x: Tensor, gradient: Optional, out: Tensor, width: int) -> None:
        """See `Backend`."""
        self._kernels.softmax(
            kind=_SOFTMAX[name],
            is_f64=x.dtype is _float64,
            x=x.data_ptr(),
            gradient=address(gradient),
            out=out.data_ptr(),
            rows=x.numel() // width,
            n=width,
        )

    def gemm(
        self, a: Tensor, b: Tensor, added: Optional, scale: tuple[float, float], sizes: Sizes, out: Tensor
    ) -> None:
        """See `Backend`."""
        batches, m, n, k = sizes
        alpha, beta = scale
        a_strides, b_strides = a.stride(), b.stride()
        if batches:
            a_strides, b_strides = (*a_strides[1:], a_strides[0]), (*b_strides[1:], b_strides[0])
        else:
            a_strides, b_strides = (*a_strides, 0), (*b_strides, 0)
        self._kernels.gemm(
            is_f64=a.dtype is _float64,
            batches=batches or 1,
            m=m,
            n=n,
            k=k,
            a=a.data_ptr(),
            a_strides=a_strides,
            b=b.data_ptr(),
            b_strides=b_strides,
            out=out.data_ptr(),
            out_strides=(n, 1, m * n),
            added=address(added),
            added_strides=added_strides(added, n, out),
            alpha=alpha,
            beta=beta,
        )

    def reduce(
        self, name: str, x: Tensor, reduced: tuple[int, ...], out: Tensor, b: Optional, mean: Optional
    ) -> None:
        """See `Backend`."""
        if x.dim() > _MOST_AXES:
            from samebits.portable.backends.reference import ReferenceBackend  # seldom needed

            ReferenceBackend().reduce(name, x, reduced, out, b, mean)
            return
        strides = x.stride()
        self._kernels.reduce(
            kind=_REDUCTIONS[name],
            is_f64=x.dtype is _float64,
            a=x.data_ptr(),
            b=0 if b is None else b.data_ptr(),
            mean=0 if mean is None else mean.data_ptr(),
            out=out.data_ptr(),
            reduced=_bits(reduced),
            axes=x.dim(),
            extents=(*x.shape, *strides, *(strides if b is None else b.stride())),
        )

    def accumulate(self, out: Tensor, index: Tensor, src: Tensor, kind: str, *, skip: bool) -> bool:
        """See `Backend`."""
        if not src.numel():
            return True
        bad = torch.empty(1, dtype=torch.int64, device="cpu")
        self._take_in(out, index, src, kind, skip=skip, bad=bad.data_ptr())
        return not bad

    def _take_in(self, out: Tensor, index: Tensor, src: Tensor, kind: str, *, skip: bool, bad: int) -> None:
        batch, rows, columns = out.shape
        self._kernels.accumulate(
            is_f64=out.dtype is _float64,
            kind=_ACCUMULATE[kind],
            out=out.data_ptr(),
            src=src.data_ptr(),
            indices=index.data_ptr(),
            batch=batch,
            rows=rows,
            columns=columns,
            m=src.shape[1],
            src_strides=_shared(src.shape, src.stride()),
            index_strides=_shared(src.shape, index.stride()),
            bad=bad,
            skip=skip,
        )

    def attend(self, heads: Heads, out: Tensor, logs: Tensor) -> None:
        """See `Backend`."""
        self._attention(heads, out, logs, None)

    def attend_backward(self, heads: Heads, gradient: Tensor, of_heads: ThreeTensors) -> None:
        """See `Backend`."""
        is_in_rows = gradient.stride(-1) == 1 or gradient.shape[-1] == 1
        self._attention(heads, gradient if is_in_rows else gradient.contiguous(), None, of_heads)

    def _attention(self, heads: Heads, out: Tensor, logs: Optional, of_heads: ThreeTensors | None) -> None:
        query, key, value, mask, is_causal = heads
        batch, count, queries, size = query.shape
        of_query, of_key, of_value = of_heads or (None, None, None)
        self._kernels.attention(
            is_f64=out.dtype is _float64,
            is_backward=of_heads is not None,
            all_heads=batch * count,
            heads=count,
            groups=count // key.shape[1],
            queries=queries,
            keys=key.shape[2],
            size=size,
            value_size=value.shape[-1],
            is_causal=is_causal,
            query=query.data_ptr(),
            query_strides=query.stride()[:3],
            key=key.data_ptr(),
            key_strides=key.stride()[:3],
            value=value.data_ptr(),
            value_strides=value.stride()[:3],
            out=out.data_ptr(),
            out_strides=out.stride()[:3],
            mask=address(mask),
            mask_strides=_NO_MASK if mask is None else mask.stride(),
            log=address(logs),
            of_query=address(of_query),
            of_key=address(of_key),
            of_value=address(of_value),
        )

    def adam(self, rule: AdamRule, groups: Sequence[Group], scales: Sequence[tuple[float, float]]) -> None:
        """See `Backend`."""
        flags = _MAXIMIZE * rule.maximize | _DECAY_GRADIENT * (rule.decay != 0) | _AMSGRAD * rule.amsgrad
        numbers = (rule.shrink, rule.decay, rule.weight, rule.keep, rule.gain, rule.eps)
        self._step(flags, numbers, groups, scales, is_sgd=False)

    def sgd(self, rule: SgdRule, groups: Sequence[Group]) -> None:
        """See `Backend`."""
        flags = _MAXIMIZE * rule.maximize | _DECAY_GRADIENT * (rule.decay != 0)
        flags |= _MOMENTUM * (rule.momentum != 0) | _FIRST_STEP * rule.first_step | _NESTEROV * rule.nesterov
        numbers = (1.0, rule.decay, 0.0, rule.momentum, rule.gain, 0.0)
        self._step(flags, numbers, groups, [(-rule.lr, 1.0)] * len(groups), is_sgd=True)

    def _step(
        self,
        flags: int,
        numbers: tuple[float, ...],
        groups: Sequence[Group],
        scales: Sequence[tuple[float, float]],
        *,
        is_sgd: bool,
    ) -> None:
        dense = [tuple(tensor.contiguous() for tensor in group) for group in groups]
        each: list[float] = []
        for group, scale in zip(dense, scales, strict=True):
            addresses = [tensor.data_ptr() for tensor in group]
            each += [group[0].numel(), *addresses, *[0] * (5 - len(addresses)), *scale]
        shrink, decay, weight, keep, gain, eps = numbers
        self._take_step(
            is_f64=groups[0][0].dtype is _float64,
            is_sgd=is_sgd,
            flags=flags,
            shrink=shrink,
            decay=decay,
            weight=weight,
            keep=keep,
            gain=gain,
            eps=eps,
            tensors=len(groups),
            each=each,
        )
        for group, copy in zip(groups, dense, strict=True):
            optimizer.write_back(group, copy)

    def _take_step(self, **parameters: Any) -> None:
        self._kernels.optimizer(**parameters)

    def fill_random(self, kind: int, out: Tensor, key: int, settings: Settings) -> None:
        """See `Backend`."""
        count = out.numel() if settings.size is None else settings.size
        if not count:
            return
        self._kernels.random(
            kind=kind,
            out=out.data_ptr(),
            numel=count,
            key=_signed(key),
            first=0,
            stream=settings.stream,
            lane=0,
            bits=_signed(settings.bits),
            low=settings.low,
            source=address(settings.source),
            a=settings.a,
            b=settings.b,
        )

    def window_mean(self, wide: Tensor, dims: tuple[Windows, ...], divisor: int, out: Tensor) -> None:
        """See `Backend`."""
        self._window(wide, out, dims, divisor, is_backward=False)

    def window_spread(self, gradient: Tensor, dims: tuple[Windows, ...], divisor: int, out: Tensor) -> None:
        """See `Backend`."""
        self._window(out, gradient, dims, divisor, is_backward=True)

    def _window(
        self, wide: Tensor, narrow: Tensor, dims: tuple[Windows, ...], divisor: int, *, is_backward: bool
    ) -> None:
        self._kernels.window(
            is_f64=wide.dtype is _float64,
            is_backward=is_backward,
            wide=wide.data_ptr(),
            narrow=narrow.data_ptr(),
            planes=wide.shape[0],
            channels=wide.shape[0],
            sample_step=0,
            divisor=divisor,
            size=wide.shape[1:],
            outputs=narrow.shape[1:],
            first=[d.first.data_ptr() for d in dims],
            end=[d.end.data_ptr() for d in dims],
            counts=[d.counts.data_ptr() for d in dims],
        )


def added_strides(added: Optional, n: int, out: Tensor) -> tuple[int, ...]:
    """Return the strides of rows, columns and the batch, expanded to the shape of `out` with n columns."""
    if added is None:
        return _NO_STRIDES
    if added.dim() == 1 and added.shape[0] == n:
        return (0, added.stride(0), 0)
    *batch, row, column = added.expand(out.shape).stride()
    return (row, column, *(batch or (0,)))


@functools.lru_cache(512)
def _bits(reduced: tuple[int, ...]) -> int:
    return sum(1 << d for d in reduced)


def _shared(shape: Sequence[int], strides: Sequence[int]) -> list[int]:
    """Return the strides with 0 where values are shared; a dimension of size 1 counts as shared."""
    return [0 if size == 1 else step for size, step in zip(shape, strides, strict=True)]


def _signed(word: int) -> int:
    return (word + 2**63) % 2**64 - 2**63
