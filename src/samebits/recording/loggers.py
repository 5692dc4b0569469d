"""Where metrics are handed to a logger: TensorBoard, Lightning, Weights & Biases."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class LoggerMethod:
    """A method that takes metrics.

    Args:
        module: the module that defines the class.
        owner: the class.
        name: the method.
        shape: `pair` for (name, value, step=None), `mapping` for (metrics, step=None).
        step: name of the argument for the step.
    """

    module: str
    owner: str
    name: str
    shape: str
    step: str


# Signatures as documented by each library; a class or method that a release lacks is passed over.
LOGGERS = (
    LoggerMethod("torch.utils.tensorboard.writer", "SummaryWriter", "add_scalar", "pair", "global_step"),
    LoggerMethod("tensorboardX.writer", "SummaryWriter", "add_scalar", "pair", "global_step"),
    LoggerMethod("lightning.pytorch.loggers.csv_logs", "CSVLogger", "log_metrics", "mapping", "step"),
    LoggerMethod("pytorch_lightning.loggers.csv_logs", "CSVLogger", "log_metrics", "mapping", "step"),
    LoggerMethod("wandb.sdk.wandb_run", "Run", "log", "mapping", "step"),
)
_FIRST = {"pair": ("tag", "key"), "mapping": ("metrics", "data")}


def numbers_of(
    method: LoggerMethod, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[dict[str, float], int | None]:
    """The metrics in a call that are numbers, and its step.

    Args:
        method: what was called.
        args: positional arguments, the object itself left out.
        kwargs: the others.
    """
    given = list(args)
    first = given.pop(0) if given else next((kwargs[n] for n in _FIRST[method.shape] if n in kwargs), None)
    if method.shape == "pair":
        second = given.pop(0) if given else kwargs.get("scalar_value", kwargs.get("value"))
        metrics = {str(first): second}
    else:
        metrics = dict(first) if isinstance(first, dict) else {}
    step = _number(given.pop(0) if given else kwargs.get(method.step))
    numbers = {str(name): number for name, value in metrics.items() if (number := _number(value)) is not None}
    return numbers, None if step is None or not math.isfinite(step) else int(step)


def _number(value: Any) -> float | None:
    if isinstance(value, bool | str | bytes) or value is None:
        return None
    try:
        return float(value.detach() if hasattr(value, "detach") else value)
    except (TypeError, ValueError, RuntimeError):  # an image, a table, a tensor of several elements
        return None
