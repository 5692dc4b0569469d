"""What each rank adds to a checkpoint that one rank writes; no rank waits for ever.

Some trainers and loops save on one rank alone. A collective there would wait for ranks that never come, or
take part in the next all-reduce of a backward pass. So ranks leave their values in the store of the process
group, and only a rank that writes waits for the others, and not for long.
"""

from __future__ import annotations

import contextlib
import json
from collections import deque
from datetime import timedelta
from typing import Any

from samebits._torch.distributed import group_store
from samebits.rng.states import current_rank

_PATIENCE = timedelta(seconds=60)  # the others do nothing else when a checkpoint is saved
_KEPT = 4  # values of this rank, for a rank that is slower by as many checkpoints


def number_of_ranks() -> int:
    """Return how many ranks train together."""
    import torch.distributed as dist

    ready = dist.is_available() and dist.is_initialized()
    return dist.get_world_size() if ready else 1


class RankValues:
    """Gathers a value of each rank at moments of the training that all ranks name alike."""

    def __init__(self) -> None:
        self._left: deque[str] = deque()  # keys in the store, the oldest first

    def gathered(self, value: Any, moment: str, *, waits: bool) -> list[Any]:
        """Return the value of each rank; None for one that did not come.

        Args:
            value: of this rank, which JSON can hold.
            moment: such as the number of the step.
            waits: whether this rank needs the values of the others; without it, they are None.
        """
        ranks, store = number_of_ranks(), group_store()
        rank = current_rank() if ranks > 1 else 0
        values: list[Any] = [None] * ranks
        values[rank] = value
        if ranks == 1 or store is None:
            return values
        turn = store.add(_key(moment, rank), 1)  # a second training of this process comes to the same moment
        self._leave(store, _key(moment, rank, turn), value)
        others = {other: _key(moment, other, turn) for other in range(ranks) if other != rank}
        if waits:
            with contextlib.suppress(RuntimeError):  # the time is over
                store.wait(list(others.values()), _PATIENCE)
            for other, key in others.items():
                values[other] = json.loads(store.get(key)) if store.check([key]) else None
        return values

    def _leave(self, store: Any, key: str, value: Any) -> None:
        store.set(key, json.dumps(value))
        self._left.append(key)
        if len(self._left) > _KEPT:
            store.set(self._left.popleft(), json.dumps(None))


def _key(*parts: object) -> str:
    return "/".join(["samebits", *map(str, parts)])
