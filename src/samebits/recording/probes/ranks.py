"""The replicas and the share of the data by which the ranks of a distributed run are compared.

Events of kind `collective`:

- `replicas`: before the first step, and before any other if the model has changed since the last one
  (averaged over the ranks, loaded): which parameters are kept equal by `DistributedDataParallel`, and
  which are shards (JSON). Its tensors are the parameters and buffers at that moment.
- `epoch`: an iteration of a DataLoader begins (JSON).
- `indices`: the indices of one batch that was handed over, as its sampler gave them: `loader epoch: 3 5 7`;
  at the end of an epoch `end`.
"""

from __future__ import annotations

import functools
import itertools
import json
import re
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any

from samebits._runtime.frames import calling_frame, pass_on
from samebits._runtime.patching import Patches
from samebits._torch.loaders import LOADER_NEXT_INDEX, base_seed, loader_iterator_class, persistent_iterator
from samebits.digest.pending import read
from samebits.recording.probes.batches import dataset_size
from samebits.records.kinds import EventKind, Role
from samebits.records.notes import RecordedPart

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import FrameType

    from samebits.digest.pending import Digests
    from samebits.recording._recorder import Recorder
    from samebits.recording.probes.modules import ModuleRegistry
    from samebits.recording.probes.state import Part, StateTracker

REPLICAS, EPOCH, INDICES = "replicas", "epoch", "indices"
_MOST_INDICES = 1 << 22  # of one rank: each is some bytes of the record, and of memory
_SAMPLER_FACTS = ("epoch", "seed", "shuffle", "drop_last", "num_replicas", "rank", "replacement")
_DEEP = 4
_GATHERED = re.compile(r"leaf\d+")  # as the state names what neither a module nor a variable holds


class RankProbe:
    """Records the facts by which the ranks of a run are compared; only in a run of several ranks.

    Args:
        recorder: where events go.
        state: knows the parameters and their names.
        registry: knows the modules.
    """

    def __init__(self, recorder: Recorder, state: StateTracker, registry: ModuleRegistry) -> None:
        self._recorder = recorder
        self._state = state
        self._registry = registry
        self._patches = Patches()
        self._handles: list[Any] = []
        self._last: int | None = None
        self._closed: Digests = b""
        self._loaders: dict[int, tuple[weakref.ref[Any], int]] = {}
        self._epochs: dict[int, int] = {}
        self._numbers = itertools.count()
        self._left = _MOST_INDICES
        self._running: weakref.WeakKeyDictionary[Any, _Iteration] = weakref.WeakKeyDictionary()

    def install(self, torch: Any) -> None:
        """Watch optimizers and DataLoaders."""
        from torch.optim.optimizer import register_optimizer_step_pre_hook

        self._handles = [register_optimizer_step_pre_hook(self._before_step)]
        self._recorder.steps.listen(self._after_step, first=True)
        iterator = loader_iterator_class()
        if iterator is not None and hasattr(iterator, LOADER_NEXT_INDEX):
            self._watch_iterators(iterator)
            self._watch_loaders(torch.utils.data.DataLoader)

    def remove(self) -> None:
        """Watch nothing."""
        for handle in self._handles:
            handle.remove()
        self._handles = []
        self._recorder.steps.stop_listening(self._after_step)
        self._patches.restore()

    def _before_step(self, *_: Any) -> None:
        if self._recorder.active:
            with self._recorder.recording(RecordedPart.REPLICAS), self._recorder.quietly:
                self._record_replicas()

    def _after_step(self, _: object, digests: Digests) -> None:
        self._closed = digests

    def _record_replicas(self) -> None:
        recorder, part = self._recorder, self._state.model()
        digests = part.digest()
        if self._last == part.layout and read(self._closed).startswith(digests):
            return  # nothing has changed since the last step was closed
        text = json.dumps(replicas(part, self._registry.alive()))
        site = recorder.sites.find(calling_frame())
        recorder.shared(REPLICAS, site, part.layout, digests, part.tensors, text)
        self._last = part.layout

    def _watch_iterators(self, iterator_class: type[Any]) -> None:
        next_index, fetch = getattr(iterator_class, LOADER_NEXT_INDEX), iterator_class.__next__
        recorder, running = self._recorder, self._running

        @functools.wraps(next_index)
        def noted_index(iterator: Any) -> Any:
            index = next_index(iterator)
            if recorder.active:
                running.setdefault(iterator, _Iteration()).waiting.append(index)
            return index

        @functools.wraps(fetch)
        def noted_next(iterator: Any) -> Any:
            try:
                batch = fetch(iterator)
            except StopIteration:
                self._ended(iterator)
                raise
            if recorder.active:
                with recorder.recording(RecordedPart.INDICES):
                    self._handed_over(running.get(iterator))
            return batch

        self._patches.set(iterator_class, LOADER_NEXT_INDEX, noted_index)
        self._patches.set(iterator_class, "__next__", noted_next)

    def _watch_loaders(self, loader_class: type[Any]) -> None:
        begin, recorder = loader_class.__iter__, self._recorder

        @functools.wraps(begin)
        def noted_iter(loader: Any) -> Any:
            if not recorder.active:
                return begin(loader)
            persistent = persistent_iterator(loader)
            if persistent is not None:
                self._running.pop(persistent, None)
            iterator = begin(loader)
            with recorder.recording(RecordedPart.EPOCH):
                self._begun(loader, iterator, calling_frame())
            return iterator

        self._patches.set(loader_class, "__iter__", noted_iter)

    def _begun(self, loader: Any, iterator: Any, frame: FrameType) -> None:
        known = self._loaders.get(id(loader))
        if known is None or known[0]() is not loader:
            known = self._loaders[id(loader)] = (weakref.ref(loader), next(self._numbers))
        number = known[1]
        epoch = self._epochs.get(number, 0)
        self._epochs[number] = epoch + 1
        iteration = self._running.setdefault(iterator, _Iteration())
        iteration.name = f"{number} {epoch}"
        facts = {
            "loader": number,
            "epoch": epoch,
            **_loader_facts(loader),
            "worker_seed": base_seed(iterator),
        }
        recorder = self._recorder
        recorder.remark(EventKind.COLLECTIVE, EPOCH, recorder.sites.find(frame), json.dumps(facts))

    def _ended(self, iterator: Any) -> None:
        iteration, recorder = self._running.get(iterator), self._recorder
        if recorder.active and iteration is not None and iteration.name:
            recorder.remark(EventKind.COLLECTIVE, INDICES, None, f"{iteration.name}: end")

    def _handed_over(self, iteration: _Iteration | None) -> None:
        if iteration is None or not iteration.waiting or not iteration.name:
            return
        index = iteration.waiting.popleft()
        whole = getattr(index, "indices", None)  # of the batches of `samebits.DataLoader`
        index = whole if isinstance(whole, tuple) else index
        indices = list(index) if isinstance(index, (list, tuple)) else [index]
        if all(index is None for index in indices):  # also without any: an iterable dataset has none
            return
        self._left -= len(indices)
        known = self._left >= 0
        words = " ".join(_word(index) for index in indices) if known else "?"
        self._recorder.remark(EventKind.COLLECTIVE, INDICES, None, f"{iteration.name}: {words}")


class _Iteration:
    """The indices that the sampler has given and whose batches the loader has not handed over yet."""

    def __init__(self) -> None:
        self.name = ""
        self.waiting: deque[Any] = deque()


def replicas(part: Part, modules: Iterable[Any]) -> dict[str, Any]:
    """Return the names of the parameters that are kept equal on all ranks, and of those that are shards.

    Args:
        part: the parameters and buffers.
        modules: all modules that live.
    """
    pairs = zip(part.tensors, part.infos, strict=False)
    names = {id(tensor): info.name for tensor, info in pairs if info.role == Role.PARAM}
    equal: dict[str, list[str]] = {}
    shards: dict[str, None] = {}
    for module in modules:
        kind = {base.__name__ for base in type(module).__mro__ if base.__module__.startswith("torch.")}
        if "DistributedDataParallel" in kind:
            ignored = set(getattr(module, "parameters_to_ignore", ()))
            held = [p for name, p in module.module.named_parameters() if name not in ignored]
            equal_names = equal.setdefault(_group(module.process_group), [])
            equal_names += [names[id(p)] for p in held if id(p) in names]
        elif "FullyShardedDataParallel" in kind:
            shards.update({names[id(p)]: None for p in module.parameters() if id(p) in names})
    for tensor in part.tensors:
        name = names.get(id(tensor))
        placements = getattr(tensor, "placements", None)  # of a DTensor
        if name is not None and placements is not None and not all(p.is_replicate() for p in placements):
            shards[name] = None
    if shards:  # what a layer gathers for its forward and backward pass is held by no module
        shards.update({name: None for name in names.values() if _GATHERED.fullmatch(name)})
    groups = [{"ranks": json.loads(ranks), "names": equal_names} for ranks, equal_names in equal.items()]
    return {"groups": groups, "shards": list(shards)}


def _group(group: Any) -> str:
    import torch.distributed as dist

    return json.dumps(sorted(dist.get_process_group_ranks(group)))


def _loader_facts(loader: Any) -> dict[str, Any]:
    """Return the facts that tell how a loader divides its data, as JSON can hold them."""
    sampler = _sampler(loader)
    facts: dict[str, Any] = {
        "size": dataset_size(getattr(loader, "dataset", None)),
        "sampler": type(sampler).__name__,
        "keyed": type(sampler).__module__.startswith("samebits."),  # what samples draw knows no worker
        "workers": int(getattr(loader, "num_workers", 0)),
        "init": getattr(loader, "worker_init_fn", None) is not None,
        "drop": bool(getattr(loader, "drop_last", False)),
    }
    for name in _SAMPLER_FACTS:
        value = getattr(sampler, name, None)
        if isinstance(value, (bool, int)):
            facts[f"sampler_{name}"] = value
    return facts


def _sampler(loader: Any) -> Any:
    """Return the innermost sampler: those that make batches, or shards of batches, hold another."""
    sampler = loader
    for _ in range(_DEEP):
        inner = [getattr(sampler, name, None) for name in ("batch_sampler", "sampler")]
        inner = [sampler for sampler in inner if sampler is not None]  # not by truth: some have a length of 0
        if not inner:
            break
        sampler = inner[0]
    return sampler


def _word(index: Any) -> str:
    """Return an index without blanks; for samplers that give more than an index, its text."""
    try:
        return str(int(index))
    except Exception as error:  # noqa: BLE001 - whatever a sampler of the user's own gives
        pass_on(error)
        return repr(index).replace(" ", "_")[:100]
