"""The ops of portable mode against plain torch, over torch's own samples of inputs."""

from __future__ import annotations

from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_leaves, tree_map

from samebits.portable._dispatch import PortableMode

# Importing torch's samples freezes the flags of torch.backends (`disable_global_flags`), for other tests too.
torch.backends.flags_frozen.__globals__["__allow_nonbracketed_mutation_flag"] = True

TOLERANCES = {
    torch.float32: 1e-4,
    torch.float64: 1e-10,
    torch.complex64: 1e-4,
    torch.complex128: 1e-10,
}


def check_op(name: str, dtype: torch.dtype, *, variant: str = "", limit: int = 30, skip: Any = None) -> int:
    """Outputs and gradients of an op in portable mode are close to plain torch's.

    Args:
        name: as `op_db` has it, such as `nn.functional.avg_pool2d`.
        dtype: of the samples.
        variant: `variant_test_name` of the op.
        limit: how many samples at most.
        skip: called with a sample, says whether to leave it out.

    Returns:
        how many samples were compared.
    """
    found = [op for op in op_db if op.name == name and op.variant_test_name == variant]
    assert found, f"torch has no samples for {name} {variant}"
    torch.manual_seed(1)
    samples = list(found[0].sample_inputs("cpu", dtype, requires_grad=found[0].supports_autograd))
    chosen = [sample for sample in samples if skip is None or not skip(sample)]
    for sample in chosen[:: max(1, len(chosen) // limit)]:
        compare(found[0].op, sample, dtype)
    assert chosen
    return len(chosen)


def compare(op: Any, sample: Any, dtype: torch.dtype) -> None:
    """One sample, plain and in portable mode."""
    plain = _run(op, sample)
    with PortableMode():
        ours = _run(op, sample)
    for one, other in zip(plain, ours, strict=True):
        torch.testing.assert_close(
            other,
            one,
            rtol=TOLERANCES[dtype],
            atol=TOLERANCES[dtype],
            equal_nan=True,
            msg=lambda m: f"{sample}\n{m}",
        )


def _run(op: Any, sample: Any) -> list[torch.Tensor]:
    call = tree_map(fresh, (sample.input, sample.args, sample.kwargs))
    inputs = [leaf for leaf in tree_leaves(call) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    out = op(call[0], *call[1], **call[2])
    outs = [leaf for leaf in tree_leaves(out) if isinstance(leaf, torch.Tensor)]
    sources = [leaf for leaf in outs if leaf.requires_grad and leaf.numel()]
    found = [leaf.detach() for leaf in outs]
    if sources and inputs:
        seeds = [_seed(source) for source in sources]
        grads = torch.autograd.grad(sources, inputs, seeds, allow_unused=True)
        found += [grad for grad in grads if grad is not None]
    return found


def fresh(leaf: Any) -> Any:
    return (
        leaf.detach().clone().requires_grad_(leaf.requires_grad) if isinstance(leaf, torch.Tensor) else leaf
    )


def _seed(source: torch.Tensor) -> torch.Tensor:
    import numpy as np

    values = np.cos(np.arange(source.numel()) * 0.7 + 0.2).reshape(tuple(source.shape))
    seed = torch.from_numpy(values).to(source.dtype)
    return torch.complex(seed.real, seed.real / 3) if source.is_complex() else seed
