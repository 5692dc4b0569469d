"""Saves and loads the checkpoint of all ranks of a distributed run."""

from __future__ import annotations

import inspect
import json
import os
import warnings
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from samebits._runtime.frames import is_from_outside
from samebits.checkpoint._arrays import dtype_named
from samebits.checkpoint._encoding import TreeWriter
from samebits.checkpoint._sharded_folder import (
    COMMON,
    SHARDS,
    VALUES,
    check_files,
    file_facts,
    find_folder,
    finish_folder,
    flush,
    own_file,
    rank_file,
    read_manifest,
    temporary_folder,
)
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
from samebits.checkpoint._stateful import path_text, unsaveable
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
        rank: the rank of this process.
        size: how many ranks there are.
    """

    def __init__(self) -> None:
        import torch.distributed as dist

        self._dist = dist if dist.is_available() and dist.is_initialized() else None
        self.rank = 0 if self._dist is None else int(self._dist.get_rank())
        self.size = 1 if self._dist is None else int(self._dist.get_world_size())

    def gather(self, value: Any) -> list[Any]:
        """Return the values of all ranks, on each of them."""
        if self._dist is None:
            return [value]
        values: list[Any] = [None] * self.size
        self._dist.all_gather_object(values, value)
        return values

    def together(self, job: Callable[[], Any]) -> Any:
        """Run a job on each rank; if it fails on one, it fails on all.

        Raises:
            SamebitsError: the error of the first rank that has one, with its number.
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
        for rank, facts in enumerate(failures):
            if facts is not None:
                text = f"rank {rank}: {facts[0]}" if self.size > 1 else facts[0]
                raise SamebitsError(text, slug=facts[1])
        return result


@dataclass(frozen=True)
class _Saving:
    """The data that one rank has to write.

    Args:
        shards: models and optimizers.
        own: names of their tensors that differ between ranks.
        rest: all other parts.
        apart: names of other parts that differ between ranks.
        values_apart: whether the values of models and optimizers that are no tensors differ between ranks.
        step: how many steps are done.
        epoch: the number of the epoch.
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
    """The data that one rank loads, and the options.

    Args:
        folder: the folder of the checkpoint.
        manifest: its manifest.
        ranks: the ranks that load.
        parts: the objects that load the states.
        strict: see `load_sharded`.
        rng: likewise.
    """

    folder: Path
    manifest: dict[str, Any]
    ranks: Ranks
    parts: Mapping[str, Any]
    strict: bool
    rng: bool

    @property
    def has_same_size(self) -> bool:
        """True if there are as many ranks as when it was saved."""
        return bool(self.manifest["world_size"] == self.ranks.size)

    @property
    def source_rank(self) -> int:
        """The rank whose files this rank reads."""
        return self.ranks.rank if self.ranks.rank < self.manifest["world_size"] else 0


def save_sharded(
    path: str | os.PathLike[str], /, *, step: int | None = None, epoch: int | None = None, **parts: Any
) -> None:
    """Save the training state of all ranks to one folder, which appears whole or not at all.

    Call it on every rank, with the same parts. `torch.distributed.checkpoint` writes models and optimizers:
    each rank's own part of shards (FSDP2, `DTensor`), and one copy of replicas (DDP). Each rank writes its
    RNG sources. Other values are written once if all ranks have the same, and otherwise by each rank.

    Args:
        path: the folder; an existing one is replaced at the end.
        step: how many steps are done.
        epoch: the number of the epoch.
        parts: as for `samebits.checkpoint.save`.

    Raises:
        SamebitsError: on all ranks, even if only one has failed. Something cannot be saved,
            `checkpoint-entry`; the folder cannot be written, `checkpoint-unwritable`.
    """
    ranks, target = Ranks(), Path(os.path.abspath(path_text(path)))
    ranks.together(_refuse_old_torch)
    building = ranks.together(lambda: temporary_folder(target, make=ranks.rank == 0))
    _refuse_other_parts(ranks.gather(list(parts)))
    shards = ranks.together(lambda: collect_shards(parts))
    rest = {name: value for name, value in parts.items() if not is_sharded_part(value)}
    own = own_tensors(shards, ranks.gather(fingerprints(shards)))
    signatures = ranks.gather(ranks.together(lambda: {name: _signature(name, rest[name]) for name in rest}))
    apart = [name for name in rest if len({listed.get(name) for listed in signatures}) > 1]
    values = ranks.gather(ranks.together(lambda: _signature("values", shards.values)))
    saving = _Saving(shards, own, rest, apart, len(set(values)) > 1, step, epoch)
    written = ranks.gather(ranks.together(lambda: _write(ranks, building, saving)))
    shapes = {name: [list(t.shape), str(t.dtype)] for name, t in shards.tensors.items() if name not in own}
    fields = {
        "world_size": ranks.size,
        "own": list(dict.fromkeys(name for names in ranks.gather(own) for name in names)),
        "apart": apart,
        "values_apart": saving.values_apart,
        "files": {name: facts for listed in written for name, facts in listed.items()},
        "shapes": {name: facts for listed in ranks.gather(shapes) for name, facts in listed.items()},
    }
    ranks.together(lambda: finish_folder(building, target, fields) if ranks.rank == 0 else None)


def load_sharded(
    path: str | os.PathLike[str], /, *, strict: bool = True, rng: bool = True, **parts: Any
) -> Loaded:
    """Check a sharded checkpoint, put its states into objects, then restore the RNG sources of this rank.

    Call it on every rank. The number of ranks may differ from that of the run that saved; it may be one.

    Args:
        path: a folder that `save_sharded` wrote.
        strict: every saved state needs an object that loads it, and the reverse. If False, and there are more
            ranks than before, the new ranks take from rank 0 what each rank had of its own.
        rng: whether to restore the RNG sources. New ranks begin with seeds derived from the checkpoint and
            their number, with a warning.
        parts: the objects that load the states, under the names of the saved parts.

    Returns:
        As `samebits.checkpoint.load`.

    Raises:
        SamebitsError: on all ranks. As `samebits.checkpoint.load`; the number of ranks differs and the ranks
            had values of their own, `checkpoint-world-size`.
    """
    ranks = Ranks()
    ranks.together(_refuse_old_torch)
    folder = find_folder(Path(os.path.realpath(path_text(path))))
    manifest = ranks.together(lambda: read_manifest(folder))
    ranks.together(lambda: check_files(folder, manifest["files"], first=ranks.rank, step=ranks.size))
    loading = _Loading(folder, manifest, ranks, parts, strict, rng)
    ranks.together(lambda: _refuse_other_size(loading))
    values, own = ranks.together(lambda: _checked_values(loading))
    loaded = ranks.together(lambda: _restore_rest(loading))
    shards = ranks.together(lambda: _prepared(loading, values, own))
    stored = {name: tensor for name, tensor in shards.tensors.items() if name in manifest["shapes"]}
    ranks.together(lambda: _read_shards(folder / SHARDS, stored))
    ranks.together(lambda: _put_values(parts, parameter_names(parts), values))
    if rng:
        ranks.together(lambda: _restore_generators(loading, loaded))
    return loaded  # type: ignore[no-any-return]


def _refuse_other_parts(names: list[list[str]]) -> None:
    """Refuse ranks that save other parts: a missing part would look like one that only some ranks have."""
    for rank, given in enumerate(names):
        if sorted(given) != sorted(names[0]):
            text = f"rank {rank} gives {', '.join(sorted(given))}, and rank 0 {', '.join(sorted(names[0]))}"
            raise unsaveable("the parts", f"{text}; give the same names on all ranks")


def _signature(name: str, value: Any) -> str:
    """Return a text that is equal on another rank if the part is."""
    entries: list[Entry] = []
    node = TreeWriter(entries).encode(value, name)
    return json.dumps(node) + "".join(str(digest(entry.tensor)) for entry in entries)


def _write(ranks: Ranks, folder: Path, saving: _Saving) -> dict[str, tuple[int, str]]:
    """Write the files of this rank, and return their lengths and digests."""
    tensors, counts = saving.shards.tensors, {"step": saving.step, "epoch": saving.epoch}
    _write_shards(folder / SHARDS, {n: t for n, t in tensors.items() if n not in saving.own})
    own = {name: local(tensors[name]).detach() for name in saving.own}
    values = saving.shards.values if saving.values_apart else None
    save(folder / own_file(ranks.rank), own=own, values=values)
    save(folder / rank_file(ranks.rank), **counts, **{n: saving.rest[n] for n in saving.apart})
    written = [folder / own_file(ranks.rank), folder / rank_file(ranks.rank)]
    if ranks.rank == 0:
        common = {name: value for name, value in saving.rest.items() if name not in saving.apart}
        save(folder / COMMON, **counts, **common)
        save(folder / VALUES, values=saving.shards.values)
        written += [folder / COMMON, folder / VALUES]
    marker = f"shard-{ranks.rank + 1:05d}-"  # as `torch.distributed.checkpoint` names the files of a rank
    written += [entry for entry in (folder / SHARDS).iterdir() if entry.name.startswith(marker)]
    for file in written:
        flush(file)
    return {str(file.relative_to(folder)): file_facts(file) for file in written}


def _refuse_old_torch() -> None:
    """Refuse a torch that lacks what `_write_shards` needs (torch/distributed/checkpoint, 2.8.0, 2.9.1)."""
    writer: Any = getattr(import_module("torch.distributed.checkpoint"), "HuggingFaceStorageWriter", None)
    if writer is None or "save_distributed" not in inspect.signature(writer).parameters:
        import torch

        raise SamebitsError(
            f"torch {torch.__version__} cannot keep tensors of several ranks in files of safetensors; "
            "sharded checkpoints expect torch 2.9 or newer: update torch",
            slug="checkpoint-sharded",
        )


def _write_shards(folder: Path, tensors: Mapping[str, Any]) -> None:
    dcp: Any = import_module("torch.distributed.checkpoint")
    if not tensors:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns if there is no process group
        dcp.save(
            dict(tensors),
            storage_writer=dcp.HuggingFaceStorageWriter(str(folder), save_distributed=True),
            planner=dcp.DefaultSavePlanner(dedup_save_to_lowest_rank=True),
        )


def _read_shards(folder: Path, tensors: dict[str, Any]) -> None:
    dcp: Any = import_module("torch.distributed.checkpoint")
    if not tensors:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dcp.load(tensors, storage_reader=dcp.HuggingFaceStorageReader(str(folder)))


def _refuse_other_size(loading: _Loading) -> None:
    """Refuse another number of ranks if a value cannot be divided anew."""
    manifest = loading.manifest
    buffers = {
        f"{part}.{clean(name, model)}"
        for part, model in loading.parts.items()
        if is_sharded_part(model) and hasattr(model, "named_buffers")
        for name, _ in model.named_buffers()
    }
    apart = [name for name in (*manifest["apart"], *manifest["own"]) if name not in buffers]
    apart += ["a single value of a model or an optimizer"] if manifest["values_apart"] else []
    if not loading.has_same_size and apart and loading.strict:
        sizes = f"{manifest['world_size']} ranks and is loaded on {loading.ranks.size}"
        message = (
            f"{loading.folder} was saved on {sizes}; {apart[0]} was not the same on all of them and cannot "
            "be divided anew. Load it on as many ranks, or pass `strict=False`, which gives new ranks those "
            "of rank 0"
        )
        raise SamebitsError(message, slug="checkpoint-world-size")


def _checked_values(loading: _Loading) -> tuple[dict[str, Any], dict[str, Any]]:
    """Check that everything fits, and return the single values and own tensors of this rank."""
    folder = loading.folder
    mine = load(folder / own_file(loading.source_rank), rng=False).extra
    own, values = mine["own"], mine["values"]
    if values is None:
        values = load(folder / VALUES, rng=False).extra["values"]
    models = {name: part for name, part in loading.parts.items() if hasattr(part, "named_buffers")}
    check_fit(collect_shards(models), _saved(loading, own), values, loading.parts, strict=loading.strict)
    return values, own


def _saved(loading: _Loading, own: Mapping[str, Any]) -> dict[str, tuple[tuple[int, ...], Any]]:
    """Return shape and dtype of all tensors of models and optimizers in the checkpoint."""
    shapes = loading.manifest["shapes"].items()
    tensors = {
        name: (tuple(shape), dtype_named(dtype.removeprefix("torch."))) for name, (shape, dtype) in shapes
    }
    return {**tensors, **{name: (tuple(tensor.shape), tensor.dtype) for name, tensor in own.items()}}


def _restore_rest(loading: _Loading) -> Loaded:
    """Restore the parts that are neither models nor optimizers."""
    folder, apart = loading.folder, loading.manifest["apart"]
    rest = {name: part for name, part in loading.parts.items() if not is_sharded_part(part)}
    given = {name: part for name, part in rest.items() if name in apart}
    mine = load(folder / rank_file(loading.source_rank), strict=loading.strict, rng=False, **given)
    others = {name: part for name, part in rest.items() if name not in apart}
    common = load(folder / COMMON, strict=loading.strict, rng=False, **others)
    return Loaded(str(folder), common.step, common.epoch, {**common.extra, **mine.extra}, mine.rng)


def _prepared(loading: _Loading, values: Mapping[str, Any], own: Mapping[str, Any]) -> Shards:
    """Return the tensors of models and optimizers, allocated for the state to load."""
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
    if not loading.has_same_size and ranks.rank == 0:
        sizes = f"{manifest['world_size']} ranks and is loaded on {ranks.size}"
        text = (
            f"{loading.folder} was saved on {sizes}: what a rank draws from its own generators (dropout) is "
            "not what the saved run would have drawn"
        )
        warnings.warn(text, SamebitsWarning, stacklevel=5)


def _put_values(parts: Mapping[str, Any], names: Mapping[int, str], values: Mapping[str, Any]) -> None:
    """Put back the values that are not in the shards: single values, extra states."""
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
        for name, keys in values[f"{part}.order"]:  # in the saved order, for code that iterates the state
            here, prefix = target.state.get(by_name[name], {}), f"{part}.state.{name}."
            state[by_name[name]] = {k: values[prefix + k] if prefix + k in values else here[k] for k in keys}
        target.state.clear()
        target.state.update(state)
