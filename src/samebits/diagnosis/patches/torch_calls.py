"""Calls of torch: memory that nobody wrote, kernels, threads, loaders."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from samebits.diagnosis.patches.edits import Change, Edit
from samebits.diagnosis.patches.rule import Refusal, Rule, causes, keyword_of, literal_value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from samebits.diagnosis.patches.rule import Spot

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
_LOADER = "torch.utils.data.DataLoader"
# With `num_workers=0` DataLoader raises a ValueError for each of these (torch/utils/data/dataloader.py).
_ONLY_WITH_WORKERS = ("multiprocessing_context", "prefetch_factor", "persistent_workers", "timeout")
_WHY_ZEROS = "memory that is written, in place of what was left in it"


def uninitialized(spot: Spot) -> Iterator[Change | Refusal]:
    """`empty` becomes `zeros`."""
    for call in spot.calls():
        name = spot.syntax.name(call.func)
        function = call.func
        if name in (*_EMPTY, *_TENSOR_TYPES) and _is_filled(spot, call, name):
            continue
        if name in _EMPTY or (isinstance(function, ast.Attribute) and function.attr == "new_empty"):
            yield _zeros(spot, call, _EMPTY.get(name, "new_zeros"))
        elif name in _TENSOR_TYPES and call.args and all(_is_size(spot, arg) for arg in call.args):
            owner = spot.syntax.source(function).rpartition(".")[0]
            sizes = ", ".join(spot.syntax.source(arg) for arg in call.args)
            kind = _TENSOR_TYPES[name]
            dtype = "" if kind == "float32" else f", dtype={owner}.{kind}"
            yield spot.replace(call, f"{owner}.zeros({sizes}{dtype})", _WHY_ZEROS)
        elif isinstance(function, ast.Attribute) and function.attr in ("resize_", "empty_strided"):
            yield Refusal(f"`{function.attr}` leaves memory unwritten: write what it adds", call.lineno)


def _is_filled(spot: Spot, call: ast.Call, name: str) -> bool:
    """Whether all of it is written at once, as in `torch.empty(3).normal_()`, or is given a buffer."""
    method = spot.syntax.parent(call)
    if isinstance(method, ast.Attribute) and method.value is call:
        above = spot.syntax.parent(method)
        return isinstance(above, ast.Call) and above.func is method and method.attr in _FILLING
    return name == "numpy.ndarray" and (keyword_of(call, "buffer") is not None or len(call.args) > 2)


def _zeros(spot: Spot, call: ast.Call, name: str) -> Change | Refusal:
    if not isinstance(call.func, ast.Attribute):
        return Refusal(f"`{spot.syntax.source(call.func)}` is imported by name: use `zeros`", call.lineno)
    if keyword_of(call, "memory_format") is not None and not name.endswith("_like"):
        return Refusal("`empty` with a memory format: fill the tensor after it was made", call.lineno)
    end = spot.syntax.span(call.func)[1]
    return Change((Edit(end - len(call.func.attr), end, name),), _WHY_ZEROS, call.lineno)


def _is_size(spot: Spot, node: ast.expr) -> bool:
    """Whether an argument of `Tensor(...)` is surely a size: a whole number, `len`, arithmetic of these."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int)
    if isinstance(node, ast.BinOp):
        return _is_size(spot, node.left) and _is_size(spot, node.right)
    if isinstance(node, ast.Call):
        return spot.syntax.name(node.func) in ("builtins.len", "builtins.int")
    return False


def kernels(spot: Spot) -> Iterator[Change | Refusal]:
    """`use_deterministic_algorithms` that is there already, and off."""
    for node in spot.syntax.nodes:
        if isinstance(node, ast.Call) and spot.syntax.name(node.func) == "torch.use_deterministic_algorithms":
            mode = node.args[0] if node.args else getattr(keyword_of(node, "mode"), "value", None)
            if isinstance(mode, ast.expr) and literal_value(mode) is not True:
                yield spot.replace(mode, "True", "deterministic algorithms")
                return
    yield Change((), "deterministic algorithms", 0, ("deterministic:",))


def threads(spot: Spot) -> Iterator[Change | Refusal]:
    """A number of threads that changes becomes one that does not."""
    for call in spot.calls():
        sets = spot.syntax.name(call.func) in ("torch.set_num_threads", "torch.set_num_interop_threads")
        if sets and call.args and not isinstance(literal_value(call.args[0]), int):
            yield spot.replace(call.args[0], "1", "a fixed number of threads")


def one_thread(spot: Spot) -> Iterator[Change | Refusal]:
    """A number of threads, where the script sets none."""
    if not any(
        isinstance(node, ast.Call) and spot.syntax.name(node.func) == "torch.set_num_threads"
        for node in spot.syntax.nodes
    ):
        yield Change((), "a fixed number of threads", 0, ("threads:",))


def benchmarks(spot: Spot) -> Iterator[Change | Refusal]:
    """`cudnn.benchmark = True` chooses kernels by their time."""
    for node in spot.syntax.nodes:
        if not isinstance(node, ast.Assign) or literal_value(node.value) is not True:
            continue
        if any(spot.syntax.name(target) == "torch.backends.cudnn.benchmark" for target in node.targets):
            yield spot.replace(node.value, "False", "no choice of kernels by their time")


def loaders(spot: Spot) -> Iterator[Change | Refusal]:
    """Batches that come in the order of the workers."""
    for call in spot.syntax.nodes:
        if not isinstance(call, ast.Call) or spot.syntax.name(call.func) != _LOADER:
            continue
        in_order = keyword_of(call, "in_order")
        if in_order is not None and literal_value(in_order.value) is False:
            yield spot.replace(in_order.value, "True", "batches in order, not as the workers finish them")


def loader_generator(spot: Spot) -> Iterator[Change | Refusal]:
    """A loader that shuffles gets a generator of its own; workers are seeded from it too."""
    for call in spot.calls():
        if spot.syntax.name(call.func) == _LOADER and keyword_of(call, "generator") is None:
            text = f"generator=torch.Generator().manual_seed({spot.seed})"
            yield spot.argument(call, text, "a generator for this loader and its workers", "import:torch")


def without_workers(spot: Spot) -> Iterator[Change | Refusal]:
    """Without workers nothing depends on which one comes first."""
    for call in spot.syntax.nodes:
        if not isinstance(call, ast.Call) or spot.syntax.name(call.func) != _LOADER:
            continue
        workers = keyword_of(call, "num_workers")
        if workers is None or literal_value(workers.value) == 0:
            continue
        edits = [Edit(*spot.syntax.span(workers.value), "0")]
        edits += [_removed(spot, call, word) for word in call.keywords if word.arg in _ONLY_WITH_WORKERS]
        why = "samples are loaded in the main process: what the workers share is taken in one order"
        yield Change(tuple(edits), why, workers.value.lineno)


def _removed(spot: Spot, call: ast.Call, keyword: ast.keyword) -> Edit:
    """A keyword argument taken away, with the comma before it."""
    everything = sorted([*call.args, *call.keywords], key=spot.syntax.span)
    index = everything.index(keyword)
    return Edit(spot.syntax.span(everything[index - 1])[1], spot.syntax.span(keyword)[1], "")


RULES = (
    Rule(causes("uninitialized"), uninitialized),
    Rule(causes("nondeterministic-kernel"), kernels, on_sight=False),
    Rule(causes("thread-count environment wall-clock"), threads, anywhere=True),
    Rule(causes("autotuning nondeterministic-kernel"), benchmarks, on_sight=False),
    Rule(causes("worker-order race"), loaders),
)
LAST_RESORT = (
    Rule(causes("thread-count"), one_thread, on_sight=False),
    Rule(causes("unseeded-torch unseeded-numpy unseeded-python"), loader_generator, on_sight=False),
    Rule(causes("worker-order race"), without_workers, on_sight=False),
)
