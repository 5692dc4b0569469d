"""Saves a training state to a file, and loads it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from samebits._runtime.frames import pass_on
from samebits._text import files
from samebits._text.printable import shortened
from samebits.checkpoint._container import (
    Contents,
    changes,
    collect,
    collect_environment,
    read_container,
    write,
)
from samebits.checkpoint._decoding import TreeReader
from samebits.checkpoint._restore import Matching, check_target, is_only_states, mismatch
from samebits.checkpoint._stateful import DamageError, damaged, path_text
from samebits.errors import SamebitsError, SamebitsWarning
from samebits.rng.active import PROCESS
from samebits.rng.states import SourceState, restore_states

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping


@dataclass(frozen=True)
class TreeHead:
    """The outermost level of a checkpoint's tree.

    Args:
        step: None when it was not given.
        epoch: likewise.
        parts: pairs of a name and the JSON of its value.
        rng: the JSON of the states of RNG sources.
        run_seed: None when none was in force.
        recorded_steps: step boundaries in the record of the run by then; None when it was not recorded.
        surroundings: the environment snapshot of `collect_environment`.
    """

    step: int | None
    epoch: int | None
    parts: list[list[Any]]
    rng: list[Any]
    run_seed: int | None
    recorded_steps: int | None
    surroundings: dict[str, dict[str, str]]


def _read_head(tree: Any) -> TreeHead:
    """Read the outermost level.

    Raises:
        DamageError: `collect` does not make such a tree.
    """
    if not isinstance(tree, dict) or tree.keys() != TreeHead.__dataclass_fields__.keys():
        raise DamageError("its tree does not have the parts of a checkpoint")
    head = TreeHead(**tree)
    counts = (head.step, head.epoch, head.run_seed, head.recorded_steps)
    numbers = all(value is None or type(value) is int for value in counts)
    lists = isinstance(head.parts, list) and isinstance(head.rng, list)
    if not (numbers and lists and all(map(_is_part, head.parts)) and _is_environment(head.surroundings)):
        raise DamageError("its tree has parts of another form than those of a checkpoint")
    if head.run_seed is not None and not 0 <= head.run_seed < 1 << 64:
        raise DamageError("its run seed is not possible")
    return head


def _is_part(part: Any) -> bool:
    return isinstance(part, list) and len(part) == 2 and isinstance(part[0], str)


def _is_environment(snapshot: Any) -> bool:
    return (
        isinstance(snapshot, dict)
        and all(isinstance(facts, dict) for facts in snapshot.values())
        and all(isinstance(value, str) for facts in snapshot.values() for value in facts.values())
    )


@dataclass(frozen=True)
class Loaded:
    """The contents of a checkpoint beside the states that objects loaded.

    Args:
        path: the file.
        step: the step, None when none was saved.
        epoch: likewise.
        extra: the other values that were saved, by name.
        rng: the states of the RNG sources.
        recorded_steps: steps in the record of the run (`samebits run`, `record`) when it was saved; None when
            it was not recorded. Step `n` of a resumed run's record is step `recorded_steps + n`.
    """

    path: str
    step: int | None
    epoch: int | None
    extra: dict[str, Any]
    rng: tuple[SourceState, ...] = field(repr=False)
    recorded_steps: int | None = None

    def restore_rng(self, *, strict: bool = True) -> None:
        """Put all RNG sources back into their states in the checkpoint.

        `load` has done that. Do it again if something has drawn since, such as a loader whose iterator was
        made and moved to where training stopped (docs/reference/checkpoint.md).

        Args:
            strict: whether a missing source is an error; otherwise it is a warning.

        Raises:
            SamebitsError: a state does not fit; `rng-state`.
        """
        restore_states(self.rng, strict=strict)


def save(
    path: str | os.PathLike[str], /, *, step: int | None = None, epoch: int | None = None, **parts: Any
) -> None:
    """Save a training state to one file, which appears whole or not at all.

    The file also holds every RNG source and registered generator, the run seed, the switches in effect,
    versions, and the position in the record of the run, if there is one.

    Args:
        path: the file; an existing file is replaced atomically at the end.
        step: how many steps are done.
        epoch: the number of the epoch.
        parts: `model=`, `optimizer=`, `scheduler=`, `scaler=`, `loader=`, `ema=`, or any other name. Objects
            with `state_dict` and `load_state_dict`; generators; lists and dicts of them; tensors and NumPy
            arrays, numbers, text, bytes, None, and containers of these.

    Raises:
        SamebitsError: something cannot be saved, `checkpoint-entry`, which names it; the file cannot be
            written, `checkpoint-unwritable`; an RNG source cannot be read, `rng-state`.
    """
    write(path_text(path), collect(step, epoch, parts))


def load(
    path: str | os.PathLike[str],
    /,
    *,
    strict: bool = True,
    map_location: Any = None,
    rng: bool = True,
    **parts: Any,
) -> Loaded:
    """Check a checkpoint as a whole, put its states into objects, then restore the RNG sources.

    Call it last: code that draws random numbers after it moves on from where training stopped.

    Args:
        path: a file that `save` wrote.
        strict: every saved state needs an object that loads it, and the reverse, with the same parameters. If
            False, states that do not fit are left out, with a warning.
        map_location: the device for tensors outside modules; by default the one that each was on.
        rng: whether to restore the RNG sources and, where no run seed is in force, the run seed.
        parts: the objects that load the states, under the names of the saved parts. None means no object.

    Returns:
        The step, the epoch, and all values that were saved beside states of objects.

    Raises:
        SamebitsError: there is no such file, `checkpoint-missing`; it cannot be read,
            `checkpoint-unreadable`; it is another kind of file, `checkpoint-foreign`, or of another version,
            `checkpoint-version`;
            it is torn or altered, `checkpoint-damaged`; it does not fit the parts, `checkpoint-mismatch`; a
            tensor's device is missing, `checkpoint-device`; a generator differs, `rng-state`. Nothing has
            changed then, except with the last error or if a part itself refuses its state.
    """
    name = path_text(path)
    return restore(name, read(name), parts, strict=strict, map_location=map_location, rng=rng)


def read(path: str) -> Contents:
    """Read and check a checkpoint.

    Raises:
        SamebitsError: see `load`.
    """
    try:
        with files.open_to_read(path) as file:
            return read_container(file)
    except FileNotFoundError as error:
        raise SamebitsError(f"there is no checkpoint {path}", slug="checkpoint-missing") from error
    except OSError as error:
        message = (
            f"{path} cannot be read: {error.strerror or error}. Expected a file of samebits.checkpoint.save"
        )
        raise SamebitsError(message, slug="checkpoint-unreadable") from error
    except DamageError as error:
        raise damaged(path, error) from error


def restore(
    path: str, contents: Contents, parts: Mapping[str, Any], *, strict: bool, map_location: Any, rng: bool
) -> Loaded:
    """Put the states of a checkpoint into objects; see `load`."""
    try:
        head = _read_head(contents.tree)
        saved, states = _decode(head, contents, map_location)
    except DamageError as error:
        raise damaged(path, error) from error
    matching = Matching(strict=strict)
    try:
        extra = _match(matching, saved, parts)
        matching.check()
    except RecursionError as error:
        raise damaged(path, DamageError("its tree is nested too deeply")) from error
    notes = [
        *matching.notes,
        *changes(head.surroundings, collect_environment()),
        *_seed_notes(head, rng=rng),
    ]
    matching.restore()
    loaded = Loaded(path, head.step, head.epoch, extra, states, head.recorded_steps)
    if rng:
        if PROCESS.run_seed is None and head.run_seed is not None:
            PROCESS.use_seed(head.run_seed)
        loaded.restore_rng(strict=strict)
    if notes:
        warnings.warn(f"{path}: {'; '.join(notes)}", SamebitsWarning, stacklevel=3)
    return loaded


def _decode(
    head: TreeHead, contents: Contents, map_location: Any
) -> tuple[dict[str, Any], tuple[SourceState, ...]]:
    """Return the parts by name, and the states of the RNG sources."""
    devices, state_devices = (_device_chooser(map_location, move=move) for move in (False, True))
    reader = TreeReader(contents.arrays, devices, state_devices)
    try:
        saved = {name: reader.decode(node, name) for name, node in head.parts}
        states = tuple(reader.decode(node, "rng") for node in head.rng)
    except RecursionError as error:
        raise DamageError("its tree is nested too deeply") from error
    if not all(isinstance(state, SourceState) for state in states):
        raise DamageError("a state of an RNG source is of another type")
    return saved, states


def _match(matching: Matching, saved: dict[str, Any], parts: Mapping[str, Any]) -> dict[str, Any]:
    """Pair all parts, and return the values that no object loads, by name."""
    for name, target in parts.items():
        if target is not None and name not in saved:
            text = f"the checkpoint has no {name}; it has {', '.join(saved) or 'no parts'}"
            if matching.strict:
                raise mismatch(text, " Pass the parts that were saved, or `strict=False`.")
            matching.notes.append(text)
        check_target(target, name)
    matched = {name: matching.match(value, parts.get(name), name) for name, value in saved.items()}
    return {
        name: value
        for name, value in matched.items()
        if parts.get(name) is None or not (value is parts[name] or is_only_states(saved[name]))
    }


def _seed_notes(head: TreeHead, *, rng: bool) -> list[str]:
    here, saved = PROCESS.run_seed, head.run_seed
    if not rng or here is None or saved is None or here == saved:
        return []
    return [f"the run seed was {saved} and is {here} here: streams and seeds made from it will differ"]


def _device_chooser(map_location: Any, *, move: bool) -> Callable[[str, str], torch.device]:
    """Return a function that chooses the device of a tensor: `map_location`, else its former device.

    Args:
        map_location: a device or its name; None for the saved one.
        move: whether to use the CPU if the saved device is missing: the object that loads the state moves it.
    """
    wanted = None if map_location is None else _device(map_location)

    def choose(saved: str, where: str) -> torch.device:
        if wanted is not None:
            return wanted
        if _is_here(saved):
            return torch.device(saved)
        if move:
            return torch.device("cpu")
        path, device = shortened(where, 200), shortened(saved, 200)
        message = f'{path} was on the device {device}, which is not here. Pass `map_location="cpu"`.'
        raise SamebitsError(message, slug="checkpoint-device")

    return choose


def _device(name: Any) -> torch.device:
    try:
        return torch.device(name)
    except (RuntimeError, TypeError) as error:
        message = f'map_location is {name!r}; expected a device such as "cpu" or "cuda:0"'
        raise SamebitsError(message, slug="checkpoint-device") from error


def _is_here(name: str) -> bool:
    if name == "cpu":
        return True
    try:
        torch.empty(0, device=name)
    except Exception as error:  # noqa: BLE001 - a backend may raise anything for a name from a file
        pass_on(error)
        return False
    return True
