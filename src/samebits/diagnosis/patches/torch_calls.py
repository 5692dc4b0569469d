"""Rules for calls of torch: unwritten memory, kernels, threads, loaders."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from samebits.causes import PatchRule
from samebits.diagnosis.patches.code_region import Refusal, keyword_of, literal_value
from samebits.diagnosis.patches.edits import Change, Edit, Need, NeedKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from samebits.diagnosis.patches.code_region import CodeRegion, Rule

_EMPTY = {
    "torch.empty": "zeros",
    "torch.empty_like": "zeros_like",
    "numpy.empty": "zeros",
    "numpy.empty_like": "zeros_like",
    "numpy.ndarray": "zeros",
}
_TENSOR_TYPES = {
    "torch.Tensor": "float32", "torch.FloatTensor": "float32", "torch.DoubleTensor": "float64",
    "torch.HalfTensor": "float16", "torch.LongTensor": "int64", "torch.IntTensor": "int32",
}  # fmt: skip
_FILLING = (
    "normal_", "uniform_", "fill_", "zero_", "random_", "copy_", "exponential_", "bernoulli_", "log_normal_",
    "cauchy_", "geometric_",
)  # fmt: skip
_DETERMINISTIC = "torch.use_deterministic_algorithms"
_SET_THREADS = "torch.set_num_threads"
_LOADER = "torch.utils.data.DataLoader"
# With `num_workers=0` DataLoader raises a ValueError for each of these (torch/utils/data/dataloader.py).
_ONLY_WITH_WORKERS = ("multiprocessing_context", "prefetch_factor", "persistent_workers", "timeout")
_WHY_ZEROS = "use zeros instead of unwritten memory"


def uninitialized(region: CodeRegion) -> Iterator[Change | Refusal]:
    """Replace `empty` by `zeros`."""
    for call in region.calls():
        name = region.syntax.name(call.func)
        function = call.func
        if name in (*_EMPTY, *_TENSOR_TYPES) and _is_filled(region, call, name):
            continue
        if name in _EMPTY or (isinstance(function, ast.Attribute) and function.attr == "new_empty"):
            yield _zeros(region, call, _EMPTY.get(name, "new_zeros"))
        elif name in _TENSOR_TYPES and call.args and all(_is_size(region, arg) for arg in call.args):
            owner = region.syntax.source(function).rpartition(".")[0]
            sizes = ", ".join(region.syntax.source(arg) for arg in call.args)
            kind = _TENSOR_TYPES[name]
            dtype = "" if kind == "float32" else f", dtype={owner}.{kind}"
            yield region.replace(call, f"{owner}.zeros({sizes}{dtype})", _WHY_ZEROS)
        elif isinstance(function, ast.Attribute) and function.attr in ("resize_", "empty_strided"):
            yield Refusal(f"`{function.attr}` leaves memory unwritten: fill the new part", call.lineno)


def _is_filled(region: CodeRegion, call: ast.Call, name: str) -> bool:
    """Tell whether a tensor is filled at once, as in `torch.empty(3).normal_()`, or gets a buffer."""
    method = region.syntax.parent(call)
    if isinstance(method, ast.Attribute) and method.value is call:
        above = region.syntax.parent(method)
        return isinstance(above, ast.Call) and above.func is method and method.attr in _FILLING
    return name == "numpy.ndarray" and (keyword_of(call, "buffer") is not None or len(call.args) > 2)


def _zeros(region: CodeRegion, call: ast.Call, name: str) -> Change | Refusal:
    if not isinstance(call.func, ast.Attribute):
        return Refusal(
            f"`{region.syntax.source(call.func)}` is imported by name: use `zeros` instead", call.lineno
        )
    if keyword_of(call, "memory_format") is not None and not name.endswith("_like"):
        return Refusal("`empty` has a memory format: fill the tensor after making it", call.lineno)
    end = region.syntax.span(call.func)[1]
    return Change((Edit(end - len(call.func.attr), end, name),), _WHY_ZEROS, call.lineno)


def _is_size(region: CodeRegion, node: ast.expr) -> bool:
    """Tell whether an argument of `Tensor(...)` is surely a size: an integer, `len`, arithmetic of these."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int)
    if isinstance(node, ast.BinOp):
        return _is_size(region, node.left) and _is_size(region, node.right)
    if isinstance(node, ast.Call):
        return region.syntax.name(node.func) in ("builtins.len", "builtins.int")
    return False


def _calls_in_file(region: CodeRegion, name: str) -> Iterator[ast.Call]:
    for node in region.syntax.nodes:
        if isinstance(node, ast.Call) and region.syntax.name(node.func) == name:
            yield node


def kernels(region: CodeRegion) -> Iterator[Change | Refusal]:
    """Turn on `use_deterministic_algorithms`, also where the script turns it off."""
    for call in _calls_in_file(region, _DETERMINISTIC):
        mode = call.args[0] if call.args else getattr(keyword_of(call, "mode"), "value", None)
        if isinstance(mode, ast.expr) and literal_value(mode) is not True:
            yield region.replace(mode, "True", "use deterministic algorithms")
            return
    yield Change((), "use deterministic algorithms", 0, (Need(NeedKind.DETERMINISTIC),))


def threads(region: CodeRegion) -> Iterator[Change | Refusal]:
    """Replace a number of threads that changes by a constant."""
    for call in region.calls():
        sets = region.syntax.name(call.func) in (_SET_THREADS, "torch.set_num_interop_threads")
        if sets and call.args and not isinstance(literal_value(call.args[0]), int):
            yield region.replace(call.args[0], "1", "fix the number of threads")


def one_thread(region: CodeRegion) -> Iterator[Change | Refusal]:
    """Set the number of threads if the script does not."""
    if not any(_calls_in_file(region, _SET_THREADS)):
        yield Change((), "fix the number of threads", 0, (Need(NeedKind.ONE_THREAD),))


def benchmarks(region: CodeRegion) -> Iterator[Change | Refusal]:
    """Turn off `cudnn.benchmark`, which chooses kernels by their time."""
    for node in region.syntax.nodes:
        if not isinstance(node, ast.Assign) or literal_value(node.value) is not True:
            continue
        if any(region.syntax.name(target) == "torch.backends.cudnn.benchmark" for target in node.targets):
            yield region.replace(node.value, "False", "do not choose kernels by their time")


def loaders(region: CodeRegion) -> Iterator[Change | Refusal]:
    """Turn on `in_order` where batches come in the order in which workers finish them."""
    for call in _calls_in_file(region, _LOADER):
        in_order = keyword_of(call, "in_order")
        if in_order is not None and literal_value(in_order.value) is False:
            yield region.replace(in_order.value, "True", "take batches in order, not as workers finish them")


def loader_generator(region: CodeRegion) -> Iterator[Change | Refusal]:
    """Give a loader a generator of its own, which also seeds its workers."""
    for call in region.calls():
        if region.syntax.name(call.func) == _LOADER and keyword_of(call, "generator") is None:
            text = f"generator=torch.Generator().manual_seed({region.seed})"
            why = "give this loader and its workers a generator"
            yield region.argument(call, text, why, Need(NeedKind.IMPORT, "torch"))


def without_workers(region: CodeRegion) -> Iterator[Change | Refusal]:
    """Load without workers, so that nothing depends on which one comes first."""
    for call in _calls_in_file(region, _LOADER):
        workers = keyword_of(call, "num_workers")
        if workers is None or literal_value(workers.value) == 0:
            continue
        edits = [Edit(*region.syntax.span(workers.value), "0")]
        edits += [_removed(region, call, word) for word in call.keywords if word.arg in _ONLY_WITH_WORKERS]
        why = "load samples in the main process, so that shared state is used in one order"
        yield Change(tuple(edits), why, workers.value.lineno)


def _removed(region: CodeRegion, call: ast.Call, keyword: ast.keyword) -> Edit:
    """Remove a keyword argument and the comma before it."""
    everything = sorted([*call.args, *call.keywords], key=region.syntax.span)
    index = everything.index(keyword)
    return Edit(region.syntax.span(everything[index - 1])[1], region.syntax.span(keyword)[1], "")


RULES: Mapping[PatchRule, Rule] = {
    PatchRule.ZEROS_FOR_EMPTY: uninitialized,
    PatchRule.DETERMINISTIC_ALGORITHMS: kernels,
    PatchRule.FIXED_THREAD_COUNT: threads,
    PatchRule.NO_BENCHMARKS: benchmarks,
    PatchRule.LOADER_IN_ORDER: loaders,
    PatchRule.ONE_THREAD: one_thread,
    PatchRule.LOADER_GENERATOR: loader_generator,
    PatchRule.NO_WORKERS: without_workers,
}
