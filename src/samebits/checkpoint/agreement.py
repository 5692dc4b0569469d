"""What the ranks of a distributed run tell each other while they save or load a checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from samebits.errors import SamebitsError
from samebits.hooks.interruptions import is_from_outside

if TYPE_CHECKING:
    from collections.abc import Callable


_LONGEST = 400


class Ranks:
    """The ranks of torch's default process group; without one, this process alone.

    Attributes:
        rank: of this process.
        size: how many there are.
    """

    def __init__(self) -> None:
        import torch.distributed as dist

        self._dist = dist if dist.is_available() and dist.is_initialized() else None
        self.rank = 0 if self._dist is None else int(self._dist.get_rank())
        self.size = 1 if self._dist is None else int(self._dist.get_world_size())

    def gather(self, value: Any) -> list[Any]:
        """The values of all ranks, on each of them."""
        if self._dist is None:
            return [value]
        found: list[Any] = [None] * self.size
        self._dist.all_gather_object(found, value)
        return found

    def together(self, job: Callable[[], Any]) -> Any:
        """Do something on each rank; when it fails on one, it fails on all.

        Raises:
            SamebitsError: that of the first rank that has one, with its number.
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
        for rank, found in enumerate(failures):
            if found is not None:
                text = f"rank {rank}: {found[0]}" if self.size > 1 else found[0]
                raise SamebitsError(text, slug=found[1])
        return result
