"""A check against a lock file, as SARIF 2.1.0, which GitHub and editors show at the lines of the code.

The format: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from samebits._runtime.package import __version__
from samebits._text.printable import printable_lines
from samebits.commands.lock.outcome import Blame
from samebits.report import lock_sentences as sentences
from samebits.report import lock_text
from samebits.report.style import Style

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from samebits.commands.lock.outcome import EntryResult

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_VERSION = "2.1.0"
_NOT_JUDGED = "not-judged"
_DIFFERENT = "different"


def render(results: Sequence[EntryResult], root: str, folder: str) -> str:
    """Return the document.

    Args:
        results: of the entries.
        root: folder to which paths are relative: that of the repository.
        folder: of the lock file.
    """
    shown = [each for each in results if each.verdict != "identical"]
    titles = {str(blame): title for blame, title in sentences.TITLES.items()}
    rules = {**titles, _DIFFERENT: "other bits than the lock", _NOT_JUDGED: "the run could not be judged"}
    driver = {
        "name": "samebits",
        "semanticVersion": __version__,
        "rules": [{"id": name, "shortDescription": {"text": text}} for name, text in rules.items()],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(each, root, folder) for each in shown],
    }
    document = {"$schema": _SCHEMA, "version": _VERSION, "runs": [run]}
    return printable_lines(json.dumps(document, indent=2)) + "\n"


def _result(result: EntryResult, root: str, folder: str) -> dict[str, Any]:
    rule = _NOT_JUDGED if result.verdict == "not_judged" else str(result.blame or _DIFFERENT)
    text = f"{result.entry.name}: {sentences.summary(result)}"
    places = [_location(*each) for each in _places(result, root, folder)]
    details = lock_text.render([result], Style(width=100), root)
    return {
        "ruleId": rule,
        "level": "error",
        "message": {"text": f"{text}\n\n{details}"},
        "locations": places[:1],
        "relatedLocations": places[1:],
    }


def _places(result: EntryResult, root: str, folder: str) -> Iterator[tuple[str, int]]:
    """Yield the files, relative to the root, and lines of a result: the change, the operation, the script."""
    for hunk in result.change.hunks if result.change is not None else ():
        yield hunk.file, max(1, hunk.line)
    finding = result.finding
    site = None if finding is None else finding.origin.site_of_second
    if site is not None and result.blame is not Blame.CHANGE:
        relative = os.path.relpath(site.file, root)
        if not relative.startswith(os.pardir):
            yield relative, site.line
    command = result.entry.command
    if command[:1] != ("-m",):
        yield os.path.relpath(os.path.join(folder, command[0]), root), 1


def _location(file: str, line: int) -> dict[str, Any]:
    uri = quote(os.fsencode(file.replace(os.sep, "/")))  # a name need not be UTF-8
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": uri, "uriBaseId": "%SRCROOT%"},
            "region": {"startLine": line},
        }
    }
