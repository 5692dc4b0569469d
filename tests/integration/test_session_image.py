"""The picture in README.md shows what the command prints today."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
IMAGE = "docs/images/session-line-fit.svg"
_READ = """\
import json, sys
sys.path.insert(0, "bench")
import session_image as picture
drawn = picture.IMAGE.read_text(encoding="utf-8")
print(json.dumps([picture.stable(picture.text_of(drawn)), picture.stable(picture.session())]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_its_text_is_what_the_command_prints():
    """But for figures that change from run to run; make it again with `python bench/session_image.py`."""
    done = subprocess.run(
        [sys.executable, "-c", _READ], cwd=ROOT, capture_output=True, text=True, check=True, timeout=500
    )

    drawn, printed = json.loads(done.stdout)
    assert drawn == printed
    assert len(drawn) > 12
    assert drawn[0].startswith("different: ")
    assert not any("\\u001b" in line for line in drawn)


def test_the_readme_shows_it_and_it_loads_nothing():
    """A picture in a page must not ask other hosts for fonts."""
    assert f"]({IMAGE})" in (ROOT / "README.md").read_text(encoding="utf-8")
    drawn = (ROOT / IMAGE).read_text(encoding="utf-8")
    assert "@font-face" not in drawn
    assert "url(http" not in drawn
