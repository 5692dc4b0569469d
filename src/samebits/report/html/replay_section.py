"""The section on operations that were executed again: how many, which did not repeat, which were left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits.report.html.document import Block, Items, Paragraph, Section
from samebits.report.html.finding_section import finding_blocks, remedy_blocks
from samebits.report.sentences import skipped_lines, summary_text

if TYPE_CHECKING:
    from samebits.comparison.replayed import Replayed
    from samebits.report.remedy import Sources

_MOST = 20


def replay_section(replay: Replayed | None, sources: Sources) -> Section | None:
    """Show what executing each operation again has shown; None where that was not done.

    Args:
        replay: the result.
        sources: which source files may be shown.
    """
    if replay is None:
        return None
    blocks: list[Block] = [Paragraph(f"{summary_text(replay.summary)}.")]
    for finding in replay.findings[:_MOST]:
        blocks += finding_blocks(finding, 0, (), sources)
        if finding.remedy is not None:
            blocks += remedy_blocks(finding.remedy, sources.folder, with_lines=True)
    if len(replay.findings) > _MOST:
        blocks.append(Paragraph(f"and {len(replay.findings) - _MOST} more"))
    skipped = skipped_lines(replay.summary)
    blocks += [Items(tuple(skipped))] if skipped else []
    return Section("replay", "Operations executed again", tuple(blocks))
