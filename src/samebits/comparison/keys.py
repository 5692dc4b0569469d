"""By what events of two runs are recognised as the same event."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from samebits.comparison.ops import given, positions
from samebits.recording.same_values import NUMBER

if TYPE_CHECKING:
    from collections.abc import Callable

    from samebits.hooks.frames import Site
    from samebits.recording.events import Event, TensorInfo


def site_key(site: Site | None) -> tuple[str, int, str] | None:
    """A site without its folder: two runs may have been started from copies in two places."""
    return None if site is None else (os.path.basename(site.file), site.line, site.function)


class Keys(NamedTuple):
    """The keys of an event, from the strictest to the loosest.

    Args:
        whole: with arguments and all digests but those of what an op overwrites: the same event with the
            same contents.
        given: with the arguments and the digests of what an op read; `whole` where it read nothing.
        shaped: with dtypes and shapes.
        loose: only the place in the program.
    """

    whole: int
    given: int
    shaped: int
    loose: int


class Keyer:
    """Makes the keys of events, from the loosest to the strictest.

    The keys of one process can be compared with one another; they mean nothing in another process.

    Args:
        numbered: whether the number that tells models of one class apart (`Linear#2`) is part of a key. It is
            chance where several threads make models.
    """

    def __init__(self, *, numbered: bool = True) -> None:
        self._numbered = numbered
        # Records give the same tuple object for the same layout: hash it once. The object is kept with
        # its hash so that its id is not reused.
        self._layouts: dict[int, tuple[object, int]] = {}
        self._sites: dict[int, tuple[object, Any]] = {}

    def loose(self, event: Event) -> int:
        """Where in the program: kind, op, site, forward site and module."""
        site, forward = (_once(self._sites, site, site_key) for site in (event.site, event.forward_site))
        module = event.module if self._numbered else NUMBER.sub("", event.module)
        return hash((event.kind, event.op, site, forward, module))

    def keys(self, event: Event) -> Keys:
        """All keys of an event."""
        loose = self.loose(event)
        shaped = hash((loose, _once(self._layouts, event.tensors, _layout)))
        if event.kind != "op":
            whole = hash((shaped, event.arguments, event.digests))
            return Keys(whole, whole, shaped, loose)
        digests = event.digests
        read = tuple([digests[i] for i in given(event)])
        made = tuple([digests[i] for i in positions(event, "out")])
        whole = hash((shaped, event.arguments, read, made))
        given_key = hash((shaped, event.arguments, read)) if read else whole
        return Keys(whole, given_key, shaped, loose)


def _layout(tensors: tuple[TensorInfo, ...]) -> int:
    return hash(tuple([(t.role, t.name, t.dtype, t.shape) for t in tensors]))


def _once(known: dict[int, tuple[object, Any]], value: Any, make: Callable[[Any], Any]) -> Any:
    found = known.get(id(value))
    if found is None:
        if len(known) > 1 << 16:  # a record whose layouts are not shared
            known.clear()
        found = known[id(value)] = (value, make(value))
    return found[1]
