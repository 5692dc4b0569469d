"""Calls and their answers in the store of a distributed launch, which all of its ranks can reach."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from samebits.errors import SamebitsError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from samebits.environment.distributed import RankFacts

# The server of a `TCPStore` refuses a message of more than 8 MiB (TCPStoreLibUvBackend.cpp, torch 2.13).
_PART = 1 << 22  # bytes
_PATIENCE = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Place:
    """Where the store of a launch is.

    Args:
        address: of the machine that holds it.
        port: of its server.
        launch: names the launch; after a restart it is another one, and the board is empty.
        is_held: whether the launcher holds the store; else the first rank does.
    """

    address: str
    port: int
    launch: str
    is_held: bool


def place_of(facts: RankFacts, variables: Mapping[str, str] | None = None) -> Place:
    """Return where the store of this launch is.

    The variables are those that `torchrun` documents, and `TORCHELASTIC_USE_AGENT_STORE`, by which it says
    that it holds the store (torch/distributed/rendezvous.py, 2.13).

    Raises:
        SamebitsError: the launcher does not tell; `executor-unavailable`.
    """
    variables = os.environ if variables is None else variables
    address, port = variables.get("MASTER_ADDR", ""), variables.get("MASTER_PORT", "")
    if not address or not port.isdecimal():
        message = (
            "--executor torchrun: the launcher gives no MASTER_ADDR and MASTER_PORT; expected "
            "`torchrun -m samebits …`, which gives both"
        )
        raise SamebitsError(message, slug="executor-unavailable")
    is_held = variables.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    return Place(address, int(port), facts.launch, is_held)


class Board:
    """The calls of a launch, numbered from 0, and their answers; both are bytes.

    Its methods raise `RuntimeError`, as torch does, where the store is gone because the launch ended.

    Args:
        place: of the store.
        is_first: whether this is the process that holds the store where the launcher does not.

    Raises:
        SamebitsError: no store answers there; `executor-unavailable`.
    """

    def __init__(self, place: Place, *, is_first: bool = False) -> None:
        import torch.distributed

        distributed: Any = torch.distributed  # whose stub does not export the stores
        try:
            store = distributed.TCPStore(
                place.address,
                place.port,
                is_master=is_first and not place.is_held,
                timeout=_PATIENCE,
                wait_for_workers=False,
            )
        except RuntimeError as error:
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
            message = (
                f"--executor torchrun: no store of the launch at {place.address}:{place.port}: {reason}; "
                "expected ranks that torchrun started"
            )
            raise SamebitsError(message, slug="executor-unavailable") from None
        self._store: Any = distributed.PrefixStore(f"samebits/{place.launch}", store)

    def put(self, number: int, call: bytes) -> None:
        """Put up a call."""
        self._write(f"call/{number}", call)

    def claim(self) -> int:
        """Return the number of the call that is the caller's; it may not be there yet."""
        return int(self._store.add("claimed", 1)) - 1

    def is_there(self, number: int) -> bool:
        """Tell whether a call was put up."""
        return self._has(f"call/{number}")

    def take(self, number: int) -> bytes:
        """Take down a call that is there."""
        return self._take(f"call/{number}")

    def cancel(self, number: int) -> None:
        """Say that nobody waits for the answer of a call any more."""
        self._store.set(f"cancelled/{number}", "1")

    def is_cancelled(self, number: int) -> bool:
        """Tell whether nobody waits for the answer of a call."""
        return self._has(f"cancelled/{number}")

    def answer(self, number: int, answer: bytes) -> None:
        """Put up the answer of a call."""
        self._write(f"answer/{number}", answer)

    def is_answered(self, number: int) -> bool:
        """Tell whether the answer of a call was put up."""
        return self._has(f"answer/{number}")

    def take_answer(self, number: int) -> bytes:
        """Take down an answer that is there."""
        return self._take(f"answer/{number}")

    def end(self) -> None:
        """Say that there will be no more calls."""
        self._store.set("end", "1")

    def is_ended(self) -> bool:
        """Tell whether there will be no more calls."""
        return self._has("end")

    def _has(self, key: str) -> bool:
        return bool(self._store.check([key]))

    def _write(self, key: str, data: bytes) -> None:
        starts = range(0, len(data), _PART)
        for part, start in enumerate(starts):
            self._store.set(f"{key}/{part}", data[start : start + _PART])
        self._store.set(key, str(len(starts)))  # last: who sees it finds all parts

    def _take(self, key: str) -> bytes:
        parts = [f"{key}/{part}" for part in range(int(self._store.get(key)))]
        data = b"".join(self._store.get(part) for part in parts)
        for part in parts:  # they may be large; the key stays
            self._store.delete_key(part)
        return data
