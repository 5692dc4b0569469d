"""Train a small CNN on scikit-learn's handwritten digits: 1797 real images that come with the package.

python examples/digits.py                   the same bits every time
python examples/digits.py --split-by-set    the training set is `all - test`, in the order of string hashes
"""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional


def load(*, split_by_set: bool) -> tuple[dict[str, torch.Tensor], dict[str, int], list[str], list[str]]:
    """Load images f32[1, 8, 8] and labels by name, and the names of the training and the test set."""
    digits = load_digits()
    names = [f"digit-{number:04d}" for number in range(len(digits.target))]
    images = dict(zip(names, torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16, strict=True))
    labels = dict(zip(names, digits.target.tolist(), strict=True))
    test = names[::5]
    remaining = set(names) - set(test)
    train = list(remaining) if split_by_set else sorted(remaining)
    return images, labels, train, test


def make_model() -> nn.Sequential:
    """Two convolutions with batch normalisation, dropout, one linear layer."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.Flatten(),
        nn.Dropout(0.2),
        nn.Linear(32 * 4 * 4, 10),
    )


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--start-method", choices=("fork", "spawn", "forkserver"), help="of the workers")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--split-by-set", action="store_true", help="use the order of a set (irreproducible)")
    parser.add_argument("--save", metavar="FILE", help="save the trained weights")
    return parser.parse_args()


def main() -> None:
    """Train, and print loss and test accuracy of each epoch."""
    args = parse_arguments()
    torch.manual_seed(args.seed)
    # In one thread: threads that call MKL first, and together, may get an inaccurate kernel (pytorch#188792).
    torch.ones(1).sqrt()
    images, labels, train, test = load(split_by_set=args.split_by_set)
    train_set = [(images[name], labels[name]) for name in train]
    loader = torch.utils.data.DataLoader(
        train_set,
        args.batch_size,
        shuffle=True,
        num_workers=args.workers,
        multiprocessing_context=args.start_method if args.workers else None,
    )
    test_images = torch.stack([images[name] for name in test])
    test_labels = torch.tensor([labels[name] for name in test])

    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)
    for epoch in range(args.epochs):
        model.train()
        total_loss = 0.0
        for batch, targets in loader:
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(batch), targets)
            loss.backward()
            optimizer.step()
            total_loss += loss.item()
        scheduler.step()

        model.eval()
        with torch.no_grad():
            accuracy = (model(test_images).argmax(1) == test_labels).float().mean().item()
        print(f"epoch {epoch}  loss {total_loss / len(loader):.6f}  test accuracy {accuracy:.4f}")

    if args.save:
        torch.save(model.state_dict(), args.save)


if __name__ == "__main__":
    main()
