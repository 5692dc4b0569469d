"""Digests of tensors on a GPU, by the kernels: the same as of the same contents on the CPU."""

import contextlib
import ctypes
import itertools

import pytest
import torch

import samebits
from samebits.digest import (
    DigestPlan,
    _definition,
    digest,
    digest_many,
    observe,
    observe_later,
    storage_addresses,
)
from samebits.digest._backends import backend_of
from samebits.digest.pending import is_pending, read
from samebits.records.reader import RecordReader

pytestmark = pytest.mark.gpu

DTYPES = [getattr(torch, name) for name in _definition.DTYPES if hasattr(torch, name)]
LENGTHS = (0, 1, 7, 8, 9, 1023, 1024, 1025, 64 * 1024 - 1, 64 * 1024 + 1, 3_000_001)


def random_bytes(size, seed=0):
    """The same on every machine."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (size,), dtype=torch.uint8, generator=generator)


def test_the_kernels_are_used():
    """Not the torch operations that stand in where they cannot be compiled."""
    assert backend_of(torch.device("cuda")).name == "cuda"
    assert backend_of(torch.device("cuda", 0)) is backend_of(torch.device("cuda"))


def test_lengths():
    """Of all sizes around words, blocks and units, in one launch."""
    cpu = [random_bytes(length, length) for length in LENGTHS]
    assert digest_many([tensor.cuda() for tensor in cpu]) == digest_many(cpu)


def test_memory_that_begins_anywhere():
    """Views that begin at each byte of two words."""
    whole = random_bytes(70_000)
    on_gpu = whole.cuda()
    ranges = [slice(start, start + 66_000) for start in range(17)]
    assert digest_many([on_gpu[r] for r in ranges]) == digest_many([whole[r] for r in ranges])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtypes(dtype):
    """All bytes, as elements of each dtype."""
    cpu = random_bytes(16 * 1024)
    assert digest(cpu.cuda().view(dtype)) == digest(cpu.view(dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.complex64], ids=str)
def test_views(dtype):
    """Transposed, with gaps, expanded, of one element, negated and conjugated."""
    cpu = torch.randn(40, 30, 20, dtype=dtype)
    gpu = cpu.cuda()
    views = [
        lambda t: t.permute(2, 0, 1),
        lambda t: t[::3, 1::2],
        lambda t: t[:, :1].expand(40, 7, 20),
        lambda t: t[3, 4, 5],
        lambda t: t[5:5],
        torch._neg_view,
        lambda t: t.conj(),
        lambda t: t.to(memory_format=torch.contiguous_format)[1:],
    ]
    assert digest_many([view(gpu) for view in views]) == digest_many([view(cpu) for view in views])


def test_tensors_of_both_devices_in_any_order():
    """An optimizer's state has counters on the CPU between moments on the GPU."""
    cpu = [torch.randn(n) for n in (1, 300, 70_000)]
    mixed = [t for pair in zip(cpu, [t.cuda() for t in cpu], strict=True) for t in pair]
    expected = digest_many(cpu)
    found = digest_many(mixed)
    pieces = [found[at : at + 16] for at in range(0, len(found), 16)]
    assert b"".join(pieces[::2]) == b"".join(pieces[1::2]) == expected


def test_many_small_tensors():
    """More than a launch has thread blocks."""
    cpu = [random_bytes(1 + n % 50, n) for n in range(5000)]
    assert digest_many([t.cuda() for t in cpu]) == digest_many(cpu)


def test_more_than_four_gigabytes():
    """Sizes and indices have 64 bits."""
    gpu = torch.full((5 << 30,), 3, dtype=torch.uint8, device="cuda")
    gpu[-1] = 4
    assert digest(gpu) == digest(gpu.cpu())


def test_what_another_stream_computes_is_waited_for():
    """The digest is queued on the stream that is current, behind what computes the tensor."""
    side = torch.cuda.Stream()
    large = torch.randn(4096, 4096, device="cuda")
    with torch.cuda.stream(side):
        side.wait_stream(torch.cuda.default_stream())
        result = large
        for _ in range(20):
            result = torch.tanh(result @ large)
        found = digest(result)
    torch.cuda.synchronize()
    assert found == digest(result.cpu())


def test_a_graph_is_captured():
    """Nothing is read then, and the capture goes on; after a replay there are values."""
    weight, inputs = torch.randn(64, 64, device="cuda"), torch.randn(8, 64, device="cuda")
    inputs @ weight
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = inputs @ weight
        captured = digest(result)
    graph.replay()
    assert digest(result) == digest((inputs @ weight).cpu())
    assert captured == digest(torch.empty(8, 64, device="meta"))


def test_default_device_and_inference():
    """Whatever mode the script is in."""
    cpu = torch.randn(100)
    gpu = cpu.cuda()
    with torch.device("cuda"), torch.inference_mode(), torch.autocast("cuda"):
        assert digest(gpu) == digest(cpu)


def test_a_plan_follows_its_tensors():
    """Values, memory, shapes and devices of a model and its optimizer change from step to step."""
    gpu = [torch.randn(n, device="cuda") for n in (3, 300, 70_000)]
    tensors = [gpu[0], torch.ones(1), gpu[1], gpu[2].view(700, 100).t()]
    plan = DigestPlan(tensors)
    for change in (
        lambda: None,
        lambda: gpu[0].add_(1),
        lambda: setattr(gpu[1], "data", torch.randn(5, device="cuda")),
        lambda: gpu[2].mul_(2),
        lambda: gpu[0].resize_(2),
        lambda: setattr(gpu[1], "data", torch.randn(5)),
    ):
        change()
        assert plan.digest() == digest_many([tensor.cpu() for tensor in tensors])
        assert plan.digest() == digest_many(tensors)


def test_a_plan_in_a_captured_graph():
    """As `digest_many`: there are no values then, and the capture goes on."""
    tensors = [torch.randn(8, device="cuda"), torch.randn(9, device="cuda")]
    plan = DigestPlan(tensors)
    before = plan.digest()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        tensors[0].add_(1)
        captured = plan.digest()
    assert captured == digest_many([torch.empty(8, device="meta"), torch.empty(9, device="meta")])
    assert plan.digest() == before
    graph.replay()
    assert plan.digest() == digest_many([tensor.cpu() for tensor in tensors]) != before


def test_what_is_observed():
    """Digests, a key that is equal for equal shapes and dtypes, and where the storages begin."""
    tensors = [torch.randn(4, 5, device="cuda"), torch.randn(0, device="cuda")]
    tensors.append(tensors[0].view(-1)[6:])
    digests, kinds, bases = observe(tensors)
    assert digests == digest_many(tensors)
    assert kinds == observe([torch.zeros_like(tensor) for tensor in tensors])[1]
    assert kinds != observe(tensors[1:])[1]
    assert bases[:8] == bases[16:] != bytes(8) == bases[8:16]
    assert bases == storage_addresses(tensors)


def test_what_is_read_later_is_of_the_moment():
    """Whatever is written to the memory afterwards, freed or taken by others."""
    tensors = [torch.randn(n, device="cuda") for n in (3, 300, 70_000)]
    expected = digest_many([tensor.cpu() for tensor in tensors])
    later = observe_later(tensors)[0]
    assert is_pending(later)
    tensors[0].zero_()
    del tensors[1:]
    others = [torch.full((n,), 7.0, device="cuda") for n in (300, 70_000)]
    assert read(later) == read(later) == expected != digest_many([tensors[0], *others])


def test_a_plan_is_begun_again_before_it_was_read():
    """Each time has its own results, on one stream or on several, with tensors of the CPU between."""
    gpu = [torch.zeros(70_000, device="cuda"), torch.zeros(5, device="cuda")]
    tensors = [gpu[0], torch.zeros(3), gpu[1]]
    plan, side = DigestPlan(tensors), torch.cuda.Stream()
    begun, expected = [], []
    for turn in range(6):
        stream = side if turn % 3 == 2 else torch.cuda.current_stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for tensor in tensors:
                tensor.fill_(turn)
            begun.append(plan.begin())
        torch.cuda.current_stream().wait_stream(stream)
        expected.append(digest_many([torch.full(tensor.shape, float(turn)) for tensor in tensors]))
    assert [read(each) for each in reversed(begun)] == expected[::-1]


def test_many_that_nobody_reads():
    """They are kept until the kernels have written them, and not longer."""
    for n in range(300):
        observe_later([torch.full((1000,), float(n), device="cuda")])
    torch.cuda.synchronize()
    observe_later([torch.ones(4, device="cuda")])
    assert len(backend_of(torch.device("cuda"))._running) == 1


@pytest.mark.parametrize("level", ["step", "op"])
def test_a_step_waits_for_no_digest(tmp_path, monkeypatch, level):
    """They are read when events are written. The record is as if each had been waited for."""

    def train(name):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1)).cuda()
        optimizer, x = torch.optim.Adam(model.parameters()), torch.randn(16, 4).cuda()
        waits = []
        with samebits.record(tmp_path / name, level=level):
            for _ in range(6):
                waits.append(len(waited))
                optimizer.zero_grad()
                model(x).square().mean().backward()
                optimizer.step()
        return [later - earlier for earlier, later in itertools.pairwise(waits)]

    waited = []
    synchronize = torch.cuda.Event.synchronize
    monkeypatch.setattr(torch.cuda.Event, "synchronize", lambda e: (waited.append(e), synchronize(e)))
    monkeypatch.setattr("samebits.recording.session.FLUSH_SECONDS", 3600)
    monkeypatch.setattr("samebits.records.writer.FLUSH_ROWS", 10_000)
    assert train("a.sbr")[1:] == [0] * 4  # with the first step the facts of the run are written
    assert waited
    train("b.sbr")
    with RecordReader(tmp_path / "a.sbr") as a, RecordReader(tmp_path / "b.sbr") as b:
        first, second = ([e for e in record.events() if e.kind != "rng"] for record in (a, b))
    assert [event.digests for event in first] == [event.digests for event in second]
    states = [event.digests for event in first if event.kind == "step"]
    assert len(set(states)) == len(states) >= 6
    assert bytes(16) not in {each for digests in states for each in digests}


def external_stream():
    """A stream that other code has made."""
    handle = ctypes.c_void_p()
    assert int(torch.cuda.cudart().cudaStreamCreate(ctypes.addressof(handle))) == 0
    return torch.cuda.ExternalStream(handle.value)


@contextlib.contextmanager
def as_current(stream):
    """Make a stream the current one by a function."""
    before = torch.accelerator.current_stream()
    torch.accelerator.set_stream(stream)
    yield
    torch.accelerator.set_stream(before)


def stream_of_any_device():
    """A stream of the class that is not CUDA's."""
    if not hasattr(torch.Stream, "__enter__"):
        pytest.skip("this release cannot make it the current one")
    return torch.Stream(device="cuda")


def itself(stream):
    """What `with` takes."""
    return stream


@pytest.mark.parametrize(
    ("make", "use"),
    [
        (torch.cuda.Stream, torch.cuda.stream),
        (external_stream, torch.cuda.stream),
        (stream_of_any_device, itself),
        (stream_of_any_device, torch.cuda.stream),
        (stream_of_any_device, as_current),
    ],
    ids=["cuda-stream", "external-stream", "stream-entered", "stream-set", "stream-of-the-accelerator"],
)
def test_state_that_another_stream_writes_is_waited_for(tmp_path, make, use):
    """A copy that is made beside the training is in the step in which it was begun."""
    model = torch.nn.Linear(512, 512).cuda()
    model.register_buffer("shadow", torch.zeros(512, 512, device="cuda"))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    sources = [torch.full((512, 512), float(n), device="cuda") for n in range(1, 5)]
    with samebits.record(tmp_path / "a.sbr"):
        side = make()
        for source in sources:
            with use(side):
                for _ in range(20):
                    model.shadow.copy_(source, non_blocking=True)
            model(torch.ones(2, 512, device="cuda")).sum().backward()
            optimizer.step()
            torch.cuda.current_stream().wait_stream(side)
    with RecordReader(tmp_path / "a.sbr") as record:
        shown = [
            digests
            for event in record.events()
            if event.kind == "step"
            for info, digests in zip(event.tensors, event.digests, strict=True)
            if info.name == "shadow"
        ]
    assert shown[:4] == [digest_many([source]) for source in sources]
    assert torch.cuda.Stream.__new__.__module__ == "torch.cuda.streams"
    assert not hasattr(torch.Stream.__enter__, "__wrapped__")


def test_what_a_replayed_graph_computes(tmp_path):
    """The replay is no operation, and what reads its results sees them."""
    x = torch.ones(300, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x * 2
    x.fill_(5)
    with samebits.record(tmp_path / "a.sbr", level="op"):
        graph.replay()
        y.sum().item()
    with RecordReader(tmp_path / "a.sbr") as record:
        ops = {event.op: event.digests for event in record.events() if event.kind == "op"}
    assert "aten::mul.Tensor" not in ops
    assert ops["aten::sum.default"][0] == digest_many([torch.full((300,), 10.0)])
