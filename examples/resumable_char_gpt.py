"""Train the GPT of char_gpt.py so that it can be killed at any moment and continues with the same bits.

python examples/resumable_char_gpt.py runs/gpt     kill it, then run the same command again

Batches and dropout draw from torch's generator. Its state is in every checkpoint, so nothing else is
needed. Checkpoints are written in the background.
"""

import argparse

import torch
from char_gpt import GPT, GPTConfig, read_text
from torch import nn
from torch.nn import functional

import samebits
from samebits.checkpoint import CheckpointFolder


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkpoints", metavar="FOLDER", help="where checkpoints are kept")
    parser.add_argument("--save-every", type=int, default=10, metavar="STEPS")
    parser.add_argument("--keep-last", type=int, default=2, metavar="N")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def main() -> None:
    """Train from the newest checkpoint on, and print the loss every ten steps."""
    args = parse_arguments()
    samebits.seed_all(args.seed)
    # In one thread: threads that call MKL first, and together, may get an inaccurate kernel (pytorch#188792).
    torch.ones(1).sqrt()
    text = read_text()
    characters = sorted(set(text))
    index = {character: i for i, character in enumerate(characters)}
    data = torch.tensor([index[character] for character in text])

    config = GPTConfig(len(characters), layers=args.layers, width=args.width)
    model = GPT(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 20))
    average = torch.optim.swa_utils.AveragedModel(model)
    parts = {"model": model, "optimizer": optimizer, "scheduler": scheduler, "ema": average}

    keeping = {"save_every": args.save_every, "keep_last": args.keep_last}
    with CheckpointFolder(args.checkpoints, asynchronous=True, **keeping) as folder:
        loaded = folder.load(**parts)  # last: nothing is drawn between this line and the loop
        first_step = loaded.step if loaded else 0
        if loaded:
            print(f"resumed at step {first_step}")

        for step in range(first_step, args.steps):
            offsets = torch.randint(len(data) - config.context - 1, (args.batch_size, 1))
            chunk = data[offsets + torch.arange(config.context + 1)]
            scores = model(chunk[:, :-1])
            loss = functional.cross_entropy(scores.flatten(0, 1), chunk[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            average.update_parameters(model)
            if step % 10 == 9:
                print(f"step {step:4d}  loss {loss.item():.6f}")
            folder.save_if_due(step=step + 1, **parts)

    print(f"digest {samebits.digest([model, optimizer, scheduler, average])}")


if __name__ == "__main__":
    main()
