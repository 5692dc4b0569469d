"""The steps of several training threads, optimizer by optimizer."""

from __future__ import annotations

from samebits.comparison._threads import Trajectories, divergence_of, pair_trajectories
from samebits.records.events import Event, TensorInfo
from samebits.records.kinds import Role

FIRST, SECOND = "SGD.0.0", "SGD.0.0#2"


def event(seq, kind, contents, owned="", thread="T2"):
    """A backward pass or a step; `contents` are the digests by the names of the parameters."""
    role, op = ("grad", "backward") if kind == "grad" else ("param", "SGD.step")
    tensors = tuple(TensorInfo(role, name, "float32", (4,)) for name in contents)
    digests = tuple(text.encode().ljust(16) for text in contents.values())
    return Event(seq, kind, 0, op, None, None, "", thread, owned, tensors, digests, ())


def run(*events):
    """The trajectories of a run."""
    trajectories = Trajectories()
    for each in events:
        trajectories.add_gradients(each) if each.kind == "grad" else trajectories.add(each)
    return trajectories


def differ(a, b):
    """Whether some step of two runs differs."""
    return any(divergence_of(ours, theirs, whole=True) for ours, theirs in pair_trajectories(a, b))


def test_names_move_up_when_another_thread_lets_go_of_its_model():
    """The model of the other thread was alive at the backward pass of one run, and gone at the step."""
    own = "optimizer 1 owns 0"
    late = run(event(0, "grad", {FIRST: "theirs", SECOND: "mine"}), event(1, "step", {FIRST: "w"}, own))
    early = run(event(0, "grad", {FIRST: "mine"}), event(1, "step", {FIRST: "w"}, own))
    assert not differ(late, early)
    assert not differ(early, late)


def test_other_gradients_differ():
    runs = [
        run(event(0, "grad", {FIRST: text}), event(1, "step", {FIRST: "w"}, "optimizer 1 owns 0"))
        for text in ("one", "two")
    ]
    assert differ(*runs)
    assert not differ(runs[0], runs[0])


def test_gradients_of_a_model_that_is_gone_are_forgotten_at_the_next_pass():
    """Else no later gradient of the thread would be compared."""
    runs = [
        run(
            event(0, "grad", {FIRST: "theirs", SECOND: "mine"}),
            event(1, "step", {FIRST: "w"}, "optimizer 1 owns 0"),
            event(2, "grad", {FIRST: text}),
            event(3, "step", {FIRST: "w"}, "optimizer 1 owns 0"),
        )
        for text in ("one", "two")
    ]
    assert differ(*runs)


def test_the_digest_of_a_state_does_not_depend_on_how_a_role_is_written():
    """`Role` was a plain text in older versions: their `final_digest` of the same state must not change."""

    class Other(str):
        """A text with a `repr` of its own, as a member of an enumeration has."""

        __slots__ = ()

        def __repr__(self):
            return f"<Other: {str(self)!r}>"

        __str__ = str.__str__

    states = []
    for role in ("param", Other("param"), Role.PARAM):
        info = TensorInfo(role, FIRST, "float32", (4,))
        owner = "optimizer 1 owns 0"
        step = Event(0, "step", 0, "SGD.step", None, None, "", "T2", owner, (info,), (b"w" * 16,), ())
        states.append(run(step).listed[1].state(0))
    assert states[0] == states[1] == states[2]
