"""A kernel that reads or writes what a GPU has no address for ends, and the device with it."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.gpu

PROGRAM = """
import sys
import torch
from samebits.portable.backends.cuda_kernels import CudaKernels

kernels, out = CudaKernels(0), torch.zeros(64, device="cuda")

def exponential(x, out, numel=64):
    kernels.elementwise_unary(
        is_f64=False, function=0, numel=numel, x=x.data_ptr(), out=out.data_ptr()
    )
    torch.cuda.synchronize()

"""
ENDS = "an illegal memory access was encountered"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("exponential(torch.ones(64), out)", "reads 4 bytes"),
        ("exponential(out, torch.ones(64))", "writes 4 bytes"),
        ("exponential(torch.ones(64, device='cuda:1'), out)", "memory of device 1"),
        ("exponential(out, out, 129)", "no memory of a device"),
    ],
    ids=["read-of-the-host", "write-to-the-host", "another-device", "past-the-end"],
)
def test_an_address_that_a_gpu_does_not_have(run, call, said):
    found = run("-c", PROGRAM + call, FAKE_GPU_COUNT="2", PYTORCH_NO_CUDA_MEMORY_CACHING="1")
    assert ENDS in found.stderr, found.stderr
    [line] = [line for line in found.stderr.splitlines() if line.startswith("fake GPU:")]
    assert "the kernel" in line
    assert said in line


def test_freed_memory(run):
    """By its old address."""
    call = """
x = torch.ones(64, device="cuda")
class Old:
    def __init__(self, address): self.data_ptr = lambda: address
old = Old(x.data_ptr())
exponential(old, out)
print("fine")
del x
exponential(old, out)
"""
    found = run("-c", PROGRAM + call, PYTORCH_NO_CUDA_MEMORY_CACHING="1")
    assert found.stdout == "fine\n"
    assert ENDS in found.stderr


def test_pinned_memory_is_read_and_written(run):
    call = """
x, y = torch.zeros(64).pin_memory(), torch.zeros(64).pin_memory()
exponential(x, out)
exponential(x, y)
print(out.sum().item(), y.sum().item())
"""
    assert run("-c", PROGRAM + call).stdout == "64.0 64.0\n"


def test_nothing_is_written_there(run):
    call = """
x = torch.zeros(64)
try:
    exponential(out, x)
except RuntimeError:
    print(x.sum().item())
"""
    assert run("-c", PROGRAM + call).stdout == "0.0\n"


def test_nothing_works_after_it(run):
    """Also on another stream, and for operations of torch."""
    call = """
try:
    exponential(torch.ones(64), out)
except RuntimeError:
    pass
for use in (lambda: out + 1, lambda: out.tolist(), lambda: torch.cuda.Stream().synchronize()):
    try:
        use()
        print("works")
    except RuntimeError as error:
        print("illegal" in str(error))
"""
    assert run("-c", PROGRAM + call).stdout.split() == ["True"] * 3


def test_a_kernel_that_ended_so_leaves_the_others(run):
    """Its fibers are left where they are; a kernel whose threads wait for each other is ended too."""
    call = """
from samebits.digest._backends import backend_of
backend = backend_of(out.device)
table = backend.make_table(backend.words_of([out]), 1)
wrong = torch.zeros_like(table.words, device="cpu").copy_(table.words.cpu())
class Wrong:
    words, sums, count, units = wrong, table.sums, 1, 1
backend._launch(Wrong)
torch.cuda.synchronize()
"""
    found = run("-c", PROGRAM + call)
    assert "the kernel digest_2x1 on device 0 reads 8 bytes" in found.stderr, found.stderr
    assert ENDS in found.stderr
