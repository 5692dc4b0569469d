"""The digest in torch operations: without the C library, and for tensors that are not in CPU memory.

Equal values to the C library, by the same definition. Tensors are read where they live, in pieces of a few
megabytes that many small tensors share; the sums of all tensors reach the host in one transfer.
"""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from samebits.digest import _definition as d

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

CHUNK_BLOCKS = 4096
_WORDS = d.LANES * d.STRIPES
_LOW = 0xFFFFFFFF


@dataclass(frozen=True)
class _Piece:
    """Some blocks of a tensor.

    Args:
        tensor: position among the tensors.
        first: index of the first block.
        data: uint8, one-dimensional; a whole number of blocks unless it ends the tensor.
    """

    tensor: int
    first: int
    data: torch.Tensor


class NoReader:
    """The reader where the C module was not built: it reads nothing."""

    def digests(self, _tensors: Sequence[torch.Tensor], /) -> None:
        """See `PlainReader`."""

    observe = bases = digests


class TorchBackend:
    """Digests tensors of any device; it has no faster way for plain ones."""

    name = "torch"
    reader = NoReader()

    def digest_tensors(self, tensors: Sequence[torch.Tensor]) -> bytes:
        """See `Backend`."""
        pairs = zip(block_sums(tensors), tensors, strict=True)
        return b"".join(_close(sums, tensor) for sums, tensor in pairs)

    def digest_plain(self, _tensors: Sequence[torch.Tensor]) -> None:
        """See `CpuBackend`."""

    def observe_plain(self, _tensors: Sequence[torch.Tensor]) -> None:
        """See `CpuBackend`."""

    def prepare(self, tensors: tuple[torch.Tensor, ...]) -> Callable[[], None]:
        """See `CpuBackend`."""
        return partial(self.digest_plain, tensors)

    def digest_memory(self, address: int, n_bytes: int, code: int, _threads: int | None) -> bytes:
        """See `CpuBackend`."""
        memory = (ctypes.c_ubyte * n_bytes).from_address(address) if n_bytes else b""
        return d.close(_sums_of(memory, n_bytes, torch.uint8), n_bytes, code, (n_bytes,))

    def digest_array(self, contents: Any, dtype: str) -> bytes:
        """See `CpuBackend`."""
        code, width = d.DTYPES[dtype]
        flat = contents.copy().reshape(-1)
        integers = getattr(torch, f"int{8 * min(width, 8)}")  # complex128 is two of 8 bytes
        return d.close(_sums_of(flat, flat.size, integers), contents.nbytes, code, contents.shape)


def _sums_of(memory: Any, size: int, dtype: torch.dtype) -> list[int]:
    """Return the 16 sums of memory that has a buffer; without elements it may have none."""
    data = torch.frombuffer(memory, dtype=dtype) if size else torch.empty(0, dtype=torch.uint8, device="cpu")
    return block_sums([data])[0]


def block_sums(tensors: Sequence[torch.Tensor]) -> list[list[int]]:
    """Return the 16 sums of each tensor."""
    if not tensors:
        return []
    with torch.no_grad():
        plain = [t.detach() for t in tensors]
        sums = torch.zeros(len(plain), 2 * d.SUMS, dtype=torch.int64, device=plain[0].device)
        for group in _groups(plain):
            _add_group(group, sums)
        return [[value & d.MASK for value in row] for row in sums.tolist()]


def _close(sums: list[int], tensor: torch.Tensor) -> bytes:
    code, _ = d.DTYPES[str(tensor.dtype).removeprefix("torch.")]
    return d.close(sums, tensor.numel() * tensor.element_size(), code, tuple(tensor.shape))


def _groups(tensors: Sequence[torch.Tensor]) -> Iterator[list[_Piece]]:
    """Yield pieces of all tensors, bundled so that a bundle fills a chunk or ends the list."""
    group: list[_Piece] = []
    left = CHUNK_BLOCKS
    for position, tensor in enumerate(tensors):
        first = 0
        for data in _pieces(tensor, CHUNK_BLOCKS * d.BLOCK):
            blocks = -(-data.numel() // d.BLOCK)
            if blocks > left:
                yield group
                group, left = [], CHUNK_BLOCKS
            group.append(_Piece(position, first, data))
            left -= blocks
            first += blocks
    if group:
        yield group


def _pieces(tensor: torch.Tensor, n_bytes: int) -> Iterator[torch.Tensor]:
    """Yield the logical contents as uint8, `n_bytes` at a time; no more of it is copied at once."""
    rest: list[torch.Tensor] = []
    size = 0
    for run in _runs(tensor, n_bytes):
        data = _as_bytes(run)
        while size + data.numel() >= n_bytes:
            take = n_bytes - size
            yield torch.cat([*rest, data[:take]]) if rest else data[:take]
            rest, size, data = [], 0, data[take:]
        if data.numel():
            rest.append(data)
            size += data.numel()
    if rest:
        yield torch.cat(rest) if len(rest) > 1 else rest[0]


def _runs(tensor: torch.Tensor, n_bytes: int) -> Iterator[torch.Tensor]:
    """Yield the elements in logical order, as tensors that are contiguous or small enough to copy."""
    size = tensor.numel() * tensor.element_size()
    lazy = tensor.is_conj() or tensor.is_neg()
    if size == 0:
        return
    if size <= n_bytes or (tensor.is_contiguous() and not lazy):
        flat = tensor.resolve_conj().resolve_neg().contiguous().view(-1)
        yield flat if flat.stride(0) == 1 else flat.as_strided((1,), (1,))  # one element has any stride
        return
    per_row = size // tensor.shape[0]
    if per_row > n_bytes:
        for row in tensor:
            yield from _runs(row, n_bytes)
        return
    for rows in torch.split(tensor, n_bytes // per_row):
        yield from _runs(rows, n_bytes)


def _as_bytes(run: torch.Tensor) -> torch.Tensor:
    data = run.view(torch.uint8)
    if sys.byteorder == "big":
        part = run.element_size() // (2 if run.is_complex() else 1)
        data = data.view(-1, part).flip(1).reshape(-1)
    return data


def _words_of(data: torch.Tensor) -> torch.Tensor:
    """Return blocks x stripes x lanes of int64, the last block padded with zeros."""
    missing = -data.numel() % d.BLOCK
    if missing:
        data = torch.nn.functional.pad(data, (0, missing))
    elif data.storage_offset() % 8 or data.data_ptr() % 8:
        data = data.clone()
    if sys.byteorder == "big":
        data = data.view(-1, 8).flip(1).reshape(-1)
    return data.view(torch.int64).view(-1, d.STRIPES, d.LANES)


def _add_group(group: list[_Piece], sums: torch.Tensor) -> None:
    """Add the blocks of some pieces to the sums of their tensors."""
    device = sums.device
    words = [_words_of(piece.data) for piece in group]
    counts = [w.shape[0] for w in words]
    index = torch.cat(
        [torch.arange(p.first, p.first + n, device=device) for p, n in zip(group, counts, strict=True)]
    )
    values = block_values(torch.cat(words) if len(words) > 1 else words[0], index)
    if len(group) == 1:
        sums[group[0].tensor] += values.sum(0)
        return
    owner = torch.repeat_interleave(
        torch.tensor([piece.tensor for piece in group], device=device), torch.tensor(counts, device=device)
    )
    sums.index_add_(0, owner, values)


def block_values(words: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Return what each block adds to the sums: blocks x 16."""
    chain = torch.tensor([_signed(s) for s in d.STARTS], device=words.device).expand(words.shape[0], d.LANES)
    trail = torch.zeros_like(chain)
    for stripe in range(d.STRIPES):
        chain = _step(chain, words[:, stripe])
        trail = trail + chain
    salt = index[:, None]
    ends = (_mix(chain ^ (salt * _signed(d.INDEX_1))), _mix(trail ^ (salt * _signed(d.INDEX_2))))
    return torch.cat([end[:, : d.SUMS] + end[:, d.SUMS :] for end in ends], dim=1)


def _step(chain: torch.Tensor, word: torch.Tensor) -> torch.Tensor:
    mixed = chain ^ word
    return (mixed ^ _shift(mixed, 29)) * d.CHAIN


def _mix(x: torch.Tensor) -> torch.Tensor:
    x = (x ^ _shift(x, 32)) * d.MIX_1
    x = (x ^ _shift(x, 29)) * d.MIX_2
    return x ^ _shift(x, 32)


def _shift(x: torch.Tensor, by: int) -> torch.Tensor:
    """Shift to the right logically: torch shifts int64 arithmetically."""
    return (x >> by) & ((1 << (64 - by)) - 1)


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value
