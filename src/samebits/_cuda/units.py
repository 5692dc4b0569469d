"""What is compiled at a time: a source of native/cuda with its macros. Builds read it: it needs no torch."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from samebits._cuda.nvrtc import MAIN, Program
from samebits._cuda.sources import read_sources
from samebits._cuda.tile_shapes import CONV_SHAPES, SHAPES, SPLIT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from samebits._cuda.tile_shapes import ConvShape, TileShape

_ELEMENTWISE = "portable_elementwise.cu"
_ELEMENTWISE_PARTS = 7
_BOTH = (False, True)


class Unit(NamedTuple):
    """A source and what it is compiled with.

    Args:
        file: of native/cuda.
        macros: that are defined before it.
    """

    file: str
    macros: tuple[tuple[str, int | str], ...] = ()

    def program(self) -> Program:
        """Return its text with all that it includes, as they are now."""
        sources = read_sources()
        defined = "".join(f"#define {name} {value}\n" for name, value in self.macros)
        included = f'{defined}#include "{self.file}"\n'
        return Program(self.file, sources | {MAIN: included})


DIGEST = Unit("digest.cu")
REDUCE, ROWS = Unit("portable_reduce.cu"), Unit("portable_rows.cu")
PRODUCTS, PLACES = Unit("portable_products.cu"), Unit("portable_places.cu")


@cache
def elementwise_part(part: int) -> Unit:
    """Return a share of what works on each value by itself, by its number in the source."""
    return Unit(_ELEMENTWISE, (("PART", part),))


OTHERS = elementwise_part(_ELEMENTWISE_PARTS - 1)


@cache
def tiles(shape: TileShape, *, a_along_k: bool, b_along_k: bool) -> Unit:
    """Return the product of matrices by tiles of a shape, for operands contiguous along k or across it."""
    return Unit("gemm.cu", tuple(shape.macros(a_along_k=a_along_k, b_along_k=b_along_k).items()))


@cache
def convolutions(shape: ConvShape) -> Unit:
    """Return convolutions, and the gradients of their weights, by tiles of a shape."""
    return Unit("portable_conv.cu", tuple(shape.macros().items()))


def all_units() -> Iterator[Unit]:
    """Yield each unit that samebits loads."""
    yield from (DIGEST, REDUCE, ROWS, PRODUCTS, PLACES)
    yield from map(elementwise_part, range(_ELEMENTWISE_PARTS))
    for shape, a_along_k, b_along_k in product((*SHAPES, SPLIT), _BOTH, _BOTH):
        yield tiles(shape, a_along_k=a_along_k, b_along_k=b_along_k)
    yield from map(convolutions, CONV_SHAPES)
