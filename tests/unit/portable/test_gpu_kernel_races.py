"""Races in the kernels for a GPU, looked for without one: built for the host, each access is watched.

Two threads that access a byte with no barrier between them, one of them to write; threads of a block of which
some come to a barrier and others do not; dynamic shared memory that is read before it is written; a copy that
nobody waited for.
"""

from __future__ import annotations

import ctypes
import json
import shutil

import pytest
from host_kernels_support import TESTS, built, load, races_in, shared_folder, trained

GOLDEN = json.loads((TESTS / "golden/portable.json").read_text())["digests"]
TRAININGS = ("conv_autoencoder", "lstm", "gpt")
pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
# Each is the body of a kernel of two blocks of 64 threads, with 256 `numbers` in memory.
SHARED = "__shared__ int shared[64]; const int me = threadIdx.x, other = 63 - me;"
COPY = (
    "GEMM_SHARED(tile); const int me = threadIdx.x; gemm_copy_1(tile + me, (const float *)numbers + me);"
    "gemm_commit(); {} ((float *)numbers)[128 + blockIdx.x * 64 + me] = tile[63 - me];"
)
RIGHT = {
    "barrier": SHARED + "shared[me] = me; __syncthreads(); numbers[blockIdx.x * 64 + me] = shared[other];",
    "own numbers": "numbers[blockIdx.x * 64 + threadIdx.x]++;",
    "read by all": "numbers[128 + blockIdx.x * 64 + threadIdx.x] = numbers[0];",
    "bytes beside each other": "((char *)numbers)[blockIdx.x * 64 + threadIdx.x] = 1;",
    "atomic sum": "atomicAdd((unsigned long long *)numbers, 1);",
    "shuffle": "numbers[blockIdx.x * 64 + threadIdx.x] = __shfl_xor_sync(~0u, (int)threadIdx.x, 1);",
    "copy": COPY.format("gemm_wait<0>(); __syncthreads();"),
    "all end early": "if (blockIdx.x == 1) return; __syncthreads();",
}
WRONG = {
    "no barrier": (SHARED + "shared[me] = me; numbers[blockIdx.x * 64 + me] = shared[other];", "at once"),
    "barrier at the next turn": (
        SHARED + "for (int i = 0; i < 2; i++) { shared[me] = i; __syncthreads();"
        "numbers[blockIdx.x * 64 + me] = shared[other]; }",
        "at once",
    ),
    "a shuffle for a barrier": (
        SHARED + "shared[me] = me; __shfl_xor_sync(~0u, me, 1);"
        "numbers[blockIdx.x * 64 + me] = shared[me ^ 1];",
        "at once",
    ),
    "one place of all blocks": ("if (threadIdx.x == 0) numbers[0] = 1;", "two threads write at once"),
    "read of another block": (
        "numbers[blockIdx.x * 64 + threadIdx.x] = numbers[64 - blockIdx.x * 64 + threadIdx.x];",
        "at once",
    ),
    "sum beside an atomic one": (
        "if (threadIdx.x) atomicAdd((unsigned long long *)numbers, 1); else numbers[0]++;",
        "at once",
    ),
    "barrier of some": ("if (threadIdx.x < 32) __syncthreads();", "different places"),
    "barrier and shuffle": (
        "if (threadIdx.x < 32) __syncthreads(); else __shfl_xor_sync(~0u, 1, 1);",
        "different places",
    ),
    "nothing written": (
        "GEMM_SHARED(tile); ((float *)numbers)[blockIdx.x * 64 + threadIdx.x] = tile[threadIdx.x];",
        "nobody wrote",
    ),
    "copy without a barrier": (COPY.format("gemm_wait<0>();"), "nobody wrote"),
    "copy without waiting": (COPY.format("__syncthreads();"), "has not brought"),
    "copy that is not waited for": (COPY.format("gemm_wait<1>(); __syncthreads();"), "has not brought"),
    "copy to the middle of four": (
        "GEMM_SHARED(tile); gemm_copy_4(tile + threadIdx.x, (const float *)numbers);",
        "multiples",
    ),
    "copy from the middle of four": (
        "GEMM_SHARED(tile); if (!threadIdx.x) gemm_copy_4(tile, (const float *)numbers + 1);",
        "multiples",
    ),
    "copy into what is read": (
        COPY.format("gemm_wait<0>(); __syncthreads();") + "gemm_copy_1(tile + me, (const float *)numbers);",
        "has not brought",  # some read it before others begin to copy, and some after
    ),
}


@pytest.fixture(scope="module")
def small_kernels(tmp_path_factory):
    """The kernels above in a library."""
    folder = tmp_path_factory.mktemp("races")
    builder = load(TESTS / "fake_gpu/build.py")
    bodies = [*RIGHT.values(), *(body for body, _ in WRONG.values())]
    kernels = [
        f'extern "C" __global__ void kernel_{i}(int *numbers) {{ {body} }}\nHOST_KERNEL(kernel_{i})\n'
        for i, body in enumerate(bodies)
    ]
    source = folder / "kernels.cpp"
    source.write_text('#include "host_launch.h"\n#include "gemm_tile.h"\n' + "".join(kernels))
    paths = [f"-I{path}" for path in (builder.SOURCES, builder.NATIVE / "cuda")]
    objects = [builder.compiled(source, folder / "kernels.o", *paths, *builder.WATCHED)]
    objects += [
        builder.compiled(builder.SOURCES / f"{name}.cpp", folder / f"{name}.o", *paths)
        for name in ("host_call", "races")
    ]
    builder.link(folder / "kernels.so", objects)
    return ctypes.CDLL(str(folder / "kernels.so"))


def found_in(library, number: int, *, is_reversed: bool) -> str:
    """What is found in a launch of that kernel."""
    memory = (ctypes.c_int * 260)()
    start = ctypes.addressof(memory)
    address = ctypes.c_void_p(start + -start % 16)
    library.call_kernel(
        library[f"host_kernel_{number}"],
        (ctypes.c_uint * 3)(2, 1, 1),
        ctypes.c_uint(64),
        ctypes.c_size_t(256),
        ctypes.c_int(is_reversed),
        (ctypes.c_void_p * 1)(ctypes.addressof(address)),
    )
    return races_in(library)


@pytest.mark.parametrize("is_reversed", [False, True], ids=["forwards", "backwards"])
@pytest.mark.parametrize("name", RIGHT)
def test_nothing_is_found_in_a_right_kernel(name, is_reversed, small_kernels):
    assert found_in(small_kernels, list(RIGHT).index(name), is_reversed=is_reversed) == ""


@pytest.mark.parametrize("is_reversed", [False, True], ids=["forwards", "backwards"])
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_kernel_is_found(name, is_reversed, small_kernels):
    number = len(RIGHT) + list(WRONG).index(name)

    assert WRONG[name][1] in found_in(small_kernels, number, is_reversed=is_reversed)
    assert found_in(small_kernels, number, is_reversed=is_reversed)  # of each launch


def test_nothing_is_found_in_the_kernels(tmp_path_factory):
    """Products, convolutions, reductions, attention, an LSTM; `make test-portable` has all trainings."""
    library = built(shared_folder(tmp_path_factory) / "watched-kernels", is_watched=True)
    found = trained(library, *TRAININGS)

    assert found["digests"] == {name: GOLDEN[name] for name in TRAININGS}
    assert {"gemm_f32", "conv_tile_32", "attention_weights_f32", "lstm_step_f32"} <= set(found["launched"])
