"""Contents of tensors that a run keeps: whole, or some elements of each."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from samebits.comparison.difference import captured_difference, captured_elements
from samebits.errors import SamebitsError
from samebits.recording.distance import sampled
from samebits.recording.probes.captures import CaptureProbe, shape_in, to_safetensors
from samebits.records.kinds import EventKind
from samebits.report.origin_words import amount_text

LARGE = torch.arange(4096, dtype=torch.float32).reshape(64, 64)


def captured(tensors: list[Any], *, elements: int, n_bytes: int = 1 << 20) -> dict[int, bytes]:
    """Give tensors to a probe as the outputs of ops; return the files by the number of the op."""
    files: dict[int, bytes] = {}
    recorder: Any = SimpleNamespace(
        settings=SimpleNamespace(keep_from_step=0, keep_bytes=n_bytes, keep_elements=elements),
        step=0,
        on_tensors=[],
        quietly=contextlib.nullcontext(),
        writer=SimpleNamespace(capture=lambda rows: files.update({seq: data for seq, _, data in rows})),
    )
    probe = CaptureProbe(recorder)
    probe.install(torch)
    for seq, tensor in enumerate(tensors):
        recorder.on_tensors[0](seq, EventKind.OP, "aten::mm", None, [(0, tensor)])
    probe.remove()
    return files


def test_a_large_tensor_does_not_use_up_the_room_of_the_others():
    """Without a limit for each, the first takes it all."""
    tensors = [LARGE, *(LARGE + n for n in range(1, 9))]
    assert len(captured(tensors, elements=0, n_bytes=10_000)) == 1
    assert len(captured(tensors, elements=256, n_bytes=10_000)) == 9


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.complex64, torch.int64])
def test_some_elements_tell_how_far_tensors_are_apart(dtype):
    """The index is that in the tensor; what was not kept is not called equal."""
    place = int(sampled(4096, 256)[100])
    one = LARGE.to(dtype)
    other = one.clone()
    other.view(-1)[place] = -5
    files = captured([one.t(), other.t()], elements=256)  # not contiguous
    complex_at = (0,) if dtype.is_complex else ()

    found = captured_difference({0: files[0]}, {0: files[1]}, complex_at)
    assert found is not None
    assert (found.elements, found.total, found.compared) == (0, 4096, 256)  # it is in another place

    files = captured([one, other], elements=256)
    found = captured_difference({0: files[0]}, {0: files[1]}, complex_at)
    assert found is not None
    assert (found.elements, found.total, found.compared) == (1, 4096, 256)
    assert found.first_index == (place // 64, place % 64)
    (element,) = captured_elements({0: files[0]}, {0: files[1]}, complex_at, 5)
    assert element.index == found.first_index
    assert amount_text(found).startswith("1 of 256 elements that were kept, of 4 096, differ")


def test_a_small_tensor_is_kept_whole():
    """Up to the limit."""
    files = captured([torch.ones(256), torch.zeros(256)], elements=256)
    found = captured_difference({0: files[0]}, {0: files[1]})
    assert found is not None
    assert (found.elements, found.total, found.compared) == (256, 256, None)


@pytest.mark.parametrize("shape", ["2x2", "4", "0x9", f"{10**18}x{10**18}", str(1 << 62)])
def test_a_file_that_does_not_fit_its_tensor_is_damaged(shape):
    """A stranger's record can say anything: fewer elements than the file has, or more than can be."""
    files = [to_safetensors(torch.full((4,), value), f"some of {shape}") for value in (1.0, 2.0)]
    assert all(files)
    with pytest.raises(SamebitsError, match="damaged"):
        captured_difference({0: files[0]}, {0: files[1]})


@pytest.mark.parametrize(
    ("name", "shape"),
    [("value", None), ("some of 64x1024", (64, 1024)), ("some of ", None), ("some of 2x-1", None)],
)
def test_the_name_has_the_shape(name, shape):
    """Anything else is a whole tensor's."""
    assert shape_in(name) == shape
