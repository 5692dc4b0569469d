"""What a run's state is before each optimizer step, beside what a step-level record holds of it.

A record compares two runs that both begin at the beginning. A run that goes on from a checkpoint begins
elsewhere, and what it did not restore shows before its first step: this log holds that. It is a file beside
the record, one JSON object per line, handed to the operating system line by line: it survives a kill.

Lines, by `kind`:

- `pass`: an iterator of a `DataLoader` was made; `generators` are the states before it, with the loader's own
  if it has one, `workers` their number.
- `batch`: `seq` of its event in the record, `site`, `pass` and `number` in it, `indices` of its samples
  where they are known.
- `step`: what was there before optimizer step number `step`. `params`, `buffers` and `optimizer` are one
  digest each over their tensors, whatever their names; `tensors` has each one (in the first step of a
  process only). `generators`; `settings` (hyperparameters, schedules, scalers) and `variables`: what has
  changed since the last step, null for what is gone.
"""

from __future__ import annotations

import json
import threading
from typing import Any

from samebits.recording.store.appending import AppendedFile, emptied


class StateLog:
    """Writes the log.

    Args:
        path: the file.
    """

    def __init__(self, path: str) -> None:
        self._turn = threading.Lock()
        self._file: AppendedFile | None = emptied(path)

    def write(self, kind: str, **fields: Any) -> None:
        """Append a line."""
        line = json.dumps({"kind": kind, **fields}, separators=(",", ":"))
        with self._turn:
            if self._file is not None:
                self._file.append(f"{line}\n".encode())

    def close(self) -> None:
        """Write no more."""
        with self._turn:
            self._file = None
