"""The code blocks of the documentation work; sessions that take minutes are in test_docs_sessions.py."""

from __future__ import annotations

import re

import pytest
from cli_support import samebits
from doc_blocks import PAGES, ROOT, RUN, SHOWN, agrees, read_blocks, run_page
from test_docs_sessions import SESSIONS

NOT_RUN = {
    "docs/reference/doctor.md": ["each machine gives another answer; the tests of doctor imitate machines"],
    "docs/explanation/planted-corpus.md": ["takes 45 minutes on 2 quiet cores", "part of a script"],
    "docs/explanation/public-programs.md": ["fetches repositories from the network"],
    "docs/how-to/compare-seeds.md": [
        "twenty runs take minutes; the tests of spread check it on smaller ones",
        "needs two finished spreads",
    ],
    "docs/how-to/ddp.md": [
        "starts several processes, which the tests of ranks do",
        "needs a process group",
        "needs a process group",
    ],
    "docs/how-to/log-to-trackers.md": ["needs a tracker"],
    "docs/how-to/measure-cost.md": ["it takes minutes, and each machine gives other figures"],
    "docs/how-to/use-with-trainers.md": ["needs a model and a dataset"],
    "docs/reference/resume-check.md": ["needs a script with a trainer of transformers"],
}
"""Page -> why each block that is marked as not run is not run."""


def quick_pages() -> list[str]:
    """The pages that have a block to run, apart from the long sessions."""
    names = {str(page.relative_to(ROOT)): read_blocks(page) for page in PAGES}
    run = [name for name, blocks in names.items() if any(b.language in RUN and not b.not_run for b in blocks)]
    return [name for name in run if name not in SESSIONS]


@pytest.mark.parametrize("page", quick_pages())
def test_blocks_work(page, tmp_path):
    run_page(ROOT / page, tmp_path)


def test_blocks_that_are_not_run_are_listed():
    marked = {}
    for page in PAGES:
        reasons = [block.not_run for block in read_blocks(page) if block.not_run]
        if reasons:
            marked[str(page.relative_to(ROOT))] = reasons

    assert marked == NOT_RUN


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_has_a_language(page):
    """A command in a block that is only shown would not be run."""
    for block in read_blocks(page):
        assert block.language in RUN | SHOWN or block.language.startswith("{"), block
        if block.language == "console":
            assert block.text.startswith("$ "), block


def test_output_is_compared(tmp_path):
    assert agrees("a 1.2345 ...\nend in 3 s", f"a 2.3456 at {tmp_path}\nend in 14 s", tmp_path)
    assert agrees("/code/x.py", f"{tmp_path}/x.py", tmp_path)
    assert agrees("identical ...\nend", "identical\nend", tmp_path)
    assert not agrees("identical: 2 runs", "identical: 3 runs", tmp_path)
    assert not agrees("identical", "identical\nnote: more", tmp_path)


def documented_options() -> dict[str, set[str]]:
    """Command -> options in its section of docs/reference/cli.md."""
    page = (ROOT / "docs/reference/cli.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## (.+)\n((?:(?!## ).*\n)*)", page, re.MULTILINE))
    options = {name: row_options(text) for name, text in sections.items()}
    for name, text in sections.items():
        if "](#control-options)" in text:
            options[name] |= options["Control options"]
    return options


def row_options(text: str) -> set[str]:
    """The options that the first cells of a table name."""
    cells = re.findall(r"^\| ([^|]*) \|", text, re.MULTILINE)
    return set(re.findall(r"(?<![\w-])--[a-z-]+", " ".join(cells)))


def test_every_intervention_is_documented(tmp_path):
    """docs/reference/interventions.md has the names that `verify --list-pins` lists."""
    listed = samebits("verify", "--list-pins", cwd=tmp_path).stdout
    page = (ROOT / "docs/reference/interventions.md").read_text(encoding="utf-8")
    names = re.findall(r"^\| `([a-z-]+)` \|", page, re.MULTILINE)

    assert names == re.findall(r"^ *([a-z][a-z-]*)  ", listed, re.MULTILINE)


def test_every_command_is_documented(tmp_path):
    """The page has the commands of `samebits --help` and no other, and the options of each."""
    commands = re.findall(r"^  ([a-z-]+) +[A-Z]", samebits("--help", cwd=tmp_path).stdout, re.MULTILINE)
    page = documented_options()
    other = {"Exit status", "Output", "Signals", "Control options", "The JSON object"}

    assert set(commands) == set(page) - other
    for command in commands:
        shown = samebits(command, "--help", cwd=tmp_path).stdout
        listed = re.findall(r"^  (-.*)$", shown, re.MULTILINE)
        names = " ".join(line.split("   ")[0] for line in listed)
        options = set(re.findall(r"(?<![\w-])--[a-z-]+", names))
        assert options - {"--help"} == page[command], command
