"""The fake device has the order of a real one: what is read too early is not there yet."""

import contextlib
import threading
import time

import pytest
import torch
from fake_gpu.ops import overloads

import samebits
from samebits.digest import observe_later
from samebits.digest._backends import backend_of

pytestmark = pytest.mark.gpu


@contextlib.contextmanager
def held(stream):
    """A stream that does not reach what comes next before the `with` block ends."""
    gate = threading.Event()
    device, _ = torch._fake_gpu
    with torch.cuda.stream(stream):
        device.call_later(gate.wait, torch.cuda.current_device())
    try:
        yield
    finally:
        gate.set()


def test_a_copy_from_pinned_memory_is_later():
    stream = torch.cuda.Stream()
    target, source = torch.zeros(4, device="cuda"), torch.ones(4).pin_memory()
    torch.cuda.synchronize()
    with held(stream):
        with torch.cuda.stream(stream):
            target.copy_(source, non_blocking=True)
        assert not stream.query()
        source.fill_(2)  # a mistake, which shows
    stream.synchronize()
    assert target.tolist() == [2, 2, 2, 2]


def test_pageable_memory_is_read_at_once():
    stream = torch.cuda.Stream()
    target, source = torch.zeros(4, device="cuda"), torch.ones(4)
    torch.cuda.synchronize()
    with held(stream):
        with torch.cuda.stream(stream):
            target.copy_(source, non_blocking=True)
        source.fill_(2)
    stream.synchronize()
    assert target.tolist() == [1, 1, 1, 1]


def test_another_stream_sees_a_result_when_it_has_waited(run):
    text = """
import torch
side, x = torch.cuda.Stream(), torch.zeros(4, device="cuda")
torch.cuda.synchronize()
with torch.cuda.stream(side):
    result = x + 1
early = result.tolist()
torch.cuda.current_stream().wait_stream(side)
print(early != [1, 1, 1, 1], result.tolist())
"""
    found = run("-c", text, FAKE_GPU_DELAY="30000")  # much longer than it takes to read
    assert found.stdout.strip() == "True [1.0, 1.0, 1.0, 1.0]", found.stdout + found.stderr


def test_an_event_is_reached_after_what_is_before_it():
    stream, event = torch.cuda.Stream(), torch.cuda.Event(enable_timing=True)
    start = torch.cuda.Event(enable_timing=True)
    start.record(stream)
    with held(stream):
        event.record(stream)
        assert not event.query()
    event.synchronize()
    assert event.query()
    assert start.elapsed_time(event) > 0


def test_a_graph_runs_when_it_is_replayed():
    x = torch.ones(3, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x * 2
        y += 1
    x.fill_(5)
    graph.replay()
    assert y.tolist() == [11, 11, 11]


def test_nothing_random_is_in_a_graph():
    """Each launch would draw the same."""
    x = torch.ones(3, device="cuda")
    with pytest.raises(NotImplementedError, match="bernoulli"), torch.cuda.graph(torch.cuda.CUDAGraph()):
        x.bernoulli_()


def test_memory_ends(run):
    found = run("-c", "import torch; torch.empty(1 << 27, device='cuda')", FAKE_GPU_MEMORY=str(1 << 26))
    assert "OutOfMemoryError" in found.stderr


def test_two_devices(run):
    found = run("-c", "import torch; print(torch.ones(3, device='cuda:1').sum().device)", FAKE_GPU_COUNT="2")
    assert found.stdout.strip() == "cuda:1", found.stderr


def test_an_op_that_nothing_computes_is_refused():
    """It must not leave memory as it is."""
    with pytest.raises(NotImplementedError, match="batch_norm_stats"):
        torch.batch_norm_stats(torch.ones(4, 4, device="cuda"), 1e-5)


def test_a_kernel_of_torchs_own_is_refused(run):
    """Here nothing is overridden."""
    found = run("-c", "import torch; torch.ones(3, device='cuda')", PYTHONPATH="")
    assert "operation not supported" in found.stderr


def test_a_kernel_that_a_program_compiles():
    """NVRTC says what it needs, and a build for the host runs."""
    text = """
extern "C" __global__ void __launch_bounds__(64) add(float *x, int by, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        x[i] += by;
}
"""
    x = torch.ones(1000, device="cuda")  # makes the context current
    add = torch.cuda._compile_kernel(text, "add")
    add(grid=(2, 1, 1), block=(64, 1, 1), args=(x, 2, 999))
    assert x.tolist() == [3.0] * 999 + [1.0]
    with pytest.raises(RuntimeError, match="invalid argument"):
        add(grid=(1, 1, 1), block=(128, 1, 1), args=(x, 2, 999))


def test_two_kernels_of_one_name():
    text = 'extern "C" __global__ void put(float *x) {{ __shared__ float y[{0}]; y[0] = {0}; x[0] = y[0]; }}'
    x = torch.zeros(1, device="cuda")
    kernels = [torch.cuda._compile_kernel(text.format(n), "put") for n in (2, 3)]
    for kernel, written in zip(kernels, (2, 3), strict=True):
        kernel(args=(x,))
        assert x.item() == written


def test_a_kernel_that_is_none_for_the_host():
    text = 'extern "C" __global__ void trap(float *x) { asm volatile("trap;"); x[0] = __clock(); }'
    with pytest.raises(RuntimeError, match="the fake device cannot run this kernel"):
        torch.cuda._compile_kernel(text.replace("__clock()", "clock()"), "trap")


def test_other_processes_get_no_memory():
    with pytest.raises(RuntimeError, match="not supported"):
        torch.ones(3, device="cuda").untyped_storage()._share_cuda_()


def test_the_kernels_of_the_cpu_serve_almost_all():
    """The rest are allocation, views and what needs no kernel."""
    own = [name for name in torch._C._dispatch_get_registrations_for_dispatch_key("CUDA") if "aten::" in name]
    assert len(overloads()) > 1200
    assert len(own) - len(overloads()) < 40


def test_generators_give_the_same_again():
    def draw():
        torch.cuda.manual_seed(3)
        return [
            torch.rand(3, device="cuda").tolist(),
            torch.nn.functional.dropout(torch.ones(8).cuda()).tolist(),
        ]

    assert draw() == draw()
    state = torch.cuda.get_rng_state()
    first = torch.randn(5, device="cuda").tolist()
    assert torch.randn(5, device="cuda").tolist() != first
    torch.cuda.set_rng_state(state)
    assert torch.randn(5, device="cuda").tolist() == first


def test_a_digest_that_is_read_before_its_event_is_another(monkeypatch):
    """What the tests of digests rest on: the wait for the stream is needed, and taking it out shows."""
    x = torch.arange(64.0)
    on_device, other = x.cuda(), (x + 1).cuda()
    kernel = backend_of(on_device.device)._add
    launch, (device, _) = kernel.launch, torch._fake_gpu

    def launch_late(*arguments):
        device.call_later(lambda: time.sleep(1), 0)
        launch(*arguments)

    monkeypatch.setattr(kernel, "launch", launch_late)
    assert samebits.digest(on_device) == samebits.digest(x)
    with monkeypatch.context() as patch:
        patch.setattr(torch.cuda.Event, "synchronize", lambda _: None)
        early = samebits.digest(other)  # of memory that holds what was there before
    torch.cuda.synchronize()
    assert early != samebits.digest(other) == samebits.digest(x + 1)


def test_a_digest_that_nobody_reads_is_written_to_no_memory_of_others(monkeypatch):
    """What it is written to is kept until then."""
    tensor = torch.arange(64.0, device="cuda")
    kernel = backend_of(tensor.device)._finish
    launch, (device, _) = kernel.launch, torch._fake_gpu

    def launch_late(*arguments):
        device.call_later(lambda: time.sleep(1), 0)
        launch(*arguments)

    monkeypatch.setattr(kernel, "launch", launch_late)
    observe_later([tensor])
    pinned = [torch.empty(2, dtype=torch.int64, pin_memory=True).fill_(7) for _ in range(4)]
    torch.cuda.synchronize()
    assert [each.tolist() for each in pinned] == [[7, 7]] * 4


def test_zeros_without_memory():
    """Forward-mode differentiation makes them, for what has no tangent."""
    zeros = torch._efficientzerotensor((3,), device="cuda")
    linear = torch.nn.Linear(3, 2, device="cuda")
    x = torch.ones(1, 3, device="cuda")

    assert zeros._is_zerotensor()
    assert torch.equal((zeros + 1).cpu(), torch.ones(3))
    _, tangent = torch.func.jvp(linear, (x,), (x,))
    assert torch.allclose(tangent.cpu(), linear.weight.sum(1).cpu())


def test_a_histogram_of_integers():
    """Only CUDA has it; mixtures of experts count their tokens so."""
    experts = torch.tensor([3, 0, 3, 1], dtype=torch.int32, device="cuda")

    assert torch.histc(experts, bins=4, min=0, max=3).tolist() == [1, 1, 0, 2]
