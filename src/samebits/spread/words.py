"""The words by which a metric is known in printed text."""

from __future__ import annotations

import re

COUNTERS = frozenset({
    "step", "steps", "global_step", "iter", "iters", "iteration", "iterations", "it", "batch",
    "batches", "epoch", "epochs", "update", "updates", "episode", "episodes", "round",
})  # fmt: skip
QUALITY = frozenset({
    "loss", "nll", "ce", "bce", "mse", "rmse", "mae", "mape", "acc", "accuracy", "error", "err",
    "auc", "auroc", "f1", "precision", "recall", "ppl", "perplexity", "bleu", "rouge", "wer", "cer",
    "iou", "miou", "dice", "map", "ap", "psnr", "ssim", "fid", "score", "reward", "return",
    "returns", "r2", "top1", "top5", "acc1", "acc5", "acc@1", "acc@5", "prec@1", "elbo", "kl",
    "bpc", "bpb", "likelihood",
})  # fmt: skip
# What a run is like, not how good its result is. `lr` and the like follow the schedule, not the data.
BOOKKEEPING = frozenset({
    "lr", "learning_rate", "time", "eta", "elapsed", "sec", "secs", "second", "seconds", "ms",
    "runtime", "speed", "throughput", "fps", "mem", "memory", "gb", "mb", "seed", "rank",
    "world_size", "samples_per_second", "steps_per_second", "v_num", "version", "port", "pid",
    "device", "cuda", "gpu", "total", "flos", "total_flos", "size", "num", "n", "count", "params",
    "parameters",
})  # fmt: skip
SPLITS = frozenset({
    "train", "training", "trn", "val", "valid", "validation", "eval", "evaluation", "test",
    "testing", "dev",
})  # fmt: skip
HELD_OUT = frozenset({
    "val", "valid", "validation", "eval", "evaluation", "test", "testing", "dev", "heldout",
})  # fmt: skip
FILLERS = frozenset({
    "is", "was", "of", "the", "on", "a", "an", "at", "in", "for", "to", "so", "far", "current",
    "avg", "mean", "average", "final", "best",
})  # fmt: skip
_PARTS = re.compile(r"[^A-Za-z0-9@]+")


def is_counter(name: str) -> bool:
    """Whether a name counts steps, epochs and the like."""
    return name.lower() in COUNTERS


def is_quality(name: str) -> bool:
    """Whether a name, or a part of it (`val_loss`, `train/acc`, `ValLoss`), says how good a result is."""
    return any(part in QUALITY for part in _parts(name))


def is_held_out(name: str) -> bool:
    """Whether a name is of a metric on data that the run was not trained on (`val_loss`)."""
    return any(part in HELD_OUT for part in _parts(name))


def is_bookkeeping(name: str) -> bool:
    """Whether a name says something of the run, such as its time, and nothing of its result."""
    lower = name.lower()
    parts = _parts(name)
    return (
        lower in BOOKKEEPING
        or lower.endswith(("_per_second", "runtime", "_time"))
        or parts[-1] in BOOKKEEPING
    ) and not (parts and parts[-1] in QUALITY)


def _parts(name: str) -> list[str]:
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return [part for part in _PARTS.split(spaced.lower()) if part] or [""]
