"""What torch keeps to itself about process groups and `DistributedDataParallel`.

As in `core`, each name is looked up at run time. Read in torch 2.6.0 and 2.13.0.
"""

from __future__ import annotations

from typing import Any


def group_store() -> Any:
    """Return the key-value store through which the ranks found each other; None where there is none.

    Beside `torch.distributed.Store` itself nothing of it is public, but unlike collectives it lets one rank
    learn, after a time, that the others do not take part.
    """
    import torch.distributed as dist

    if not (dist.is_available() and dist.is_initialized()):
        return None
    get = getattr(dist.distributed_c10d, "_get_default_store", None)
    return None if get is None else get()


def is_joining(wrapper: Any) -> bool:
    """Tell whether a `DistributedDataParallel` runs within its `join()`."""
    return bool(getattr(getattr(wrapper, "_join_config", None), "enable", False))
