"""The comparison of two programs, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from samebits._text.printable import end_of, printable, shortened
from samebits.comparison.programs.outcome import STATE, How, Relation, Source, Why
from samebits.comparison.results import describe
from samebits.report.notes import sentence
from samebits.report.reasons import sentence as reason_sentence
from samebits.report.style import Style, count, number, row, shown_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from samebits._runtime.frames import Site
    from samebits.comparison.programs.outcome import (
        Calls,
        Distance,
        Name,
        Place,
        ProgramComparison,
        Row,
        Tolerance,
    )

HEAD = ("name", "dtype and shape", "elements", "max ULP", "relative")
"""What `cells` gives."""
_MOST_ROWS = 20
_MOST_NAMES = 5
_LONGEST_NAME = 60
_LONGEST_CELL = 40
_WORDS = {
    Source.TAP: "tap",
    Source.MODULE: "module",
    Source.PARAM: "parameter",
    Source.BUFFER: "buffer",
    Source.GRAD: "gradient",
    Source.OPTIMIZER: "optimizer state",
    Source.BATCH: "",
    Source.LOSS: "",
}
_REASONS = {
    Why.NOTHING_NAMED: "a record has no named tensor: record both with `--tap-modules '*'`, or call"
    " samebits.tap in both programs",
    Why.NO_COMMON_NAME: "no name is in both records; `--align shapes` also matches tensors with other names",
    Why.NOTHING_MATCHES: "no tensor of one record has a name, the contents or the shape of one of the other",
    Why.UNREADABLE: "some tensors could not be read when they were recorded; all others are equal",
}


def render_text(result: ProgramComparison, style: Style, folder: str) -> str:
    """Return the report.

    Args:
        result: of the comparison.
        style: width and colours.
        folder: paths are shown relative to it.
    """
    colour = {"identical": "green", "different": "red"}.get(result.verdict, "yellow")
    lines = style.titled(verdict_words(result), printable(reason(result)), colour)
    if result.rows:
        lines += ["", *_first(result.rows[0], style, folder), "", *_table(result, style)]
    elif result.accepted:
        lines += ["", *_rows("within the tolerance", result.accepted, style)]
    facts = remarks(result)
    if facts:
        lines.append("")
    for at, fact in enumerate(facts):
        lines += row("notes" if not at else "", f"- {fact}", style)
    return "\n".join(lines)


def reason(result: ProgramComparison) -> str:
    """Say in one sentence what was found."""
    if result.why is Why.DIFFERS:
        first = result.rows[0].first
        equal = f"{count(result.before, 'name')} before it {'is' if result.before == 1 else 'are'} equal"
        rest = equal + _accepted_words(result) if result.before else "it is the first of all"
        return f"{called(first)} is the first tensor that differs; {rest}"
    if result.why is Why.OTHER_CALLS:
        ended = result.open_ended
        calls = next(each for each in result.other_calls if not ended[0 if each.first < each.second else 1])
        return f"{_calls_words(calls)}; {_what_is_equal(result)}"
    if result.why is Why.NOT_WHOLE:
        return f"{'; '.join(map(reason_sentence, result.endings))}; {_what_is_equal(result)}"
    if result.why is not None:
        return _REASONS[result.why]
    tensors = f"{count(result.tensors, 'tensor')} under {count(result.names, 'name')} of both programs"
    lone = len(result.only_first) + len(result.only_second)
    rest = f"; {count(lone, 'name')} only in one of them" if lone else ""
    if result.accepted:
        return f"{tensors} compared, {len(result.accepted)} of these names not bit for bit equal{rest}"
    return f"{tensors} compared {'value by value' if result.same_values else 'bit for bit'}{rest}"


def _what_is_equal(result: ProgramComparison) -> str:
    equal = "equal, or within the tolerance" if result.accepted else "equal"
    which = "all that could be read" if result.unreadable else "all tensors that both programs have"
    return f"{which} are {equal}"


def tolerance_words(tolerance: Tolerance) -> str:
    """Name a tolerance: `4 ULP`, or `a relative difference of 1e-05`."""
    if tolerance.ulp is not None:
        return f"{number(tolerance.ulp)} ULP"
    return f"a relative difference of {tolerance.relative:g}"


def verdict_words(result: ProgramComparison) -> str:
    """Name the verdict, and the tolerance that it has."""
    word = result.verdict.replace("_", " ")
    if result.tolerance is None:
        return word
    within = "beyond" if result.verdict == "different" else "within"
    return (
        f"{word} {within} {tolerance_words(result.tolerance)}" if result.why in (None, Why.DIFFERS) else word
    )


def _accepted_words(result: ProgramComparison) -> str:
    if result.accepted:
        return ", or within the tolerance"
    return "" if result.same_values else " bit for bit"


def _first(first: Row, style: Style, folder: str) -> list[str]:
    return [line for name, text in first_rows(first, folder) for line in row(name, text, style)]


def first_rows(first: Row, folder: str) -> list[tuple[str, str]]:
    """Describe the first tensor that differs: for each fact its name and a text.

    Args:
        first: the tensor in both programs.
        folder: paths are shown relative to it.
    """
    places = first.first, first.second
    rows = [("tensor", called(first.first))]
    for letter, place in zip("AB", places, strict=True):
        named = f", named {_shown(place.name)} there" if place.name != first.first.name else ""
        rows.append((letter, f"{describe(place.info)}{_at(place.site, folder)}{named}"))
    rows.append(("difference", difference_words(first)))
    distance = first.distance
    if distance.first_index is not None and distance.values is not None:
        ours, theirs = distance.values
        where = f"at {list(distance.first_index)}: " if distance.first_index else ""
        rows.append(("first element", f"{where}{ours} in A, {theirs} in B"))
    return [*rows, ("calls", _calls(first))] if first.calls > 1 else rows


def _calls(first: Row) -> str:
    text = f"{number(first.differing)} of {number(first.calls)} have other bits"
    if first.last is None:
        return text
    if first.last.relation is Relation.SAME_VALUES:
        return f"{text}; the last has the same values{_kept_words(first.last)}"
    if first.last.relation is Relation.ROUNDED:
        return f"{text}; the last is equal when rounded to {first.last.ulp_dtype}{_kept_words(first.last)}"
    return text if first.last.differing is None else f"{text}; the last by {_amount(first.last)}"


def difference_words(pair: Row) -> str:
    """Describe the difference of a pair of tensors."""
    distance, infos = pair.distance, (pair.first.info, pair.second.info)
    amount = _amount(distance)
    relation = distance.relation
    if relation is Relation.NOT_KEPT:
        return "the digests differ; the records do not have what is needed to say how far (`run --values`)"
    if relation is Relation.OTHER_SIZE:
        return "the shapes differ, and cannot be compared element by element"
    if relation is Relation.SAME_VALUES:
        return f"the same values{_kept_words(distance)}; only {_form_words(infos)}"
    if relation is Relation.PART and distance.part is not None:
        part, smaller = (
            distance.part,
            "A" if infos[0].shape[distance.part.dimension] == distance.part.kept else "B",
        )
        side = "last" if part.is_last else "first"
        where = f"{part.kept} of {part.of} along dimension {part.dimension}"
        return f"{smaller} has the {side} {where}; these are equal"
    if relation is Relation.ROUNDED:
        return f"{_form_words(infos)}; rounded to {distance.ulp_dtype} both are equal{_kept_words(distance)}"
    also = ""
    if relation is Relation.TRANSPOSED:
        order = ", ".join(map(str, distance.permutation))
        also = f"the same elements, transposed: B is A with its dimensions in the order {order}"
    elif relation is Relation.REORDERED:
        also = "the same elements in another order"
    return "; ".join(part for part in (amount, also) if part)


def _kept_words(distance: Distance) -> str:
    """Say of which elements a sentence is true, where the records do not have all of them."""
    return f" in the {number(distance.compared)} elements that were kept" if distance.is_sample else ""


def _form_words(infos: tuple[Any, Any]) -> str:
    parts = ["the dtype"] if infos[0].dtype != infos[1].dtype else []
    parts += ["the shape"] if infos[0].shape != infos[1].shape else []
    return f"{' and '.join(parts)} differ{'s' if len(parts) == 1 else ''}"


def _amount(distance: Distance) -> str:
    if distance.differing is None:
        return ""
    of = f"{number(distance.compared)} elements"
    if distance.is_sample:
        of = f"{of} that were kept, of {number(distance.total)},"
    text = f"{number(distance.differing)} of {of}".rstrip(",")
    if distance.is_sample and not distance.differing:
        return f"{text}: what differs is among the others"
    if distance.max_ulp == 0 and distance.differing:  # nothing else is 0 apart and not the same number
        return f"{text}: only the sign of zero differs"
    if distance.max_ulp is not None:
        text += f", by up to {number(distance.max_ulp)} ULP of {distance.ulp_dtype}"
    elif distance.max_abs is None:
        text += ", some not finite"
    if distance.relative is not None:
        text += f", relative {distance.relative:.2g}"
    return text


def _table(result: ProgramComparison, style: Style) -> list[str]:
    lines = _rows("from there on", result.rows, style)
    if result.jump is not None:
        before, after = (result.rows[at].distance.relative for at in (_measured_before(result), result.jump))
        name = called(result.rows[result.jump].first)
        lines += style.wrap(
            printable(f"It grows most at {name}: from {before:.2g} to {after:.2g}."), indent=2
        )
    return lines


def _measured_before(result: ProgramComparison) -> int:
    """Return the last row before the jump that has a relative difference."""
    measured = [at for at in range(result.jump or 0) if result.rows[at].distance.relative]
    return measured[-1]


def _rows(title: str, rows: Sequence[Row], style: Style) -> list[str]:
    """Return a table of names with their differences."""
    table = [HEAD]
    table += [cells(each) for each in rows[:_MOST_ROWS]]
    widths = [max(len(line[at]) for line in table) for at in range(len(table[0]))]
    lines = [f"  {style.paint(title, 'dim')}"]
    for at, (name, info, *numbers) in enumerate(table):
        text = f"    {name:{widths[0]}}  {info:{widths[1]}}"
        text += "".join(f"  {cell:>{width}}" for cell, width in zip(numbers, widths[2:], strict=True))
        lines.append(style.paint(text.rstrip(), *([] if at else ["dim"])))
    if len(rows) > _MOST_ROWS:
        lines.append(f"    and {count(len(rows) - _MOST_ROWS, 'more name')} (--json lists them)")
    return lines


def cells(each: Row) -> tuple[str, str, str, str, str]:
    """Return name, dtype and shape of a pair of tensors, elements that differ, ULP, relative difference."""
    infos, distance = (each.first.info, each.second.info), each.distance
    dtypes, shapes = {describe(info) for info in infos}, describe(infos[0])
    info = shapes if len(dtypes) == 1 else f"{shapes} / {describe(infos[1])}"
    elements = {
        Relation.NOT_KEPT: "not kept",
        Relation.OTHER_SIZE: "other shape",
        Relation.PART: "a part",
        Relation.TRANSPOSED: "transposed",
        Relation.REORDERED: "reordered",
        Relation.ROUNDED: f"rounded, {number(distance.compared)} kept" if distance.is_sample else "rounded",
    }.get(distance.relation, "")
    if not elements or distance.relation in (Relation.TRANSPOSED, Relation.REORDERED):
        counted = (
            ""
            if distance.differing is None
            else f"{number(distance.differing)} / {number(distance.compared)}"
        )
        counted += " kept" if distance.is_sample else ""
        elements = f"{elements} {counted}".strip()
    ulp = "" if distance.max_ulp is None else number(distance.max_ulp)
    relative = "" if distance.relative is None else f"{distance.relative:.2g}"
    name = end_of(called(each.first, short=True), _LONGEST_CELL)
    return name, printable(shortened(info, 2 * _LONGEST_CELL)), elements, ulp, relative


def remarks(result: ProgramComparison) -> list[str]:
    """Say what is no difference of values, and how the records were made."""
    return [*_facts(result), *_notes(result)]


def _facts(result: ProgramComparison) -> list[str]:
    """Say what is no difference of values: names, calls, order, forms, samples."""
    facts = []
    for letter, names in (("A", result.only_first), ("B", result.only_second)):
        if names:
            facts.append(f"only {letter} has {_names(names)}")
    facts += [_calls_words(each, result.open_ended) for each in result.other_calls[:_MOST_NAMES]]
    if len(result.other_calls) > _MOST_NAMES:
        facts.append(f"{len(result.other_calls) - _MOST_NAMES} more names have another number of tensors")
    if result.order is not None:
        ours, theirs = map(_shown, result.order)
        facts.append(f"the names come in another order: where A has {ours}, B has {theirs}")
    facts += [f"{called(each.first)}: {difference_words(each)}" for each in result.same_values[:_MOST_NAMES]]
    if len(result.same_values) > _MOST_NAMES:
        facts.append(
            f"{len(result.same_values) - _MOST_NAMES} more names have the same values in another form"
        )
    if result.rows and result.accepted:
        facts.append(
            f"within the tolerance, but not equal: {_names([r.first.name for r in result.accepted])}"
        )
    facts += [
        f"the names of {letter} are compared without `{prefix}`, with which all of them begin"
        for letter, prefix in zip("AB", result.prefixes, strict=True)
        if prefix
    ]
    for how in How:
        matched = [f"{_shown(m.first)} with {_shown(m.second)}" for m in result.matched if m.how is how]
        if matched:
            facts.append(f"matched by {how.value}: {_some(matched)}")
    return [*facts, *_doubts(result)]


def _doubts(result: ProgramComparison) -> list[str]:
    facts = [] if result.why is Why.NOT_WHOLE else list(map(reason_sentence, result.endings))
    if result.sampled:
        facts.append(f"judged by a part of the elements: {_names(result.sampled)}")
    if result.unreadable and result.why is not Why.UNREADABLE:
        facts.append(f"{count(result.unreadable, 'pair')} of tensors could not be read when recorded")
    return facts


def _notes(result: ProgramComparison) -> list[str]:
    """Return the notes of the records, each once."""
    sides = [list(dict.fromkeys(map(sentence, notes))) for notes in result.notes]
    both = [text for text in sides[0] if text in sides[1]]
    return both + [
        f"{letter}: {text}"
        for letter, texts in zip("AB", sides, strict=True)
        for text in texts
        if text not in both
    ]


def _calls_words(calls: Calls, open_ended: tuple[bool, bool] = (False, False)) -> str:
    unit = "steps" if calls.name.source in STATE else "calls"
    text = f"{_shown(calls.name)} has {number(calls.first)} {unit} in A and {number(calls.second)} in B"
    fewer = "A" if calls.first < calls.second else "B"
    return f"{text}; the run of {fewer} ended early" if open_ended["AB".index(fewer)] else text


def called(place: Place, *, short: bool = False) -> str:
    """Name a tensor with its call or step, such as `tap logits (call 2)`."""
    if place.name.source in STATE:
        when = f"step {place.step}"
    else:
        when = f"call {place.call + 1}" if place.call or not short else ""
    name = _shown(place.name)
    return f"{name}, {when}" if when else name


def _shown(name: Name) -> str:
    word = _WORDS[name.source]
    text = printable(shortened(name.name, _LONGEST_NAME))
    return f"{word} {text}" if word else text


def _names(names: Iterable[Name]) -> str:
    return _some([_shown(name) for name in names])


def _some(texts: Sequence[str]) -> str:
    more = f" and {number(len(texts) - _MOST_NAMES)} more" if len(texts) > _MOST_NAMES else ""
    return ", ".join(texts[:_MOST_NAMES]) + more


def _at(site: Site | None, folder: str) -> str:
    return "" if site is None else f" at {shown_path(site.file, folder)}:{site.line}"
