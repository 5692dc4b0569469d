"""Recurrent layers and transformer layers in portable mode."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from ways import in_all_ways

import samebits.portable

PADDING = torch.tensor([[False] * 5, [False, False, False, True, True], [False] * 5])


def _packed(lengths, **named):
    def call(layer, x):
        out, state = layer(nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, **named))
        return out.data, state

    return call


def _plain(layer, x):
    return layer(x)


LAYERS = {
    "LSTM": (lambda: nn.LSTM(4, 6, 2, batch_first=True, bidirectional=True), _plain),
    "LSTM packed": (lambda: nn.LSTM(4, 6, batch_first=True), _packed([5, 3, 2])),
    "LSTM unsorted": (lambda: nn.LSTM(4, 6, batch_first=True), _packed([3, 5, 2], enforce_sorted=False)),
    "LSTM projected": (lambda: nn.LSTM(4, 6, proj_size=3), _plain),
    "GRU": (lambda: nn.GRU(4, 6, 2, bias=False), _plain),
    "GRU packed": (lambda: nn.GRU(4, 6, batch_first=True, bidirectional=True), _packed([5, 3, 2])),
    "RNN": (lambda: nn.RNN(4, 6, nonlinearity="relu"), _plain),
    "LSTMCell": (lambda: nn.LSTMCell(4, 6), lambda layer, x: layer(x[:, 0])),
    "GRUCell": (lambda: nn.GRUCell(4, 6), lambda layer, x: layer(x[:, 0])),
    "attention": (
        lambda: nn.MultiheadAttention(4, 2, batch_first=True).eval(),
        lambda layer, x: layer(x, x, x),
    ),
    "encoder": (
        lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, 0.0, batch_first=True), 2).eval(),
        lambda layer, x: layer(x, src_key_padding_mask=PADDING),
    ),
}


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.filterwarnings("ignore")
def test_layers_agree_with_torch(name):
    make, call = LAYERS[name]
    torch.manual_seed(2)
    layer, x = make().double(), torch.randn(3, 5, 4, dtype=torch.float64, requires_grad=True)
    weights = [x, *layer.parameters()]

    def run():
        found = torch.utils._pytree.tree_leaves(call(layer, x))
        outs = [out for out in found if isinstance(out, torch.Tensor) and out.requires_grad]
        return outs + [
            g for g in torch.autograd.grad(outs, weights, outs, allow_unused=True) if g is not None
        ]

    plain = run()
    with samebits.portable():
        ours = run()
        with torch.inference_mode():
            inferred = torch.utils._pytree.tree_leaves(call(layer, x))[0]
    torch.testing.assert_close(ours, plain, rtol=1e-9, atol=1e-10)
    if name != "encoder":  # which leaves padded places out in inference, when its short cut is on
        assert torch.equal(inferred, ours[0])


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_dropout_is_the_same_in_inference_mode(kind):
    layer, x = kind(3, 4, 3, dropout=0.5), torch.randn(2, 5, 3)

    def run():
        torch.manual_seed(1)
        return [layer(x)[0].detach()]

    found = set(in_all_ways(run))
    with torch.inference_mode():
        found |= set(in_all_ways(run))
    assert len(found) == 1
    assert not torch.equal(run()[0], layer.eval()(x)[0])


def test_short_cuts_are_back_afterwards():
    before = torch.backends.mha.get_fastpath_enabled(), torch.backends.mkldnn.enabled
    with samebits.portable():
        assert not torch.backends.mha.get_fastpath_enabled()
    assert (torch.backends.mha.get_fastpath_enabled(), torch.backends.mkldnn.enabled) == before
