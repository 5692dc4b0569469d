"""A check against a lock file, as JUnit XML, which CI systems show: a test case for each entry.

The format has no standard; this is what Jenkins, GitLab and GitHub's report actions read
(https://github.com/testmoapp/junitxml).
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from samebits._text.printable import printable_lines
from samebits.report import lock_sentences as sentences
from samebits.report import lock_text
from samebits.report.style import Style

if TYPE_CHECKING:
    from collections.abc import Sequence

    from samebits.commands.lock.outcome import EntryResult

_WIDTH = 100


def render(results: Sequence[EntryResult], folder: str) -> bytes:
    """Return the document.

    Args:
        results: of the entries.
        folder: paths are shown relative to it.
    """
    counts = {
        "tests": len(results),
        "failures": sum(each.verdict == "different" for each in results),
        "errors": sum(each.verdict == "not_judged" for each in results),
    }
    facts = {name: str(number) for name, number in counts.items()}
    seconds = f"{sum(each.seconds for each in results):.3f}"
    suites = ET.Element("testsuites", {**facts, "time": seconds})
    suite = ET.SubElement(suites, "testsuite", {"name": "samebits check", **facts, "time": seconds})
    for each in results:
        _add(suite, each, folder)
    ET.indent(suites)
    text: str = ET.tostring(suites, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'.encode()


def _add(suite: ET.Element, result: EntryResult, folder: str) -> None:
    case = ET.SubElement(
        suite,
        "testcase",
        {"classname": "samebits.lock", "name": result.entry.name, "time": f"{result.seconds:.3f}"},
    )
    if result.verdict == "identical":
        return
    tag = "failure" if result.verdict == "different" else "error"
    kind = str(result.blame or result.error[1] or result.verdict)
    element = ET.SubElement(case, tag, {"message": _xml(sentences.summary(result)), "type": kind})
    element.text = _xml(lock_text.render([result], Style(width=_WIDTH), folder))


def _xml(text: str) -> str:
    """Return text without the characters that XML 1.0 cannot hold."""
    return printable_lines(text)
