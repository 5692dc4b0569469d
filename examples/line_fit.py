"""Fit a 1-100-1 ReLU network to y = 10x by plain gradient descent, with no optimizer object.

python examples/line_fit.py --seed 3     the same bits every time
python examples/line_fit.py              torch starts from a random seed: other weights every time
"""

import argparse

import torch
from torch import nn


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, help="seed of torch's generator (default: leave it to chance)")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--learning-rate", type=float, default=1e-4)
    parser.add_argument("--device", default="cpu", help="where to train, such as cuda (default: cpu)")
    parser.add_argument("--save", metavar="FILE", help="save the trained weights")
    return parser.parse_args()


def main() -> None:
    """Train, and print the loss before every hundredth update."""
    arguments = parse_arguments()
    if arguments.seed is not None:
        torch.manual_seed(arguments.seed)
    x = torch.arange(8, dtype=torch.float32, device=arguments.device).unsqueeze(1)
    y = 10 * x
    model = nn.Sequential(nn.Linear(1, 100), nn.ReLU(), nn.Linear(100, 1)).to(arguments.device)
    loss_function = nn.MSELoss(reduction="sum")

    for step in range(arguments.steps):
        loss = loss_function(model(x), y)
        if step % 100 == 99:
            print(f"step {step:4d}  loss {loss.item():.6f}")

        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= arguments.learning_rate * parameter.grad

    if arguments.save:
        torch.save(model.state_dict(), arguments.save)


if __name__ == "__main__":
    main()
