"""Train the CNN of digits.py so that it can be killed at any moment and continues with the same bits.

python examples/resumable_digits.py runs/digits     kill it, then run the same command again

The images are shifted and made noisy at random when they are loaded. The loader's order and these draws
follow from the seed, the epoch and the image, so a resumed run sees the same images, with any number of
workers.
"""

import argparse
import random

import torch
from digits import load, make_model
from torch.nn import functional

import samebits
from samebits.checkpoint import CheckpointFolder


class ShiftedDigits(torch.utils.data.Dataset):
    """Digits f32[1, 8, 8] with their labels, each shifted by up to one pixel, with noise."""

    def __init__(self, images: list[torch.Tensor], labels: list[int]) -> None:
        self.images, self.labels = images, labels

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        """Draw one variant of a digit."""
        shift = random.randint(-1, 1), random.randint(-1, 1)
        image = torch.roll(self.images[index], shift, dims=(1, 2))
        return image + 0.05 * torch.randn(image.shape), self.labels[index]


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkpoints", metavar="FOLDER", help="where checkpoints are kept")
    parser.add_argument("--save-every", type=int, default=10, metavar="STEPS")
    parser.add_argument("--keep-last", type=int, default=2, metavar="N")
    parser.add_argument("--asynchronous", action="store_true", help="write while training goes on")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def main() -> None:
    """Train from the newest checkpoint on, and print loss and test accuracy of each epoch."""
    args = parse_arguments()
    samebits.seed_all(args.seed)
    # In one thread: threads that call MKL first, and together, may get an inaccurate kernel (pytorch#188792).
    torch.ones(1).sqrt()
    images, labels, train, test = load(split_by_set=False)
    train_set = ShiftedDigits([images[name] for name in train], [labels[name] for name in train])
    test_images = torch.stack([images[name] for name in test])
    test_labels = torch.tensor([labels[name] for name in test])

    loader = samebits.DataLoader(train_set, args.batch_size, shuffle=True, num_workers=args.workers)
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)
    parts = {"model": model, "optimizer": optimizer, "scheduler": scheduler, "loader": loader}

    step, first_epoch, total_loss = 0, 0, 0.0
    keeping = {"save_every": args.save_every, "keep_last": args.keep_last}
    folder = CheckpointFolder(args.checkpoints, asynchronous=args.asynchronous, **keeping)
    loaded = folder.load(**parts)  # last: nothing is drawn between this line and the loop
    if loaded:
        step, first_epoch, total_loss = loaded.step, loaded.epoch, loaded.extra["total_loss"]
        print(f"resumed at step {step}")

    for epoch in range(first_epoch, args.epochs):
        model.train()
        for batch, targets in loader:
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(batch), targets)
            loss.backward()
            optimizer.step()
            total_loss += loss.item()
            step += 1
            folder.save_if_due(step=step, epoch=epoch, total_loss=total_loss, **parts)
        scheduler.step()

        model.eval()
        with torch.no_grad():
            accuracy = (model(test_images).argmax(1) == test_labels).float().mean().item()
        print(f"epoch {epoch}  loss {total_loss / len(loader):.6f}  test accuracy {accuracy:.4f}")
        total_loss = 0.0

    folder.wait()
    print(f"digest {samebits.digest([model, optimizer, scheduler])}")


if __name__ == "__main__":
    main()
