"""The terminal session in README.md, from a real run: `docs/images/session-line-fit.svg`.

    python bench/session_image.py

A terminal of the system gives the colours; `rich` draws them. A test compares the text of the picture with
what the command prints today, so run this again where that test says so.
"""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import tempfile
from html import unescape
from pathlib import Path

ROOT = Path(__file__).parents[1]
IMAGE = ROOT / "docs/images/session-line-fit.svg"
COMMAND = "samebits verify --no-progress --steps 20 line_fit.py"
SHOWN = "samebits verify --steps 20 line_fit.py"  # without a terminal to look at, progress is of no use
WIDTH = 96
# In the order of their lines; the figures in them change from run to run.
_VARYING = (
    (r"-?\d+\.\d+(?:e[-+]?\d+)?", "0.0"),
    (r"\d[\d ]* ULP", "0 ULP"),
    (r"\d+ of (\d+) elements", r"0 of \1 elements"),
    (r"\bin \d+ s\b", "in 0 s"),
    (r"[0-9a-f]{32}", "digest"),
)


def main() -> None:
    """Write the picture."""
    from rich._export_format import CONSOLE_SVG_FORMAT
    from rich.console import Console
    from rich.text import Text

    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        console = Console(
            record=True, width=WIDTH, file=nowhere, force_terminal=True, color_system="standard"
        )
        console.print(Text(f"$ {SHOWN}", style="bold"))
        console.print(Text.from_ansi(session()), soft_wrap=True)
    # Without fonts from the network: a picture in a page may load nothing.
    template = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    drawn = console.export_svg(title="samebits verify", code_format=template, unique_id="session")
    IMAGE.write_text("\n".join(line.rstrip() for line in drawn.splitlines()) + "\n", encoding="utf-8")
    print(f"{IMAGE} ({IMAGE.stat().st_size // 1000} kB)")


def session() -> str:
    """Run the command in a terminal of this system, and return what it shows, with colours."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "line_fit.py").write_bytes((ROOT / "examples/line_fit.py").read_bytes())
        ours, theirs = pty.openpty()
        variables = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
        with subprocess.Popen(
            [sys.executable, "-m", *COMMAND.split()],
            cwd=folder,
            env={**variables, "TERM": "xterm-256color", "COLUMNS": str(WIDTH)},
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
        ):
            os.close(theirs)
            shown = _read(ours)
        os.close(ours)
    return shown.replace("\r\n", "\n")


def _read(terminal: int) -> str:
    """Read until all programs have left the terminal."""
    parts: list[bytes] = []
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # how Linux says that the other side is closed
            part = b""
        if not part:
            return b"".join(parts).decode()
        parts.append(part)


def stable(text: str) -> list[str]:
    """Return the lines of a session without colours, and without figures that change from run to run."""
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    for pattern, fixed in _VARYING:
        plain = re.sub(pattern, fixed, plain)
    return [" ".join(line.split()) for line in plain.splitlines() if line.strip()]


def text_of(picture: str) -> str:
    """Return the text that a picture of `main` shows, without the command in its first line."""
    rows: dict[float, list[str]] = {}
    for row, text in re.findall(r'<text class="session-r\d+"[^>]* y="([\d.]+)"[^>]*>([^<]*)</text>', picture):
        rows.setdefault(float(row), []).append(unescape(text).replace("\xa0", " "))
    lines = ["".join(rows[row]) for row in sorted(rows)]
    return "\n".join(lines[1:])


if __name__ == "__main__":
    main()
