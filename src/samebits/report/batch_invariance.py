"""The report of a sample whose output depends on its batch."""

from __future__ import annotations

from samebits._text.printable import printable
from samebits.commands.batch_invariance import Placement, Refusal, Variance, VarianceCause
from samebits.report.origin_words import amount_text
from samebits.report.remedy import Sources, quotation, shown_site
from samebits.report.style import Style, row

_CAUSES = {
    VarianceCause.RANDOM: "random numbers are drawn, and which ones a sample gets depends on its place",
    VarianceCause.OTHER_SAMPLES: "the operation computes with the other samples of the batch too",
    VarianceCause.KERNEL: "the kernel rounds in another order for another size of batch; a difference as "
    "small as this comes from rounding",
    VarianceCause.UNREPEATABLE: "the same batch gives other bits each time, with all generators put back; "
    "assert_repeatable says why",
}
_REMEDIES = {
    VarianceCause.RANDOM: "call `model.eval()` before, or draw nothing in the forward pass",
    VarianceCause.OTHER_SAMPLES: "call `model.eval()` before, so that batch normalisation uses its "
    "running averages; other statistics over the batch cannot be invariant",
    VarianceCause.KERNEL: "on a CPU, compute in portable mode (`with samebits.portable():`), whose "
    "kernels round in one order for every size",
}


def render(found: Variance | Refusal, folder: str) -> str:
    """Return the report.

    Args:
        found: the first difference, or why none could be looked for.
        folder: paths below it are shown without it.
    """
    style = Style()
    if isinstance(found, Refusal):
        return _refused(found, style)
    lines = style.titled("different", f"sample {found.row} has other bits {_placed(found)}: {found.output}")
    lines += [""]
    if found.op:
        lines += style.titled("first difference", f"sample {found.row}, {found.op}")
    if found.site is not None:
        lines.append(f"  {shown_site(found.site, folder)}")
        lines += quotation(found.site, Sources(folder, own=True), style)
    lines.append("")
    if found.module:
        lines += row("module", found.module, style)
    if found.difference is not None:
        lines += row("what came out", amount_text(found.difference), style)
    if found.refusal:
        lines += row("alone", f"the model computes no sample alone: {printable(found.refusal)}", style)
    lines += row("cause", f"{found.cause}: {_CAUSES[found.cause]}", style)
    if found.cause in _REMEDIES:
        lines += row("remedy", _REMEDIES[found.cause], style)
    return "\n".join(lines)


def _refused(found: Refusal, style: Style) -> str:
    why = (
        f"the model computes no sample alone ({printable(found.error)}), so its output for one cannot be "
        "compared; in all batches of 2 and more that were tried each sample has the same bits"
    )
    return "\n".join(style.titled("not judged", why))


def _placed(found: Variance) -> str:
    places = {
        Placement.AGAIN: "when the same batch is computed again",
        Placement.ALONE: "alone",
        Placement.TWICE: "in a batch of itself twice",
        Placement.PART: f"in a batch of {found.size} of these samples",
        Placement.LARGER: f"in a batch of {found.size}",
        Placement.MOVED: "at another place of the batch",
    }
    place = places[found.placement]
    return place if found.placement == Placement.AGAIN else f"{place} than in the batch"
