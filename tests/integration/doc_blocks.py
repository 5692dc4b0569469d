"""Runs the code blocks of a page of the documentation, in order, in a folder of its own.

- A `python` block whose first line is a comment with a file name (`# train.py`) is that file.
- Any other `python` block is a snippet. Snippets that no console block separates are one program.
- A `console` block has commands after `$`, and under each command what it prints. `...` stands for anything.
- `<!-- hidden python` or `<!-- hidden console`, up to `-->`, prepares what a reader need not see.
- A block under the line `*Not run in the tests: REASON.*` is left out.

Decimals, durations, sizes, digests, versions and the folder differ from run to run, so they are masked. The
number of steps of runs that ended early, as they do on a busy machine, is masked too, and the number of
further tensors that differ: a gradient may be zero in both runs by chance.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from cli_support import environment

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
RUN = {"python", "console"}
SHOWN = {"text", "json", "yaml", "toml", "sql", "ini"}

_FENCE = re.compile(r"^\s*```(.*)$")
_HIDDEN = re.compile(r"^<!-- hidden (python|console)$")
_NOT_RUN = re.compile(r"^\*Not run in the tests: (.+)\.\*$")
_FILE = re.compile(r"# ([\w-]+(?:\.[\w-]+)+)$")
_CODE = "/code"
_MASKS = (
    (r" in (?:its|the|their) first \d+ steps", ""),
    (r"(?<=\)) and \d+ more\b", " and N more"),
    (r"by up to .{1,30}? \(.{1,40}? ULP\)", "by up to N (N ULP)"),
    (r"first at .{1,80}? in run 1, .{1,40}? in run 2", "first at N"),
    (r"\b[0-9a-f]{32}\b|(?<==)[0-9a-f]{8}\b", "DIGEST"),
    (r"\b\d+(?:\.\d+)? (?:s|ms|kB|MB|minutes)\b", "TIME"),
    (r"\b2\.\d+\.\d+(?:\+\w+)?", "VERSION"),
    (r"-?\b\d+\.\d{3,}(?:e-?\d+)?\b", "NUMBER"),
)


@dataclass(frozen=True)
class Block:
    """A code block.

    Args:
        page: where it is.
        line: of its first line, from 1.
        language: of the fence.
        text: its contents.
        not_run: why it is not run; empty if it is.
    """

    page: Path
    line: int
    language: str
    text: str
    not_run: str

    @property
    def file_name(self) -> str:
        """The file that a `python` block is; empty for a snippet."""
        match = _FILE.match(self.text.split("\n", 1)[0])
        return match[1] if match and self.language == "python" else ""


def read_blocks(page: Path) -> list[Block]:
    """All code blocks of a page, in order."""
    lines = page.read_text(encoding="utf-8").splitlines()
    blocks: list[Block] = []
    number, last = 0, ""
    while number < len(lines):
        fence, hidden = _FENCE.match(lines[number]), _HIDDEN.match(lines[number])
        start = number + 1
        if fence or hidden:
            end = next(i for i in range(start, len(lines)) if lines[i].strip() == ("```" if fence else "-->"))
            reason = _NOT_RUN.match(last)
            language = (fence or hidden)[1].strip()  # type: ignore[index]
            text = "\n".join(lines[start:end])
            blocks.append(Block(page, start + 1, language, text, reason[1] if reason else ""))
            number = end
        last = lines[number] or last
        number += 1
    return blocks


def run_page(page: Path, folder: Path) -> None:
    """Run all blocks of a page that can be run.

    Raises:
        AssertionError: one failed, or printed something else.
    """
    shutil.copytree(ROOT / "examples", folder / "examples")
    program: list[Block] = []
    for block in read_blocks(page):
        if block.not_run or block.language not in RUN:
            continue
        if block.file_name:
            (folder / block.file_name).write_text(block.text + "\n")
        elif block.language == "python":
            program.append(block)
        else:
            _run_program(program, folder)
            program = []
            _run_commands(block, folder)
    _run_program(program, folder)


def _run_program(blocks: list[Block], folder: Path) -> None:
    if not blocks:
        return
    source = "\n".join(block.text for block in blocks)
    done = _run([sys.executable, "-c", source], folder)
    assert done.returncode == 0, f"{_where(blocks[-1])}\n{done.stdout}"


def _run_commands(block: Block, folder: Path) -> None:
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, output = re.match(r"((?:.*\\\n)*.*)\n?((?:.|\n)*)", part).groups()  # type: ignore[union-attr]
        done = _run(["bash", "-c", command], folder)
        if output.strip():
            assert agrees(output, done.stdout, folder), f"{_where(block)}: {command}\n{done.stdout}"
        else:
            assert done.returncode == 0, f"{_where(block)}: {command}\n{done.stdout}"


def _run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    tools = Path(sys.executable).parent
    variables = environment(COLUMNS="100")
    variables["PATH"] = f"{tools}:{variables['PATH']}"
    return subprocess.run(
        command,
        cwd=folder,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=540,
        check=False,
    )


def agrees(shown: str, printed: str, folder: Path) -> bool:
    """Whether a program printed what a page shows; how lines are wrapped does not count."""
    pattern = re.sub(r"(?:\\ )?\\[.]\\[.]\\[.]", ".*", re.escape(_masked(shown, folder)))
    return re.fullmatch(pattern, _masked(printed, folder)) is not None


def _masked(text: str, folder: Path) -> str:
    text = " ".join(text.replace(str(folder), _CODE).replace("…", "...").split())
    for pattern, mask in _MASKS:
        text = re.sub(pattern, mask, text)
    return text


def _where(block: Block) -> str:
    return f"{block.page.relative_to(ROOT)}:{block.line}"
