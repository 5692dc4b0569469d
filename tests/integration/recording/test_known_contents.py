"""What the op level does not read again is what it would read: writes beside its ops are noticed."""

from __future__ import annotations

import _thread
import ctypes
import os
import random
import shutil
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import torch.distributed as dist  # noqa: E402
from torch.utils import _python_dispatch  # noqa: E402

from samebits.digest.native import open_observer  # noqa: E402
from samebits.digest.tensors import digest_many, observe  # noqa: E402
from samebits.recording.probes import ops  # noqa: E402
from samebits.recording.probes.contents import Contents  # noqa: E402
from samebits.recording.session import record  # noqa: E402
from samebits.records.reader import RecordReader  # noqa: E402

pytestmark = [
    pytest.mark.skipif(open_observer() is None, reason="not built, or torch is older than 2.10"),
    pytest.mark.skipif(sys.platform != "linux", reason="libraries are only known on Linux"),
]
LARGE = 1 << 16


@pytest.fixture
def watched(monkeypatch):
    """The contents that recordings keep, to ask what they did not read."""
    made = []

    class Kept(Contents):
        def __init__(self, **options):
            super().__init__(**options)
            made.append(self)

    monkeypatch.setattr(ops, "Contents", Kept)
    return made


def spared(watched):
    return watched[-1]._fast.bytes_spared()[0]


def poke(tensor, value=77):
    """Write as nothing can that the recording sees: with an address from before anything was replaced."""
    address = torch.Tensor.__base__.data_ptr(tensor)
    ctypes.memset(address, value, 256)


def last_input(path):
    with RecordReader(path) as reader:
        event = list(reader.events(kinds=("op",)))[-1]
    return event.digests[0]


def numpy_alias(x):
    """Two storages over one memory."""
    return torch.from_numpy(x.numpy())


def in_unfollowed_thread(write):
    done = threading.Event()

    def run():
        write()
        done.set()

    _thread.start_new_thread(run, ())
    assert done.wait(10)


def unseen(write):
    with _python_dispatch._disable_current_modes():
        write()


def keep_version(x):
    with torch.autograd._unsafe_preserve_version_counter(x):
        x.add_(1)


def reset_version(x):
    before = x._version
    x.add_(1)
    torch._C._autograd._unsafe_set_version_counter((x,), (before,))


def fused_step(x):
    rest = [torch.zeros(LARGE) for _ in range(3)]
    torch._fused_adamw_(
        [x], [rest[0] + 1], [rest[1]], [rest[2]], [], [torch.tensor(1.0)],
        lr=0.1, beta1=0.9, beta2=0.99, weight_decay=0.1, eps=1e-8, amsgrad=False, maximize=False,
    )  # fmt: skip


def write_in_child(x):
    x.share_memory_()
    child = os.fork()
    if not child:
        poke(x)
        os._exit(0)
    os.waitpid(child, 0)


def write_hidden(written, given):
    """An op that declares no mutation."""
    with torch.library._scoped_library("samebits_test", "FRAGMENT") as library:
        library.define("liar(Tensor x) -> Tensor")
        library.impl("liar", lambda t: (poke(written), t.clone())[1], "CPU")
        torch.ops.samebits_test.liar(given)


WRITES = {
    "in place": lambda x: x.add_(1),
    "in place without grad": lambda x: torch.no_grad()(x.add_)(1),
    "a view": lambda x: x[10:20].zero_(),
    "data": lambda x: x.data.add_(1),
    "detached": lambda x: x.detach().add_(1),
    "item": lambda x: x.__setitem__(3, 9.0),
    "out": lambda x: torch.add(x, 1, out=x),
    "foreach": lambda x: torch._foreach_add_([x], 1.0),
    "fused optimizer": fused_step,
    "set_": lambda x: x.set_(torch.full((LARGE,), 5.0)),
    "resize_": lambda x: x.resize_(2 * LARGE).fill_(4),
    "data assigned": lambda x: setattr(x, "data", torch.full((LARGE,), 5.0)),
    "numpy": lambda x: x.numpy().__setitem__(0, 8),
    "numpy's asarray": lambda x: np.asarray(x).__setitem__(0, 8),
    "numpy by the class": lambda x: torch.Tensor.__base__.numpy(x).__setitem__(0, 8),
    "from_numpy": lambda x: numpy_alias(x).add_(1),
    "from_dlpack": lambda x: torch.from_dlpack(x).numpy().__setitem__(0, 8),
    "to_dlpack": lambda x: torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x)).numpy().fill(3),
    "untyped storage": lambda x: x.untyped_storage().fill_(3),
    "typed storage": lambda x: x.storage().__setitem__(5, 3.0),
    "storage of the class": lambda x: torch.Tensor.untyped_storage(x).fill_(3),
    "pointer": lambda x: ctypes.memset(x.data_ptr(), 5, 64),
    "pointer by the class": lambda x: ctypes.memset(torch.Tensor.data_ptr(x), 5, 64),
    "const pointer": lambda x: ctypes.memset(x.const_data_ptr(), 5, 64),
    "apply_": lambda x: x.apply_(lambda value: value + 1),
    "map_": lambda x: x.map_(x.clone(), lambda a, b: a + b),
    "map2_": lambda x: x.map2_(x.clone(), x.clone(), lambda a, b, c: a + b + c),
    "another process": write_in_child,
    "version kept": keep_version,
    "version reset": reset_version,
    "modes off": lambda x: unseen(lambda: x.add_(1)),
    "an unfollowed thread": lambda x: in_unfollowed_thread(lambda: x.add_(1)),
    "an op that declares no mutation": lambda x: write_hidden(x, x),
    "an op that writes to what it was not given": lambda x: write_hidden(x, torch.ones(3)),
    "an optimizer's storage": lambda x: torch.UntypedStorage.copy_(
        x.untyped_storage(), torch.full((LARGE,), 2.0).untyped_storage()
    ),
}


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
@pytest.mark.parametrize("way", WRITES)
def test_a_write_beside_the_ops_is_read(tmp_path, watched, way):
    """The input of the next op is what the tensor then held."""
    with record(tmp_path / "a.sbr", level="op") as path:
        x = torch.arange(LARGE) * 0.5
        before = spared(watched)
        x.sum()
        assert spared(watched) > before  # it was known
        old = digest_many([x])
        WRITES[way](x)
        x.neg()
    assert digest_many([x]) != old
    assert last_input(path) == digest_many([x])


@pytest.mark.parametrize("way", ["numpy", "untyped storage", "pointer", "to_dlpack", "__dlpack__"])
def test_an_address_that_was_taken_before_ends_all_trust(tmp_path, watched, way):
    """However long ago: the tensor is read at each use from then on."""
    takes = {
        "numpy": lambda x: x.numpy(),
        "untyped storage": lambda x: x.untyped_storage(),
        "pointer": lambda x: x.data_ptr(),
        "to_dlpack": lambda x: torch.utils.dlpack.to_dlpack(x),  # noqa: PLW0108 - as it is at that time
        "__dlpack__": lambda x: x.__dlpack__(),
    }
    with record(tmp_path / "a.sbr", level="op") as path:
        x = torch.arange(LARGE) * 0.5
        held = takes[way](x)
        x.add_(1)
        before = spared(watched)
        x.sum()
        x.sum()
        assert spared(watched) == before
        poke(x)
        x.neg()
    assert last_input(path) == digest_many([x])
    del held


def test_what_nothing_can_see_is_the_limit(tmp_path, watched, monkeypatch):
    """The other tests would pass if everything were read. With `SAMEBITS_READ_ALL`, this is read as well."""
    for name, is_read in (("a", False), ("b", True)):
        if is_read:
            monkeypatch.setenv("SAMEBITS_READ_ALL", "1")
        with record(tmp_path / f"{name}.sbr", level="op") as path:
            x = torch.arange(LARGE) * 0.5
            poke(x)
            x.neg()
        assert (last_input(path) == digest_many([x])) == is_read


@pytest.mark.parametrize("make", ["from_file", "frombuffer", "from_numpy", "empty", "tensor", "inference"])
def test_memory_that_no_op_made_is_always_read(tmp_path, watched, make):
    """Mapped files, buffers, arrays; memory that is still to be filled; tensors that have no versions."""
    data = bytearray(4 * LARGE)
    (tmp_path / "data").write_bytes(data)

    def inference():
        with torch.inference_mode():
            return torch.arange(LARGE) * 0.5

    makers = {
        "from_file": lambda: torch.from_file(str(tmp_path / "data"), shared=True, size=LARGE),
        "frombuffer": lambda: torch.frombuffer(data, dtype=torch.float32),
        "from_numpy": lambda: torch.from_numpy(np.ones(LARGE, dtype=np.float32)),
        "empty": lambda: torch.empty(LARGE).fill_(3),
        "tensor": lambda: torch.tensor([1.0] * LARGE),
        "inference": inference,
    }
    with record(tmp_path / "a.sbr", level="op") as path:
        x = makers[make]()
        x.sum()
        poke(x)
        x.neg()
    assert last_input(path) == digest_many([x])


def test_a_collective_may_write_after_it_has_returned(tmp_path, watched, monkeypatch):
    """Gloo's threads do."""
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)  # torch replaces it for good
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        with record(tmp_path / "a.sbr", level="op") as path:
            x = torch.arange(LARGE) * 0.5
            work = dist.all_reduce(x, async_op=True)
            x.sum()
            poke(x)
            x.neg()
            work.wait()
    finally:
        dist.destroy_process_group()
    assert last_input(path) == digest_many([x])


def test_a_new_storage_at_an_old_address_is_another(tmp_path, watched):
    """Its maker was not recorded, and its version is that of the old one."""
    with record(tmp_path / "a.sbr", level="op") as path:
        for attempt in range(40):
            size = LARGE << attempt % 4
            x = torch.full((size,), 0.5)
            address = torch.Tensor.__base__.data_ptr(x)
            with _python_dispatch._disable_current_modes():
                del x
                y = torch.full((size,), 7.0)
            if torch.Tensor.__base__.data_ptr(y) == address:
                break
        else:
            pytest.skip("the allocator did not use the memory again")
        y.neg()
    assert last_input(path) == digest_many([y])


def test_ops_of_another_mode_are_not_trusted(tmp_path, watched):
    """A mode of the script, below ours, may do anything instead of the op."""

    class Pokes(_python_dispatch.TorchDispatchMode):
        victim = None

        def __torch_dispatch__(self, op, types, args=(), kwargs=None):
            if self.victim is not None:
                self.victim.add_(1)  # below autograd: no version moves
            return op(*args, **(kwargs or {}))

    with Pokes() as mode, record(tmp_path / "a.sbr", level="op") as path:
        x = torch.arange(LARGE) * 0.5
        x.sum()
        mode.victim = x
        torch.ones(3).neg()
        mode.victim = None
        x.neg()
    assert last_input(path) == digest_many([x])


def test_modes_that_cannot_be_counted_end_all_trust(tmp_path, watched, monkeypatch):
    """A torch without the function that counts them may have one at any time."""
    monkeypatch.delattr(torch._C, "_len_torch_dispatch_stack")
    with record(tmp_path / "a.sbr", level="op") as path:
        x = torch.arange(LARGE) * 0.5
        x.sum()
        assert spared(watched) == 0
        poke(x)
        x.neg()
    assert last_input(path) == digest_many([x])


def test_a_library_for_torch_ends_all_trust(tmp_path):
    """It may take a tensor from its Python object and write, and nothing would show that."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    source, library = tmp_path / "a.c", tmp_path / "a.so"
    source.write_text("int THPVariable_test(void) { return 1; }\n")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    script = f"""
        import ctypes, torch
        from samebits.digest.native import open_observer
        observer, x = open_observer(), torch.ones({LARGE})
        def known():
            before = observer.bytes_spared()[0]
            observer.observe([x], 0, True)
            observer.observe([x], 1, True)
            return observer.bytes_spared()[0] > before
        print(known())
        ctypes.CDLL({str(library)!r})
        print(known())
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], check=True, capture_output=True, text=True
    )
    assert done.stdout.split() == ["True", "False"]


def test_a_storage_is_read_while_another_thread_writes_to_it():
    """From before the op until after it, whatever was known."""
    observer, x = open_observer(), torch.arange(LARGE) * 0.5
    observer.observe([x], 0, True)
    (_, _, bases), marks = observer.begin([x], [x])
    for value in (1, 2):
        poke(x, value)
        assert observer.observe([x], 1, True) == observe([x])
    poke(x, 3)
    assert observer.finish([x], [x], bases, marks, True) == observe([x])
    poke(x, 4)
    assert observer.observe([x], 1, True) != observe([x])  # known again


def test_many_storages_come_and_go():
    """Those that torch has freed are dropped, and the others stay known."""
    observer, kept = open_observer(), [torch.full((1 << 13,), float(i)) for i in range(300)]
    observer.observe(kept, 0, True)
    for i in range(3000):
        observer.observe([torch.full((1 << 13,), float(i))], 0, True)
    before = observer.bytes_spared()[0]
    assert observer.observe(kept, len(kept), True) == observe(kept)
    assert observer.bytes_spared()[0] - before == 300 << 15


def test_threads_write_and_read_one_tensor(tmp_path, watched):
    """Ops of four threads, recorded as they come; at the end what is known is what is there."""
    with record(tmp_path / "a.sbr", level="op") as path:
        x = torch.arange(LARGE) * 0.5
        end = time.monotonic() + 0.5

        def work(number):
            while time.monotonic() < end:
                x.add_(number) if number % 2 else x.sum()

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        x.neg()
    assert last_input(path) == digest_many([x])


# ---- any order of anything


WRITING = ("data", "in place", "unseen", "foreach", "out", "numpy", "pointer")


def programs(seed):
    """A program that makes, views, writes to and exposes tensors at random; the same for the same seed."""
    draw = random.Random(seed)
    pool = [torch.full((128, 256), 1.0)]
    actions = {
        "make": lambda x: pool.append(x.clone() + 1),
        "read": lambda x: x.sum(),
        "view": lambda x: pool.append(x.reshape(-1)[: draw.choice((8192, 16384))].view(64, -1)),
        "transpose": lambda x: pool.append(x.t()),
        "expand": lambda x: pool.append(x[:1].expand(300, -1)),
        "as bytes": lambda x: x.contiguous().view(torch.uint8).sum(),
        "detach": lambda x: pool.append(x.detach()),
        "data": lambda x: x.data.mul_(1.5),
        "in place": lambda x: x.add_(1),
        "out": lambda x: torch.add(x, 1, out=pool[0]),
        "foreach": lambda x: torch._foreach_mul_([pool[0], pool[-1]], 1.25),
        "numpy": lambda x: x.numpy().flat.__setitem__(draw.randrange(64), draw.random()),
        "pointer": lambda x: ctypes.memset(x.data_ptr(), draw.randrange(99), 4),
        "unseen": lambda x: unseen(lambda: x.mul_(0.5)),
        "drop": lambda x: pool.pop(draw.randrange(len(pool))) if len(pool) > 1 else None,
        "matmul": lambda x: x @ x.t(),
        "read data": lambda x: x.data.sum(),
        "resize": lambda x: pool.append(torch.ones(300, 256).resize_(128, 256)),
        "assign": lambda x: setattr(pool[0], "data", torch.full((128, 256), draw.random())),
    }
    unusual = {"numpy", "pointer", "unseen"}
    for _ in range(60):
        name = draw.choice([*actions, *set(actions).difference(unusual), "read", "make"])
        if name == "numpy" and draw.random() < 0.5:
            continue
        x = draw.choice(pool)
        written = {"foreach": (pool[0], pool[-1]), "out": (pool[0], x)}.get(name, (x,))
        if name in WRITING and any(0 in tensor.stride() for tensor in written):
            continue  # torch refuses to write to one element twice
        if name in ("out", "assign") and pool[0].shape != x.shape:
            continue
        actions[name](x)


def digests_of(path):
    with RecordReader(path) as reader:
        return [
            (event.op, event.arguments, event.tensors, event.digests, event.links)
            for event in reader.events(kinds=("op",))
        ]


@pytest.mark.parametrize("seed", range(12))
def test_any_program_has_the_digests_of_one_that_is_read_whole(tmp_path, watched, monkeypatch, seed):
    """Every digest of every op is the same with `SAMEBITS_READ_ALL`."""
    with record(tmp_path / "a.sbr", level="op") as known:
        programs(seed)
        assert spared(watched) > 0
    monkeypatch.setenv("SAMEBITS_READ_ALL", "1")
    with record(tmp_path / "b.sbr", level="op") as read:
        programs(seed)
    assert digests_of(known) == digests_of(read)
