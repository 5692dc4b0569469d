"""The tensors of models and optimizers, under names that do not depend on wrappers and numbers of ranks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from samebits.checkpoint._stateful import facts_text, unsaveable
from samebits.digest import digest
from samebits.errors import SamebitsError

if TYPE_CHECKING:
    from collections.abc import Mapping

# Levels that wrappers add to the names of parameters.
_LEVELS = ("_orig_mod", "_checkpoint_wrapped_module")


@dataclass
class Shards:
    """The tensors and values of models and optimizers.

    Args:
        tensors: the tensors that `torch.distributed.checkpoint` writes, by name.
        values: everything else by name: numbers, single values, settings of an optimizer.
    """

    tensors: dict[str, torch.Tensor] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)


def is_sharded_part(value: Any) -> bool:
    """Tell whether a part is a model or an optimizer."""
    return isinstance(value, (torch.nn.Module, torch.optim.Optimizer))


def collect_shards(parts: Mapping[str, Any]) -> Shards:
    """Collect the state of all models and optimizers among some parts.

    Raises:
        SamebitsError: FSDP1, or an optimizer of parameters that no model among the parts has;
            `checkpoint-entry`.
    """
    shards, seen = Shards(), set[Any]()
    for part, value in parts.items():
        if isinstance(value, torch.nn.Module):
            _refuse_flat(value, part)
            for name, entry in value.state_dict().items():
                _add(shards, seen, f"{part}.{clean(name, value)}", entry)
    names = parameter_names(parts)
    for part, value in parts.items():
        if isinstance(value, torch.optim.Optimizer):
            shards.values[f"{part}.groups"] = _groups(value, names, part)
            order = [[names[id(parameter)], list(state)] for parameter, state in value.state.items()]
            shards.values[f"{part}.order"] = order
            for parameter, state in value.state.items():
                for key, entry in state.items():
                    _add(shards, seen, f"{part}.state.{names[id(parameter)]}.{key}", entry)
    return shards


def parameter_names(parts: Mapping[str, Any]) -> dict[int, str]:
    """Return the names of the parameters of all models, by identity."""
    return {
        id(parameter): f"{part}.{clean(name, value)}"
        for part, value in parts.items()
        if isinstance(value, torch.nn.Module)
        for name, parameter in value.named_parameters(remove_duplicate=False)
    }


def clean(name: str, model: Any) -> str:
    """Return the name of a parameter without the levels that wrappers add."""
    levels = name.split(".")
    if isinstance(model, torch.nn.parallel.DistributedDataParallel) and levels[0] == "module":
        levels = levels[1:]
    return ".".join(level for level in levels if level not in _LEVELS)


def is_shard(tensor: Any) -> bool:
    """Tell whether a tensor is a `DTensor` that is split over ranks."""
    return any(not placement.is_replicate() for placement in getattr(tensor, "placements", ()))


def local(tensor: Any) -> Any:
    """Return the part of a tensor that this rank has."""
    return tensor.to_local() if hasattr(tensor, "placements") else tensor


def own_tensors(shards: Shards, others: list[dict[str, str]]) -> list[str]:
    """Return the names of tensors that are no shards and yet differ between ranks.

    Args:
        shards: the shards of this rank.
        others: the `fingerprints` of all ranks.
    """
    return [name for name in fingerprints(shards) if len({digests.get(name) for digests in others}) > 1]


def fingerprints(shards: Shards) -> dict[str, str]:
    """Return the digests of the tensors that are no shards."""
    return {name: str(digest(local(t))) for name, t in shards.tensors.items() if not is_shard(t)}


def _add(shards: Shards, seen: set[Any], name: str, entry: Any) -> None:
    """Add an entry; of tied tensors, which share all of their memory, only the first."""
    if not isinstance(entry, torch.Tensor) or (not hasattr(entry, "placements") and not entry.dim()):
        shards.values[name] = entry
        return
    if not entry.numel():
        shards.values[name] = local(entry)
        return
    here = local(entry)
    identity = (
        (here.device, here.data_ptr(), tuple(here.shape), here.stride(), here.dtype) if here.numel() else name
    )
    if identity not in seen:
        seen.add(identity)
        shards.tensors[name] = entry


def _groups(optimizer: Any, names: Mapping[int, str], part: str) -> list[dict[str, Any]]:
    groups = []
    for group in optimizer.param_groups:
        unknown = [parameter for parameter in group["params"] if id(parameter) not in names]
        if unknown:
            raise unsaveable(
                part, f"{len(unknown)} of its parameters belong to no model that is saved with it"
            )
        groups.append({**group, "params": [names[id(parameter)] for parameter in group["params"]]})
    return groups


def prepare_optimizer(optimizer: Any, part: str, names: Mapping[int, str], saved: Any) -> None:
    """Allocate the state of an optimizer that is to be loaded.

    Args:
        optimizer: the optimizer; zeros replace its state.
        part: its name.
        names: the names of the parameters, by identity.
        saved: name -> (shape, dtype) of the tensors in the checkpoint.
    """
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            prefix = f"{part}.state.{names.get(id(parameter), '?')}."
            keys = [name for name in saved if name.startswith(prefix) and "." not in name[len(prefix) :]]
            state = {name[len(prefix) :]: _allocated(parameter, *saved[name]) for name in keys}
            if state:
                optimizer.state[parameter] = state


def _allocated(parameter: Any, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    if tuple(parameter.shape) == shape:
        return torch.zeros_like(parameter, dtype=dtype, requires_grad=False)
    return torch.zeros(shape, dtype=dtype, device=local(parameter).device)


def restore_groups(optimizer: Any, part: str, names: Mapping[int, str], saved: list[dict[str, Any]]) -> None:
    """Put back the settings of an optimizer's groups, such as the learning rate.

    Raises:
        SamebitsError: its groups have other parameters; `checkpoint-mismatch`.
    """
    here = [[names.get(id(parameter)) for parameter in group["params"]] for group in optimizer.param_groups]
    there = [group["params"] for group in saved]
    if here != there:
        message = (
            f"{part} has other groups of parameters than in the checkpoint. Build the one that was saved."
        )
        raise SamebitsError(message, slug="checkpoint-mismatch")
    for group, values in zip(optimizer.param_groups, saved, strict=True):
        group.update({key: value for key, value in values.items() if key != "params"})


def _refuse_flat(model: Any, part: str) -> None:
    for module in model.modules():
        if any(base.__name__ == "FullyShardedDataParallel" for base in type(module).__mro__):
            raise unsaveable(
                part, "it is wrapped by FullyShardedDataParallel; wrap it by `fully_shard` (FSDP2)"
            )


def check_fit(
    here: Shards,
    saved: Mapping[str, Any],
    values: Mapping[str, Any],
    parts: Mapping[str, Any],
    *,
    strict: bool,
) -> None:
    """Refuse models and optimizers that the checkpoint does not fit.

    Args:
        here: the present state of the models.
        saved: shape and dtype of the tensors in the checkpoint.
        values: the other values in it.
        parts: the objects that are to load them.
        strict: whether every value of the checkpoint must be loaded.

    Raises:
        SamebitsError: `checkpoint-mismatch`.
    """
    known, groups = {*here.tensors, *here.values}, [name for name in values if name.endswith(".groups")]
    optimizers = [name for name, part in parts.items() if isinstance(part, torch.optim.Optimizer)]
    texts = [f"the checkpoint has no {name}" for name in known if name not in saved and name not in values]
    texts += [f"the checkpoint has no {name}" for name in optimizers if f"{name}.groups" not in groups]
    texts += [
        f"{name} is {facts_text(tensor.shape, tensor.dtype)} here and {facts_text(*saved[name])} in the"
        " checkpoint"
        for name, tensor in here.tensors.items()
        if name in saved and saved[name] != (tuple(tensor.shape), tensor.dtype)
    ]
    kinds = ("state.", "groups", "order")
    taken = tuple(f"{name}.{kind}" for name in optimizers for kind in kinds)
    if strict:
        over = [name for name in (*saved, *values) if name not in known and not name.startswith(taken)]
        texts += [f"nothing was given that takes {name}" for name in over]
    if texts:
        more = f", and {len(texts) - 1} more" if len(texts) > 1 else ""
        message = f"{texts[0]}{more}. Build what was saved; nothing was changed."
        raise SamebitsError(message, slug="checkpoint-mismatch")
