"""The kernels of the digest for a GPU, compiled for the CPU from the same source: each thread is a fiber."""

from __future__ import annotations

import ctypes
import shutil
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from host_kernels_support import TESTS, load, races_in

from samebits.digest import digest_many
from samebits.digest._definition import BLOCK, DTYPES

if TYPE_CHECKING:
    from collections.abc import Sequence

NATIVE = TESTS.parent / "native"
COMPILER = shutil.which("g++")
KERNELS = ("digest_1x1", "digest_1x2", "digest_2x1", "digest_2x2")
UNIT = 64 * BLOCK
UNDEFINED = ("-fsanitize=undefined", "-fsanitize-undefined-trap-on-error")
HOST = """
#include "host_grid.h"
#define SB_FN static inline
#include "digest_body.h"

typedef void (*add_kernel)(const uint64_t *, const uint64_t *, uint64_t, digest_word *);
static const add_kernel kernels[] = {digest_1x1, digest_1x2, digest_2x1, digest_2x2};

extern "C" void run(int kernel, int grid, int reverse, const uint64_t *tensors, const uint64_t *first_units,
                    const uint64_t *sizes, uint64_t n, digest_word *sums, uint64_t *out) {
    host_launch({(unsigned)grid, 1, 1}, DIGEST_THREADS, 0, reverse,
                [=] { kernels[kernel](tensors, first_units, n, sums); });
    host_launch({(unsigned)(n + 63) / 64, 1, 1}, 64, 0, reverse,
                [=] { digest_finish(tensors, sizes, n, sums, out); });
}
"""


@pytest.fixture(scope="module", params=["undefined", "races"])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The kernels in a library: what is undefined in C++ ends the program, or races are looked for."""
    if COMPILER is None:
        pytest.skip("no C++ compiler")
    folder, builder = tmp_path_factory.mktemp("cuda"), load(TESTS / "fake_gpu/build.py")
    (folder / "digest.cpp").write_text(HOST)
    paths = [f"-I{path}" for path in (NATIVE, NATIVE / "cuda", builder.SOURCES)]
    is_watched = request.param == "races"
    options = builder.WATCHED if is_watched else UNDEFINED
    objects = [builder.compiled(folder / "digest.cpp", folder / "digest.o", *paths, *options)]
    if is_watched:
        objects.append(builder.compiled(builder.SOURCES / "races.cpp", folder / "races.o"))
    builder.link(folder / "digest.so", objects, *(() if is_watched else UNDEFINED))
    return ctypes.CDLL(str(folder / "digest.so"))


def run(
    library: ctypes.CDLL,
    tensors: Sequence[torch.Tensor],
    kernel: str = "digest_1x1",
    grid: int = 3,
    *,
    reverse: bool = False,
) -> bytes:
    """Return the digests of contiguous tensors, as the kernels give them on `grid` blocks."""
    rows, sizes, firsts = [], [], [0]
    for tensor in tensors:
        code, _ = DTYPES[str(tensor.dtype).removeprefix("torch.")]
        n_bytes = tensor.numel() * tensor.element_size()
        rows.append((tensor.data_ptr(), n_bytes, code, tensor.dim(), len(sizes)))
        sizes.extend(tensor.shape)
        firsts.append(firsts[-1] + -(-n_bytes // UNIT))
    table, first_units, all_sizes = (np.array(x, np.uint64) for x in (rows, firsts, [*sizes, 0]))
    sums, out = np.zeros((len(rows), 16), np.uint64), np.zeros((len(rows), 2), np.uint64)
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (table, first_units, all_sizes)]
    ends = [ctypes.c_void_p(array.ctypes.data) for array in (sums, out)]
    library.run(KERNELS.index(kernel), grid, int(reverse), *pointers, ctypes.c_uint64(len(rows)), *ends)
    assert races_in(library) == ""
    return out.tobytes()


def bytes_at(n_bytes: int, offset: int, seed: int = 0) -> torch.Tensor:
    """Return random bytes that begin `offset` bytes after an address that is a multiple of 64."""
    memory = torch.from_numpy(np.random.default_rng(seed).integers(0, 256, n_bytes + offset + 64, np.uint8))
    start = -memory.data_ptr() % 64 + offset
    return memory[start : start + n_bytes]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("offset", [0, 1, 4, 7, 8, 12])
def test_any_length_and_start(library, kernel, offset):
    """Lengths around words, stripes, blocks and units, wherever the contents begin."""
    around = [0, 8, 128, BLOCK, 16 * BLOCK, UNIT, 3 * UNIT]
    sizes = sorted({max(0, size + more) for size in around for more in (-9, -8, -1, 0, 1, 8, 15)})
    tensors = [bytes_at(size, offset, size) for size in sizes]

    assert run(library, tensors, kernel) == digest_many(tensors)


@pytest.mark.parametrize("kernel", KERNELS)
def test_neither_the_grid_nor_the_order_of_threads_counts(library, kernel):
    """One block of threads or many, forward or backward; several tensors in one launch, some empty."""
    sizes = [5 * UNIT + 77, 0, 3, 2 * UNIT, 0, 40 * BLOCK]
    tensors = [bytes_at(size, 0, i) for i, size in enumerate(sizes)]
    expected = digest_many(tensors)

    for grid in (1, 2, 7, 40):
        assert run(library, tensors, kernel, grid) == expected
    assert run(library, tensors, kernel, 3, reverse=True) == expected


def test_dtype_and_sizes_count(library):
    """All dtypes that can be made from bytes, with several dimensions and none."""
    data = bytes_at(4096, 0)
    names = [name for name in DTYPES if isinstance(getattr(torch, name, None), torch.dtype)]
    tensors = []
    for name in names:
        try:
            tensors.append(data.view(getattr(torch, name)).view(4, -1, 2))
        except RuntimeError:  # noqa: PERF203 - this release of torch makes no tensor of it
            continue
    tensors += [torch.tensor(3.5), torch.empty(0, 3), torch.empty(1, 0, dtype=torch.int8)]

    assert len(tensors) > 15
    assert run(library, tensors) == digest_many(tensors)


def test_a_changed_bit_is_seen(library):
    """The comparison can fail: another bit anywhere gives another digest."""
    data = bytes_at(2 * UNIT + 100, 3)
    before = run(library, [data])
    for at in (0, 1500, UNIT, 2 * UNIT + 99):
        data[at] ^= 4
        assert run(library, [data]) != before
        data[at] ^= 4

    assert run(library, [data]) == before
