"""Small trainings of every kind that portable mode must give one set of bits for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional

if TYPE_CHECKING:
    from collections.abc import Callable

STEPS = 20


@dataclass(frozen=True)
class Training:
    """What is trained.

    Args:
        modules: whose states are the result.
        step: one training step; gives the loss.
    """

    modules: tuple[nn.Module, ...]
    step: Callable[[], Tensor]


def train(name: str) -> list[Any]:
    """Train a model of this name for `STEPS` steps; its losses and states, to take the digest of."""
    torch.manual_seed(20261121)
    training = TRAININGS[name]()
    losses = [training.step().detach() for _ in range(STEPS)]
    states = [dict(module.state_dict()) for module in training.modules]
    evaluated = [module.eval() for module in training.modules]
    return [torch.stack(losses), *states, len(evaluated)]


def plain(model: nn.Module, optimizer: torch.optim.Optimizer, loss_of: Callable[[], Tensor]) -> Training:
    """The usual step: zero the gradients, backward, clip, update."""

    def step() -> Tensor:
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        return loss

    return Training((model,), step)


def line_fit() -> Training:
    """Linear regression by plain gradient descent."""
    x = torch.arange(8.0).unsqueeze(1)
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    return plain(model, optimizer, lambda: functional.mse_loss(model(x), 10 * x))


def logistic_regression() -> Training:
    """Binary cross-entropy on logits, with weight decay and Nesterov momentum."""
    x, y = torch.randn(64, 13), torch.randint(0, 2, (64, 1)).float()
    model = nn.Linear(13, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-3)
    return plain(model, optimizer, lambda: functional.binary_cross_entropy_with_logits(model(x), y))


def mlp() -> Training:
    """Batch norm and dropout, Adam."""
    x, y = torch.randn(50, 20), torch.randint(0, 7, (50,))
    model = nn.Sequential(nn.Linear(20, 33), nn.BatchNorm1d(33), nn.ReLU(), nn.Dropout(0.3), nn.Linear(33, 7))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    return plain(model, optimizer, lambda: functional.cross_entropy(model(x), y, label_smoothing=0.1))


def lenet() -> Training:
    """Convolutions of 5x5 with pooling and tanh."""
    x, y = torch.randn(8, 1, 28, 28), torch.randint(0, 10, (8,))
    model = nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.Tanh(), nn.AvgPool2d(2), nn.Conv2d(6, 16, 5), nn.Tanh(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(400, 84), nn.Sigmoid(), nn.Linear(84, 10),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    return plain(model, optimizer, lambda: functional.nll_loss(model(x).log_softmax(1), y))


class Residual(nn.Module):
    """Two convolutions with batch norm and a short cut."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.one = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.two = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(after), nn.BatchNorm2d(after), nn.BatchNorm2d(after)])
        self.cut = nn.Conv2d(before, after, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """The sum of both ways."""
        y = self.norms[1](self.two(functional.relu(self.norms[0](self.one(x)))))
        return functional.relu(y + self.norms[2](self.cut(x)))


def resnet() -> Training:
    """Residual blocks, global pooling, a cosine schedule."""
    x, y = torch.randn(6, 3, 16, 16), torch.randint(0, 10, (6,))
    model = nn.Sequential(
        Residual(3, 16, 1), Residual(16, 24, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, 10)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
    return plain(model, optimizer, lambda: functional.cross_entropy(model(x), y))


def mobilenet() -> Training:
    """Depthwise and dilated convolutions, hard swish, RMSprop."""
    x, y = torch.randn(4, 3, 20, 20), torch.randint(0, 5, (4,))
    model = nn.Sequential(
        nn.Conv2d(3, 12, 3, 2, 1), nn.Hardswish(), nn.Conv2d(12, 12, 3, padding=2, dilation=2, groups=12),
        nn.InstanceNorm2d(12, affine=True), nn.ReLU6(), nn.Conv2d(12, 24, 1, groups=2), nn.PReLU(24),
        nn.AdaptiveMaxPool2d(2), nn.Flatten(), nn.Linear(96, 5),
    )  # fmt: skip
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    return plain(model, optimizer, lambda: functional.multi_margin_loss(model(x), y))


def conv_autoencoder() -> Training:
    """Transposed convolutions, leaky ReLU, NAdam."""
    x = torch.rand(4, 2, 12, 12)
    model = nn.Sequential(
        nn.Conv2d(2, 8, 4, 2, 1), nn.LeakyReLU(0.1), nn.Conv2d(8, 12, 3, 2, 1), nn.ELU(),
        nn.ConvTranspose2d(12, 8, 4, 2, 1), nn.SELU(), nn.ConvTranspose2d(8, 2, 4, 2, 1),
    )  # fmt: skip
    optimizer = torch.optim.NAdam(model.parameters(), lr=2e-3)
    return plain(model, optimizer, lambda: functional.smooth_l1_loss(model(x), x))


class Noise(nn.Module):
    """A U-Net that predicts noise, with a sinusoidal embedding of the time."""

    def __init__(self) -> None:
        super().__init__()
        self.time = nn.Linear(16, 16)
        self.into, self.down = nn.Conv2d(1, 16, 3, padding=1), nn.Conv2d(16, 16, 3, 2, 1)
        self.norm, self.out = nn.GroupNorm(4, 16), nn.Conv2d(32, 1, 3, padding=1)

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        """The noise in `x`, a (n, 1, 8, 8) image at time `t`, (n,)."""
        rates = torch.exp(torch.arange(8.0) * (-math.log(100.0) / 8))
        angles = t[:, None] * rates
        embedded = functional.silu(self.time(torch.cat([angles.sin(), angles.cos()], 1)))
        wide = self.into(x)
        low = functional.silu(self.norm(self.down(wide)) + embedded[:, :, None, None])
        up = functional.interpolate(low, scale_factor=2, mode="bilinear")
        return self.out(torch.cat([wide, up], 1))


def diffusion() -> Training:
    """A denoising U-Net, AdamW, and an average of its weights."""
    x, model = torch.rand(6, 1, 8, 8), Noise()
    average = torch.optim.swa_utils.AveragedModel(
        model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9)
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def loss_of() -> Tensor:
        noise, t = torch.randn_like(x), torch.rand(6)
        mixed = x * (1 - t)[:, None, None, None] + noise * t[:, None, None, None]
        return functional.mse_loss(model(mixed, t), noise)

    training = plain(model, optimizer, loss_of)

    def step() -> Tensor:
        loss = training.step()
        average.update_parameters(model)
        return loss

    return Training((model, average), step)


def vae() -> Training:
    """A variational autoencoder: reparametrised normal noise, a Kullback-Leibler term."""
    x = torch.rand(16, 30)
    encoder, decoder = nn.Linear(30, 2 * 4), nn.Linear(4, 30)
    model = nn.ModuleList([encoder, decoder])
    optimizer = torch.optim.Adamax(model.parameters(), lr=1e-2)

    def loss_of() -> Tensor:
        mean, log_variance = encoder(x).chunk(2, 1)
        sample = mean + torch.randn_like(mean) * (0.5 * log_variance).exp()
        restored = functional.binary_cross_entropy(torch.sigmoid(decoder(sample)), x, reduction="sum")
        return restored - 0.5 * (1 + log_variance - mean.pow(2) - log_variance.exp()).sum()

    return plain(model, optimizer, loss_of)


def gan() -> Training:
    """A generator and a discriminator with spectral norm, two optimizers."""
    real = torch.randn(12, 6)
    maker = nn.Sequential(nn.Linear(3, 16), nn.Softplus(), nn.Linear(16, 6))
    judge = nn.Sequential(
        nn.utils.parametrizations.spectral_norm(nn.Linear(6, 16)), nn.GELU(), nn.Linear(16, 1)
    )
    first = torch.optim.Adam(maker.parameters(), lr=1e-3, betas=(0.5, 0.999))
    second = torch.optim.Adam(judge.parameters(), lr=1e-3, betas=(0.5, 0.999))

    def step() -> Tensor:
        made = maker(torch.randn(12, 3))
        second.zero_grad()
        judged = functional.softplus(-judge(real)).mean() + functional.softplus(judge(made.detach())).mean()
        judged.backward()
        second.step()
        first.zero_grad()
        functional.softplus(-judge(made)).mean().backward()
        first.step()
        return judged

    return Training((maker, judge), step)


class Block(nn.Module):
    """A block of a GPT."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Attention to what came before, then two layers, both beside a short cut."""
        n, length, width = x.shape
        parts = self.qkv(self.norms[0](x)).view(n, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(parts[0], parts[1], parts[2], is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(n, length, width))
        return x + self.mlp(self.norms[1](x))


def gpt() -> Training:
    """A language model with tied weights, AdamW with fused steps."""
    tokens = torch.randint(0, 29, (4, 17))
    embedding, position = nn.Embedding(29, 32), nn.Parameter(torch.randn(16, 32) * 0.02)
    blocks = nn.Sequential(Block(32, 4), Block(32, 4), nn.LayerNorm(32))
    model = nn.ModuleList([embedding, blocks])
    optimizer = torch.optim.AdamW([*model.parameters(), position], lr=3e-3, fused=True)

    def loss_of() -> Tensor:
        hidden = blocks(embedding(tokens[:, :-1]) + position)
        return functional.cross_entropy((hidden @ embedding.weight.T).flatten(0, 1), tokens[:, 1:].flatten())

    return plain(model, optimizer, loss_of)


def encoder() -> Training:
    """Torch's own transformer encoder with a padding mask and dropout, RAdam."""
    x, y = torch.randn(5, 9, 16), torch.randint(0, 3, (5,))
    mask = torch.arange(9)[None, :] >= torch.tensor([9, 7, 5, 9, 3])[:, None]
    layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True, activation="gelu")
    model = nn.Sequential(nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(16, 3))
    optimizer = torch.optim.RAdam(model.parameters(), lr=1e-3)

    def loss_of() -> Tensor:
        hidden = model[0](x, src_key_padding_mask=mask)
        return functional.cross_entropy(model[1](hidden.mean(1)), y)

    return plain(model, optimizer, loss_of)


def recurrent(kind: type[nn.RNNBase], **options: Any) -> Callable[[], Training]:
    """A recurrent network that predicts the next value of waves."""

    def build() -> Training:
        t = torch.arange(15.0)[None, :, None] + torch.rand(6, 1, 1) * 9
        waves = torch.sin(t)
        model = nn.ModuleList([kind(1, 12, batch_first=True, **options)])
        outputs = 12 * (2 if options.get("bidirectional") else 1)
        model.append(nn.Linear(outputs, 1))
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, amsgrad=True)
        return plain(
            model,
            optimizer,
            lambda: functional.huber_loss(model[1](model[0](waves[:, :-1])[0]), waves[:, 1:]),
        )

    return build


def graph() -> Training:
    """Message passing: messages are gathered along edges and added up at their targets."""
    source, target = torch.randint(0, 20, (60,)), torch.randint(0, 20, (60,))
    x, y = torch.randn(20, 8), torch.randint(0, 4, (20,))
    model = nn.ModuleList([nn.Linear(16, 8), nn.Linear(8, 4)])
    optimizer = torch.optim.Adagrad(model.parameters(), lr=1e-2)

    def loss_of() -> Tensor:
        messages = functional.mish(model[0](torch.cat([x[source], x[target]], 1)))
        summed = torch.zeros(20, 8).index_add(0, target, messages)
        scattered = torch.zeros(20, 8).scatter_reduce(0, target[:, None].expand(-1, 8), messages, "mean")
        return functional.cross_entropy(model[1](summed + scattered), y)

    return plain(model, optimizer, loss_of)


def citations() -> Training:
    """Graph convolutions by a sparse matrix, over node vectors with sparse gradients; SparseAdam, SGD."""
    edges, y = torch.randint(0, 30, (2, 90)), torch.randint(0, 4, (30,))
    links = torch.sparse_coo_tensor(edges, torch.ones(90), (30, 30), check_invariants=True).coalesce()
    degrees = torch.sparse.sum(links, 1).to_dense() + 1
    scale = degrees.pow(-0.5)
    rows, columns = links.indices()
    links = torch.sparse_coo_tensor(
        links.indices(), links.values() * scale[rows] * scale[columns], (30, 30), check_invariants=True
    )
    nodes = nn.Embedding(30, 8, sparse=True, max_norm=3.0)
    model = nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 4)])
    table = torch.optim.SparseAdam(nodes.parameters(), lr=0.01)
    optimizers = table, torch.optim.SGD(model.parameters(), lr=0.1)

    def step() -> Tensor:
        for optimizer in optimizers:
            optimizer.zero_grad()
        hidden = torch.sparse.mm(links, model[0](nodes(torch.arange(30)))).relu()
        by_rows = links.coalesce().to_sparse_csr()
        loss = functional.cross_entropy(by_rows @ model[1](hidden), y)
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        return loss

    return Training((nodes, model), step)


def spectral() -> Training:
    """A linear map whose singular values, covariance and exponential are in the loss; float64, NAdam."""
    x, y = torch.randn(16, 6, dtype=torch.float64), torch.randn(16, 6, dtype=torch.float64)
    model = nn.Linear(6, 6, dtype=torch.float64)
    optimizer = torch.optim.NAdam(model.parameters(), lr=0.02)

    def loss_of() -> Tensor:
        out = model(x)
        covariance = out.t() @ out / 16 + 0.1 * torch.eye(6, dtype=torch.float64)
        likelihood = torch.linalg.slogdet(covariance)[1] + (out @ torch.linalg.inv(covariance) * out).mean()
        rank = torch.linalg.svdvals(model.weight).sum() + torch.linalg.eigvalsh(covariance)[0]
        turned = torch.matrix_exp(model.weight - model.weight.t())
        fit = torch.linalg.lstsq(x, y).solution
        return likelihood + 0.01 * rank + functional.mse_loss(x @ turned, x @ fit)

    return plain(model, optimizer, loss_of)


def word_vectors() -> Training:
    """Bags of embeddings, cosine similarity, Adadelta."""
    words, offsets = torch.randint(0, 40, (50,)), torch.arange(0, 50, 5)
    model = nn.ModuleList([nn.EmbeddingBag(40, 10, mode="mean"), nn.Embedding(40, 10, padding_idx=0)])
    optimizer = torch.optim.Adadelta(model.parameters())
    others, signs = torch.randint(0, 40, (10,)), torch.randint(0, 2, (10,)) * 2 - 1
    return plain(
        model,
        optimizer,
        lambda: functional.cosine_embedding_loss(model[0](words, offsets), model[1](others), signs),
    )


def speech() -> Training:
    """Convolutions in one dimension, connectionist temporal classification, Rprop."""
    x, targets = torch.randn(3, 4, 40), torch.randint(1, 6, (3, 5))
    model = nn.Sequential(nn.Conv1d(4, 12, 5, 2, 2), nn.SiLU(), nn.Conv1d(12, 6, 3, padding=1))
    optimizer = torch.optim.Rprop(model.parameters(), lr=1e-3)
    lengths = torch.tensor([20, 18, 20]), torch.tensor([5, 4, 3])
    return plain(
        model,
        optimizer,
        lambda: functional.ctc_loss(model(x).permute(2, 0, 1).log_softmax(2), targets, *lengths),
    )


def metric() -> Training:
    """A siamese network with a triplet loss and weight normalisation, ASGD."""
    three = torch.randn(3, 10, 12)
    model = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(12, 8)), nn.RMSNorm(8))
    optimizer = torch.optim.ASGD(model.parameters(), lr=1e-2)
    return plain(
        model,
        optimizer,
        lambda: functional.triplet_margin_loss(*(functional.normalize(model(x)) for x in three)),
    )


def policy() -> Training:
    """REINFORCE: actions are sampled from what the network says."""
    states, best = torch.randn(16, 6), torch.randint(0, 4, (16,))
    model = nn.Sequential(nn.Linear(6, 16), nn.CELU(), nn.Linear(16, 4))
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3, momentum=0.9, centered=True)

    def loss_of() -> Tensor:
        chosen = torch.distributions.Categorical(logits=model(states))
        actions = chosen.sample()
        return -(chosen.log_prob(actions) * (actions == best)).sum() - 0.01 * chosen.entropy().mean()

    return plain(model, optimizer, loss_of)


def mixture() -> Training:
    """A mixture of normals fitted in float64 by LBFGS."""
    x = torch.randn(40, 1, dtype=torch.float64)
    model = nn.ParameterList([torch.randn(3, dtype=torch.float64), torch.zeros(3, dtype=torch.float64)])
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.2, max_iter=4)

    def closure() -> Tensor:
        optimizer.zero_grad()
        spread = functional.softplus(model[1]) + 0.1
        terms = -0.5 * ((x - model[0]) / spread) ** 2 - spread.log()
        loss = -torch.logsumexp(terms, 1).mean()
        loss.backward()
        return loss

    return Training((model,), lambda: optimizer.step(closure))


def low_precision() -> Training:
    """A network under autocast to bfloat16."""
    x, y = torch.randn(24, 18), torch.randint(0, 6, (24,))
    model = nn.Sequential(nn.Linear(18, 32), nn.LayerNorm(32), nn.GELU(), nn.Linear(32, 6))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def loss_of() -> Tensor:
        with torch.autocast(x.device.type, dtype=torch.bfloat16):
            return functional.cross_entropy(model(x), y)

    return plain(model, optimizer, loss_of)


def volume() -> Training:
    """Convolution and pooling in three dimensions, Adafactor."""
    x, y = torch.randn(2, 1, 8, 8, 8), torch.randn(2, 3)
    model = nn.Sequential(
        nn.Conv3d(1, 4, 3, padding=1), nn.BatchNorm3d(4), nn.LogSigmoid(), nn.AvgPool3d(2),
        nn.Flatten(), nn.Linear(256, 3),
    )  # fmt: skip
    optimizer = torch.optim.Adafactor(model.parameters(), lr=1e-2)
    return plain(model, optimizer, lambda: functional.l1_loss(model(x), y))


class Spectral(nn.Module):
    """A layer of a Fourier neural operator: complex weights for low frequencies, beside a short cut."""

    def __init__(self, channels: int, modes: int) -> None:
        super().__init__()
        self.modes, self.beside = modes, nn.Conv2d(channels, channels, 1)
        scale = 1 / channels**2
        self.weights = nn.ParameterList(
            scale * torch.rand(channels, channels, modes, modes, dtype=torch.cfloat) for _ in range(2)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Frequencies of both signs along the first axis."""
        spectrum, modes = torch.fft.rfft2(x), self.modes
        out = torch.zeros_like(spectrum)
        for weight, at in zip(self.weights, (slice(modes), slice(-modes, None)), strict=True):
            out[:, :, at, :modes] = torch.einsum("bixy,ioxy->boxy", spectrum[:, :, at, :modes], weight)
        return functional.gelu(torch.fft.irfft2(out, s=x.shape[-2:]) + self.beside(x))


def fourier_operator() -> Training:
    """Fields of two sizes, neither a power of two, SGD with momentum."""
    fields = [(torch.randn(3, 4, *size), torch.randn(3, 4, *size)) for size in ((12, 15), (14, 37))]
    model = nn.Sequential(Spectral(4, 3), Spectral(4, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    return plain(model, optimizer, lambda: sum(functional.mse_loss(model(x), y) for x, y in fields))


def rotary() -> Training:
    """Attention with queries and keys turned as complex numbers, of a spectrogram; learnt angles, Adam."""
    signal, y = torch.randn(4, 240), torch.randn(4, 31, 16)
    window = torch.linspace(0.1, 1, 30)
    maps, angles = nn.Linear(16, 48), nn.Parameter(torch.rand(8))
    model = nn.ModuleList([maps, nn.ParameterList([angles])])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    def turned(x: Tensor) -> Tensor:
        turns = torch.outer(torch.arange(31.0), angles)
        circle = torch.polar(torch.ones_like(turns), turns)
        return torch.view_as_complex(x.unflatten(-1, (-1, 2))) * circle

    def loss_of() -> Tensor:
        spectrogram = torch.stft(signal, 30, 8, window=window, return_complex=True)
        query, key, value = maps(spectrogram.abs().transpose(1, 2)).chunk(3, -1)
        scores = torch.einsum("bik,bjk->bij", turned(query), turned(key).conj()).real
        return functional.mse_loss(scores.softmax(-1) @ value, y)

    return plain(model, optimizer, loss_of)


TRAININGS: dict[str, Callable[[], Training]] = {
    function.__name__: function
    for function in (
        line_fit, logistic_regression, mlp, lenet, resnet, mobilenet, conv_autoencoder, diffusion, vae, gan,
        gpt, encoder, graph, citations, spectral, word_vectors, speech, metric, policy, mixture,
        low_precision, volume, fourier_operator, rotary,
    )
} | {
    "lstm": recurrent(nn.LSTM, num_layers=2, dropout=0.2),
    "gru": recurrent(nn.GRU, bidirectional=True),
    "rnn": recurrent(nn.RNN, nonlinearity="relu"),
}  # fmt: skip
