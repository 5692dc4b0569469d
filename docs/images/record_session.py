"""Records the terminal session of the README: runs the command, and draws what it printed as an SVG picture.

python docs/images/record_session.py

It needs `rich`, and a console script `samebits` beside this Python.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parents[2]
PICTURE = Path(__file__).with_name("session.svg")
COMMAND = ("samebits", "verify", "--steps", "20", "examples/line_fit.py")
COLUMNS = 100
# Fonts of the reader's own system: a picture on a page may fetch none.
_FONTS = re.compile(r"\s*@font-face \{.*?\n\s*\}", re.DOTALL)


def printed() -> str:
    """Run the command as on a terminal with colours, and return what it printed."""
    program = str(Path(sys.executable).with_name(COMMAND[0]))
    variables = {**os.environ, "COLUMNS": str(COLUMNS), "FORCE_COLOR": "1"}
    variables.pop("NO_COLOR", None)
    done = subprocess.run(
        [program, *COMMAND[1:]], cwd=ROOT, env=variables, capture_output=True, text=True, check=False
    )
    if done.returncode != 1:  # the runs differ
        raise SystemExit(f"{' '.join(COMMAND)} ended with {done.returncode}: {done.stderr}")
    return done.stdout


def drawn(text: str) -> str:
    """Return the picture of a session."""
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=COLUMNS, file=nowhere, force_terminal=True)
        console.print(Text(f"$ {' '.join(COMMAND)}", style="bold"))
        console.print(Text.from_ansi(text))
        picture = console.export_svg(title="samebits", unique_id="samebits")
    plain = _FONTS.sub("", picture).replace("font-family: Fira Code, monospace", "font-family: monospace")
    return "\n".join(line.rstrip() for line in plain.splitlines()) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(drawn(printed()), encoding="utf-8")
