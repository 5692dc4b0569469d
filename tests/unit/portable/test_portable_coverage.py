"""What is covered, of torch and of a model."""

from __future__ import annotations

import json

import pytest
import torch
from torch import nn

import samebits
from samebits.cli.main import main
from samebits.portable.coverage import covered_ops, is_covered


class Model(nn.Module):
    """One line of it calls what nobody covers."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 4)
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x, scale=1.0):
        """Forward."""
        self.calls += 1
        return torch.special.ndtri(self.layer(x).relu()) * scale


def test_all_kinds_are_listed():
    """Each op once."""
    ops = {op.name: op for op in covered_ops()}

    assert len(ops) == len(covered_ops())
    assert ops["mm"].kind == "kernel"
    assert ops["mm"].section == "Contractions"
    assert ops["mul"].kind == "exact"
    assert ops["cat"].kind == "move"
    assert ops["bitwise_and"].kind == "integer"
    assert ops["mm (sparse)"].section == "Sparse"
    assert ops["mm (complex)"].section == ops["unfold_backward (complex)"].section == "Complex numbers"
    assert "special_ndtri" not in ops


@pytest.mark.parametrize("batch", [torch.rand(2, 3), (torch.rand(2, 3), 2.0), {"x": torch.rand(2, 3)}])
def test_what_a_model_lacks_is_named_with_its_line(batch):
    """And the model is as it was."""
    model = Model()
    before = {name: value.clone() for name, value in model.state_dict().items()}

    found = is_covered(model, batch)

    assert not found
    assert found.missing[0].name == "aten.special_ndtri.default"
    assert found.missing[0].site.function == "Model.forward"
    assert found.missing[0].count == 1
    assert found.backward
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert model.layer.weight.grad is None


def test_a_model_that_is_covered():
    """Forward and backward; a function will do too."""
    assert is_covered(nn.Sequential(nn.Linear(3, 4), nn.ReLU()), torch.rand(2, 3))
    found = is_covered(lambda x: x * 2, torch.rand(2, 3))
    assert found
    assert not found.backward


@pytest.mark.parametrize(
    ("make", "batch"),
    [
        (lambda: nn.LSTM(4, 4, 2, bidirectional=True), torch.rand(3, 2, 4)),
        (lambda: nn.GRU(4, 4), torch.rand(3, 2, 4)),
        (lambda: nn.Conv2d(3, 4, 3), torch.rand(1, 3, 8, 8)),
        (
            lambda: nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).eval().requires_grad_(False),
            torch.rand(2, 3, 4),
        ),
        (lambda: nn.MultiheadAttention(4, 2).eval().requires_grad_(False), (torch.rand(3, 2, 4),) * 3),
        (lambda: torch.special.ndtri, torch.rand(3)),
        (lambda: fbgemm_linear, torch.rand(2, 4)),
    ],
    ids=["lstm", "gru", "conv", "encoder-layer", "attention", "ndtri", "fbgemm"],
)
def test_coverage_says_what_portable_mode_does(make, batch):
    """A model is covered exactly where portable mode runs it, which has torch's short cuts for layers off."""
    model = make()
    arguments = batch if isinstance(batch, tuple) else (batch,)
    runs = True
    try:
        with samebits.portable():
            model(*arguments)
    except samebits.SamebitsError:
        runs = False

    assert bool(is_covered(model, batch)) == runs


def fbgemm_linear(x):
    """Composite to torch: no dispatch mode sees that FBGEMM computes it."""
    packed = torch.fbgemm_pack_gemm_matrix_fp16(torch.eye(4))
    return torch.fbgemm_linear_fp16_weight_fp32_activation(x, packed, torch.zeros(4))


def test_what_gets_a_tensor_that_cannot_be_is_missing():
    """All of it is listed: what follows is computed by torch."""
    found = is_covered(lambda x: torch.special.ndtri(torch.fft.rfft(x).log().abs()), torch.ones(4))
    assert [op.name for op in found.missing] == ["aten.log.default", "aten.special_ndtri.default"]
    assert "of complex numbers" in found.missing[0].reason


def test_the_command_lists_them(capsys):
    """As text that fits, and as JSON."""
    assert main(["portable-ops", "softmax"]) == 0
    text = capsys.readouterr().out
    assert "_softmax" in text
    assert max(map(len, text.splitlines())) <= 100
    assert main(["portable-ops", "--json", "softmax"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == 1
    assert {"name": "_softmax", "kind": "kernel", "section": "Attention"} in found["ops"]
    assert main(["portable-ops", "no_such_op"]) == 2
    assert "covers no op whose name contains 'no_such_op'" in capsys.readouterr().err


def test_a_compiled_model_is_looked_at_uncompiled_and_stays_compiled():
    calls = []

    def backend(graph, _):
        return lambda *given: (calls.append(None), graph.forward(*given))[1]

    compiled = torch.compile(lambda x: torch.special.ndtri(x) + 1, backend=backend)
    compiled(torch.ones(3))
    assert [missing.name for missing in is_covered(compiled, torch.ones(3)).missing] == [
        "aten.special_ndtri.default"
    ]
    assert len(calls) == 1
    compiled(torch.ones(3))

    assert len(calls) == 2
