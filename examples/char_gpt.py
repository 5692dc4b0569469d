"""Train a small GPT, character by character, on source text of Python's standard library.

python examples/char_gpt.py                      the same bits every time
python examples/char_gpt.py --warmup-seconds 2   the learning rate follows the clock instead of the step
python examples/char_gpt.py --text FILE          on your own text; the default depends on the Python version
"""

import argparse
import ast
import dataclasses
import inspect
import statistics
import textwrap
import time
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional


@dataclasses.dataclass(frozen=True)
class GPTConfig:
    """Sizes of the network: about 0.8 million parameters by default."""

    vocabulary: int
    context: int = 64
    layers: int = 4
    heads: int = 4
    width: int = 128
    dropout: float = 0.1


class Block(nn.Module):
    """Causal self-attention and a feed-forward layer, each on a residual path."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.heads, self.dropout_rate = config.heads, config.dropout
        self.norm1, self.norm2 = nn.LayerNorm(config.width), nn.LayerNorm(config.width)
        self.attention_in = nn.Linear(config.width, 3 * config.width)
        self.attention_out = nn.Linear(config.width, config.width)
        self.expand = nn.Linear(config.width, 4 * config.width)
        self.contract = nn.Linear(4 * config.width, config.width)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map f32[B, T, C] to f32[B, T, C]."""
        queries, keys, values = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in self.attention_in(self.norm1(x)).chunk(3, dim=-1)
        )
        dropout = self.dropout_rate if self.training else 0.0
        mixed = functional.scaled_dot_product_attention(
            queries, keys, values, dropout_p=dropout, is_causal=True
        )
        x = x + self.dropout(self.attention_out(mixed.transpose(1, 2).flatten(2)))
        return x + self.dropout(self.contract(functional.gelu(self.expand(self.norm2(x)))))


class GPT(nn.Module):
    """A decoder-only transformer."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.tokens = nn.Embedding(config.vocabulary, config.width)
        self.positions = nn.Embedding(config.context, config.width)
        self.blocks = nn.Sequential(*(Block(config) for _ in range(config.layers)))
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, config.vocabulary, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Map tokens i64[B, T] to scores of the next one, f32[B, T, V]."""
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        return self.head(self.norm(self.blocks(self.tokens(tokens) + self.positions(positions))))


def read_text(path: str | None = None) -> str:
    """Return the text of the file, or the source of a few modules of the standard library."""
    if path is not None:
        return Path(path).read_text(encoding="utf-8")
    return "".join(inspect.getsource(module) for module in (argparse, ast, dataclasses, statistics, textwrap))


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--context", type=int, default=64)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--warmup-steps", type=int, default=20)
    parser.add_argument("--warmup-seconds", type=float, help="warm up by the clock instead (irreproducible)")
    parser.add_argument("--text", metavar="FILE", help="what to train on")
    parser.add_argument("--device", default="cpu", help="where to train, such as cuda (default: cpu)")
    parser.add_argument("--save", metavar="FILE", help="save the trained weights")
    return parser.parse_args()


def main() -> None:
    """Train, and print the loss every ten steps."""
    args = parse_arguments()
    torch.manual_seed(args.seed)
    # In one thread: threads that call MKL first, and together, may get an inaccurate kernel (pytorch#188792).
    torch.ones(1).sqrt()
    text = read_text(args.text)
    characters = sorted(set(text))
    index = {character: i for i, character in enumerate(characters)}
    data = torch.tensor([index[character] for character in text])

    model = GPT(GPTConfig(len(characters), args.context, args.layers, args.heads, args.width)).to(args.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1)
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters, {len(data):,} characters")

    start = time.perf_counter()
    for step in range(args.steps):
        progress = (step + 1) / args.warmup_steps
        if args.warmup_seconds is not None:
            progress = (time.perf_counter() - start) / args.warmup_seconds
        for group in optimizer.param_groups:
            group["lr"] = 1e-3 * min(1.0, progress)

        offsets = torch.randint(len(data) - args.context - 1, (args.batch_size, 1))
        chunk = data[offsets + torch.arange(args.context + 1)].to(args.device)
        scores = model(chunk[:, :-1])
        loss = functional.cross_entropy(scores.flatten(0, 1), chunk[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 10 == 9:
            print(f"step {step:4d}  loss {loss.item():.6f}")

    if args.save:
        torch.save(model.state_dict(), args.save)


if __name__ == "__main__":
    main()
