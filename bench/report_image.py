"""The picture of a page in docs/how-to/share-a-report.md: that page's command on an example, in Chromium.

    python bench/report_image.py

needs Chromium (`apt-get install chromium`) and Pillow, which comes with matplotlib.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
IMAGE = ROOT / "docs/images/report-line-fit.png"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WIDTH, HEIGHT = 900, 2925
DIFFERENT = 1
"""The exit status of `verify` where the runs differ."""


def main() -> None:
    """Write the picture."""
    browser = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if browser is None:
        sys.exit(f"no browser found; expected one of {', '.join(BROWSERS)} on the path")
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(ROOT / "examples/line_fit.py", folder)
        verify = [sys.executable, "-m", "samebits", "verify", "--fix", "--html", "page.html"]
        done = subprocess.run([*verify, "line_fit.py", "--steps", "100"], cwd=folder, check=False)
        if done.returncode != DIFFERENT:
            sys.exit(f"verify ended with status {done.returncode}; expected {DIFFERENT}: the runs differ")
        page, shot = Path(folder, "page.html"), Path(folder, "page.png")
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        size = [f"--window-size={WIDTH},{HEIGHT}", f"--screenshot={shot}"]
        subprocess.run([browser, *options, *size, page.as_uri()], check=True, capture_output=True)
        save_small(shot, IMAGE)


def save_small(shot: Path, image: Path) -> None:
    """Save with few colours: the picture is in the repository."""
    from PIL import Image

    picture = Image.open(shot).convert("RGB")
    picture.quantize(64, dither=Image.Dither.NONE).save(image, optimize=True)
    print(f"{image} ({image.stat().st_size // 1000} kB)")


if __name__ == "__main__":
    main()
