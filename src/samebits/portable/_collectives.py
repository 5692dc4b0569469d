"""Ops that communicate between processes: the namespaces `c10d` and `_c10d_functional` of torch.

gloo moves bytes; what is added, is added here, in the order of ranks ("Collectives" in
docs/reference/portable-numerics.md). So neither gloo's algorithm nor the size of a bucket changes a bit.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from samebits._torch.portable import arguments_of, schema_name
from samebits._torch.rank_groups import (
    backend_name,
    exchange,
    finished,
    gather,
    gather_on,
    group_of,
    handle_after,
    wait_for,
)
from samebits.portable._noted_reductions import noted_reduction
from samebits.portable._refusals import (
    refuse_backend,
    refuse_op,
    refuse_reduction,
    refuse_sparse,
    refuse_tensor,
)
from samebits.portable._scan import first_off_cpu
from samebits.portable.kernels.rank_order import can_reduce, reduced
from samebits.portable.ops.sparse import coalesce

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from samebits.portable._plans import Plan

NAMESPACES = frozenset({"c10d", "_c10d_functional"})
_BACKEND = "gloo"
_MOVING = frozenset(
    word
    for line in (
        "_allgather_base_ allgather_ allgather_coalesced_ allgather_into_tensor_coalesced_ alltoall_",
        "alltoall_base_ barrier broadcast_ gather_ monitored_barrier_ recv_ recv_any_source_ scatter_ send",
        "all_gather_into_tensor all_gather_into_tensor_coalesced all_gather_into_tensor_out",
        "all_to_all_single broadcast broadcast_ wait_tensor _wrap_tensor_autograd",
    )
    for word in line.split()
)
_GROUPS = ("process_group", "group_name")


@dataclass(frozen=True)
class _Call:
    """One call of an op.

    Args:
        op: the `OpOverload`.
        given: its arguments by their names in the schema, those left out with their defaults.
        group: the process group among them.
    """

    op: Any
    given: dict[str, Any]
    group: Any

    @property
    def milliseconds(self) -> int:
        """Return the time after which it fails; negative for the group's own."""
        return int(self.given.get("timeout", -1))

    @functools.cached_property
    def reduction(self) -> str:
        """Return the name of its reduction."""
        named = self.given["reduce_op"]
        return named.upper() if isinstance(named, str) else noted_reduction(self.op, named)


def collective_plan(op: Any) -> Plan:
    """Return the function that runs when an op that communicates is called in portable mode.

    Args:
        op: an `OpOverload` of one of `NAMESPACES`.
    """
    name = schema_name(op).partition("::")[2]
    handler = _REDUCING.get(name, _pass_on if name in _MOVING else None)

    def run(args: tuple[Any, ...], kwargs: dict[str, Any], mode: Any) -> Any:  # noqa: ARG001 - of every plan
        if handler is None:
            raise refuse_op(op)
        call = _call(op, args, kwargs)
        elsewhere = first_off_cpu(call.given.values())
        if elsewhere is not None:
            return _elsewhere(op, elsewhere, args, kwargs)
        return handler(call)

    return run


def _elsewhere(op: Any, tensor: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if tensor.is_meta:
        return op(*args, **kwargs)
    raise refuse_tensor(op, f"a tensor on {tensor.device}")


def _call(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Call:
    parameters = arguments_of(op)
    given = {
        parameter.name: parameter.default_value for parameter in parameters if parameter.has_default_value()
    }
    given |= {parameter.name: value for parameter, value in zip(parameters, args, strict=False)}
    given |= kwargs
    argument = next((given[name] for name in _GROUPS if name in given), None)
    group = None if argument is None else group_of(argument)
    if group is not None and backend_name(group) != _BACKEND:
        raise refuse_backend(op, backend_name(group))
    return _Call(op, given, group)


def _pass_on(call: _Call) -> Any:
    return call.op(**call.given)


def _check(call: _Call, tensors: Sequence[Tensor]) -> None:
    """Raise the error for tensors that are not reduced here."""
    for tensor in tensors:
        if tensor.layout is not torch.strided:
            raise refuse_sparse(call.op)
        if not can_reduce(call.reduction, tensor.dtype):
            raise refuse_reduction(call.op, call.reduction, tensor.dtype)


def _bytes(tensor: Tensor) -> Tensor:
    """Return the contents of a tensor as bytes in one row: in the same memory if it is contiguous."""
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8)


@dataclass(frozen=True)
class _Gathered:
    """What one tensor is on each rank, once its future is done.

    Args:
        like: the tensor of this rank, or another of its dtype and shape.
        rows: its bytes, a row for each rank.
        future: of the communication.
    """

    like: Tensor
    rows: Tensor
    future: Any

    def parts(self) -> list[Tensor]:
        """Return the ranks' tensors."""
        return [row.view(self.like.dtype).view(self.like.shape) for row in self.rows]

    def reduced(self, name: str) -> Tensor:
        """Return the reduction of the ranks' tensors."""
        return reduced(name, self.parts())


def _rows(call: _Call, like: Tensor) -> Tensor:
    size = like.numel() * like.element_size()
    return torch.empty(call.group.size(), size, dtype=torch.uint8, device=like.device)


def _gathered(call: _Call, tensor: Tensor) -> _Gathered:
    """Begin to send a tensor to all ranks."""
    rows = _rows(call, tensor)
    if not tensor.numel():
        return _Gathered(tensor, rows, finished())
    future = gather(call.group, rows.unbind(), _bytes(tensor), call.milliseconds)
    return _Gathered(tensor, rows, future)


def _gathered_on_root(call: _Call, tensor: Tensor) -> _Gathered:
    """Begin to send a tensor to the rank `root_rank`."""
    rows = _rows(call, tensor)
    if not tensor.numel():
        return _Gathered(tensor, rows, finished())
    given, root = _bytes(tensor), call.given["root_rank"]
    return _Gathered(tensor, rows, gather_on(call.group, root, rows.unbind(), given, call.milliseconds))


def _exchanged(call: _Call, out: Tensor, chunks: Sequence[Tensor]) -> _Gathered:
    """Begin to send each rank its chunk."""
    given = [_bytes(chunk) for chunk in chunks]
    rows = _rows(call, out)
    sizes = [chunk.numel() for chunk in given]
    if not sum(sizes):
        return _Gathered(out, rows, finished())
    future = exchange(call.group, rows.view(-1), torch.cat(given), sizes, call.milliseconds)
    return _Gathered(out, rows, future)


def _handle(call: _Call, outs: Sequence[Tensor], parts: Sequence[_Gathered]) -> Any:
    """Return the handle that is done when the outputs have the reductions of what is gathered."""

    def finish() -> list[Tensor]:
        with torch.no_grad():
            for out, part in zip(outs, parts, strict=True):
                # `data`: as in plain torch, autograd does not take it for a change of what it saved.
                out.data.copy_(part.reduced(call.reduction))
        return list(outs)

    return handle_after(torch.futures.collect_all([part.future for part in parts]), finish)


def _all_reduce(call: _Call) -> Any:
    if call.given.get("sparse_indices") is not None:
        raise refuse_sparse(call.op)
    tensors = call.given["tensors"]
    if len(tensors) == 1 and tensors[0].layout == torch.sparse_coo and call.reduction == "SUM":
        return tensors, _sparse_sum(call, tensors[0])
    return tensors, _all_reduced(call, tensors)


def _sparse_sum(call: _Call, tensor: Tensor) -> Any:
    """Sum COO tensors: the entries of all ranks in their order, coalesced. The sum is there at once."""
    whole = coalesce(tensor)
    mine = torch.tensor([whole._nnz()], device=tensor.device)
    counts = [int(count) for count in _waited(call, mine)]
    index, values = whole._indices().t(), whole._values()
    indices = _cut(_waited(call, _lengthened(index, max(counts))), counts)
    stored = _cut(_waited(call, _lengthened(values, max(counts))), counts)
    both = torch.sparse_coo_tensor(indices.t(), stored, tensor.shape, check_invariants=False)
    tensor.copy_(coalesce(both))
    return handle_after(finished(), lambda: [tensor])


def _lengthened(rows: Tensor, count: int) -> Tensor:
    return torch.cat([rows, rows.new_zeros((count - rows.shape[0], *rows.shape[1:]))])


def _waited(call: _Call, tensor: Tensor) -> list[Tensor]:
    """Return the tensor of each rank."""
    gathered = _gathered(call, tensor)
    gathered.future.wait()
    return gathered.parts()


def _cut(parts: Sequence[Tensor], counts: Sequence[int]) -> Tensor:
    return torch.cat([part[:count] for part, count in zip(parts, counts, strict=True)])


def _all_reduce_coalesced(call: _Call) -> Any:
    return _all_reduced(call, call.given["tensors"])


def _all_reduced(call: _Call, tensors: Sequence[Tensor]) -> Any:
    _check(call, tensors)
    return _handle(call, tensors, [_gathered(call, tensor) for tensor in tensors])


def _reduce(call: _Call) -> Any:
    tensors = call.given["tensors"]
    _check(call, tensors)
    parts = [_gathered_on_root(call, tensor) for tensor in tensors]
    if call.group.rank() == call.given["root_rank"]:
        return _handle(call, tensors, parts)
    return handle_after(torch.futures.collect_all([part.future for part in parts]), lambda: list(tensors))


def _reduce_scatter(call: _Call) -> Any:
    outs, given = call.given["output_tensors"], call.given["input_tensors"]
    return outs, _scattered(call, outs, given)


def _reduce_scatter_base(call: _Call) -> Any:
    out = call.given["output_tensor"]
    return out, _scattered(call, [out], [_chunks(call, call.given["input_tensor"])])


def _reduce_scatter_coalesced(call: _Call) -> Any:
    given = [_chunks(call, tensor) for tensor in call.given["inputs"]]
    return _scattered(call, call.given["outputs"], given)


def _chunks(call: _Call, tensor: Tensor) -> list[Tensor]:
    count = call.group.size()
    if tensor.numel() % count:
        raise ValueError(f"input tensor must be the same size as output size times world size ({count})")
    return list(tensor.detach().contiguous().view(count, -1))


def _scattered(call: _Call, outs: Sequence[Tensor], given: Sequence[Sequence[Tensor]]) -> Any:
    rank = call.group.rank()
    for out, chunks in zip(outs, given, strict=True):
        _check(call, [out, *chunks])
        if len(chunks) != call.group.size() or chunks[rank].numel() != out.numel():
            raise ValueError("the output of reduce_scatter has another size than this rank's input")
    parts = [_exchanged(call, out, chunks) for out, chunks in zip(outs, given, strict=True)]
    return _handle(call, outs, parts)


def _functional_all_reduce_(call: _Call) -> Any:
    given: Any = call.given.get("input", call.given.get("inputs"))
    wait_for(_all_reduced(call, [given] if isinstance(given, torch.Tensor) else given))
    return given


def _functional_all_reduce(call: _Call) -> Any:
    given: Any = call.given.get("input", call.given.get("inputs"))
    copied = given.clone() if isinstance(given, torch.Tensor) else [tensor.clone() for tensor in given]
    wait_for(_all_reduced(call, [copied] if isinstance(copied, torch.Tensor) else copied))
    return copied


def _functional_reduce_scatter(call: _Call) -> Any:
    given, out = call.given["input"], call.given.get("out")
    out = _share(call, given) if out is None else out
    wait_for(_scattered(call, [out], [_chunks(call, given)]))
    return out


def _functional_reduce_scatter_coalesced(call: _Call) -> Any:
    given = call.given["inputs"]
    outs = [_share(call, tensor) for tensor in given]
    wait_for(_scattered(call, outs, [_chunks(call, tensor) for tensor in given]))
    return outs


def _share(call: _Call, tensor: Tensor) -> Tensor:
    return tensor.new_empty((tensor.shape[0] // call.group.size(), *tensor.shape[1:]))


_REDUCING: dict[str, Callable[[_Call], Any]] = {
    "allreduce_": _all_reduce,
    "allreduce_coalesced_": _all_reduce_coalesced,
    "reduce_": _reduce,
    "reduce_scatter_": _reduce_scatter,
    "_reduce_scatter_base_": _reduce_scatter_base,
    "reduce_scatter_tensor_coalesced_": _reduce_scatter_coalesced,
    "all_reduce": _functional_all_reduce,
    "all_reduce_": _functional_all_reduce_,
    "all_reduce_coalesced": _functional_all_reduce,
    "all_reduce_coalesced_": _functional_all_reduce_,
    "reduce_scatter_tensor": _functional_reduce_scatter,
    "reduce_scatter_tensor_out": _functional_reduce_scatter,
    "reduce_scatter_tensor_coalesced": _functional_reduce_scatter_coalesced,
}
