"""Portable mode begins and ends, in this thread and those it starts; what would get past it is refused."""

from __future__ import annotations

import _thread
import os
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.pool import ThreadPool

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


def test_they_end_in_any_order():
    """As the blocks of two tasks of asyncio do, which share a thread."""
    first, second, third = (PortableActivation() for _ in range(3))
    first.start()
    second.start()
    first.stop()
    assert is_portable()
    third.start()
    second.stop()
    assert is_portable()
    third.stop()
    assert not is_portable()


def test_a_block_that_was_not_portable_to_its_end_says_so():
    """As where another thread leaves it, or something changed torch's dispatch keys."""
    portable, errors = PortableActivation(), []
    portable.start()

    def stop() -> None:
        with pytest.raises(SamebitsError) as caught:
            portable.stop()
        errors.append(caught.value.slug)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(activation, "is_portable", lambda: False)
        stop()
    assert errors == ["portable-left"]
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


@pytest.mark.parametrize("method", ["submit", "apply_async", "map", "imap"])
def test_pools_of_threads_that_are_older(method):
    """They compute as the thread that gives them the work."""
    with ThreadPoolExecutor(1) as executor, ThreadPool(1) as pool:
        give = {
            "submit": lambda: executor.submit(is_portable).result(),
            "apply_async": lambda: pool.apply_async(is_portable).get(),
            "map": lambda: pool.map(lambda _: is_portable(), [0])[0],
            "imap": lambda: next(pool.imap(lambda _: is_portable(), [0])),
        }[method]
        assert not give()
        with PortableActivation():
            assert give()
        assert not give()


def test_threads_of_the_low_level_module():
    """`_thread` starts them past `threading.Thread`."""
    found, ended = [], threading.Event()

    def run(*, last: bool) -> None:
        found.append(is_portable())
        ended.set() if last else None

    with PortableActivation():
        _thread.start_new_thread(run, (), {"last": True})
        assert ended.wait(60)
    assert found == [True]


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


@pytest.mark.parametrize("before", [True, False])
def test_programs_past_the_dispatcher_are_refused(before):
    """Whether they were compiled before the block or in it. This one calls kernels of torch by itself."""
    scripted = torch.jit.freeze(torch.jit.script(nn.Linear(4, 2).eval()))
    x = torch.rand(3, 4)
    program = torch._C._jit_to_static_module(scripted._c) if before else None
    with PortableActivation(), pytest.raises(SamebitsError) as caught:
        (program or torch._C._jit_to_static_module(scripted._c))(x)
    assert caught.value.slug == "portable-compiled"
    assert __file__ in str(caught.value)
    if program is not None:
        torch.testing.assert_close(program(x), scripted(x))


def test_graphs_of_inductor_are_refused():
    """However they were made; other threads run them."""
    from torch._inductor.output_code import CompiledFxGraph

    before = CompiledFxGraph.__call__
    with PortableActivation(), pytest.raises(SamebitsError, match="CompiledFxGraph"):
        CompiledFxGraph.__call__(None, [])
    assert CompiledFxGraph.__call__ is before


@pytest.mark.parametrize("before", [0, 4])
def test_scripts_are_not_optimized(before):
    """TorchScript does that after the first call, and has other formulas for gradients then."""
    scripted = torch.jit.script(gated if before else Gated())
    x = torch.randn(40, 40, requires_grad=True)
    for _ in range(before):
        torch.autograd.grad(scripted(x), x)
    with PortableActivation():
        (wanted,) = torch.autograd.grad(gated(x), x)
        for _ in range(4):
            assert torch.equal(torch.autograd.grad(scripted(x), x)[0], wanted)
    assert torch._C._jit_set_profiling_mode(True)


def gated(x):
    """What TorchScript has formulas of its own for."""
    return (torch.tanh(x @ x) * torch.sigmoid(x)).sum()


class Gated(nn.Module):
    """The same."""

    def forward(self, x):
        """The same."""
        return (torch.tanh(x @ x) * torch.sigmoid(x)).sum()


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


@pytest.mark.parametrize("way", ["mode", "registration"])
def test_code_that_was_compiled_before_runs_uncompiled(way):
    """And compiled again afterwards."""
    done = subprocess.run(
        [sys.executable, "-c", COMPILED_BEFORE], env={**os.environ, "SAMEBITS_PORTABLE_DISPATCH": way},
        capture_output=True, text=True, check=True,
    )  # fmt: skip

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


EXIT_HANDLER = """
import atexit
def compute():
    print(torch.linspace(-3, 3, 1000).exp().sum().item().hex())
    try:
        torch.special.ndtri(torch.ones(1))
    except SamebitsError as error:
        print(error.slug)
atexit.register(compute)
import torch
from samebits.errors import SamebitsError
from samebits.portable.activation import PortableActivation
PortableActivation().start()
compute()
"""


def test_exit_handlers_from_before_torch_compute_portably():
    """An exit handler of torch takes out kernels that Python code registered, before theirs run."""
    done = subprocess.run([sys.executable, "-c", EXIT_HANDLER], capture_output=True, text=True, check=True)

    value, refused, *at_exit = done.stdout.split()
    assert refused == "portable-op"
    assert at_exit == [value, refused]
    assert not done.stderr


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
