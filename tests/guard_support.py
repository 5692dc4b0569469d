"""Small trainings of several kinds, each of which can begin a step again from the same state."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import torch

import samebits

if TYPE_CHECKING:
    from samebits import ReplayGuard


class Transformer(torch.nn.Module):
    """Two encoder layers with dropout over embedded tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = torch.nn.Embedding(11, 16)
        layer = torch.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
        self.body = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = torch.nn.Linear(16, 3)

    def forward(self, x: Any) -> Any:
        """f32[batch, 16] -> f32[batch, 3]."""
        return self.head(self.body(self.embed(x.abs().long() % 11)).mean(1))


class Recurrent(torch.nn.Module):
    """An LSTM with dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = torch.nn.LSTM(4, 8, 2, dropout=0.2, batch_first=True)
        self.head = torch.nn.Linear(8, 3)

    def forward(self, x: Any) -> Any:
        """f32[batch, 16] -> f32[batch, 3]."""
        return self.head(self.lstm(x.view(len(x), 4, 4))[0][:, -1])


def _mlp() -> torch.nn.Module:
    nn = torch.nn
    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 3))


def _cnn() -> torch.nn.Module:
    nn = torch.nn
    return nn.Sequential(
        nn.Unflatten(1, (1, 4, 4)), nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(32, 3),
    )  # fmt: skip


MODELS = {"mlp": _mlp, "cnn": _cnn, "transformer": Transformer, "lstm": Recurrent, "bf16": _mlp}


class Training:
    """A model, an optimizer and a step; `bf16` runs under autocast.

    Args:
        name: of `MODELS`.
    """

    def __init__(self, name: str) -> None:
        torch.manual_seed(1)
        self.model = MODELS[name]()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9)
        self.places = [each for each in self.model.modules() if not list(each.children())]
        self.places = [
            each for each in self.places if not isinstance(each, (torch.nn.Embedding, torch.nn.Flatten))
        ]
        # The linear layers inside of attention are read, not called.
        self.places = [each for each in self.places if "NonDynamically" not in type(each).__name__]
        self._autocast = name == "bf16"
        self._start = {key: value.clone() for key, value in self.model.state_dict().items()}

    def begin(self) -> None:
        """Go back to the first step."""
        self.model.load_state_dict(self._start)
        self.model.zero_grad()
        torch.manual_seed(2)

    def forward_backward(self, x: Any, y: Any) -> Any:
        """What is guarded."""
        context = torch.autocast("cpu", torch.bfloat16) if self._autocast else contextlib.nullcontext()
        with context:
            loss = torch.nn.functional.cross_entropy(self.model(x), y)
        loss.backward()
        return loss

    def step(self, guard: ReplayGuard | None = None) -> tuple[str, ...]:
        """One forward and backward on a drawn batch; the digests of everything afterwards."""
        x, y = torch.randn(8, 16) * 3, torch.randint(0, 3, (8,))
        loss = self.forward_backward(x, y) if guard is None else guard(self.forward_backward, x, y)
        gradients = [parameter.grad for parameter in self.model.parameters()]
        state = [loss, gradients, dict(self.model.named_buffers()), torch.get_rng_state()]
        return tuple(str(samebits.digest(part)) for part in state)

    def train(self, steps: int, guard: ReplayGuard | None = None) -> str:
        """Train from the beginning; the digest of the weights, the losses' gradients and the generator."""
        self.begin()
        seen = []
        for _ in range(steps):
            self.optimizer.zero_grad()
            seen.append(self.step(guard))
            self.optimizer.step()
        return str(samebits.digest([seen, self.model.state_dict(), torch.get_rng_state()]))
