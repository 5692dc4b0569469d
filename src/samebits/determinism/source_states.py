"""One RNG source: seeding it, reading its state, putting it back, each with one clear error."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, NamedTuple

from samebits.determinism.rng_sources.source import UNSAVED_SLUG
from samebits.errors import SamebitsError, SamebitsWarning
from samebits.hooks.interruptions import pass_on

if TYPE_CHECKING:
    from samebits.determinism.rng_sources.source import RngSource


class SourceState(NamedTuple):
    """The state of one RNG source at one moment.

    Args:
        source: its name.
        version: the library that it is of.
        data: the state, without pickle.
    """

    source: str
    version: str
    data: bytes


def seed_source(source: RngSource, seed: int) -> None:
    """Seed a source that is available.

    Raises:
        SamebitsError: it refused; `rng-seed`.
    """
    try:
        source.seed(seed)
    except Exception as error:
        pass_on(error)
        message = f"{source.name} ({source.version()}) does not take the seed {seed}: {_one_line(error)}"
        raise SamebitsError(message, slug="rng-seed") from error


def read_state(source: RngSource) -> SourceState | None:
    """The state; None, with a warning, when there is none that can be read.

    Raises:
        SamebitsError: reading failed; `rng-state`.
    """
    try:
        return SourceState(source.name, source.version(), bytes(source.get_state()))
    except Exception as error:
        pass_on(error)
        if isinstance(error, SamebitsError) and error.slug == UNSAVED_SLUG:
            warnings.warn(f"samebits: {error}", SamebitsWarning, stacklevel=2)
            return None
        message = f"the state of {source.name} ({source.version()}) cannot be read: {_one_line(error)}"
        raise SamebitsError(message, slug="rng-state") from error


def can_be_saved(source: RngSource) -> bool:
    """Whether the source has a state that can be read."""
    try:
        source.get_state()
    except SamebitsError as error:
        return error.slug != UNSAVED_SLUG
    return True


def write_state(source: RngSource, state: SourceState) -> str:
    """Set the state.

    Returns:
        What failed; empty when nothing did.
    """
    try:
        source.set_state(state.data)
    except Exception as error:  # noqa: BLE001 - whatever a library makes of a foreign state
        pass_on(error)
        return (
            f"the state of {source.name}, saved with {state.version}, does not fit {source.version()} here: "
            f"{_one_line(error)}; restore it with the version that saved it"
        )
    return ""


def raise_failures(failures: list[str]) -> None:
    """Raise one error for all failures; texts that are empty are none.

    Raises:
        SamebitsError: there is one; `rng-state`.
    """
    text = "; ".join(failure for failure in failures if failure)
    if text:
        raise SamebitsError(text, slug="rng-state")


def _one_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
