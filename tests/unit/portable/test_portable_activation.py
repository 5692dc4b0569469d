"""Portable mode begins and ends, in this thread and those it starts; what would get past it is refused."""

from __future__ import annotations

import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn

import samebits
from samebits.errors import SamebitsError, SamebitsWarning
from samebits.portable import activation
from samebits.portable._dispatch import PortableMode, uses_registration
from samebits.portable.activation import PortableActivation, check_subnormals
from samebits.portable.backends import library


def is_portable() -> bool:
    """Whether this thread's ops go through portable mode: it refuses `ndtri`."""
    try:
        torch.special.ndtri(torch.ones(1))
    except SamebitsError:
        return True
    return False


def test_start_and_stop():
    """Once each, whatever is called twice; the fixture `no_leaks` sees to what stays."""
    portable = PortableActivation()
    assert not portable.running
    portable.start()
    portable.start()
    assert portable.running
    assert is_portable()
    portable.stop()
    portable.stop()
    assert not is_portable()


def test_they_nest():
    """The inner one ends, the outer one stays."""
    with PortableActivation():
        with PortableActivation():
            assert is_portable()
        assert is_portable()
        with PortableMode():
            assert is_portable()
        assert is_portable()
    assert not is_portable()


def test_an_error_inside_leaves_nothing():
    """It comes through as it is."""
    with pytest.raises(KeyError), PortableActivation():
        raise KeyError
    assert not is_portable()


def test_threads_started_inside():
    """Modes are per thread: ours goes along."""
    found = []

    class Own(threading.Thread):
        def run(self) -> None:
            found.append(is_portable())

    with PortableActivation():
        for thread in (threading.Thread(target=lambda: found.append(is_portable())), Own()):
            thread.start()
            thread.join()
        with ThreadPoolExecutor(2) as pool:
            found += pool.map(lambda _: is_portable(), range(4))
    thread = Own()
    thread.start()
    thread.join()

    assert found == [True] * 6 + [False]


def test_worker_processes_of_a_loader():
    """A fork has the mode of the thread that forks."""

    class Portable(torch.utils.data.Dataset):
        def __len__(self):
            return 2

        def __getitem__(self, index):
            return is_portable()

    loader = torch.utils.data.DataLoader(Portable(), num_workers=1, multiprocessing_context="fork")
    with PortableActivation():
        assert all(batch.all() for batch in loader)


@pytest.mark.parametrize(
    "compiling",
    [
        lambda: torch.compile(nn.Linear(2, 2)),
        lambda: torch.compile(mode="default"),
        lambda: nn.Linear(2, 2).compile(),
        lambda: torch.jit.trace(nn.Conv1d(2, 2, 1), torch.ones(1, 2, 3)),
        lambda: torch.jit.trace_module(nn.Linear(2, 2), {"forward": torch.ones(1, 2)}),
    ],
)
def test_compiling_is_refused(compiling):
    """Where the script asks for it."""
    with PortableActivation(), pytest.raises(SamebitsError) as caught:
        compiling()

    assert caught.value.slug == "portable-compiled"
    assert __file__ in str(caught.value)


COMPILED_BEFORE = """
import torch
from samebits.errors import SamebitsError
from samebits.portable.activation import PortableActivation
def broken(graph, inputs):
    return lambda *args: print("compiled") or graph(*args)
compiled = torch.compile(lambda x: torch.special.ndtri(x) + 1, backend=broken)
compiled(torch.ones(2))
with PortableActivation():
    try:
        compiled(torch.ones(2))
    except SamebitsError as error:
        print(error.slug)
compiled(torch.ones(2))
"""


def test_code_that_was_compiled_before_runs_uncompiled():
    """And compiled again afterwards."""
    done = subprocess.run([sys.executable, "-c", COMPILED_BEFORE], capture_output=True, text=True, check=True)

    assert done.stdout == "compiled\nportable-op\ncompiled\n"


def test_the_compiler_is_not_imported_for_small_tensors():
    """Its import takes a second, and torch's Python code for tensors without contents begins with it."""
    script = (
        "import sys, torch, samebits\nwith samebits.portable(): torch.ones(3).cumsum(0).sinc()\n"
        "print('torch._dynamo' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout == "False\n"


COMPILED_BY_TORCH = """
import torch
from samebits.errors import SamebitsError
from samebits.portable.activation import PortableActivation
BEFORE
x = torch.rand(50)
with PortableActivation():
    try:
        y = torch.cond(torch.tensor(True), lambda x: x.sin(), lambda x: x.cos(), (x,))
        print(torch.equal(y, x.sin()))
    except SamebitsError as error:
        print(error.slug)
"""


@pytest.mark.parametrize("before", ["", "import torch._dynamo"])
def test_what_torch_itself_compiles_is_portable_or_refused_by_name(before):
    """Without an error of the compiler, which would trace portable mode."""
    script = COMPILED_BY_TORCH.replace("BEFORE", before)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout == ("True\n" if uses_registration() else "portable-op\n")
    assert not done.stderr


def test_what_no_mode_sees_is_refused():
    """FBGEMM computes inside a composite function, with other bits on other instruction sets."""
    assert "fbgemm_linear_int8_weight_fp32_activation" in activation.past_the_mode()
    before = {name: getattr(torch, name) for name in activation.past_the_mode()}
    weight = torch.ones(4, 8)
    with PortableActivation(), pytest.raises(SamebitsError) as caught:
        torch.fbgemm_pack_gemm_matrix_fp16(weight)

    assert caught.value.slug == "portable-op"
    assert "aten.fbgemm_pack_gemm_matrix_fp16" in str(caught.value)
    assert __file__ in str(caught.value)
    with PortableActivation():
        for name in before:
            with pytest.raises(SamebitsError, match=name):
                getattr(torch, name)()
    assert all(getattr(torch, name) is function for name, function in before.items())


def test_flushing_subnormals_is_refused():
    """Both ways to come by it."""
    with PortableActivation():
        torch.set_flush_denormal(False)
        with pytest.raises(SamebitsError) as caught:
            torch.set_flush_denormal(True)
    assert caught.value.slug == "portable-subnormals"

    if not torch.set_flush_denormal(True):
        pytest.skip("this processor cannot flush them")
    try:
        with pytest.raises(SamebitsError) as caught:
            PortableActivation().start()
        assert caught.value.slug == "portable-subnormals"
    finally:
        torch.set_flush_denormal(False)
    check_subnormals()


def test_subnormals_flushed_meanwhile(monkeypatch):
    """A library that was loaded inside may have done it: the end says so, and everything is put back."""
    portable = PortableActivation()
    portable.start()

    def flushed() -> None:
        raise SamebitsError("flushed", slug="portable-subnormals")

    monkeypatch.setattr(activation, "check_subnormals", flushed)
    with pytest.raises(SamebitsError):
        portable.stop()
    assert not is_portable()


def test_kernels_that_this_machine_lacks_are_refused_before_the_block_begins(monkeypatch):
    monkeypatch.setenv("SAMEBITS_PORTABLE_BACKEND", "wrong")
    monkeypatch.setattr(activation, "load", library.load.__wrapped__)
    begun = []
    with (
        pytest.raises(SamebitsError, match="SAMEBITS_PORTABLE_BACKEND=wrong") as refused,
        samebits.portable(),
    ):
        begun.append(True)
    assert refused.value.slug == "portable-backend"
    assert not begun
    assert not is_portable()


def test_it_is_said_that_there_are_no_kernels(monkeypatch):
    monkeypatch.setattr(activation, "load", lambda: None)
    with pytest.warns(SamebitsWarning, match="no C kernels"), samebits.portable():
        pass
    monkeypatch.setenv("SAMEBITS_PORTABLE_BACKEND", "reference")  # who asks for it knows
    with warnings.catch_warnings(), samebits.portable():
        warnings.simplefilter("error")
