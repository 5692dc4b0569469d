"""A launch that a driver refuses is refused, with the same error."""

from __future__ import annotations

import ctypes
import threading
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch

from samebits._cuda.nvrtc import compile_program, machine_code
from samebits._cuda.units import DIGEST, ROWS

pytestmark = pytest.mark.gpu

INVALID_VALUE, INVALID_CONTEXT, INVALID_HANDLE, OUT_OF_RESOURCES, NOT_SUPPORTED = 1, 201, 400, 701, 801
MOST_DYNAMIC, NUM_REGS, MOST_THREADS = 8, 4, 0
ASKED_FOR_NOTHING, MOST = 48 << 10, 227 << 10
OWN_SHARED = 2048  # of digest_2x1, beside what a launch asks for
BOUND = 256  # its __launch_bounds__


@dataclass(frozen=True)
class Launch:
    """What cuLaunchKernel is given."""

    function: ctypes.c_void_p | None
    grid: tuple[int, int, int] = (1, 1, 1)
    block: tuple[int, int, int] = (32, 1, 1)
    shared: int = 0
    stream: int = 0
    arguments: object = None


class Driver:
    """The fake driver, and functions of one module."""

    def __init__(self, unit) -> None:
        self.zeros = torch.zeros(8, dtype=torch.int64, device="cuda")  # makes the context current
        self.library = ctypes.CDLL("libcuda.so.1")
        self._module = ctypes.c_void_p()
        code = compile_program(unit.program(), machine_code((9, 0)), torch.version.cuda)
        assert self.library.cuModuleLoadData(ctypes.byref(self._module), code) == 0

    def function(self, name: str) -> ctypes.c_void_p:
        """A function whose attributes nobody has set."""
        found = ctypes.c_void_p()
        assert self.library.cuModuleGetFunction(ctypes.byref(found), self._module, name.encode()) == 0
        return found

    def attribute(self, function: ctypes.c_void_p, number: int) -> int:
        """What the driver says of a function."""
        value = ctypes.c_int()
        assert self.library.cuFuncGetAttribute(ctypes.byref(value), number, function) == 0
        return value.value

    def launch(self, what: Launch) -> int:
        """The error; 0 if there is none."""
        status = self.library.cuLaunchKernel(
            what.function,
            *what.grid,
            *what.block,
            what.shared,
            ctypes.c_void_p(what.stream),
            what.arguments,
            None,
        )
        torch.cuda.synchronize()
        return int(status)


def no_tensors(driver: Driver) -> list[ctypes.c_ulonglong]:
    """The arguments of the digest of no tensors: lists that are empty, their length, sums, digests."""
    zeros = ctypes.c_ulonglong(driver.zeros.data_ptr())
    return [zeros, zeros, ctypes.c_ulonglong(0), zeros, zeros]


def addresses(values: list[ctypes.c_ulonglong]) -> object:
    """Where the arguments of a launch lie."""
    return (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))


@pytest.fixture(scope="module")
def driver():
    return Driver(DIGEST)


@pytest.fixture(scope="module")
def arguments(driver):
    """Those of both kernels of the digest, of which one takes the first four."""
    values = no_tensors(driver)
    yield addresses(values)
    del values


@pytest.fixture
def legal(driver, arguments):
    """A launch that does nothing."""
    return Launch(driver.function("digest_2x1"), arguments=arguments)


def test_a_legal_launch(driver, legal):
    assert driver.launch(legal) == 0
    assert driver.launch(replace(legal, block=(BOUND, 1, 1), shared=ASKED_FOR_NOTHING - OWN_SHARED)) == 0


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"function": None}, INVALID_HANDLE),
        ({"function": ctypes.c_void_p(0x1234)}, INVALID_HANDLE),
        ({"grid": (0, 1, 1)}, INVALID_VALUE),
        ({"grid": (1, 0, 1)}, INVALID_VALUE),
        ({"grid": (1, 1, 0)}, INVALID_VALUE),
        ({"grid": (1 << 31, 1, 1)}, INVALID_VALUE),
        ({"grid": (1, 65536, 1)}, INVALID_VALUE),
        ({"grid": (1, 1, 65536)}, INVALID_VALUE),
        ({"block": (0, 1, 1)}, INVALID_VALUE),
        ({"block": (BOUND + 1, 1, 1)}, INVALID_VALUE),
        ({"block": (1, 1, 65)}, INVALID_VALUE),
        ({"block": (2, 2, 1)}, NOT_SUPPORTED),  # legal on a GPU
        ({"shared": ASKED_FOR_NOTHING - OWN_SHARED + 1}, INVALID_VALUE),
        ({"stream": 0x1234}, INVALID_HANDLE),
        ({"arguments": None}, INVALID_VALUE),
        ({"arguments": (ctypes.c_void_p * 4)()}, INVALID_VALUE),
    ],
    ids=str,
)
def test_a_launch_that_is_refused(driver, legal, changes, error):
    assert driver.launch(replace(legal, **changes)) == error


def test_a_block_has_at_most_1024_threads(driver, arguments):
    """Also where a kernel has no bound of its own."""
    wide = Launch(driver.function("digest_finish"), block=(1025, 1, 1), arguments=arguments)
    assert driver.launch(wide) == INVALID_VALUE
    assert driver.attribute(wide.function, MOST_THREADS) == 1024


def test_a_block_has_at_most_65536_registers():
    """A kernel without a bound may need more than 64 for a thread: its blocks are then smaller."""
    driver = Driver(ROWS)
    function = driver.function("attention_weights_f64")
    registers = driver.attribute(function, NUM_REGS)
    assert registers > 64
    assert driver.launch(Launch(function, block=(1024, 1, 1))) == OUT_OF_RESOURCES


def test_shared_memory_is_asked_for(driver, legal):
    ask, more = driver.library.cuFuncSetAttribute, replace(legal, shared=ASKED_FOR_NOTHING)
    assert driver.attribute(legal.function, MOST_DYNAMIC) == ASKED_FOR_NOTHING - OWN_SHARED
    assert driver.launch(more) == INVALID_VALUE
    assert ask(legal.function, MOST_DYNAMIC, ASKED_FOR_NOTHING) == 0
    assert driver.launch(more) == 0
    assert driver.launch(replace(more, shared=ASKED_FOR_NOTHING + 1)) == INVALID_VALUE
    assert driver.launch(replace(more, function=driver.function("digest_2x2"))) == INVALID_VALUE


@pytest.mark.parametrize(
    ("attribute", "value", "error"),
    [
        (MOST_DYNAMIC, MOST - OWN_SHARED, 0),
        (MOST_DYNAMIC, MOST - OWN_SHARED + 1, INVALID_VALUE),
        (MOST_DYNAMIC, -1, INVALID_VALUE),
        (NUM_REGS, 32, INVALID_VALUE),
    ],
)
def test_an_attribute_has_limits(driver, legal, attribute, value, error):
    before = driver.attribute(legal.function, attribute)
    assert driver.library.cuFuncSetAttribute(legal.function, attribute, value) == error
    assert driver.attribute(legal.function, attribute) == (before if error else value)


def test_an_attribute_of_no_function(driver):
    assert driver.library.cuFuncSetAttribute(None, MOST_DYNAMIC, 0) == INVALID_HANDLE


def test_a_stream_that_was_ended(driver, legal):
    """A launch is refused, and what the runtime does on a stream."""
    stream, library = ctypes.c_void_p(), driver.library
    assert library.cudaStreamCreate(ctypes.byref(stream)) == 0
    on_it = replace(legal, stream=stream.value)
    assert driver.launch(on_it) == 0
    assert library.cudaStreamDestroy(stream) == 0
    assert driver.launch(on_it) == INVALID_HANDLE
    assert library.cudaStreamSynchronize(stream) == INVALID_HANDLE
    assert library.cudaMemsetAsync(None, 0, ctypes.c_size_t(0), stream) == INVALID_HANDLE
    assert library.cudaStreamDestroy(stream) == INVALID_HANDLE
    library.cudaGetLastError()  # torch would find it


def test_a_thread_without_a_context(driver, legal):
    """It is current once the thread has used the device."""
    found = []

    def launch():
        call = driver.library.cuLaunchKernel
        words = (legal.function, 1, 1, 1, 32, 1, 1, 0, None, legal.arguments, None)
        found.append(call(*words))
        driver.library.cudaStreamSynchronize(None)
        found.append(call(*words))

    thread = threading.Thread(target=launch)
    thread.start()
    thread.join()
    assert found == [INVALID_CONTEXT, 0]


def test_a_kernel_that_the_code_does_not_have(driver):
    """Though there is a host build of it, from another source."""
    found = ctypes.c_void_p()
    get = driver.library.cuModuleGetFunction
    assert get(ctypes.byref(found), driver._module, b"softmax_f32") == 500


OTHER_DEVICE = """
import ctypes, sys
sys.path.insert(0, sys.argv[1])
from dataclasses import replace
import torch
from test_fake_launches import DIGEST, Driver, Launch, addresses, no_tensors
driver = Driver(DIGEST)
values = no_tensors(driver)
launch = Launch(driver.function("digest_2x1"), arguments=addresses(values))
one, other = torch.cuda.Stream("cuda:0"), torch.cuda.Stream("cuda:1")
event = torch.cuda.Event()
event.record()
on_other_stream = driver.launch(replace(launch, stream=other.cuda_stream))
with torch.cuda.device(1):
    from_other_device = driver.launch(replace(launch, stream=one.cuda_stream)), driver.launch(launch)
    recorded = driver.library.cudaEventRecord(ctypes.c_void_p(event.cuda_event), None)
print(on_other_stream, *from_other_device, recorded)
"""


def test_streams_and_functions_and_events_of_another_device(run):
    found = run("-c", OTHER_DEVICE, str(Path(__file__).parent), FAKE_GPU_COUNT="2")
    assert found.stdout.split() == [str(INVALID_HANDLE)] * 4, found.stderr
