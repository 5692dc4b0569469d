"""Pages of the documentation whose sessions take minutes: they explain differences, which takes many runs."""

from __future__ import annotations

import pytest
from doc_blocks import ROOT, run_page

SESSIONS = (
    "README.md",
    "docs/tutorial/first-session.md",
    "docs/how-to/choose-a-mode.md",
    "docs/how-to/find-a-difference.md",
    "docs/how-to/fix-a-script.md",
    "docs/how-to/share-a-report.md",
    "docs/how-to/resume.md",
    "docs/how-to/test-with-pytest.md",
    "docs/explanation/how-verify-works.md",
)


@pytest.mark.parametrize("page", SESSIONS)
def test_session_works(page, tmp_path):
    run_page(ROOT / page, tmp_path)
