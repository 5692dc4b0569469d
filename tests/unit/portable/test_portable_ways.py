"""Both ways in which ops come to portable mode give the same bits, and so does a user's mode on top.

Compared are the results, gradients and double gradients of every op of torch's own samples, and the results
in inference mode, where compositions arrive whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import opinfo
import pytest
import torch
from opinfo import op_db
from torch.utils._pytree import tree_leaves, tree_map
from ways import by_registration, in_all_ways, in_dispatch_mode

from samebits._torch.dispatch_key import can_register
from samebits._torch.kernel_overrides import can_override
from samebits.errors import SamebitsError

pytestmark = pytest.mark.skipif(not can_register() or not can_override(), reason="torch has one way here")

if TYPE_CHECKING:
    from collections.abc import Callable

SAMPLES = 3  # of each op
UNINITIALIZED = {
    "empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided",
}  # fmt: skip


# Custom ops in Python, which a dispatch mode cannot look into.
ONE_OP_FOR_A_MODE = {
    "nn.functional.linear_cross_entropy chunked",
    "nn.functional.linear_cross_entropy chunked_none",
}


@pytest.fixture(autouse=True)
def audited() -> None:
    """No audit: C code computes here too."""


def op_name(op: Any) -> str:
    return f"{op.name} {op.variant_test_name}".strip()


@pytest.mark.parametrize("op", [op for op in op_db if op.name not in UNINITIALIZED], ids=op_name)
def test_every_way_gives_the_same_bits(op):
    if not op.supports_dtype(torch.float32, "cpu") or op.name.startswith("jiterator"):
        pytest.skip("not of float32, or not of CPUs")
    torch.manual_seed(1)
    samples = list(op.sample_inputs("cpu", torch.float32, requires_grad=op.supports_autograd))
    for sample in samples[:: max(1, len(samples) // SAMPLES)]:
        compare(op, sample)


def compare(op: Any, sample: Any) -> None:
    """One sample. What is refused in one way is in the others; what torch cannot run, none of them can."""
    wanted = outcome(lambda: [in_dispatch_mode(lambda: derivatives(op, sample))] * 2)
    if not (wanted is SamebitsError and op_name(op) in ONE_OP_FOR_A_MODE):
        assert outcome(lambda: by_registration(lambda: derivatives(op, sample))) == wanted, sample
    if op_name(op) not in ONE_OP_FOR_A_MODE:
        wanted = outcome(lambda: [in_dispatch_mode(lambda: results(op, sample, torch.no_grad))] * 3)
        found = outcome(lambda: in_all_ways(lambda: results(op, sample, torch.inference_mode)))
        assert found == wanted, sample
    if op.inplace_variant is not None:
        wanted = outcome(lambda: [in_dispatch_mode(lambda: written(op, sample))] * 2)
        assert outcome(lambda: by_registration(lambda: written(op, sample))) == wanted, sample


def outcome(run: Callable[[], list[str]]) -> list[str] | type[Exception]:
    """The digests, or which error there is instead."""
    try:
        return run()
    except SamebitsError:
        return SamebitsError
    except (RuntimeError, ValueError, IndexError):
        return RuntimeError


def written(op: Any, sample: Any) -> list[torch.Tensor]:
    """What an op in place leaves."""
    torch.manual_seed(3)
    call = tree_map(opinfo.fresh, (sample.input, sample.args, sample.kwargs))
    with torch.no_grad():
        op.inplace_variant(call[0], *call[1], **call[2])
    return comparable([call[0]])


def results(op: Any, sample: Any, state: Any) -> list[torch.Tensor]:
    """What an op returns in a state of autograd."""
    torch.manual_seed(3)
    with state():
        call = tree_map(opinfo.fresh, (sample.input, sample.args, sample.kwargs))
        return [each.clone() for each in comparable(tensors_in(op(call[0], *call[1], **call[2])))]


def derivatives(op: Any, sample: Any) -> list[torch.Tensor]:
    """The results of an op, their gradients, alone and with a graph, and the gradients of the latter."""
    torch.manual_seed(3)
    call = tree_map(opinfo.fresh, (sample.input, sample.args, sample.kwargs))
    given = [leaf for leaf in tree_leaves(call) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    results = tensors_in(sample.output_process_fn_grad(op(call[0], *call[1], **call[2])))
    sources = [each for each in results if each.requires_grad]
    if not sources:
        return comparable(results)
    slopes = [slope_of(each) for each in sources]
    alone = torch.autograd.grad(sources, given, slopes, allow_unused=True, retain_graph=True)
    first = torch.autograd.grad(sources, given, slopes, allow_unused=True, create_graph=True)
    sources = [each for each in first if each is not None and each.requires_grad]
    weights = [slope_of(each) for each in sources]
    second = torch.autograd.grad(sources, given, weights, allow_unused=True) if sources else ()
    return comparable([*results, *alone, *first, *second])


def tensors_in(found: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(found) if isinstance(leaf, torch.Tensor)]


def comparable(found: list[torch.Tensor | None]) -> list[torch.Tensor]:
    given = [each.detach() for each in found if each is not None]
    return [each for each in given if each.layout == torch.strided and not each.is_complex()]


def slope_of(source: torch.Tensor) -> torch.Tensor:
    """Slopes of both signs, the first one below zero: where zeros are handed out, their signs are seen."""
    flat = torch.arange(source.numel(), dtype=torch.float64)
    return (flat * 0.37 + 3).cos().to(source.dtype).view(source.shape)


@pytest.mark.parametrize("shape", [(64, 10), (8, 10, 5), (10,)])
@pytest.mark.parametrize("ignored", [-100, 3])
def test_cross_entropy_has_one_formula(shape, ignored):
    """The composition of torch has two for class weights with label smoothing, by whether there is a mode."""
    torch.manual_seed(0)
    scores, weight = torch.randn(shape), torch.rand(10)
    target = torch.randint(0, 10, torch.Size([*shape[:1], *shape[2:]]) if len(shape) > 1 else ())

    def loss(scores: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(
            scores, target, weight, ignore_index=ignored, label_smoothing=0.1
        )

    def in_inference_mode() -> list[torch.Tensor]:
        with torch.inference_mode():
            return [loss(scores).clone()]

    leaf = scores.clone().requires_grad_()
    assert len({*in_all_ways(lambda: [loss(leaf).detach()]), *in_all_ways(in_inference_mode)}) == 1
    gradients = in_all_ways(lambda: list(torch.autograd.grad(loss(leaf), leaf)))
    functional = in_all_ways(lambda: [torch.func.grad(loss)(scores)])
    assert len({*gradients, *functional}) == 1
    torch.testing.assert_close(by_hand(lambda: loss(scores)), loss(scores))


def by_hand(run: Callable[[], torch.Tensor]) -> torch.Tensor:
    """The result in portable mode."""
    found = []
    in_dispatch_mode(lambda: found.append(run()) or [])
    return found[0]
