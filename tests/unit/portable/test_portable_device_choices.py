"""What torch composes in another way on a GPU: these compositions are the CPU's, bit for bit."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

import samebits
from samebits.portable import device_choices
from samebits.portable._whole_ops import whole_ops

SEED = 7


def bits(run):
    """The digests of what a function returns and of the gradients of all inputs, with the same draws."""
    torch.manual_seed(SEED)
    with samebits.portable():
        found = run()
    return str(samebits.digest(found))


def gradients(outs, inputs):
    """The results, and the gradients of a loss that depends on all of them."""
    loss = sum((out * torch.linspace(0.5, 1.5, out.numel()).view(out.shape)).sum() for out in outs)
    return [*outs, *torch.autograd.grad(loss, inputs)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_dropout(dtype):
    """Three ops, which draw and round as on the CPU."""
    x = torch.randn(40, 7, dtype=dtype, requires_grad=True)
    own = device_choices.compositions()["dropout"]

    expected = bits(lambda: gradients([functional.dropout(x, 0.3)], [x]))
    assert bits(lambda: gradients([own(x, 0.3, True)], [x])) == expected
    assert bits(lambda: gradients([own(x, 0.4, True)], [x])) != expected


@pytest.mark.parametrize("eps", [None, 1e-3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_rms_norm(dtype, eps):
    """Squares, mean, reciprocal root, in float32 at least."""
    x = torch.randn(5, 3, 8, dtype=dtype, requires_grad=True)
    weight = torch.randn(3, 8, dtype=dtype, requires_grad=True)
    own = device_choices.compositions()["rms_norm"]
    for given in (weight, None):
        inputs = [x] if given is None else [x, weight]
        expected = bits(lambda g=given, i=inputs: gradients([functional.rms_norm(x, (3, 8), g, eps)], i))
        found = bits(lambda g=given, i=inputs: gradients([own(x, [3, 8], g, eps)], i))
        assert found == expected


MASK = torch.rand(2, 4, 6, 9) > 0.3
ATTENTION = {
    "plain": {},
    "causal": {"is_causal": True},
    "mask": {"attn_mask": torch.randn(2, 4, 6, 9)},
    "bool mask": {"attn_mask": MASK},
    "scale": {"scale": 0.3},
    "dropout": {"dropout_p": 0.2},
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", ATTENTION)
def test_attention(name, dtype):
    """In one op or in many, as the CPU would have it."""
    options = dict(ATTENTION[name])
    mask = options.get("attn_mask")
    if mask is not None and mask.is_floating_point():
        options["attn_mask"] = mask.to(dtype)
    query, key, value = (torch.randn(2, 4, n, 8, dtype=dtype, requires_grad=True) for n in (6, 9, 9))
    own = device_choices.compositions()["scaled_dot_product_attention"]
    inputs = [query, key, value]

    expected = bits(
        lambda: gradients([functional.scaled_dot_product_attention(query, key, value, **options)], inputs)
    )
    assert bits(lambda: gradients([own(query, key, value, **options)], inputs)) == expected


@pytest.mark.parametrize("shape", [(3, 5, 8), (5, 8)], ids=str)
def test_attention_of_fewer_dimensions(shape):
    """One sample, and one head of it."""
    query, key, value = (torch.randn(shape, requires_grad=True) for _ in range(3))
    own = device_choices.compositions()["scaled_dot_product_attention"]
    attend = functional.scaled_dot_product_attention
    inputs = [query, key, value]

    expected = bits(lambda: gradients([attend(*inputs)], inputs))
    assert bits(lambda: gradients([own(*inputs)], inputs)) == expected


def test_softmax_of_half_the_precision():
    """A GPU has one op for both; the CPU converts first."""
    x = torch.randn(4, 7, dtype=torch.float16, requires_grad=True)
    for name in ("softmax", "log_softmax"):
        own, of_torch = device_choices.compositions()[f"{name}.int"], getattr(functional, name)
        expected = bits(lambda f=of_torch: gradients([f(x, -1, dtype=torch.float32)], [x]))
        assert bits(lambda f=own: gradients([f(x, -1, torch.float32)], [x])) == expected


WRONG = {
    "dropout": lambda own: own(torch.arange(3), 0.5, True),
    "rms_norm": lambda own: own(torch.ones(2, 8), [7]),
    "scaled_dot_product_attention": lambda own: own(
        *[torch.ones(1, 1, 2, 2)] * 3, torch.ones(2, 2), 0.0, True
    ),
    "gru.input": lambda own: own(
        torch.ones(1, 1, 2), torch.ones(1, 1, 2), [torch.ones(6, 2)] * 3, False, 1, 0.0, False, False, False
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments(name):
    """What the CPU refuses."""
    with pytest.raises(RuntimeError):
        WRONG[name](device_choices.compositions()[name])


@pytest.mark.parametrize("queries", [2, 4])
def test_attention_of_grouped_heads(queries):
    """Several heads of queries share one of keys."""
    query, key, value = (torch.randn(2, heads, 5, 8, requires_grad=True) for heads in (queries, 2, 2))
    own = device_choices.compositions()["scaled_dot_product_attention"]
    attend = functional.scaled_dot_product_attention
    inputs = [query, key, value]

    expected = bits(lambda: gradients([attend(query, key, value, enable_gqa=True)], inputs))
    found = bits(lambda: gradients([own(query, key, value, enable_gqa=True)], inputs))
    assert found == expected


LAYERS = {
    "lstm": (nn.LSTM, {"proj_size": 3}),
    "gru": (nn.GRU, {}),
    "rnn_tanh": (nn.RNN, {}),
    "rnn_relu": (nn.RNN, {"nonlinearity": "relu"}),
}


def _state(layer, batch):
    parts = layer.num_layers * (2 if layer.bidirectional else 1)
    size = getattr(layer, "proj_size", 0) or layer.hidden_size
    hidden = torch.randn(parts, batch, size, requires_grad=True)
    if not isinstance(layer, nn.LSTM):
        return hidden, [hidden]
    cell = torch.randn(parts, batch, layer.hidden_size, requires_grad=True)
    return (hidden, cell), [hidden, cell]


@pytest.mark.parametrize("options", [
    {},
    {"bias": False, "batch_first": True},
    {"bidirectional": True, "num_layers": 2, "dropout": 0.4},
], ids=["one", "no biases", "both ways"])  # fmt: skip
@pytest.mark.parametrize("name", LAYERS)
def test_recurrent_layers(name, options):
    """Whole batches, and packed sequences of many lengths."""
    kind, more = LAYERS[name]
    layer = kind(5, 6, **more, **options)
    own = device_choices.compositions()
    given = (layer.bias, layer.num_layers, layer.dropout, True, layer.bidirectional)
    x = torch.randn(4, 4, 5, requires_grad=True)
    state, states = _state(layer, 4)
    inputs = [x, *states, *layer.parameters()]

    def of_batch():
        outs = own[f"{name}.input"](x, state, layer._flat_weights, *given, layer.batch_first)
        return gradients(outs, inputs)

    def of_packed():
        packed = nn.utils.rnn.pack_padded_sequence(x, [4, 3, 3, 1], batch_first=layer.batch_first)
        outs = own[f"{name}.data"](packed.data, packed.batch_sizes, state, layer._flat_weights, *given)
        return gradients(outs, inputs)

    def expected(packed):
        given = nn.utils.rnn.pack_padded_sequence(x, [4, 3, 3, 1], layer.batch_first) if packed else x
        out, last = layer(given, state)
        lasts = last if isinstance(last, tuple) else [last]
        return gradients([out.data if packed else out, *lasts], inputs)

    assert bits(of_batch) == bits(lambda: expected(packed=False))
    assert bits(of_packed) == bits(lambda: expected(packed=True))


@pytest.mark.parametrize("name", ["lstm_cell", "gru_cell"])
def test_recurrent_cells(name):
    """One step."""
    cell = nn.LSTMCell(5, 6) if name == "lstm_cell" else nn.GRUCell(5, 6)
    x = torch.randn(3, 5, requires_grad=True)
    hidden = torch.randn(3, 6, requires_grad=True)
    state = (hidden, torch.randn(3, 6)) if name == "lstm_cell" else hidden
    own = device_choices.compositions()[name]
    inputs = [x, hidden, *cell.parameters()]
    weights = (cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh)

    def listed(found):
        return list(found) if isinstance(found, tuple) else [found]

    expected = bits(lambda: gradients(listed(cell(x, state)), inputs))
    found = bits(lambda: gradients(listed(own(x, state, *weights)), inputs))
    assert found == expected


def test_tensors_in_cpu_memory_are_left_to_torch():
    """Whatever the op; the steps of an LSTM are computed at once there too."""
    for name, own in device_choices.choices().items():
        if name != "lstm.input":
            assert own(lambda: "torch", torch.ones(2, 2)) == "torch"


@pytest.fixture
def _asked_anew():
    whole_ops.cache_clear()
    yield
    whole_ops.cache_clear()


@pytest.mark.usefixtures("_asked_anew")
def test_ops_that_this_torch_lacks_are_left_out(monkeypatch):
    """`_use_miopen_ctc_loss` came with 2.11; a kernel of an op that is not there cannot be registered."""
    compositions = device_choices.compositions()
    assert compositions.keys() <= whole_ops("cuda").keys()
    whole_ops.cache_clear()
    monkeypatch.setattr(device_choices, "compositions", lambda: {**compositions, "of_torch_9": bits})
    assert "of_torch_9" not in whole_ops("cuda")
