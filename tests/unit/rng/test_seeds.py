"""Seeds are checked, and further seeds follow from them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from samebits.errors import SamebitsError
from samebits.rng.active import Active
from samebits.rng.seeds import MAX_SEED, check_seed, derive, fit
from samebits.switches.switch import Control


@pytest.mark.parametrize("value", [0, 3, MAX_SEED, np.int64(5), np.uint64(2**63)])
def test_whole_numbers_are_seeds(value):
    seed = check_seed(value)

    assert (seed, type(seed)) == (int(value), int)


@pytest.mark.parametrize("value", [-1, 2**64, 1.0, "3", None, True, np.float32(1), [3]])
def test_anything_else_is_refused_with_what_was_found(value):
    with pytest.raises(SamebitsError, match="expected a whole number from 0 to") as caught:
        check_seed(value)

    assert (caught.value.slug, repr(value) in str(caught.value)) == ("seed", True)


def test_derived_seeds_are_fixed_for_ever():
    """Runs made with an earlier release must come back: a change of these values breaks them."""
    assert derive(3, "augment", 1, 2) == 0xC2CEFBB0819A35F2
    assert derive(0) == 0x32607D47776DB5D9


def test_names_do_not_run_together():
    names = [("a", "b"), ("ab",), ("a", "b", ""), (1,), ("1",), ("i1",), (1, 2), (12,), (-1,), ()]

    assert len({derive(3, *name) for name in names}) == len(names)


def test_low_bits_of_derived_seeds_differ():
    low = {derive(seed, "worker", worker) & (2**32 - 1) for seed in range(100) for worker in range(100)}

    assert len(low) > 9_990  # a birthday among 2**32 is possible, a pattern is not


def test_small_seeds_stay_and_large_ones_do_not_lose_their_high_bits():
    assert fit(3, "numpy") == 3
    assert len({fit(3 + (high << 32), "numpy") for high in range(50)}) == 50
    assert all(fit(MAX_SEED - i, "torch") < 2**32 for i in range(50))


def test_things_without_a_seed_get_one_by_kind_and_order():
    first, second = Active(Control(seed=3), 3), Active(Control(seed=3), 3)
    ours = [first.next_seed("a"), first.next_seed("b"), first.next_seed("a")]
    theirs = [second.next_seed("b"), second.next_seed("a"), second.next_seed("a")]

    assert (ours[0], ours[1], ours[2]) == (theirs[1], theirs[0], theirs[2])
    assert len(set(ours)) == 3


def test_a_scope_begins_anew():
    active = Active(Control(seed=3), 3)
    before = active.next_seed("a")
    active.enter_scope("worker", 0, 1)
    inside = active.next_seed("a")
    active.enter_scope("worker", 0, 1)

    assert before != inside == active.next_seed("a")


def test_without_a_run_seed_nothing_can_be_derived():
    with pytest.raises(SamebitsError, match="no run seed is in force"):
        Active(Control(), None).next_seed("a")


def test_control_goes_through_json_and_knows_its_part_of_the_run():
    control = Control(seed=3, switches=(("a", "on"),), scope=("process", 1))

    assert Control.from_dict(json.loads(json.dumps(control.to_dict()))) == control
    active, first = Active(control, 3), Active(Control(seed=3), 3)
    assert (active.scope, first.source_seed) == (("process", 1), 3)
    assert active.source_seed == derive(3, "process", 1)
    assert Active(control, None).source_seed is None
