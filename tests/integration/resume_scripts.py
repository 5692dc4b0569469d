"""Scripts that save and resume, right or with something left out."""

from __future__ import annotations

# Trains 12 steps in 2 passes; saves once, after 8 steps. FORGET names what the resumed run does not restore,
# SAVE how the checkpoint is written wrongly.
TRAINING = """
    import os
    import random
    import sys

    import numpy as np
    import torch

    resume = "--resume" in sys.argv
    forgotten = os.environ.get("FORGET", "") if resume else ""
    saving, workers = os.environ.get("SAVE", ""), int(os.environ.get("WORKERS", "0"))
    torch.manual_seed(1)
    np.random.seed(2)
    random.seed(3)
    noise = np.random.default_rng(4)


    class Data(torch.utils.data.Dataset):
        def __len__(self):
            return 24

        def __getitem__(self, i):
            x = torch.arange(4.0) + i
            if random.random() < 0.5:
                x = -x
            x = x + float(np.random.rand()) + float(noise.random())
            return x / 10, torch.tensor(float(i % 3))


    order = torch.Generator().manual_seed(5)
    model = torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 1)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.5)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=3)
    ema = {name: p.detach().clone() for name, p in model.named_parameters()}
    epoch = skip = step = 0


    def save(skip):
        states = {
            "torch": torch.get_rng_state(), "numpy": np.random.get_state(), "python": random.getstate(),
            "noise": noise.bit_generator.state, "order": start,
        }
        parts = {
            "model": model.state_dict(), "optimizer": optimizer.state_dict(), "scaler": scaler.state_dict(),
            "scheduler": scheduler.state_dict(), "ema": ema, "epoch": epoch, "skip": skip, "step": step,
            "states": states,
        }
        torch.save(parts, "part.tmp")
        os.replace("part.tmp", "last.pt")


    def restore(states):
        if forgotten != "torch":
            torch.set_rng_state(states["torch"])
        if forgotten != "numpy":
            np.random.set_state(states["numpy"])
        if forgotten != "python":
            random.setstate(states["python"])
        if forgotten != "noise":
            noise.bit_generator.state = states["noise"]


    states = None
    if resume:
        c = torch.load("last.pt", weights_only=False)
        weights = c["model"]
        if forgotten == "buffers":
            weights = {k: v for k, v in weights.items() if "running" not in k}
        if forgotten == "head":
            weights = {k: v for k, v in weights.items() if not k.startswith("3.")}
        if forgotten != "weights":
            model.load_state_dict(weights, strict=False)
        if forgotten != "optimizer":
            optimizer.load_state_dict(c["optimizer"])
        if forgotten != "scheduler":
            scheduler.load_state_dict(c["scheduler"])
        if forgotten != "scaler":
            scaler.load_state_dict(c["scaler"])
        fresh = {n: p.detach().clone() for n, p in model.named_parameters()}
        ema = fresh if forgotten == "ema" else c["ema"]
        epoch, states = c["epoch"], c["states"]
        skip = 0 if forgotten == "position" else c["skip"]
        step = 0 if forgotten == "counter" else c["step"]
        if forgotten != "order":
            order.set_state(states["order"])

    while epoch < 2:
        start = order.get_state()
        loader = torch.utils.data.DataLoader(
            Data(), batch_size=4, shuffle=True, generator=order, num_workers=workers
        )
        batches = iter(loader)
        for _ in range(skip):
            next(batches)
        if states is not None:
            restore(states)
            states = None
        for number, (x, y) in enumerate(batches, skip):
            optimizer.zero_grad()
            weight = 1.0 + 0.1 * step
            loss = ((model(x)[:, 0] - y) ** 2).mean() * weight
            scaler.scale(loss).backward()
            if saving == "early" and step == 7:
                save(number + 1)
            scaler.step(optimizer)
            scaler.update()
            scheduler.step()
            if saving == "late" and step == 7:
                save(number)
            step += 1
            for name, p in model.named_parameters():
                ema[name].mul_(0.9).add_(p.detach(), alpha=0.1)
            if not saving and step == 8:
                save(number + 1)
        skip = 0
        epoch += 1
    torch.save(ema, "ema.pt")
"""

# Skips batches by their numbers, without loading them: workers begin anew.
WORKERS = """
    import os
    import sys

    import torch

    resume = "--resume" in sys.argv
    torch.manual_seed(1)


    class Data(torch.utils.data.Dataset):
        def __len__(self):
            return 24

        def __getitem__(self, i):
            return torch.full((4,), float(i)) + torch.rand(4), torch.tensor(float(i % 3))


    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
    skip = 0
    if resume:
        c = torch.load("last.pt")
        model.load_state_dict(c["model"])
        optimizer.load_state_dict(c["optimizer"])
        skip = c["skip"]
    order = torch.randperm(24, generator=torch.Generator().manual_seed(0)).split(4)
    batches = [part.tolist() for part in order][skip:]
    loader = torch.utils.data.DataLoader(
        Data(), batch_sampler=batches, num_workers=1, generator=torch.Generator().manual_seed(5)
    )
    for number, (x, y) in enumerate(loader, skip):
        optimizer.zero_grad()
        ((model(x)[:, 0] - y) ** 2).mean().backward()
        optimizer.step()
        parts = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "skip": number + 1}
        torch.save(parts, "last.pt")
"""

# Resumes by itself, in whatever folder it is; no loader, so that batches are seen in variables only.
BY_ITSELF = """
    import os
    import sys

    import torch

    torch.manual_seed(0)
    data = torch.randn(40, 4)
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step = 0
    if os.path.exists("last.pt") and "--never" not in sys.argv:
        c = torch.load("last.pt")
        model.load_state_dict(c["model"])
        step = c["step"]
    print("begins at", step)
    while step < 10:
        optimizer.zero_grad()
        x = data[4 * step : 4 * step + 4]
        model(x).square().mean().backward()
        optimizer.step()
        step += 1
        if step % EVERY == 0:
            torch.save({"model": model.state_dict(), "step": step}, "part")
            os.replace("part", "last.pt")
"""

# Accumulates gradients over 2 batches; the checkpoint is written between them.
ACCUMULATING = """
    import os
    import sys

    import torch

    torch.manual_seed(0)
    data = torch.randn(48, 4)
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    first = 0
    if "--resume" in sys.argv:
        c = torch.load("last.pt")
        model.load_state_dict(c["model"])
        first = c["first"]
    for number in range(first, 12):
        model(data[4 * number : 4 * number + 4]).square().mean().backward()
        if number % 2:
            optimizer.step()
            optimizer.zero_grad()
        if number == 6:
            torch.save({"model": model.state_dict(), "first": 7}, "last.pt")
"""

# Two optimizers, one with a closure; gradients of the other model wait to be zeroed when one steps.
ADVERSARIAL = """
    import os
    import sys

    import torch

    torch.manual_seed(0)
    maker, judge = torch.nn.Linear(2, 2), torch.nn.Linear(2, 1)
    first, second = torch.optim.Adam(maker.parameters()), torch.optim.Adam(judge.parameters(), lr=0.01)
    step = 0
    if "--resume" in sys.argv:
        c = torch.load("last.pt")
        if os.environ.get("FORGET") != "maker":
            maker.load_state_dict(c["maker"])
        if os.environ.get("FORGET") != "judge":
            judge.load_state_dict(c["judge"])
        first.load_state_dict(c["first"])
        if os.environ.get("FORGET") != "second":
            second.load_state_dict(c["second"])
        torch.set_rng_state(c["state"])
        step = c["step"]


    def main(step):
        while step < 4:
            z = torch.randn(5, 2)

            def closure():
                second.zero_grad()
                loss = judge(maker(z).detach()).mean() - judge(torch.randn(5, 2)).mean()
                loss.backward()
                return loss

            second.step(closure)
            first.zero_grad()
            (-judge(maker(z)).mean()).backward()
            first.step()
            step += 1
            parts = {"maker": maker, "judge": judge, "first": first, "second": second}
            states = {name: part.state_dict() for name, part in parts.items()}
            torch.save({**states, "state": torch.get_rng_state(), "step": step}, "last.pt")


    main(step)
"""

NOT_REPEATABLE = """
    import sys

    import torch

    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(6):
        model(torch.ones(1, 4)).square().mean().backward()
        optimizer.step()
"""

LIBRARY_PARTS = """
    import random
    import sys

    import numpy as np
    import torch

    plain = "plain" in sys.argv


    class Data(torch.utils.data.Dataset):
        def __len__(self):
            return 32

        def __getitem__(self, i):
            x = torch.arange(4.0) * 0.1 + i / 32
            if not plain:
                x = x + random.random() + float(np.random.rand()) + torch.rand(())
            return {"x": x, "labels": torch.tensor(float(i % 3))}


    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = torch.nn.Linear(4, 8), torch.nn.Linear(8, 1)
            self.drop = torch.nn.Dropout(0.0 if "nodrop" in sys.argv else 0.5)

        def forward(self, x, labels=None):
            out = self.b(self.drop(torch.relu(self.a(x))))[:, 0]
            return {"loss": ((out - labels) ** 2).mean(), "logits": out}
"""

TRAINER = """
    import sys

    from parts import Data, Net
    from transformers import Trainer, TrainingArguments, set_seed

    set_seed(1)
    arguments = TrainingArguments(
        "out", per_device_train_batch_size=4, num_train_epochs=2, save_steps=3, logging_steps=4, report_to=[],
        use_cpu=True, disable_tqdm=True, learning_rate=0.01,
    )
    trainer = Trainer(Net(), arguments, train_dataset=Data())
    trainer.train(resume_from_checkpoint=True if "resume" in sys.argv else None)
"""

LIGHTNING = """
    import sys

    import lightning
    import torch
    from lightning.pytorch.callbacks import ModelCheckpoint
    from parts import Data, Net


    class Training(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = Net()

        def training_step(self, batch, number):
            return self.net(**batch)["loss"]

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), lr=0.01)


    lightning.seed_everything(1, workers=True)
    loader = torch.utils.data.DataLoader(Data(), batch_size=4, shuffle=True)
    trainer = lightning.Trainer(
        max_epochs=2, accelerator="cpu", logger=False, enable_progress_bar=False, enable_model_summary=False,
        callbacks=[ModelCheckpoint("ck", every_n_train_steps=3, save_last=True)],
    )
    trainer.fit(Training(), loader, ckpt_path="ck/last.ckpt" if "resume" in sys.argv else None)
"""

ACCELERATE = """
    import json
    import sys

    import torch
    from accelerate import Accelerator
    from accelerate.utils import DataLoaderConfiguration, set_seed
    from parts import Data, Net

    set_seed(1)
    accelerator = Accelerator(
        cpu=True, dataloader_config=DataLoaderConfiguration(use_seedable_sampler="seedable" in sys.argv)
    )
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    loader = torch.utils.data.DataLoader(Data(), batch_size=4, shuffle=True)
    net, optimizer, loader = accelerator.prepare(net, optimizer, loader)
    epoch = done = 0
    if "resume" in sys.argv:
        accelerator.load_state("ck")
        place = json.load(open("place.json"))
        epoch, done = place["epoch"], place["done"]
    while epoch < 2:
        batches = accelerator.skip_first_batches(loader, done) if done else loader
        for number, batch in enumerate(batches, done):
            loss = net(**batch)["loss"]
            optimizer.zero_grad()
            accelerator.backward(loss)
            optimizer.step()
            if number % 3 == 2:
                accelerator.save_state("ck")
                json.dump({"epoch": epoch, "done": number + 1}, open("place.json", "w"))
        done = 0
        epoch += 1
"""
