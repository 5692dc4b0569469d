"""Values of one run kept, and put in place in another."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace

import pytest
import torch
from sentence_support import notes_of

from samebits.recording.probes.captures import fits, from_safetensors, to_safetensors, write_into
from samebits.recording.session import RecordingSession
from samebits.recording.settings import RecordingSettings
from samebits.recording.substitution import CapturedEvents, Rule, Substitution, line_of
from samebits.records.notes import NoteCode
from samebits.records.reader import RecordReader
from samebits.report.notes import sentence


@dataclass
class Source:
    """Gives other values in each run: an origin.

    Args:
        base: the number of the run.
        seen: what the script saw.
    """

    base: float
    seen: dict = field(default_factory=dict)


class Runs:
    """Runs a function recorded, several times in this process.

    Args:
        folder: where records go.
        function: the script; gets a source.
    """

    def __init__(self, folder, function) -> None:
        self._folder = folder
        self._function = function
        self._names = iter(range(100))

    def run(self, base: float, substitution: Substitution | None = None) -> tuple[str, Source]:
        """The path of the record, and what the script saw."""
        path = str(self._folder / f"{next(self._names)}.sbr")
        settings = RecordingSettings(record=path, level="op", substitution=substitution)
        session = RecordingSession(RecordingSettings.from_json(settings.to_json()), ("script.py",))
        session.start()
        source = Source(base)
        try:
            self._function(source)
        finally:
            session.finish()
        return path, source

    def rule(self, op: str, **fields) -> Rule:
        """A rule for the first event of an op."""
        path, _ = self.run(1.0)
        with RecordReader(path) as record:
            event = next(e for e in record.events() if e.op.startswith(op))
        return Rule(event.kind, event.op, *line_of(event.site), *line_of(event.forward_site), **fields)

    def pair(self, *rules: Rule, **fields) -> tuple[tuple[str, Source], tuple[str, Source]]:
        """A run that keeps, and one that gets."""
        first = self.run(1.0, Substitution(rules, **fields))
        return first, self.run(2.0, Substitution(rules, source=first[0], **fields))


def differing_ops(first: str, second: str) -> list[str]:
    """Ops whose tensors differ between two records, in order."""
    with RecordReader(first) as a, RecordReader(second) as b:
        pairs = zip(a.events(("op", "batch")), b.events(("op", "batch")), strict=True)
        return [x.op for x, y in pairs if x.digests != y.digests]


def notes(path: str) -> list[str]:
    """What the record says of the substitution."""
    with RecordReader(path) as record:
        codes = NoteCode.NOT_PLACED, NoteCode.NO_SPACE
        return [sentence(n) for n in record.info.notes if n.code in codes]


def test_outputs_of_an_op_are_those_of_the_other_run(tmp_path):
    """What follows is the same; the record holds what is in place."""

    def script(source):
        x = torch.ones(3).mul(source.base)
        source.seen["y"] = (x + 1).sum().clone()

    runs = Runs(tmp_path, script)
    (first, a), (second, b) = runs.pair(runs.rule("aten::mul"))

    assert torch.equal(a.seen["y"], b.seen["y"])
    assert differing_ops(first, second) == []


def test_every_occurrence_gets_its_own(tmp_path):
    """The k-th gets the k-th."""

    def script(source):
        source.seen["all"] = [torch.ones(2).mul(source.base + k) for k in range(5)]

    runs = Runs(tmp_path, script)
    (_, a), (_, b) = runs.pair(runs.rule("aten::mul"))

    assert [t.tolist() for t in b.seen["all"]] == [[1.0 + k] * 2 for k in range(5)]
    assert [t.tolist() for t in a.seen["all"]] == [t.tolist() for t in b.seen["all"]]


def test_the_first_own_value_that_differs_is_kept(tmp_path):
    """So the same pair tells by how much the runs differ."""

    def script(source):
        for k in range(3):
            torch.ones(2).mul(5.0 if k == 0 else source.base + k)

    runs = Runs(tmp_path, script)
    rule = runs.rule("aten::mul")
    (first, _), (second, _) = runs.pair(rule)

    substitution = Substitution((rule,))
    with RecordReader(first) as one, RecordReader(second) as two:
        kept, own = CapturedEvents(one, substitution), CapturedEvents(two, substitution)
        theirs = own.first(0)
        assert theirs is not None
        assert theirs.count == 1
        assert len(two.captured()) == 1
        assert len(one.captured()) == 3
        ours = kept.get(0, "", 1)
        values = [_only(kept.tensors(ours)).tolist(), _only(own.tensors(theirs)).tolist()]
    assert values == [[2.0, 2.0], [3.0, 3.0]]


def _only(files: dict[int, bytes]) -> torch.Tensor:
    (data,) = files.values()
    return from_safetensors(data)


def train(source, *, scaled=lambda w, s: w * s):
    """A step of training through an origin."""
    torch.manual_seed(0)
    w = torch.nn.Parameter(torch.randn(4, 4))
    hidden = scaled(w, source.base)
    loss = torch.tanh(hidden @ w).square().sum()
    loss.backward()
    source.seen.update(loss=loss.detach().clone(), grad=w.grad.clone())


def in_place(w, s):
    """An origin that writes to what a later backward pass needs."""
    h = torch.tanh(w)
    return torch.tanh(h.clone().add_(s))


def view_of_rows(w, s):
    """An origin that is another part of the same memory."""
    return torch.cat([w.narrow(0, int(s) - 1, 2), w.narrow(0, 0, 2)])


def listed(w, s):
    """An origin that writes to a list of tensors."""
    h = [w.clone(), (w + 1).clone()]
    torch._foreach_add_(h, s)
    return torch.tanh(h[0]) + h[1]


def out_of(w, s):
    """An origin that writes to a tensor it is given."""
    with torch.no_grad():
        out = torch.zeros(4, 4)
        torch.mul(w.detach(), s, out=out)
    return w + out


@pytest.mark.parametrize(
    ("op", "origin"),
    [("aten::add_", in_place), ("aten::_foreach_add_", listed), ("aten::mul.out", out_of)],
)
def test_a_backward_pass_goes_on_with_what_was_put_in_place(tmp_path, op, origin):
    """No complaint of a modified tensor; gradients are those of the first run."""

    def script(source):
        train(source, scaled=origin)

    runs = Runs(tmp_path, script)
    (first, a), (second, b) = runs.pair(runs.rule(op))

    assert torch.equal(a.seen["loss"], b.seen["loss"])
    assert torch.equal(a.seen["grad"], b.seen["grad"])
    assert differing_ops(first, second) == []
    with RecordReader(second) as record:
        assert not [note for note in notes_of(record.info) if "failed" in note]


def test_a_slice_taken_elsewhere_leaves_what_it_was_taken_from(tmp_path):
    """The view gets contents of its own: its memory is the argument's."""

    def script(source):
        train(source, scaled=view_of_rows)

    runs = Runs(tmp_path, script)
    (_, a), (_, b) = runs.pair(runs.rule("aten::slice"))

    assert torch.equal(a.seen["loss"], b.seen["loss"])


def test_the_state_of_a_generator_is_put_in_place_before_a_draw(tmp_path):
    """So later draws are the same too; the record has the state that was in place."""

    def script(source):
        torch.default_generator.manual_seed(int(source.base))  # not seen as a seeding
        source.seen["drawn"] = [torch.randn(3), torch.rand(2)]

    runs = Runs(tmp_path, script)
    (first, a), (second, b) = runs.pair(runs.rule("aten::randn", part="state"))

    assert all(map(torch.equal, a.seen["drawn"], b.seen["drawn"]))
    assert differing_ops(first, second) == []


def test_what_the_run_would_have_drawn_is_kept(tmp_path):
    """Drawn on copies from its own state: the values of both runs can be compared."""
    states = {}

    def script(source):
        torch.default_generator.manual_seed(int(source.base))
        states[source.base] = torch.empty(3).normal_().clone()
        torch.default_generator.manual_seed(int(source.base))
        torch.zeros(3).normal_(0.0, 1.0)

    runs = Runs(tmp_path, script)
    rule = runs.rule("aten::normal_", part="state")
    line = max(_lines_of(runs, "aten::normal_"))
    (_, _), (second, _) = runs.pair(replace(rule, line=line))

    with RecordReader(second) as record:
        (seq,) = record.captured()
        (own,) = record.captures(seq).values()
    assert torch.equal(from_safetensors(own), states[2.0])


def _lines_of(runs: Runs, op: str) -> list[int]:
    path, _ = runs.run(1.0)
    with RecordReader(path) as record:
        return [e.site.line for e in record.events(("op",)) if e.op.startswith(op)]


def test_a_seeding_is_followed_by_the_state_of_the_other_run(tmp_path):
    """And by what would have been drawn, for the report."""

    def script(source):
        torch.manual_seed(int(source.base))
        source.seen["drawn"] = torch.randn(4)

    runs = Runs(tmp_path, script)
    path, _ = runs.run(1.0)
    with RecordReader(path) as record:
        seed = next(e for e in record.events(("rng",)) if e.op == "seed")
    rules = (
        Rule("rng", "seed", *line_of(seed.site), part="state"),
        runs.rule("aten::randn", part="draw", replaces=False),
    )
    (_, a), (second, b) = runs.pair(*rules)

    assert torch.equal(a.seen["drawn"], b.seen["drawn"])
    with RecordReader(second) as record:
        own = [from_safetensors(d) for seq in record.captured() for d in record.captures(seq).values()]
    torch.manual_seed(2)
    assert any(t.shape == (4,) and torch.equal(t, torch.randn(4)) for t in own)


def test_what_enters_is_written_to_where_it_entered(tmp_path):
    """Memory made elsewhere gets the contents of the other run, for all that read it."""
    import numpy as np

    def script(source):
        array = np.full(3, source.base, dtype=np.float32)
        x = torch.from_numpy(array)
        source.seen["y"] = x * 2
        source.seen["z"] = x + 1

    runs = Runs(tmp_path, script)
    (_, a), (second, b) = runs.pair(runs.rule("aten::mul", part="in", positions=(0,)))

    assert torch.equal(a.seen["y"], b.seen["y"])
    assert torch.equal(a.seen["z"], b.seen["z"])
    with RecordReader(second) as record:
        (seq,) = record.captured()
        captured = {i: from_safetensors(d).tolist() for i, d in record.captures(seq).items()}
    assert [4.0] * 3 in captured.values()  # what the op would have given


def test_the_tensors_of_a_batch_are_put_in_place(tmp_path):
    """In nested containers; plain values are not."""

    class Noise(torch.utils.data.Dataset):
        def __init__(self, source):
            self.source = source

        def __len__(self):
            return 4

        def __getitem__(self, index):
            value = torch.full((2,), self.source.base + index)
            return {"x": value, "more": [{"y": value * 2}, value * 3]}

    def script(source):
        source.seen["batches"] = list(torch.utils.data.DataLoader(Noise(source), batch_size=2))

    runs = Runs(tmp_path, script)
    (first, a), (second, b) = runs.pair(runs.rule("DataLoader", part="value"))

    for ours, theirs in zip(a.seen["batches"], b.seen["batches"], strict=True):
        assert torch.equal(ours["x"], theirs["x"])
        assert torch.equal(ours["more"][0]["y"], theirs["more"][0]["y"])
        assert torch.equal(ours["more"][1], theirs["more"][1])
    assert "DataLoader" not in differing_ops(first, second)


@pytest.mark.parametrize("fused", [False, True])
def test_an_optimizer_with_another_rate_leaves_the_same_parameters(tmp_path, fused):
    """The ops of the optimizer write to lists of parameters."""

    def script(source):
        torch.manual_seed(0)
        model = torch.nn.Linear(3, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * source.base, fused=fused)
        for _ in range(2):
            model(torch.ones(2, 3)).sum().backward()
            optimizer.step()
        source.seen["weight"] = model.weight.detach().clone()

    runs = Runs(tmp_path, script)
    op = "aten::_fused_sgd_" if fused else "aten::add_"
    (_, a), (second, b) = runs.pair(runs.rule(op))

    assert torch.equal(a.seen["weight"], b.seen["weight"])
    assert notes(second) == []


def test_what_has_another_shape_is_left_and_said(tmp_path):
    """As is what the first run does not have."""

    def script(source):
        source.seen["x"] = torch.ones(int(source.base)).mul(source.base)
        for _ in range(int(source.base)):
            torch.ones(2).add(source.base)

    runs = Runs(tmp_path, script)
    (_, _), (second, b) = runs.pair(runs.rule("aten::mul"), runs.rule("aten::add"))

    assert b.seen["x"].tolist() == [2.0, 2.0]
    shape, missing = notes(second)
    assert "1 of 1 events of aten::mul" in shape
    assert "another shape" in shape
    assert "1 of 2 events of aten::add" in missing
    assert "no such event" in missing


def test_no_more_is_kept_than_there_is_room_for(tmp_path):
    """Both runs say so."""

    def script(source):
        for k in range(4):
            torch.ones(1000).mul(source.base + k)

    runs = Runs(tmp_path, script)
    (first, _), (second, _) = runs.pair(runs.rule("aten::mul"), most_bytes=9000)

    assert "2 further event(s)" in notes(first)[0]
    assert "2 of 4 events" in notes(second)[0]


def test_occurrences_are_counted_in_each_thread(tmp_path):
    """Which thread comes first does not matter."""
    import threading

    def script(source):
        def work(name):
            source.seen[name] = torch.ones(2).mul(source.base + len(name))

        names = ["a", "bbb"] if source.base == 1.0 else ["bbb", "a"]
        for name in names:
            thread = threading.Thread(target=work, args=(name,), name=name)
            thread.start()
            thread.join()

    runs = Runs(tmp_path, script)
    (_, a), (_, b) = runs.pair(runs.rule("aten::mul"))

    assert {name: t.tolist() for name, t in a.seen.items()} == {
        name: t.tolist() for name, t in b.seen.items()
    }


def test_only_what_is_compared_is_not_put_in_place(tmp_path):
    """A rule without `place` keeps both values."""

    def script(source):
        source.seen["x"] = torch.ones(2).mul(source.base)

    runs = Runs(tmp_path, script)
    (_, _), (second, b) = runs.pair(runs.rule("aten::mul", replaces=False))

    assert b.seen["x"].tolist() == [2.0, 2.0]
    with RecordReader(second) as record:
        assert len(record.captured()) == 1


def test_settings_reach_the_child_as_they_are():
    """Through JSON."""
    substitution = Substitution(
        (Rule("op", "aten::mm.default", "/w/a.py", 3, part="in", positions=(1,)),), "a.sbr", 2
    )
    settings = RecordingSettings(record="b.sbr", substitution=substitution)

    assert RecordingSettings.from_json(settings.to_json()) == settings
    assert Substitution.from_dict(json.loads(json.dumps(asdict(substitution)))) == substitution


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.complex64, torch.bool, torch.uint8, torch.float64])
def test_every_dtype_comes_back(dtype):
    """Also with conjugated and negated views."""
    tensor = torch.arange(6).view(2, 3).to(dtype)
    data = to_safetensors(tensor.conj())
    target = torch.zeros_like(tensor)

    assert data is not None
    assert fits(target, from_safetensors(data))
    write_into(target, from_safetensors(data))
    assert torch.equal(target, tensor)


def test_a_written_tensor_does_not_count_as_modified():
    """`put` keeps the version that autograd compares."""
    w = torch.ones(3, requires_grad=True)
    h = torch.exp(w)
    write_into(h, torch.zeros(3))
    h.sum().backward()

    assert w.grad.tolist() == [0.0] * 3


def test_a_sparse_tensor_is_not_kept():
    """The format has only whole tensors."""
    assert to_safetensors(torch.eye(2).to_sparse()) is None
