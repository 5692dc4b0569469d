"""The traits of an op, read from its schema.

`OpOverload._schema` and its `alias_info` are what torch's own tools read (torch/_library/utils.py, 2.6.0 and
2.13.0). An op without them counts as one without a schema.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from samebits._torch.core import is_random, mutated_arguments


@dataclasses.dataclass(frozen=True, slots=True)
class OpTraits:
    """The traits of an op overload that are known before it is called.

    Args:
        name: `aten::add_.Tensor`.
        has_schema: whether anything else is known.
        positions: positional arguments that it writes to.
        keywords: keyword arguments that it writes to.
        is_view: whether what it returns, or leaves in its argument, is the memory of an argument.
        returns_tensors: whether any tensor is among its results.
        is_random: whether it says that it draws from a generator.
        takes_objects: whether an argument is an object of a class that is defined in C++ (TorchBind).
    """

    name: str
    has_schema: bool = True
    positions: tuple[int, ...] = ()
    keywords: tuple[str, ...] = ()
    is_view: bool = False
    returns_tensors: bool = True
    is_random: bool = False
    takes_objects: bool = False

    @property
    def writes(self) -> bool:
        """Tell whether it writes to any argument."""
        return bool(self.positions or self.keywords)

    @property
    def namespace(self) -> str:
        """Return the namespace: `aten` for `aten::add_.Tensor`."""
        return self.name.partition("::")[0]

    @property
    def base(self) -> str:
        """Return the name without the overload: `aten::add_` for `aten::add_.Tensor`."""
        return self.name.partition(".")[0]


def traits_of(op: Any) -> OpTraits:
    """Read the schema of an op."""
    import torch

    schema = getattr(op, "_schema", None)
    name = op.name() if callable(getattr(op, "name", None)) else str(op)
    name = name if "." in name.partition("::")[2] else f"{name}.default"
    if schema is None:
        return OpTraits(name, has_schema=False)
    positions, keywords = mutated_arguments(op)
    inplace_view = getattr(torch.Tag, "inplace_view", None)
    aliases = [result.alias_info for result in schema.returns if result.alias_info is not None]
    return OpTraits(
        name=name,
        positions=positions,
        keywords=keywords,
        is_view=not all(alias.is_write for alias in aliases)
        or (inplace_view is not None and inplace_view in getattr(op, "tags", ())),
        returns_tensors=any("Tensor" in str(result.type) for result in schema.returns),
        is_random=is_random(op),
        takes_objects=any("__torch__" in str(argument.type) for argument in schema.arguments),
    )
