"""What the ranks of a distributed run tell each other while they save or load a checkpoint."""

from __future__ import annotations

import json
import os
import warnings
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from samebits._runtime.interruptions import is_from_outside
from samebits.checkpoint import _sharded_folder as folder
from samebits.checkpoint._arrays import dtype_named
from samebits.checkpoint._encoding import TreeWriter
from samebits.checkpoint._refusals import path_text, unsaveable
from samebits.checkpoint._shards import (
    Shards,
    check_fit,
    clean,
    collect_shards,
    fingerprints,
    is_sharded_part,
    local,
    own_tensors,
    parameter_names,
    prepare_optimizer,
    restore_groups,
)
from samebits.checkpoint.interface import Loaded, load, save
from samebits.digest import digest
from samebits.errors import SamebitsError, SamebitsWarning
from samebits.rng.seeds import derive
from samebits.rng.states import seed_sources

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from samebits.checkpoint._arrays import Entry

_LONGEST = 400


class Ranks:
    """The ranks of torch's default process group; without one, this process alone.

    Attributes:
        rank: of this process.
        size: how many there are.
    """

    def __init__(self) -> None:
        import torch.distributed as dist

        self._dist = dist if dist.is_available() and dist.is_initialized() else None
        self.rank = 0 if self._dist is None else int(self._dist.get_rank())
        self.size = 1 if self._dist is None else int(self._dist.get_world_size())

    def gather(self, value: Any) -> list[Any]:
        """The values of all ranks, on each of them."""
        if self._dist is None:
            return [value]
        found: list[Any] = [None] * self.size
        self._dist.all_gather_object(found, value)
        return found

    def together(self, job: Callable[[], Any]) -> Any:
        """Do something on each rank; when it fails on one, it fails on all.

        Raises:
            SamebitsError: that of the first rank that has one, with its number.
        """
        result, failure, outside = None, None, None
        try:
            result = job()
        except SamebitsError as error:
            failure = error
        except Exception as error:  # noqa: BLE001 - the other ranks must not wait for this one
            outside = error if is_from_outside(error) else None
            text = " ".join(f"{type(error).__name__}: {error}".split())[:_LONGEST]
            failure = SamebitsError(text, slug="checkpoint-sharded")
        failures = self.gather(None if failure is None else (str(failure), failure.slug))
        if outside is not None:
            raise outside
        for rank, found in enumerate(failures):
            if found is not None:
                text = f"rank {rank}: {found[0]}" if self.size > 1 else found[0]
                raise SamebitsError(text, slug=found[1])
        return result


@dataclass(frozen=True)
class _Saving:
    """What one rank has to write.

    Args:
        shards: models and optimizers.
        own: names of tensors of these that are not the same on all ranks.
        rest: all other parts.
        apart: names of those that are not the same on all ranks.
        values_apart: whether what is no tensor of models and optimizers is not the same on all ranks either.
        step: how many steps are done.
        epoch: which epoch it is.
    """

    shards: Shards
    own: list[str]
    rest: dict[str, Any]
    apart: list[str]
    values_apart: bool
    step: int | None
    epoch: int | None


@dataclass(frozen=True)
class _Loading:
    """What one rank loads, and how.

    Args:
        place: the folder.
        manifest: of it.
        ranks: that load.
        parts: that take the states.
        strict: see `load_sharded`.
        rng: likewise.
    """

    place: Path
    manifest: dict[str, Any]
    ranks: Ranks
    parts: Mapping[str, Any]
    strict: bool
    rng: bool

    @property
    def same(self) -> bool:
        """Whether there are as many ranks as when it was saved."""
        return bool(self.manifest["world_size"] == self.ranks.size)

    @property
    def number(self) -> int:
        """Whose files this rank reads."""
        return self.ranks.rank if self.ranks.rank < self.manifest["world_size"] else 0


def save_sharded(
    path: str | os.PathLike[str], /, *, step: int | None = None, epoch: int | None = None, **parts: Any
) -> None:
    """Save the training state of all ranks to one folder, which appears whole or not at all.

    To be called on every rank, with the same parts. Models and optimizers are written by
    `torch.distributed.checkpoint`: of shards (FSDP2, `DTensor`) each rank's own, of replicas (DDP) one copy.
    What else is the same on all ranks is written once; what is not, and the RNG sources, for each rank.

    Args:
        path: the folder; one that is there is replaced at the end.
        step: how many steps are done.
        epoch: which epoch it is.
        parts: as for `samebits.checkpoint.save`.

    Raises:
        SamebitsError: on all ranks, also where only one has failed. Something cannot be saved,
            `checkpoint-entry`; the folder cannot be written, `checkpoint-unwritable`.
    """
    ranks, target = Ranks(), Path(os.path.abspath(path_text(path)))
    place = ranks.together(lambda: folder.temporary(target, make=ranks.rank == 0))
    _refuse_other_parts(ranks.gather(list(parts)))
    shards = ranks.together(lambda: collect_shards(parts))
    rest = {name: value for name, value in parts.items() if not is_sharded_part(value)}
    own = own_tensors(shards, ranks.gather(fingerprints(shards)))
    marks = ranks.gather(ranks.together(lambda: {name: _mark(name, rest[name]) for name in rest}))
    apart = [name for name in rest if len({found.get(name) for found in marks}) > 1]
    values = ranks.gather(ranks.together(lambda: _mark("values", shards.values)))
    saving = _Saving(shards, own, rest, apart, len(set(values)) > 1, step, epoch)
    written = ranks.gather(ranks.together(lambda: _write(ranks, place, saving)))
    shapes = {name: [list(t.shape), str(t.dtype)] for name, t in shards.tensors.items() if name not in own}
    fields = {
        "world_size": ranks.size,
        "own": list(dict.fromkeys(name for names in ranks.gather(own) for name in names)),
        "apart": apart,
        "values_apart": saving.values_apart,
        "files": {name: facts for found in written for name, facts in found.items()},
        "shapes": {name: facts for found in ranks.gather(shapes) for name, facts in found.items()},
    }
    ranks.together(lambda: folder.finish(place, target, fields) if ranks.rank == 0 else None)


def load_sharded(
    path: str | os.PathLike[str], /, *, strict: bool = True, rng: bool = True, **parts: Any
) -> Loaded:
    """Check a sharded checkpoint, put its states into objects, then restore the RNG sources of this rank.

    To be called on every rank. There may be another number of them than when it was saved, also one process.

    Args:
        path: what `save_sharded` wrote.
        strict: every saved state needs an object that takes it, and the reverse. If False, where there is
            another number of ranks, what was each rank's own is taken from rank 0 by the new ones.
        rng: whether to restore the RNG sources. Ranks that there were not then begin with seeds that follow
            from the checkpoint and their number, with a warning.
        parts: the objects that take the states, under the names that they were saved under.

    Returns:
        As `samebits.checkpoint.load`.

    Raises:
        SamebitsError: on all ranks. As `samebits.checkpoint.load`; something was each rank's own and there is
            another number of ranks, `checkpoint-world-size`.
    """
    ranks = Ranks()
    place = folder.find(Path(os.path.realpath(path_text(path))))
    manifest = ranks.together(lambda: folder.read_manifest(place))
    ranks.together(lambda: folder.check_files(place, manifest["files"], first=ranks.rank, step=ranks.size))
    loading = _Loading(place, manifest, ranks, parts, strict, rng)
    ranks.together(lambda: _refuse_other_size(loading))
    values, own = ranks.together(lambda: _checked_values(loading))
    loaded = ranks.together(lambda: _restore_rest(loading))
    shards = ranks.together(lambda: _prepared(loading, values, own))
    stored = {name: tensor for name, tensor in shards.tensors.items() if name in manifest["shapes"]}
    ranks.together(lambda: _read_shards(place / folder.SHARDS, stored))
    ranks.together(lambda: _put_values(parts, parameter_names(parts), values))
    if rng:
        ranks.together(lambda: _restore_generators(loading, loaded))
    return loaded  # type: ignore[no-any-return]


def _refuse_other_parts(names: list[list[str]]) -> None:
    """Refuse ranks that save other parts: what one lacks could not be told from what is its own."""
    for rank, found in enumerate(names):
        if sorted(found) != sorted(names[0]):
            text = f"rank {rank} gives {', '.join(sorted(found))}, and rank 0 {', '.join(sorted(names[0]))}"
            raise unsaveable("the parts", f"{text}; give the same names on all ranks")


def _mark(name: str, value: Any) -> str:
    """What tells whether a part is the same on another rank."""
    entries: list[Entry] = []
    node = TreeWriter(entries).encode(value, name)
    return json.dumps(node) + "".join(str(digest(entry.tensor)) for entry in entries)


def _write(ranks: Ranks, place: Path, saving: _Saving) -> dict[str, tuple[int, str]]:
    """Write what this rank has to write; gives length and digest of its files."""
    tensors, counts = saving.shards.tensors, {"step": saving.step, "epoch": saving.epoch}
    _write_shards(place / folder.SHARDS, {n: t for n, t in tensors.items() if n not in saving.own})
    own = {name: local(tensors[name]).detach() for name in saving.own}
    values = saving.shards.values if saving.values_apart else None
    save(place / folder.own_file(ranks.rank), own=own, values=values)
    save(place / folder.rank_file(ranks.rank), **counts, **{n: saving.rest[n] for n in saving.apart})
    written = [place / folder.own_file(ranks.rank), place / folder.rank_file(ranks.rank)]
    if ranks.rank == 0:
        common = {name: value for name, value in saving.rest.items() if name not in saving.apart}
        save(place / folder.COMMON, **counts, **common)
        save(place / folder.VALUES, values=saving.shards.values)
        written += [place / folder.COMMON, place / folder.VALUES]
    marker = f"shard-{ranks.rank + 1:05d}-"  # as `torch.distributed.checkpoint` names the files of a rank
    written += [entry for entry in (place / folder.SHARDS).iterdir() if entry.name.startswith(marker)]
    for file in written:
        folder.flush(file)
    return {str(file.relative_to(place)): folder.file_facts(file) for file in written}


def _write_shards(place: Path, tensors: Mapping[str, Any]) -> None:
    dcp: Any = import_module("torch.distributed.checkpoint")
    if not tensors:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that there is no process group where there is none
        dcp.save(
            dict(tensors),
            storage_writer=dcp.HuggingFaceStorageWriter(str(place), save_distributed=True),
            planner=dcp.DefaultSavePlanner(dedup_save_to_lowest_rank=True),
        )


def _read_shards(place: Path, tensors: dict[str, Any]) -> None:
    dcp: Any = import_module("torch.distributed.checkpoint")
    if not tensors:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dcp.load(tensors, storage_reader=dcp.HuggingFaceStorageReader(str(place)))


def _refuse_other_size(loading: _Loading) -> None:
    """Refuse another number of ranks where something cannot be divided anew."""
    manifest = loading.manifest
    buffers = {
        f"{part}.{clean(name, model)}"
        for part, model in loading.parts.items()
        if is_sharded_part(model) and hasattr(model, "named_buffers")
        for name, _ in model.named_buffers()
    }
    apart = [name for name in (*manifest["apart"], *manifest["own"]) if name not in buffers]
    apart += ["a single value of a model or an optimizer"] if manifest["values_apart"] else []
    if not loading.same and apart and loading.strict:
        sizes = f"{manifest['world_size']} ranks and is loaded on {loading.ranks.size}"
        message = (
            f"{loading.place} was saved on {sizes}; {apart[0]} was not the same on all of them and cannot be "
            "divided anew. Load it on as many ranks, or pass `strict=False`, which gives new ranks rank 0's"
        )
        raise SamebitsError(message, slug="checkpoint-world-size")


def _checked_values(loading: _Loading) -> tuple[dict[str, Any], dict[str, Any]]:
    """Single values and tensors of this rank's own, after a check that all fits; nothing is changed yet."""
    place = loading.place
    mine = load(place / folder.own_file(loading.number), rng=False).extra
    own, values = mine["own"], mine["values"]
    if values is None:
        values = load(place / folder.VALUES, rng=False).extra["values"]
    models = {name: part for name, part in loading.parts.items() if hasattr(part, "named_buffers")}
    check_fit(collect_shards(models), _saved(loading, own), values, loading.parts, strict=loading.strict)
    return values, own


def _saved(loading: _Loading, own: Mapping[str, Any]) -> dict[str, tuple[tuple[int, ...], Any]]:
    """Shape and dtype of all tensors of models and optimizers in the checkpoint."""
    shapes = loading.manifest["shapes"].items()
    found = {
        name: (tuple(shape), dtype_named(dtype.removeprefix("torch."))) for name, (shape, dtype) in shapes
    }
    return {**found, **{name: (tuple(tensor.shape), tensor.dtype) for name, tensor in own.items()}}


def _restore_rest(loading: _Loading) -> Loaded:
    """Restore the parts that are no models and no optimizers."""
    place, apart = loading.place, loading.manifest["apart"]
    rest = {name: part for name, part in loading.parts.items() if not is_sharded_part(part)}
    given = {name: part for name, part in rest.items() if name in apart}
    mine = load(place / folder.rank_file(loading.number), strict=loading.strict, rng=False, **given)
    others = {name: part for name, part in rest.items() if name not in apart}
    common = load(place / folder.COMMON, strict=loading.strict, rng=False, **others)
    return Loaded(str(place), common.step, common.epoch, {**common.extra, **mine.extra}, mine.rng)


def _prepared(loading: _Loading, values: Mapping[str, Any], own: Mapping[str, Any]) -> Shards:
    """The tensors of models and optimizers, with room for what is to be loaded."""
    names, saved = parameter_names(loading.parts), _saved(loading, own)
    for name, part in loading.parts.items():
        if is_sharded_part(part) and hasattr(part, "param_groups"):
            restore_groups(part, name, names, values[f"{name}.groups"])
            prepare_optimizer(part, name, names, saved)
    shards = collect_shards(loading.parts)
    for name, tensor in own.items():
        if name in shards.tensors:
            local(shards.tensors[name]).detach().copy_(tensor)
    return shards


def _restore_generators(loading: _Loading, loaded: Loaded) -> None:
    manifest, ranks = loading.manifest, loading.ranks
    if ranks.rank < manifest["world_size"]:
        loaded.restore_rng(strict=loading.strict)
    else:
        seed_sources(derive(int(manifest["digest"][:16], 16), "rank", ranks.rank))
    if not loading.same and ranks.rank == 0:
        sizes = f"{manifest['world_size']} ranks and is loaded on {ranks.size}"
        text = (
            f"{loading.place} was saved on {sizes}: what a rank draws from its own generators (dropout) is "
            "not what the saved run would have drawn"
        )
        warnings.warn(text, SamebitsWarning, stacklevel=5)


def _put_values(parts: Mapping[str, Any], names: Mapping[int, str], values: Mapping[str, Any]) -> None:
    """Put back what is not written as shards: single values, extra states."""
    for part, target in parts.items():
        if not is_sharded_part(target):
            continue
        if hasattr(target, "named_buffers"):
            state = target.state_dict()
            for name in state:
                state[name] = values.get(f"{part}.{clean(name, target)}", state[name])
            target.load_state_dict(state)
            continue
        by_name = {names[id(p)]: p for group in target.param_groups for p in group["params"]}
        state = {}
        for name, keys in values[f"{part}.order"]:  # as it was: who walks over it meets the same order
            here, prefix = target.state.get(by_name[name], {}), f"{part}.state.{name}."
            state[by_name[name]] = {k: values[prefix + k] if prefix + k in values else here[k] for k in keys}
        target.state.clear()
        target.state.update(state)
