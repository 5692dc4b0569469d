"""Tensors come back bit for bit: dtypes, layouts, sharing, strides, devices."""

import gc
import subprocess
import sys
import textwrap
import weakref

import pytest
import torch
from safetensors.torch import load_file

from samebits.checkpoint import load, save
from samebits.checkpoint._arrays import NAMES, OTHERS
from samebits.digest import digest
from samebits.errors import SamebitsError

DTYPES = [name for name in (*NAMES, *OTHERS) if hasattr(torch, name)]


def back(tmp_path, value, **options):
    save(tmp_path / "c", value=value)
    return load(tmp_path / "c", **options).extra["value"]


def of_dtype(name, *shape):
    dtype = getattr(torch, name)
    count = torch.Size(shape).numel()
    if name == "bool":
        return (torch.arange(count) % 3 == 0).reshape(shape)
    data = torch.randint(0, 256, (count * dtype.itemsize,), dtype=torch.uint8)
    return data.view(dtype).reshape(shape)


@pytest.mark.parametrize("name", DTYPES)
def test_dtypes(tmp_path, name):
    tensors = {
        "plain": of_dtype(name, 3, 5),
        "single": of_dtype(name, 1).reshape(()),
        "empty": of_dtype(name, 0, 2),
    }
    found = back(tmp_path, tensors)

    assert digest(found) == digest(tensors)
    assert {key: (t.dtype, t.shape) for key, t in found.items()} == {
        key: (t.dtype, t.shape) for key, t in tensors.items()
    }


VIEWS = {
    "transposed": lambda t: t.t(),
    "sliced": lambda t: t[1:, ::2],
    "expanded": lambda t: t[:1].expand(4, -1),
    "one element": lambda t: t[2, 3],
    "parameter": torch.nn.Parameter,
    "in a graph": lambda t: t.clone().requires_grad_() * 2,
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_are_saved_as_what_they_show(tmp_path, name):
    base = torch.randn(6, 8)
    view = VIEWS[name](base)
    found = back(tmp_path, view)

    assert digest(found) == digest(view)
    assert type(found) is torch.Tensor
    assert not found.requires_grad
    assert (tmp_path / "c").stat().st_size < 64_000


def test_a_view_does_not_take_its_storage_along(tmp_path):
    save(tmp_path / "c", value=torch.zeros(1_000_000)[:1])
    assert (tmp_path / "c").stat().st_size < 64_000


def test_conjugate_and_negative_views(tmp_path):
    z = torch.randn(3, dtype=torch.complex64)
    views = [z.conj(), z.conj().imag, torch.view_as_real(z)]
    assert digest(back(tmp_path, views)) == digest(views)


def test_strides_of_dense_tensors_stay(tmp_path):
    values = [torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last), torch.randn(3, 4).t()]
    found = back(tmp_path, values)
    assert [t.stride() for t in found] == [t.stride() for t in values]


def test_the_same_memory_is_stored_once_and_stays_shared(tmp_path):
    embedding, head = torch.nn.Embedding(1000, 64), torch.nn.Linear(64, 1000, bias=False)
    head.weight = embedding.weight
    tied = torch.nn.ModuleList([embedding, head])
    save(tmp_path / "c", model=tied, pair=[embedding.weight, embedding.weight[:1]])
    assert 1000 * 64 * 4 < (tmp_path / "c").stat().st_size < 1.5 * 1000 * 64 * 4
    before = digest(tied)
    with torch.no_grad():
        embedding.weight.zero_()
    load(tmp_path / "c", model=tied)
    assert digest(tied) == before
    assert head.weight is embedding.weight


def test_shared_values_are_one_tensor_after_loading(tmp_path):
    a = torch.ones(3)
    first, second = back(tmp_path, [a, a.detach()])
    assert first.data_ptr() == second.data_ptr()
    empty = torch.empty(0)
    assert [t.shape for t in back(tmp_path, [empty, empty.reshape(0, 3)])] == [(0,), (0, 3)]


def test_equal_memory_of_another_kind_is_not_taken_for_the_same(tmp_path):
    a = torch.randn(4)
    views = [a, a.view(torch.int32), a.view(2, 2), a[:2], a[::2], torch._neg_view(a)]
    found = back(tmp_path, views)
    assert [t.tolist() for t in found] == [t.tolist() for t in views]
    assert [t.dtype for t in found] == [t.dtype for t in views]


SPARSE = ["to_sparse_coo", "to_sparse_csr", "to_sparse_csc"]


@pytest.mark.parametrize("method", SPARSE)
@pytest.mark.filterwarnings("ignore:Sparse:UserWarning")
def test_sparse(tmp_path, method):
    sparse = getattr(torch.eye(4)[:, :3] * 2, method)()
    found = back(tmp_path, sparse)
    assert found.layout == sparse.layout
    assert digest(found) == digest(sparse)


@pytest.mark.filterwarnings("ignore:Sparse:UserWarning")
def test_sparse_blocks(tmp_path):
    for sparse in (torch.eye(4).to_sparse_bsr((2, 2)), torch.eye(4).to_sparse_bsc((2, 2))):
        assert digest(back(tmp_path, sparse)) == digest(sparse)


def test_subclasses_are_refused(tmp_path):
    class Mine(torch.Tensor):
        pass

    with pytest.raises(SamebitsError, match=r"value\.0 cannot be saved: it is a .*Mine; .*plain tensors"):
        save(tmp_path / "c", value=[torch.ones(2).as_subclass(Mine)])


def test_the_safetensors_library_reads_it(tmp_path):
    state = {
        "w": torch.randn(3, 4),
        "h": torch.randn(5).bfloat16(),
        "i": torch.arange(3),
        "b": torch.tensor([True]),
    }
    save(tmp_path / "c.safetensors", model=state, other=torch.randn(2, dtype=torch.complex128))
    found = load_file(tmp_path / "c.safetensors")
    assert digest({key: found[f"model.{key}"] for key in state}) == digest(state)


def test_names_that_collide_are_told_apart(tmp_path):
    values = {"a.b": torch.ones(1), "a": {"b": torch.zeros(1)}, "__metadata__": torch.ones(2)}
    save(tmp_path / "c", **values)
    assert digest(load(tmp_path / "c").extra) == digest(values)


def test_map_location(tmp_path):
    save(tmp_path / "c", value=torch.ones(2))
    assert load(tmp_path / "c", map_location="meta").extra["value"].device.type == "meta"
    assert load(tmp_path / "c", map_location=torch.device("cpu")).extra["value"].tolist() == [1, 1]
    with pytest.raises(SamebitsError, match=r"map_location is 'tpu9'") as raised:
        load(tmp_path / "c", map_location="tpu9")
    assert raised.value.slug == "checkpoint-device"


def test_a_device_that_is_not_here(tmp_path, monkeypatch):
    def on_gpu(tensor):
        return {"device": "cuda:7"}

    monkeypatch.setattr("samebits.checkpoint._encoding.tensor_facts", on_gpu)
    linear = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(linear.parameters(), lr=0.1)
    save(tmp_path / "c", value={"mean": torch.ones(2)})
    save(tmp_path / "states", model=linear, optimizer=optimizer)
    monkeypatch.undo()

    load(tmp_path / "states", model=linear, optimizer=optimizer)
    with pytest.raises(
        SamebitsError, match=r"value.mean was on the device cuda:7, which is not here"
    ) as raised:
        load(tmp_path / "c")
    assert raised.value.slug == "checkpoint-device"
    assert load(tmp_path / "c", map_location="cpu").extra["value"]["mean"].tolist() == [1, 1]


def test_the_default_device_does_not_matter(tmp_path):
    save(tmp_path / "c", value=torch.arange(3.0))
    with torch.device("meta"):
        save(tmp_path / "d", value=torch.arange(3.0, device="cpu"))
        found = [load(tmp_path / name).extra["value"] for name in "cd"]
    assert [t.tolist() for t in found] == [[0, 1, 2]] * 2


def test_inference_mode(tmp_path):
    with torch.inference_mode():
        save(tmp_path / "c", value=torch.ones(2) * 3)
    assert back(tmp_path, load(tmp_path / "c").extra["value"]).tolist() == [3, 3]


def test_nothing_keeps_tensors_alive(tmp_path):
    """Neither saving nor loading waits for the garbage collector to let go of a state."""
    gc.collect()
    gc.disable()
    try:
        value = torch.ones(3)
        saved = weakref.ref(value)
        save(tmp_path / "c", value={"inner": [value]}, model=torch.nn.Linear(1, 1))
        del value
        assert saved() is None
        loaded = load(tmp_path / "c", model=torch.nn.Linear(1, 1))
        found = weakref.ref(loaded.extra["value"]["inner"][0])
        del loaded
        assert found() is None
    finally:
        gc.enable()


def test_saving_makes_no_second_copy(tmp_path):
    """The peak of memory grows by the largest tensor that has to be laid out anew, not by the state."""
    script = """
        import resource, sys, torch
        from samebits.checkpoint import save
        save(sys.argv[1], value=torch.ones(1_000_000))
        state = {str(number): torch.ones(5_000_000) for number in range(20)}
        state["turned"] = torch.ones(2, 2_500_000).t()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        save(sys.argv[1], **state)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    """
    command = [sys.executable, "-c", textwrap.dedent(script), str(tmp_path / "c")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    kilobytes = int(done.stdout)
    assert kilobytes < 60_000  # of 420 000
