"""Train a small LeNet-style network on CIFAR-10 with SGD.

python examples/cifar10.py                              generated images, the same bits every time
python examples/cifar10.py --data cifar-10-batches-py   the standard CIFAR-10 python batches
python examples/cifar10.py --augment                    random flips from a generator that nobody seeded
"""

import argparse
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset


class LeNet(nn.Module):
    """Two 5x5 convolutions and three linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 6, 5)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * 5 * 5, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Map images f32[B, 3, 32, 32] to class scores f32[B, 10]."""
        x = functional.max_pool2d(functional.relu(self.conv1(images)), 2)
        x = functional.max_pool2d(functional.relu(self.conv2(x)), 2)
        x = functional.relu(self.fc1(x.flatten(1)))
        x = functional.relu(self.fc2(x))
        return self.fc3(x)


class ArrayUnpickler(pickle.Unpickler):
    """Read pickles of NumPy arrays and plain containers, and nothing that could run code."""

    ALLOWED = frozenset({"_reconstruct", "ndarray", "dtype", "scalar", "encode"})

    def find_class(self, module: str, name: str) -> Any:
        """Allow what an array is made of."""
        if module.partition(".")[0] in {"numpy", "_codecs"} and name in self.ALLOWED:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} does not belong in a CIFAR-10 batch")


def read_cifar10(folder: Path, *, train: bool) -> tuple[np.ndarray, np.ndarray]:
    """Read the python batches: images uint8[N, 3, 32, 32] and labels int64[N]."""
    names = [f"data_batch_{i}" for i in range(1, 6)] if train else ["test_batch"]
    batches = []
    for name in names:
        with (folder / name).open("rb") as file:
            batches.append(ArrayUnpickler(file, encoding="bytes").load())
    images = np.concatenate([batch[b"data"] for batch in batches]).reshape(-1, 3, 32, 32)
    return images, np.concatenate([np.asarray(batch[b"labels"], dtype=np.int64) for batch in batches])


def generate(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Make a set of the same shape: one smooth pattern per class, under noise."""
    patterns = np.random.default_rng(10).uniform(0, 255, (10, 3, 4, 4)).repeat(8, axis=2).repeat(8, axis=3)
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, 10, count)
    images = patterns[labels] + generator.normal(0, 40, (count, 3, 32, 32))
    return images.clip(0, 255).astype(np.uint8), labels


class Images(Dataset):
    """Images scaled to [-1, 1], flipped at random if asked."""

    def __init__(self, images: np.ndarray, labels: np.ndarray, *, augment: bool = False) -> None:
        self.images, self.labels = images, labels
        self.random = np.random.default_rng() if augment else None

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        image = torch.from_numpy(self.images[index]).float() / 127.5 - 1
        if self.random is not None and self.random.random() < 0.5:
            image = image.flip(-1)
        return image, int(self.labels[index])


def accuracy(model: nn.Module, loader: DataLoader) -> float:
    """Share of images classified correctly."""
    device = next(model.parameters()).device
    with torch.no_grad():
        hits = [model(images.to(device)).argmax(1).cpu() == labels for images, labels in loader]
    return torch.cat(hits).float().mean().item()


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder of data_batch_1..5 and test_batch")
    parser.add_argument("--images", type=int, default=2000, help="size of the generated set")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--start-method", choices=("fork", "spawn", "forkserver"), help="of the workers")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--augment", action="store_true", help="flip images at random (irreproducible)")
    parser.add_argument("--device", default="cpu", help="where to train, such as cuda (default: cpu)")
    parser.add_argument("--save", metavar="FILE", help="save the trained weights")
    return parser.parse_args()


def main() -> None:
    """Train, print the running loss, and test."""
    args = parse_arguments()
    torch.manual_seed(args.seed)
    train = read_cifar10(args.data, train=True) if args.data else generate(args.images, seed=1)
    test = read_cifar10(args.data, train=False) if args.data else generate(args.images // 5, seed=2)
    train_set = Images(*train, augment=args.augment)
    loader = DataLoader(
        train_set,
        args.batch_size,
        shuffle=True,
        num_workers=args.workers,
        multiprocessing_context=args.start_method if args.workers else None,
    )

    model = LeNet().to(args.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
    for epoch in range(args.epochs):
        running_loss = 0.0
        for step, (images, labels) in enumerate(loader, start=1):
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(images.to(args.device)), labels.to(args.device))
            loss.backward()
            optimizer.step()
            running_loss += loss.item()
            if step % 100 == 0:
                print(f"epoch {epoch}  step {step:5d}  loss {running_loss / 100:.6f}")
                running_loss = 0.0

    print(f"test accuracy {accuracy(model, DataLoader(Images(*test), 100)):.4f}")
    if args.save:
        torch.save(model.state_dict(), args.save)


if __name__ == "__main__":
    main()
