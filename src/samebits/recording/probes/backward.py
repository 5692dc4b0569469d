"""Loss and gradients at each backward pass, and the step boundary of scripts without an optimizer."""

from __future__ import annotations

import functools
import threading
import weakref
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from samebits._runtime.builtin_proxies import leave_no_line, unseen
from samebits._runtime.frames import calling_frame
from samebits._runtime.patching import Patches
from samebits._torch.attention import attention_nodes
from samebits._torch.core import current_node, version_of
from samebits.recording._recorder import is_tensor, recordable
from samebits.records.kinds import EventKind
from samebits.records.notes import RecordedPart

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from samebits.recording._recorder import Recorder
    from samebits.recording.probes.optimizers import StateProbe
    from samebits.recording.probes.state import StateTracker

_ALWAYS_SEARCHED = 3


class BackwardProbe:
    """Records `loss` and `grad` events around `torch.autograd.backward` and `torch.autograd.grad`.

    Args:
        recorder: where events go.
        state: knows the parameters, and learns of trained tensors that belong to no module.
        boundaries: records the state when the script has no optimizer.

    Attributes:
        pending: whether there was a backward pass since the last boundary; `OptimizerProbe` resets it.
        threads: tells the parameters whose gradients a training thread may read.
        attention: the ops of attention that were seen in the autograd graphs that were searched.
    """

    def __init__(self, recorder: Recorder, state: StateTracker, boundaries: StateProbe) -> None:
        self._recorder = recorder
        self._state = state
        self._boundaries = boundaries
        self._patches = Patches()
        self._local = threading.local()
        self.threads = GradientThreads()
        self.running = 0
        self.pending = False
        self.seen: dict[str, tuple[int, int]] = {}
        self.attention: set[str] = set()
        self._passes = 0
        self._bare = False
        self._searched = False  # the graph of the last outermost call
        self._node: Callable[[], Any] = lambda: None  # that autograd executes in this thread

    def install(self, torch: Any) -> None:
        """Watch backward passes."""
        self._node = current_node()
        backward, grad = torch.autograd.backward, torch.autograd.grad

        @functools.wraps(backward)
        def recorded_backward(*args: Any, **kwargs: Any) -> Any:
            roots = args[0] if args else kwargs.get("tensors", ())
            try:
                return self._outermost(backward, args, kwargs, roots, self._after_backward)
            except BaseException as error:
                leave_no_line(error)
                raise

        @functools.wraps(grad)
        def recorded_grad(*args: Any, **kwargs: Any) -> Any:
            roots = args[0] if args else kwargs.get("outputs", ())
            try:
                return self._outermost(grad, args, kwargs, roots, self._after_grad)
            except BaseException as error:
                leave_no_line(error)
                raise

        self._patches.set(torch.autograd, "backward", unseen(recorded_backward))
        self._patches.set(torch.autograd, "grad", unseen(recorded_grad))

    def remove(self) -> None:
        """Watch nothing."""
        self._patches.restore()

    def forget(self) -> None:
        """Take no gradient as recorded already."""
        self.seen = {}

    @unseen
    def _outermost(
        self,
        function: Callable[..., Any],
        args: Any,
        kwargs: Any,
        roots: Any,
        after: Callable[[list[Any], Any, FrameType], None],
    ) -> Any:
        # A checkpoint or a double backward calls these inside themselves: only the outermost call counts. On
        # a GPU a checkpoint calls them in the thread of the device.
        local, recorder = self._local, self._recorder
        if not recorder.active or getattr(local, "inside", False) or self._node() is not None:
            if recorder.active and self._searched:
                with recorder.recording(RecordedPart.BACKWARD):
                    self.attention |= attention_nodes(_search_graph(_tensors_of(roots))[1])
            try:
                return function(*args, **kwargs)
            except BaseException as error:
                leave_no_line(error)
                raise
        frame = calling_frame(2)
        tensors, self._searched = _tensors_of(roots), False
        with recorder.recording(RecordedPart.BACKWARD):
            self._searched = self._search_leaves(tensors, frame)
        local.inside = True
        self.running += 1
        sites = recorder.sites
        sites.engine_site = sites.find(frame) if self.running == 1 else None
        try:
            result = function(*args, **kwargs)
        except BaseException as error:
            leave_no_line(error)
            raise
        finally:
            local.inside = False
            self.running -= 1
            sites.engine_site = None
        with recorder.recording(RecordedPart.BACKWARD):
            if recorder.counts and recordable(tensors):
                after(tensors, result, frame)
        return result

    def _after_backward(self, roots: list[Any], _: Any, frame: FrameType) -> None:
        recorder = self._recorder
        recorder.seen.backward = True
        recorder.value(EventKind.LOSS, "backward", frame, roots, _positions(len(roots)))
        with self.threads.readable() as may_read:
            gradients = self._state.gradients(may_read)
        if gradients:
            names, tensors = zip(*gradients, strict=True)
            recorder.value(EventKind.GRAD, "backward", frame, tensors, names)
        # Not held: gradients are as large as the model.
        self.seen = versions_by_name(gradients)
        self._close_step("backward")

    def _after_grad(self, roots: list[Any], result: Any, frame: FrameType) -> None:
        recorder = self._recorder
        recorder.seen.backward = True
        recorder.value(EventKind.LOSS, "grad", frame, roots, _positions(len(roots)))
        tensors = [gradient for gradient in result if gradient is not None]
        if tensors and recordable(tensors):
            recorder.value(EventKind.GRAD, "grad", frame, tensors, _positions(len(tensors)))
        self._close_step("grad")

    def _close_step(self, op: str) -> None:
        recorder = self._recorder
        if not recorder.seen.optimizer:
            with self.threads.readable() as may_read:
                recorder.seen.optimizer = self._state.is_optimized(may_read)
        self.pending = True
        if not recorder.seen.optimizer:
            self._boundaries.close_step(op)
            self.pending = False

    def _search_leaves(self, roots: list[Any], frame: FrameType) -> bool:
        """Find trained tensors that no module or optimizer holds, by a walk over the autograd graph.

        The walk sees the ops of attention too. Whether there was one is returned.

        The cost of the walk grows with the graph. So a script that trains in one thread, and in which the
        first passes have no such tensors, is searched again only at growing distances.
        """
        self._passes += 1
        passes = self._passes
        is_due = self._bare or passes <= _ALWAYS_SEARCHED or not passes & (passes - 1)
        if not self.threads.begin() and not is_due:
            return False
        leaves, kinds = _search_graph(roots)
        self.attention |= attention_nodes(kinds)
        self.threads.reach(leaves)
        for leaf in leaves:
            if self._state.learn(leaf, _name_of(leaf, frame)):
                self._bare = True
        return True


class GradientThreads:
    """Tells the parameters whose gradients a training thread may read.

    Example: two threads train a model each. One reads `.grad` of a parameter of the other, whose backward
    pass frees that gradient in C++, without the GIL: the process dies. So once a second thread runs a
    backward pass, each thread reads only the gradients of what its own passes reach.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a garbage collection in the block may run a script's backward pass
        self._known: set[int] = set()
        self._local = threading.local()

    def begin(self) -> bool:
        """Note that this thread runs a backward pass; tell whether it must say what the pass reaches."""
        thread = threading.get_ident()
        if thread not in self._known:
            with self._lock:  # a thread that believed itself alone reads to its end
                self._known.add(thread)
        return len(self._known) > 1

    def reach(self, leaves: list[Any]) -> None:
        """Note the leaves that a backward pass of this thread reaches."""
        reached = self._reached()
        for leaf in leaves:
            reached[id(leaf)] = weakref.ref(leaf)

    @contextmanager
    def readable(self) -> Iterator[Callable[[Any], bool] | None]:
        """Tell, inside the `with` block, whether the gradient of a parameter may be read; None for all."""
        with self._lock:
            if len(self._known) < 2:
                yield None
                return
        reached = self._reached()
        yield lambda parameter: id(parameter) in reached and reached[id(parameter)]() is parameter

    def _reached(self) -> dict[int, weakref.ref[Any]]:
        local = self._local
        if not hasattr(local, "reached"):
            local.reached = {}
        reached: dict[int, weakref.ref[Any]] = local.reached
        return reached


def _tensors_of(roots: Any) -> list[Any]:
    listed = list(roots) if isinstance(roots, (list, tuple)) else [roots]
    return [root for root in listed if is_tensor(root)]


def _search_graph(roots: list[Any]) -> tuple[list[Any], set[type]]:
    """Return the leaves that a backward pass from `roots` reaches, in the order of the walk.

    The classes of all nodes on the way are returned with them.
    """
    pending = [root.grad_fn for root in roots if root.grad_fn is not None]
    visited: set[Any] = set()
    leaves, kinds = [], set()
    while pending:
        node = pending.pop()
        if node in visited:
            continue
        visited.add(node)
        kind = type(node)
        kinds.add(kind)
        # Asked by name: the node of a custom function has the attributes that the script gave it.
        variable = getattr(node, "variable", None) if kind.__name__ == "AccumulateGrad" else None
        if variable is not None:
            leaves.append(variable)
        pending.extend(parent for parent, _ in node.next_functions if parent is not None)
    return leaves, kinds


def versions_by_name(gradients: list[tuple[str, Any]]) -> dict[str, tuple[int, int]]:
    """Return what tells whether a gradient was replaced or written to: its identity and its version."""
    tensors = [gradient for _, gradient in gradients]
    states = zip(map(id, tensors), map(version_of, tensors), strict=True)
    return dict(zip([name for name, _ in gradients], states, strict=True))


def _positions(n: int) -> tuple[str, ...]:
    return tuple(map(str, range(n)))


def _name_of(tensor: Any, frame: FrameType) -> str:
    # Only globals: reading the locals of a function would keep its tensors alive.
    for name, value in list(frame.f_globals.items()):  # another thread may change them
        if value is tensor:
            return name
    return ""
