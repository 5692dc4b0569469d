"""What torch keeps to itself of process groups: the group of an op, its reduction, and its handle.

Ops of the namespace `c10d` carry their group and their reduction as objects of C++, and return such a handle.
Read in torch 2.13.0 and 2.15.0.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

REDUCTIONS = ("SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR")


def group_class() -> Any:
    """Return the class of process groups."""
    return dist.ProcessGroup


def reducing_methods() -> list[str]:
    """Return the methods of a process group that take a reduction; each calls an op of `c10d`."""
    return [name for name in dir(dist.ProcessGroup) if "reduce" in name]


def future_class() -> Any:
    """Return the class of what a handle's `get_future` returns; `torch.futures.Future` is one of it."""
    base: Any = torch._C.Future
    return base


def group_of(argument: Any) -> Any:
    """Return the process group that an op got: as itself, as an object of C++, or by its name."""
    if isinstance(argument, str):
        c10d: Any = dist.distributed_c10d
        return c10d._resolve_process_group(argument)
    unbox: Any = getattr(dist.ProcessGroup, "unbox", None)
    return argument if isinstance(argument, dist.ProcessGroup) else unbox(argument)


def backend_name(group: Any) -> str:
    """Return the name of what moves tensors in CPU memory, such as `gloo`; empty if nothing does."""
    try:
        backend = group._get_backend(torch.device("cpu"))
    except RuntimeError:
        return ""
    inner = getattr(backend, "wrapped_pg", backend)  # of TORCH_DISTRIBUTED_DEBUG=DETAIL
    return str(inner.name())


def can_read_reductions() -> bool:
    """Tell whether `reduction_of` can read the reduction that an op carries (torch 2.15, not 2.13)."""
    return hasattr(dist.ReduceOp, "unbox")


def reduction_in(op: Any) -> str:
    """Return the name of the reduction that an op of `c10d` carries, if `can_read_reductions`."""
    reductions: Any = dist.ReduceOp
    return reduction_of(reductions.unbox(op))


def reduction_of(value: Any) -> str:
    """Return the name of a `ReduceOp`: one of `REDUCTIONS`, or `PREMUL_SUM` for all others."""
    return next((name for name in REDUCTIONS if value == getattr(dist.ReduceOp, name)), "PREMUL_SUM")


def reduction_among(values: Sequence[Any]) -> str:
    """Return the name of the reduction among the arguments of one of `reducing_methods`, or `SUM`."""
    for value in values:
        given = getattr(value, "reduceOp", value)
        if isinstance(given, dist.ReduceOp | dist.ReduceOp.RedOpType):
            return reduction_of(given)
    return "SUM"


def handle_after(future: Any, finish: Callable[[], Any]) -> Any:
    """Return a handle, as an op of `c10d` returns it, that is done when a function was called.

    Args:
        future: the function is called after it, perhaps in another thread.
        finish: the function. It returns the value of the handle's own future: a list of tensors.
    """

    def then(done: Any) -> Any:
        done.wait()  # raises its error, if it has one
        return finish()

    core: Any = torch._C
    return core._distributed_c10d._create_work_from_future(future.then(then)).boxed()


def finished() -> Any:
    """Return a future that is done."""
    future: Any = torch.futures.Future()
    future.set_result(None)
    return future


def wait_for(handle: Any) -> None:
    """Wait until a handle of an op of `c10d` is done."""
    work: Any = dist.Work
    work.unbox(handle).wait()


def gather(group: Any, out: Sequence[Tensor], given: Tensor, milliseconds: int) -> Any:
    """Give all ranks the tensor of each one.

    Args:
        group: of the ranks.
        out: tensors of the same size and dtype as `given`, in the order of ranks.
        given: of this rank.
        milliseconds: when it fails; the group's own time if negative.

    Returns:
        the future of it.
    """
    options = _options("AllgatherOptions", milliseconds)
    return group.allgather([list(out)], [given], options).get_future()


def gather_on(group: Any, root: int, out: Sequence[Tensor], given: Tensor, milliseconds: int) -> Any:
    """Give one rank the tensor of each one.

    Args:
        group: of the ranks.
        root: this rank, by its number in the group.
        out: there as for `gather`; elsewhere nothing is written.
        given: of this rank.
        milliseconds: as for `gather`.

    Returns:
        the future of it.
    """
    options = _options("GatherOptions", milliseconds)
    options.rootRank = root
    outputs = [list(out)] if group.rank() == root else []
    return group.gather(outputs, [given], options).get_future()


def exchange(group: Any, out: Tensor, given: Tensor, sizes: Sequence[int], milliseconds: int) -> Any:
    """Send each rank its part of a tensor.

    Args:
        group: of the ranks.
        out: gets the parts for this rank, in the order of the ranks that send them, all of one size.
        given: the parts for all ranks, in their order.
        sizes: of these parts.
        milliseconds: as for `gather`.

    Returns:
        the future of it.
    """
    options = _options("AllToAllOptions", milliseconds)
    received = [out.numel() // group.size()] * group.size()
    return group.alltoall_base(out, given, received, list(sizes), options).get_future()


def _options(name: str, milliseconds: int) -> Any:
    options: Any = getattr(dist.distributed_c10d, name)()
    if milliseconds >= 0:
        options.timeout = dt.timedelta(milliseconds=milliseconds)
    return options
