"""Random values by filling: uniform, Bernoulli, integers; and the factories made of them."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch

from samebits.errors import SamebitsError
from samebits.portable._devices import device_types
from samebits.portable._registry import declares_handlers, handles, rounds_itself
from samebits.portable._tensors import LOW_PRECISION
from samebits.portable.kernels import random as kernels

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from samebits.portable._registry import Handler, Table


def next_key(generator: torch.Generator | None) -> int:
    """Return the next 64 bits of a generator (of torch's default one if None).

    `random_` with these bounds stores the generator's raw output (ATen/native/cpu/DistributionTemplates.h,
    random_full_64_bits_range); mt19937 is an exact integer algorithm, the same on every platform.

    Raises:
        SamebitsError: if the generator is not one of the CPU.
    """
    if generator is not None and generator.device.type != "cpu":
        raise SamebitsError(
            f"a generator of {generator.device} was found where portable mode takes keys from the CPU's: "
            "use torch.Generator()",
            slug="portable-op",
        )
    drawn: Any = torch.empty((), dtype=torch.int64, device="cpu")
    return int(drawn.random_(-(2**63), None, generator=generator or torch.default_generator)) & (2**64 - 1)


@functools.cache
def judge() -> torch.Generator:
    """Return a generator for torch's own checks of arguments, on tensors without elements."""
    return torch.Generator()


def needs_values(out: Tensor) -> bool:
    """Tell whether `out` needs values: on a device that has kernels and not empty.

    Raises:
        SamebitsError: if it is of a kind that has no portable random values.
    """
    if out.device.type == "meta":
        return False
    if out.device.type not in device_types() or out.is_complex() or out.layout != torch.strided:
        raise SamebitsError(
            f"portable mode has no random values for a {out.layout} tensor of {out.dtype} on {out.device}: "
            "draw them on the CPU as floats, or run without portable mode",
            slug="portable-op",
        )
    return out.numel() > 0


def compute_dtype(out: Tensor) -> torch.dtype:
    """Return the dtype that values for `out` are computed in."""
    return torch.float32 if out.dtype in LOW_PRECISION else out.dtype


def work_like(out: Tensor, dtype: torch.dtype) -> Tensor:
    """Return `out` itself where a kernel can fill it, else a tensor that `store` copies from."""
    if out.dtype == dtype and out.is_contiguous() and not out.is_neg():
        return out
    return torch.empty(out.shape, dtype=dtype, device=out.device)


def store(out: Tensor, values: Tensor) -> Tensor:
    """Write the values to `out`, rounded once."""
    return out if values is out else out.copy_(values)


@handles("aten::uniform_")
@rounds_itself
def uniform_(self: Tensor, from_: float = 0, to: float = 1, *, generator: Any = None) -> Tensor:
    """Compute `aten::uniform_`."""
    if not -30_000 <= from_ <= to <= 30_000:  # which no dtype would refuse
        torch.empty(0, dtype=self.dtype, device="cpu").uniform_(from_, to, generator=judge())
    if not needs_values(self):
        return self
    work = work_like(self, compute_dtype(self))
    kernels.uniform_into(work, next_key(generator), from_, to, self.dtype)
    if work.dtype == self.dtype:
        return store(self, work)
    bounds = torch.tensor([from_, to], dtype=torch.float32, device=self.device)
    rounded, low, high = work.to(self.dtype), *bounds.to(self.dtype)
    return self.copy_(torch.where(rounded >= high, low, rounded))


@handles("aten::bernoulli_.float")
@rounds_itself
def bernoulli_(self: Tensor, p: float = 0.5, *, generator: Any = None) -> Tensor:
    """Compute `aten::bernoulli_.float`."""
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p}")
    if not needs_values(self):
        return self
    work = work_like(self, torch.float32 if self.dtype == torch.float32 else torch.uint8)
    kernels.bernoulli_into(work, next_key(generator), p)
    return store(self, work)


@handles("aten::bernoulli_.Tensor")
@rounds_itself
def bernoulli_tensor_(self: Tensor, p: Tensor, *, generator: Any = None) -> Tensor:
    """Compute `aten::bernoulli_.Tensor`."""
    if not needs_values(self):
        return self
    if not p.is_floating_point():
        raise RuntimeError(f"expected probabilities tensor to have floating type, got {p.dtype}")
    given = (p if p.dtype == torch.float64 else p.float()).expand(self.shape)
    if not bool(((given >= 0) & (given <= 1)).all()):
        raise RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true, but got false.")
    return self.copy_(kernels.bernoulli_each(given, next_key(generator)))


@handles("aten::bernoulli")
@rounds_itself
def bernoulli(self: Tensor, *, generator: Any = None) -> Tensor:
    """Compute `aten::bernoulli`; `self` holds the probabilities."""
    return bernoulli_tensor_(torch.empty_like(self), self, generator=generator)


@handles("aten::bernoulli.p")
@rounds_itself
def bernoulli_p(self: Tensor, p: float, *, generator: Any = None) -> Tensor:
    """Compute `aten::bernoulli.p`."""
    return bernoulli_(torch.empty_like(self), p, generator=generator)


@handles("aten::native_dropout")
def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """Compute `aten::native_dropout`."""
    mask = torch.empty_like(input, dtype=torch.bool)
    if train is False:
        return input.clone(), mask.fill_(True)
    bernoulli_(mask, 1 - p)
    scale = 0.0 if p == 1 else 1 / (1 - p)
    return (input * mask).mul_(scale), mask


@handles("aten::native_dropout_backward")
def native_dropout_backward(grad_output: Tensor, mask: Tensor, scale: float) -> Tensor:
    """Compute `aten::native_dropout_backward`."""
    return grad_output * mask * scale  # gradients of integers become floats, as in torch


@handles("aten::random_")
@rounds_itself
def random_(self: Tensor, *, generator: Any = None) -> Tensor:
    """Compute `aten::random_`: all values from 0 on that the dtype counts without gaps."""
    return _integers(self, 0, _last(self.dtype) + 1, generator)


@handles("aten::random_.to")
@rounds_itself
def random_to_(self: Tensor, to: int, *, generator: Any = None) -> Tensor:
    """Compute `aten::random_.to`."""
    return random_from_(self, 0, to, generator=generator)


@handles("aten::random_.from")
@rounds_itself
def random_from_(self: Tensor, from_: int, to: int | None, *, generator: Any = None) -> Tensor:
    """Compute `aten::random_.from`."""
    torch.empty(0, dtype=self.dtype, device="cpu").random_(from_, to, generator=judge())
    to = _last(self.dtype) + 1 if to is None else to
    return _integers(self, from_, to - from_, generator)


def _last(dtype: torch.dtype) -> int:
    """Return the last of the integers from 0 on that a dtype has without gaps."""
    if dtype == torch.bool:
        return 1
    return round(2 / torch.finfo(dtype).eps) if dtype.is_floating_point else torch.iinfo(dtype).max


def _integers(out: Tensor, low: int, size: int, generator: Any) -> Tensor:
    if not needs_values(out):
        return out
    work = work_like(out, torch.int64)
    kernels.integers_into(work, next_key(generator), low, size)
    return store(out, work)


def randint(high: int, size: Any, *, generator: Any = None, **options: Any) -> Tensor:
    """Compute `aten::randint`."""
    return randint_low(0, high, size, generator=generator, **options)


def randint_low(low: int, high: int, size: Any, *, generator: Any = None, **options: Any) -> Tensor:
    """Compute `aten::randint.low`."""
    return random_from_(torch.empty(size, **_int64(options)), low, high, generator=generator)


def randint_like(self: Tensor, high: int, *, generator: Any = None, **options: Any) -> Tensor:
    """Compute `aten::randint_like`."""
    return randint_like_low(self, 0, high, generator=generator, **options)


def randint_like_tensor(self: Tensor, high: Tensor, *, generator: Any = None, **options: Any) -> Tensor:
    """Compute `aten::randint_like.Tensor`."""
    return randint_like_low(self, 0, int(high), generator=generator, **options)


def randint_like_low(self: Tensor, low: int, high: int, *, generator: Any = None, **options: Any) -> Tensor:
    """Compute `aten::randint_like.low_dtype`."""
    return random_from_(torch.empty_like(self, **options), low, high, generator=generator)


def randperm(n: int, *, generator: Any = None, **options: Any) -> Tensor:
    """Compute `aten::randperm`: the order of one number of 64 bits for each index, equal ones by index."""
    out = torch.empty(n, **_int64(options))
    if n > _last(out.dtype) + 1:
        raise RuntimeError(f"n is too large for result tensor type: {n} for {out.dtype}")
    if not needs_values(out):
        return out
    return out.copy_(kernels.permutation(next_key(generator), n))


def _int64(options: dict[str, Any]) -> dict[str, Any]:
    return {**options, "dtype": options.get("dtype") or torch.int64}


def made_by(filling: Handler, into: Callable[..., Tensor] = torch.empty) -> Handler:
    """Return a factory of filled tensors: `filling` in place, without parameters of its own."""

    def make(shape: Any, *, generator: Any = None, **options: Any) -> Tensor:
        filled: Tensor = filling(into(shape, **options), generator=generator)
        return filled

    return make


def functional(filling: Handler) -> Handler:
    """Return the op that returns a new tensor instead of filling one."""

    def fill_new(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        filled: Tensor = filling(torch.empty_like(self), *args, **kwargs)
        return filled

    return fill_new


def into_out(handler: Handler) -> Handler:
    """Return the op with `out`, for one whose other parameters are dtype and device of the result."""

    def fill_out(*args: Any, out: Tensor, generator: Any = None, **_: Any) -> Tensor:
        value = handler(*args, generator=generator, dtype=out.dtype, device=out.device)
        return out.resize_(value.shape).copy_(value)

    return fill_out


def with_overloads(name: str, handler: Handler, overloads: tuple[str, str, str, str]) -> Table:
    """Return a factory under all its names: plain, with a generator, and both of them with `out`.

    Args:
        name: of the op.
        handler: the factory.
        overloads: the four overloads ("" for the default one).
    """
    names = [f"{name}.{overload}" if overload else name for overload in overloads]
    into = into_out(handler)
    return dict(zip(names, (handler, handler, into, into), strict=True))


PLAIN_OVERLOADS = ("", "generator", "out", "generator_out")
"""The overloads of most factories, for `with_overloads`."""


@declares_handlers
def _factories() -> Table:
    handlers: dict[str, Handler] = {
        **with_overloads("aten::rand", made_by(uniform_), PLAIN_OVERLOADS),
        **with_overloads("aten::rand_like", made_by(uniform_, torch.empty_like), PLAIN_OVERLOADS),
        **with_overloads("aten::randint", randint, PLAIN_OVERLOADS),
        **with_overloads(
            "aten::randint", randint_low, ("low", "low_generator", "low_out", "low_generator_out")
        ),
        **with_overloads("aten::randint_like", randint_like, PLAIN_OVERLOADS),
        **with_overloads(
            "aten::randint_like",
            randint_like_tensor,
            ("Tensor", "Tensor_generator", "Tensor_out", "Tensor_generator_out"),
        ),
        **with_overloads(
            "aten::randint_like",
            randint_like_low,
            ("low_dtype", "low_generator_dtype", "low_dtype_out", "low_generator_dtype_out"),
        ),
        **with_overloads("aten::randperm", randperm, PLAIN_OVERLOADS),
        "aten::uniform": functional(uniform_),
        "aten::random": functional(random_),
        "aten::random.to": functional(random_to_),
        "aten::random.from": functional(random_from_),
    }
    return {name: rounds_itself(handler) for name, handler in handlers.items()}
