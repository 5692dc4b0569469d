"""Which tensors of two states correspond."""

from __future__ import annotations

from samebits.recording.state_equality import Match, Name, Value, match, plain


def state(role: str = "param", /, **tensors: int) -> dict[Name, Value]:
    """Tensors by name, `__` for `#` and `_` for `.`; the number stands for the contents."""
    names = {name: name.replace("__", "#").replace("_", ".") for name in tensors}
    return {(role, names[name]): Value(bytes([n]), "float32", (2,)) for name, n in tensors.items()}


def differing(found: Match) -> list[tuple[str, str]]:
    """The names in both runs of what differs."""
    return [(a[1], b[1]) for a, b in found.differing]


def test_names_that_a_module_gives_are_compared_as_they_are() -> None:
    found = match(state(fc1_weight=1, fc2_weight=2), state(fc1_weight=2, fc2_weight=1))
    assert differing(found) == [("fc1.weight", "fc1.weight"), ("fc2.weight", "fc2.weight")]


def test_numbers_are_chance() -> None:
    a = state(Net_weight=1, Net__2_weight=2, Net__3_weight=3)
    assert match(a, state(Net_weight=3, Net__2_weight=1, Net__3_weight=2)) == Match(moved=3)


def test_positions_in_an_optimizer_are_chance() -> None:
    assert match(state(Adam_0_0=1, Adam_0_1=2), state(Adam_0_0=2, Adam_0_1=1)) == Match(moved=2)
    a, b = (state("optimizer", Adam_0_0_step=x, Adam__2_0_0_step=y) for x, y in ((1, 2), (2, 1)))
    assert match(a, b).moved == 2


def test_other_contents_differ_whatever_the_names() -> None:
    found = match(state(Adam_0_0=1, Adam_0_1=2), state(Adam_0_0=2, Adam_0_1=4))
    assert len(found.differing) == 1


def test_the_same_contents_twice_and_once_differ() -> None:
    found = match(state(Adam_0_0=1, Adam_0_1=1), state(Adam_0_0=1, Adam_0_1=2))
    assert differing(found) == [("Adam.0.1", "Adam.0.1")]


def test_a_state_of_another_size_matches_by_contents() -> None:
    """One run has freed a model; the only one that is left has no number and no class in its names."""
    found = match(state(weight=2), state(Net_weight=1, Net__2_weight=2))
    assert found == Match(only_second=(("param", "Net.weight"),), moved=1)


def test_what_is_as_it_was_is_no_difference() -> None:
    """Each run still holds another dead model."""
    a, b = state(Net_weight=1, Net__3_weight=9), state(Net_weight=2, Net__2_weight=9)
    assert differing(match(a, b)) == [("Net.weight", "Net.weight")]
    found = match(a, b, (state(Net__2_weight=1), state(Net_weight=2)))
    assert (found.differing, found.unchanged, found.moved) == ((), 2, 1)


def test_what_changes_is_a_difference() -> None:
    """As a moving average would, that each run holds and no optimizer steps."""
    a, b = state(Net_weight=1, Net__2_weight=8), state(Net_weight=1, Net__2_weight=9)
    assert differing(match(a, b, (state(Net__2_weight=6), state(Net__2_weight=7))))


def test_other_shapes_are_no_counterpart() -> None:
    a = {("param", "Adam.0.0"): Value(b"1", "float32", (2,))}
    b = {("param", "Adam.0.0#2"): Value(b"1", "float32", (3,))}
    assert match(a, b) == Match(only_first=tuple(a), only_second=tuple(b))


def test_plain_names() -> None:
    names = ("Net#2.fc.weight", "Adam.0.12", "Adam.0.1#3.exp_avg", "fc.0.weight")
    assert [plain(name) for name in names] == ["Net.fc.weight", "Adam.", "Adam.exp_avg", "fc.0.weight"]
