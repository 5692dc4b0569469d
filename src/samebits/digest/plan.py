"""Digests of the same tensors again and again, such as the state at every step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits.digest.tensors import describe, digest_many, read, run_again

if TYPE_CHECKING:
    from array import array
    from collections.abc import Sequence

    import torch


class DigestPlan:
    """Prepared descriptors of some tensors.

    Before each use it is checked that their memory, dtypes and shapes are still the same; where not (a
    parameter whose `.data` was replaced, a tensor resized), the descriptors are made anew. Not noticed:
    strides that change alone, within the same memory and shape (`square.t_()`).

    Args:
        tensors: of any kind; those that are not plain CPU tensors make the plan as slow as `digest_many`.
    """

    def __init__(self, tensors: Sequence[torch.Tensor]) -> None:
        self._tensors = tuple(tensors)
        self._words: array[int] | None = None
        self._seen: list[object] = []

    def digest(self) -> bytes:
        """16 bytes for each tensor, in order."""
        digests = read(self._tensors)
        if digests is not None:
            return digests
        words = self._words
        if words is None or self._look() != self._seen:
            words = self._prepare()
        result = None if words is None else run_again(words, len(self._tensors))
        return digest_many(self._tensors) if result is None else result

    def _look(self) -> list[object]:
        return [x for t in self._tensors for x in (t.data_ptr(), t.dtype, t.shape)]

    def _prepare(self) -> array[int] | None:
        self._words = describe(self._tensors)
        self._seen = [] if self._words is None else self._look()
        return self._words
