"""C (each instruction set of this machine), torch operations and the plain reference give equal digests."""

import random
import threading
from array import array

import pytest
import torch
from digest_reference import CONSTANTS, digest_contents

from samebits.digest import _backends, _definition, native, tensors
from samebits.digest._torch_backend import TorchBackend
from samebits.digest.tensors import digest_bytes, digest_many, digest_memory

LIBRARY = native.load()
NATIVE_SETS = [
    name for name in ("avx512", "avx2", "neon", "scalar") if LIBRARY and LIBRARY.select(name.encode())
]
if LIBRARY:
    LIBRARY.select(b"")
DTYPES = {
    getattr(torch, name): code for name, (code, _) in _definition.DTYPES.items() if hasattr(torch, name)
}
# Sizes around words, stripes, blocks and the panels of the gather.
LENGTHS = (0, 1, 7, 8, 63, 64, 127, 128, 129, 1023, 1024, 1025, 2048, 5000, 65535, 65536, 70001)


@pytest.fixture(params=[*NATIVE_SETS, "torch"])
def digest_with(request):
    """`digest_many` of one back end."""
    if request.param == "torch":
        yield TorchBackend().digest_tensors
        return
    assert LIBRARY.select(request.param.encode())
    assert tensors.backend_name() == request.param
    yield digest_many
    LIBRARY.select(b"")


def reference(tensor):
    """The reference digest of a tensor."""
    dense = torch.empty(tensor.shape, dtype=tensor.dtype)
    dense.copy_(tensor)
    data = dense.reshape(-1).view(torch.uint8).numpy().tobytes() if dense.numel() else b""
    return digest_contents(data, DTYPES[tensor.dtype], tensor.shape)


def random_bytes(n, seed):
    return torch.randint(0, 256, (n,), dtype=torch.uint8, generator=torch.Generator().manual_seed(seed))


def random_view(rng, dtype):
    """A random view of random data: transposed, sliced with steps, expanded, offset."""
    n_dims = rng.randint(0, 4)
    sizes = [rng.choice((1, 2, 3, 5, 8, 17, 33)) for _ in range(n_dims)]
    padded = torch.Size(size + 2 for size in sizes)
    t = random_bytes(padded.numel() * dtype.itemsize, rng.randrange(1 << 30)).view(dtype).view(padded)
    for dim in range(n_dims):
        t = t.narrow(dim, rng.randint(0, 2), sizes[dim])
        if rng.random() < 0.3:
            t = t[(slice(None),) * dim + (slice(None, None, 2),)]
    t = t.permute(rng.sample(range(n_dims), n_dims))
    if rng.random() < 0.3:
        t = t.unsqueeze(0).expand(rng.randint(1, 3), *t.shape)
    return t


def test_the_library_is_built():
    """Where this is developed there is a compiler: the tests of the C library are not skipped by accident."""
    assert "scalar" in NATIVE_SETS


def test_constants_have_their_origin():
    """The constants of the package are those that docs/reference/digest.md derives."""
    assert list(_definition.STARTS) == CONSTANTS[:16]
    assert (CONSTANTS[16] | 1, CONSTANTS[17] | 1) == (_definition.INDEX_1, _definition.INDEX_2)
    assert list(_definition.FOLD_START) == CONSTANTS[18:20]
    assert (CONSTANTS[20] | 1, CONSTANTS[21] | 1) == (_definition.FOLD_0, _definition.FOLD_1)


def test_dtype_codes_are_distinct():
    codes = [code for code, _ in _definition.DTYPES.values()]
    assert len(set(codes)) == len(codes)
    assert max(codes) < _definition.ABSENT


def test_lengths(digest_with):
    data = [random_bytes(n, n) for n in LENGTHS]
    assert digest_with(data) == b"".join(reference(t) for t in data)


def test_unaligned_memory(digest_with):
    data = random_bytes(3000, 1)
    pieces = [data[offset : offset + 2050] for offset in range(17)]
    assert digest_with(pieces) == b"".join(reference(t) for t in pieces)


def test_dtypes(digest_with):
    """Each dtype, with bytes of every value."""
    data = random_bytes(4096, 2)
    views = [data.view(dtype) for dtype in DTYPES]
    expected = b"".join(digest_contents(data.numpy().tobytes(), DTYPES[v.dtype], v.shape) for v in views)
    assert digest_with(views) == expected
    assert len({expected[i : i + 16] for i in range(0, len(expected), 16)}) == len(views)


@pytest.mark.parametrize(
    "dtype", [torch.uint8, torch.bfloat16, torch.float32, torch.int64, torch.complex128], ids=str
)
def test_views(digest_with, dtype):
    rng = random.Random(str(dtype))
    views = [random_view(rng, dtype) for _ in range(60)]
    assert digest_with(views) == b"".join(reference(t) for t in views)


@pytest.mark.parametrize(
    "dtype", [torch.uint8, torch.int16, torch.float32, torch.float64, torch.complex128], ids=str
)
def test_transposes(digest_with, dtype):
    """Shapes around the squares and lines of the vector transpose, and larger than a panel of the gather."""
    shapes = [(r, c) for r in (2, 15, 16, 17, 64, 65, 130) for c in (2, 3, 16, 33, 70)] + [
        (3, 70000),
        (70000, 3),
    ]
    views = [random_bytes(r * c * dtype.itemsize, r).view(dtype).view(c, r).t() for r, c in shapes]
    dense = [v.contiguous() for v in views]
    assert digest_with(views) == digest_with(dense)
    assert digest_with(dense[:9]) == b"".join(reference(t) for t in dense[:9])


def test_channels_last_and_batches_of_transposes(digest_with):
    images = random_bytes(4 * 3 * 9 * 11 * 4, 3).view(torch.int32).view(4, 3, 9, 11)
    views = [images.to(memory_format=torch.channels_last), images.transpose(1, 2), images.permute(3, 2, 1, 0)]
    assert digest_with(views) == b"".join(reference(t) for t in views)


def test_expanded(digest_with):
    """Stride 0, in front, behind and within."""
    column = random_bytes(40, 4).view(torch.int32).view(10, 1)
    views = [
        column.expand(10, 500),
        column.expand(7, 10, 3),
        column[:1].expand(3000, 1),
        column.t().expand(300, 10),
    ]
    assert digest_with(views) == b"".join(reference(t.contiguous()) for t in views)


def test_larger_than_a_chunk(digest_with):
    """More than the torch back end reads at once, dense, transposed and sliced."""
    big = random_bytes(2 * 5_000_011, 5)[: 2 * 5_000_000].view(torch.int16).view(2500, 2000)
    assert digest_with([big, big.t(), big[:, 3:1503]]) == digest_with(
        [big.clone(), big.t().contiguous(), big[:, 3:1503].contiguous()]
    )
    assert digest_with([big.t()]) == TorchBackend().digest_tensors([big.t()])


def test_position_in_the_list_does_not_matter(digest_with):
    data = [random_bytes(n, n) for n in LENGTHS] * 2
    alone = b"".join(digest_with([t]) for t in data)
    assert digest_with(data) == alone
    assert digest_with([]) == b""


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_any_number_of_threads(threads):
    """Blocks are shared among threads across the borders of tensors; the digests stay."""
    data = [random_bytes(n, n) for n in (3, 0, 2_000_000, 1024, 999, 7_000_001, 5)] + [
        random_bytes(4_000_000, 6).view(2000, 2000).t()
    ]
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(threads)
        assert digest_many(data) == b"".join(digest_many([t.contiguous()]) for t in data)
        assert digest_many(data) == TorchBackend().digest_tensors(data)
    finally:
        torch.set_num_threads(before)


def test_called_from_many_threads():
    """Concurrent calls do not share memory."""
    data = [[random_bytes(700 + 13 * i, 10 * i + k) for k in range(5)] for i in range(8)]
    expected = [digest_many(group) for group in data]
    wrong = []

    def work(i):
        wrong.extend(i for _ in range(300) if digest_many(data[i]) != expected[i])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_memory_and_bytes():
    """Both are uint8 tensors of one dimension."""
    data = random_bytes(3001, 7)
    expected = digest_contents(data.numpy().tobytes(), 2, (3001,))
    assert digest_memory(data.data_ptr(), 3001) == expected
    assert digest_bytes(data.numpy().tobytes()) == expected == digest_many([data])
    assert digest_bytes(b"") == digest_memory(0, 0) == digest_contents(b"", 2, (0,))


def test_without_the_library(choose_backend):
    """The same public functions, when nothing could be compiled."""
    data = [random_bytes(n, n) for n in LENGTHS]
    expected = digest_many(data), digest_bytes(b"abc"), digest_bytes(b"")
    backend = choose_backend("torch")
    assert tensors.backend_name() == "torch"
    assert backend.digest_plain(data) is None
    assert (digest_many(data), digest_bytes(b"abc"), digest_bytes(b"")) == expected


@pytest.mark.skipif(LIBRARY is None, reason="checked by the C library")
@pytest.mark.parametrize("size", [300, 3_000_000])
@pytest.mark.parametrize("missing", [-1, 1, 2, 3, 4])
def test_a_wrong_number_of_words_is_refused(size, missing):
    """Nothing is read beyond the descriptors, short ones and long ones, with and without threads."""
    data = random_bytes(size, 8).view(-1, 3)[:, :2]
    backend = _backends.cpu_backend()
    words = [data.data_ptr(), _definition.header("uint8") | 1 << 12 | 2 << 20, *data.shape, *data.stride()]
    assert backend.digest_described(array("Q", words), 1) == reference(data)
    wrong = array("Q", (words * 2)[: len(words) - missing])
    with pytest.raises(ValueError, match="are not the descriptors of 1 tensors"):
        backend.digest_described(wrong, 1)
    assert (
        LIBRARY.digest_threaded(*wrong.buffer_info(), 1, array("Q", bytes(16)).buffer_info()[0], 2)
        == -1 << 63
    )


def test_a_device_with_a_backend_of_its_own(monkeypatch):
    """Its tensors go there, all of a call at once; without one, torch operations read them."""

    class Fake:
        name = "fake"

        def digest_tensors(self, tensors):
            seen.append(len(tensors))
            return TorchBackend().digest_tensors(tensors)

    seen, backends = [], {"cpu": lambda _: Fake()}
    data = [torch._neg_view(torch.arange(n, dtype=torch.float32)) for n in (5, 9)]
    expected = digest_many(data)
    monkeypatch.setattr(_backends, "_DEVICES", backends)
    assert (digest_many(data), seen) == (expected, [2])
    backends["cpu"] = lambda _: None
    assert (digest_many(data), seen) == (expected, [2])
    assert _backends.backend_of(torch.device("meta")).name == "torch"


@pytest.mark.parametrize("length", [6, 24_000, 3_000_000])
def test_tensors_that_share_memory(length):
    """One after the other in one call: views, parts, transposes, the same again; with and without threads."""
    data = torch.arange(length, dtype=torch.float32)
    table = data.view(-1, 6)
    listed = [
        data, table, table.view(torch.int32), table.t(), table, table, table[1:], data[: length - 6],
        data[6:], table.reshape(-1, 2, 3), table[0:0], data[0:0], data[:1].expand(6), data[:6], data,
    ]  # fmt: skip
    expected = b"".join(digest_many([tensor.clone()]) for tensor in listed)
    assert digest_many(listed) == expected
    assert digest_many(listed[::-1]) == b"".join(
        expected[16 * i : 16 * i + 16] for i in reversed(range(len(listed)))
    )
