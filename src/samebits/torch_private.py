"""Every name that PyTorch does not document and recording uses, and what happens when it is missing.

Each function looks its name up at run time and falls back, so that a release of torch without it costs
precision of the report, never a wrong verdict. Read in torch 2.6.0 and 2.13.0.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

# Holds the rules by which torch.compile leaves code alone; see `hide_from_compiler`.
COMPILER_RULES = "torch._dynamo.trace_rules"
# The Python function from which torch enters its autograd engine (torch/autograd/graph.py). Under another
# name, sites of backward ops are found by a walk up the stack, as all others.
ENGINE_FUNCTION = "_engine_run_backward"
HIDDEN_MUTATIONS = {
    # These schemas do not declare that training updates the running statistics in place
    # (aten/src/ATen/native/native_functions.yaml, 2.13.0): name -> positions of the statistics.
    "aten::native_batch_norm": (3, 4),
    "aten::cudnn_batch_norm": (3, 4),
    "aten::miopen_batch_norm": (3, 4),
    "aten::_batch_norm_impl_index": (3, 4),
}


def dispatch_mode_class() -> type[Any]:
    """`TorchDispatchMode`, the documented extension point that lives in an underscore module."""
    from torch.utils._python_dispatch import TorchDispatchMode

    return TorchDispatchMode


def loader_iterator_class() -> type[Any] | None:
    """The common base of the iterators of `DataLoader`; without it no batch events are recorded."""
    from torch.utils.data import dataloader

    return getattr(dataloader, "_BaseDataLoaderIter", None)


def sequence_peek() -> Callable[[], int]:
    """A function that gives the number that the next autograd node of this thread will get.

    Without it backward ops have no forward site.
    """
    import torch

    found: Callable[[], int] | None = getattr(getattr(torch._C, "_autograd", None), "_get_sequence_nr", None)
    return found if found is not None else lambda: 0


def current_node() -> Callable[[], Any]:
    """A function that gives the autograd node being executed, or None; without it no forward sites."""
    import torch

    found: Callable[[], Any] | None = getattr(torch._C, "_current_autograd_node", None)
    return found if found is not None else lambda: None


def node_sequence(node: Any) -> int:
    """The sequence number of an autograd node, -1 when it has none."""
    try:
        return int(node._sequence_nr())
    except (AttributeError, RuntimeError):
        return -1


def is_virtual(tensor: Any) -> bool:
    """Whether a tensor has no data of its own: tracing, `torch.func` transforms, meta, lazy parameters.

    Without the functions asked for here, only meta tensors are recognised.
    """
    import torch

    if tensor.device.type == "meta":
        return True
    functorch = getattr(torch._C, "_functorch", None)
    if functorch is not None and functorch.is_functorch_wrapped_tensor(tensor):
        return True
    if type(tensor) in (torch.Tensor, torch.nn.Parameter):
        return False
    if torch.nn.parameter.is_lazy(tensor):
        return True
    fake = sys.modules.get("torch._subclasses.fake_tensor")
    functional = sys.modules.get("torch._subclasses.functional_tensor")
    return (fake is not None and isinstance(tensor, fake.FakeTensor)) or (
        functional is not None and isinstance(tensor, functional.FunctionalTensor)
    )


def enter_shelter() -> list[Any]:
    """Enter contexts in which the modes and tensor subclasses of a script see nothing of this thread.

    Without the names asked for here they see what samebits does.

    Returns:
        What was entered, to be left in reverse.
    """
    core = sys.modules.get("torch._C")
    disable_functions = getattr(core, "DisableTorchFunction", None)
    entered: list[Any] = [] if disable_functions is None else [disable_functions()]
    if _has_foreign_dispatch_mode(core):
        from torch.utils import _python_dispatch

        disable_modes = getattr(_python_dispatch, "_disable_current_modes", None)
        if disable_modes is not None:
            entered.append(disable_modes())
    for context in entered:
        context.__enter__()
    return entered


def _has_foreign_dispatch_mode(core: Any) -> bool:
    """Whether a dispatch mode other than the one that records ops is on."""
    count = getattr(core, "_len_torch_dispatch_stack", None)
    n_modes = 0 if count is None else count()
    at = getattr(core, "_get_dispatch_stack_at", None) if n_modes else None
    if at is None:
        return False
    return any(not type(at(index)).__module__.startswith("samebits.") for index in range(n_modes))


def mutated_arguments(op: Any) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Which arguments an op writes to: positions, and names of keyword-only ones.

    Without a schema the op counts as one that writes to nothing.
    """
    schema = getattr(op, "_schema", None)
    if schema is None:
        return (), ()
    positions: list[int] = []
    names: list[str] = []
    for index, argument in enumerate(schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            if argument.kwarg_only:
                names.append(argument.name)
            else:
                positions.append(index)
    hidden = HIDDEN_MUTATIONS.get(schema.name, ())
    return (*positions, *hidden), tuple(names)


def is_random(op: Any) -> bool:
    """Whether an op draws from a generator (tag `nondeterministic_seeded`)."""
    import torch

    tag = getattr(getattr(torch, "Tag", None), "nondeterministic_seeded", None)
    return tag is not None and tag in getattr(op, "tags", ())


def version_of(tensor: Any) -> int:
    """How often a tensor was written in place; always 0 when that cannot be known."""
    return int(getattr(tensor, "_version", 0))


def compiled_graphs() -> int:
    """How many graphs `torch.compile` made in this process; 0 when that cannot be known."""
    utils = sys.modules.get("torch._dynamo.utils")
    counters = getattr(utils, "counters", {})
    return int(counters["stats"]["unique_graphs"]) if "stats" in counters else 0


def numpy_state_address() -> tuple[int, int] | None:
    """Address and size in bytes of the state of NumPy's global generator; None when it is not MT19937.

    `BitGenerator.ctypes.state_address` is documented; the way to the global generator is not.
    """
    numpy = sys.modules.get("numpy")
    generator = getattr(getattr(getattr(numpy, "random", None), "mtrand", None), "_rand", None)
    bits = getattr(generator, "_bit_generator", None)
    if bits is None or type(bits).__name__ != "MT19937":
        return None
    return int(bits.ctypes.state_address), 625 * 4


def hide_from_compiler(trace_rules: Any) -> None:
    """Keep `torch.compile` from tracing into samebits, given the module `COMPILER_RULES`.

    Without its `add`, probes that run inside a compiled function are traced as the user's code: slower,
    with the same results.
    """
    add = getattr(trace_rules, "add", None)
    if add is not None:
        add("samebits")
