"""Names of torch without documentation that tell of states of modules."""

from __future__ import annotations

from typing import Any

_VERSIONS = "_metadata"


def state_versions(state: Any) -> dict[str, Any] | None:
    """The versions of its modules that a state dict of `nn.Module` carries; None for any other mapping.

    `Module.state_dict` puts them on the `OrderedDict` as an attribute, by the module's path, and
    `load_state_dict` lets modules convert the entries of older versions by them (torch/nn/modules/module.py,
    2.6.0 and 2.13.0). Without the attribute such entries are taken as of a version before the first.
    """
    found = getattr(state, _VERSIONS, None)
    return found if isinstance(found, dict) else None


def set_state_versions(state: Any, versions: dict[str, Any]) -> None:
    """Have a state dict carry those versions."""
    setattr(state, _VERSIONS, versions)
