"""Two runs of two versions of the code: gives the lines of both the same keys where they are the same lines.

Where the code is the same, a line is recognised by its number. Where somebody inserted a line above it, its
number is another one. A record holds the digest of each file of code, so it is known which files to look at.
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from samebits.comparison._line_pairs import lines_of, paired_lines
from samebits.comparison._sites import PairedSite, key_of_second, plain_key
from samebits.environment.snapshot import fact_at, table_at
from samebits.records.kinds import EventKind

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from samebits._runtime.frames import Site
    from samebits.comparison._sites import SiteKey
    from samebits.comparison.lookup import Record
    from samebits.records.events import Event, RunInfo


def code_digests(info: RunInfo) -> dict[str, str]:
    """Return the SHA-256 of each file of code of a run by its name; empty where that is not recorded."""
    table = table_at(info.environment, "code")
    digests = {name: fact_at(facts, "sha256") for name, facts in table.items()}
    return {name: digest for name, digest in digests.items() if isinstance(digest, str)}


def code_name(file: str, names: Collection[str]) -> str:
    """Return the name that a record has for a file of code; empty if it has none.

    Args:
        file: its path.
        names: file name of the script and names of modules.
    """
    parts = os.path.splitext(file)[0].replace("\\", "/").split("/")
    if parts[-1] == "__init__":
        parts.pop()
    modules = (".".join(parts[at:]) for at in range(len(parts)))
    return next((name for name in (*modules, os.path.basename(file)) if name in names), "")


def changed_names(a: Mapping[str, str], b: Mapping[str, str]) -> frozenset[str]:
    """Return the names of the code that two runs do not have alike.

    A file that one run alone has shows nothing: a module may be imported in one of two runs of the same code.

    Args:
        a: digests of the first run, by name.
        b: those of the second.
    """
    if all(a[name] == b[name] for name in a.keys() & b.keys()):
        return frozenset()
    return frozenset(name for name in a.keys() | b.keys() if a.get(name) != b.get(name))


class OnCommonLines:
    """A record whose lines of changed code have keys that another run's lines have too.

    Args:
        record: the record.
        key_of: gives the key of a line; None for a line of code that was not changed.
    """

    def __init__(self, record: Record, key_of: Callable[[Site], SiteKey | None]) -> None:
        self._record = record
        self._key_of = key_of
        self._sites: dict[Site, Site] = {}

    @property
    def info(self) -> RunInfo:
        """See `Record`."""
        return self._record.info

    def events(
        self, kinds: Sequence[EventKind] = (), first_step: int | None = None, last_step: int | None = None
    ) -> Iterator[Event]:
        """See `Record`."""
        return map(self._event, self._record.events(kinds, first_step, last_step))

    def event(self, seq: int) -> Event:
        """See `Record`."""
        return self._event(self._record.event(seq))

    def _event(self, event: Event) -> Event:
        site, forward = self._site(event.site), self._site(event.forward_site)
        if site is event.site and forward is event.forward_site:
            return event
        return replace(event, site=site, forward_site=forward)

    def _site(self, site: Site | None) -> Site | None:
        if site is None:
            return None
        known = self._sites.get(site)
        if known is None:
            key = self._key_of(site)
            known = site if key is None else PairedSite(site.file, site.line, site.function, key)
            self._sites[site] = known
        return known


def on_common_lines(a: Record, b: Record) -> tuple[Record, Record]:
    """Return two records with the same keys for the same lines; as they are where the code is the same.

    Args:
        a: the first record.
        b: the second.
    """
    names = changed_names(code_digests(a.info), code_digests(b.info))
    if not names or isinstance(b, OnCommonLines):
        return a, b
    name_of = _namer(names, {*code_digests(a.info), *code_digests(b.info)})
    first, second = (lines_of(record.events(tuple(EventKind)), name_of) for record in (a, b))
    pairs = paired_lines(first, second)

    def key_of_first(site: Site) -> SiteKey | None:
        return plain_key(site) if name_of(site) else None

    def key_of(site: Site) -> SiteKey | None:
        if not name_of(site):
            return None
        return plain_key(pairs[site]) if site in pairs else key_of_second(site)

    return OnCommonLines(a, key_of_first), OnCommonLines(b, key_of)


def _namer(changed: Collection[str], names: Collection[str]) -> Callable[[Site], str]:
    """Return a function that gives the name of the changed code that a site is in, else an empty one."""

    @cache
    def name_of_file(file: str) -> str:
        name = code_name(file, names)
        return name if name in changed else ""

    return lambda site: name_of_file(site.file)
