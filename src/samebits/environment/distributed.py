"""The rank of this process in a distributed run, from the environment variables that its launcher set.

`torchrun` and what imitates it (accelerate, Lightning, DeepSpeed) give each process RANK, LOCAL_RANK and
WORLD_SIZE; the elastic launcher also TORCHELASTIC_RUN_ID and TORCHELASTIC_RESTART_COUNT
(docs.pytorch.org/docs/stable/elastic/run.html, "Environment Variables").
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

KEY = "ranks"  # in the environment of a record
_LAUNCH_VARIABLES = ("TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT")
# All that the page "Environment Variables" of torchrun names, and its own beside them.
_OF_LAUNCHER = frozenset(
    {"RANK", "LOCAL_RANK", "GROUP_RANK", "ROLE_RANK", "ROLE_NAME", "MASTER_ADDR", "MASTER_PORT"}
    | {"WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_WORLD_SIZE", "ROLE_WORLD_SIZE"}
)
_OF_ELASTIC = "TORCHELASTIC_"
_MOST_RANKS = 1 << 20
_START_TIME = 19  # in /proc/PID/stat after the name: field 22, starttime (man 5 proc_pid_stat)


@dataclasses.dataclass(frozen=True, slots=True)
class RankFacts:
    """The rank of one process among those that were launched together.

    Args:
        rank: from 0.
        world_size: how many processes there are; at least 2.
        local_rank: the same among the processes of this machine.
        restart: the number of times that the launcher had restarted the processes before.
        launch: names the launch: the same in all its processes, another in the next launch. On several
            machines it is made of facts that they share: the run id, the master's address and port.
    """

    rank: int
    world_size: int
    local_rank: int
    restart: int
    launch: str

    def to_dict(self) -> dict[str, Any]:
        """Return the facts as JSON can hold them."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, fields: Any) -> RankFacts | None:
        """Read what `to_dict` wrote; None for anything else: a record is not trusted."""
        if type(fields) is not dict or fields.keys() != {field.name for field in dataclasses.fields(cls)}:
            return None
        numbers = [fields[name] for name in ("rank", "world_size", "local_rank", "restart")]
        if any(type(number) is not int or not 0 <= number < _MOST_RANKS for number in numbers):
            return None
        facts = cls(**{**fields, "launch": str(fields["launch"])})
        return facts if facts.rank < facts.world_size else None


def rank_facts(variables: Mapping[str, str] | None = None, parent: int | None = None) -> RankFacts | None:
    """Return the rank of this process; None when it is not one of several that a launcher started.

    Args:
        variables: environment variables, by default those of this process.
        parent: id of the process that started it, by default this one's parent.
    """
    variables = os.environ if variables is None else variables
    rank, world_size = (_number(variables.get(name)) for name in ("RANK", "WORLD_SIZE"))
    if rank is None or world_size is None or not rank < world_size or not 1 < world_size < _MOST_RANKS:
        return None
    restart = _number(variables.get("TORCHELASTIC_RESTART_COUNT")) or 0
    local = _number(variables.get("LOCAL_RANK"))
    parts: list[Any] = [world_size, restart, *(variables.get(name, "") for name in _LAUNCH_VARIABLES)]
    if _number(variables.get("LOCAL_WORLD_SIZE")) == world_size:  # all have the same parent, on this machine
        parts += _identity(os.getppid() if parent is None else parent)
    name = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
    return RankFacts(rank, world_size, rank if local is None else local, restart, name)


def launcher_variables(variables: Mapping[str, str]) -> list[str]:
    """Return the names of those variables that make a process a rank."""
    return [name for name in variables if name in _OF_LAUNCHER or name.startswith(_OF_ELASTIC)]


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 10 else None


def _identity(process: int) -> list[str]:
    """Return text that distinguishes a process from others that have the same number at another time."""
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
        return [str(process), text.rpartition(")")[2].split()[_START_TIME], boot]
    except (OSError, IndexError):  # not Linux
        return [str(process)]
