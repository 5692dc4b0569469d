"""Keyed samples in whole programs: the command line, ranks of torchrun, libraries with generators."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys

import pytest
from cli_support import environment, samebits, write

SCRIPT = """
    import random
    import numpy as np
    import torch

    class Items(torch.utils.data.Dataset):
        def __len__(self):
            return 24

        def __getitem__(self, index):
            return torch.rand(4) + random.random() + float(np.random.rand()), torch.rand(1)

    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.5), torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    loader = torch.utils.data.DataLoader(Items(), batch_size=4, shuffle=True, num_workers=WORKERS)
    for epoch in range(2):
        for x, y in loader:
            optimizer.zero_grad()
            (model(x) - y).square().mean().backward()
            optimizer.step()
    print([parameter.sum().item() for parameter in model.parameters()])
"""

RANKS = """
    import json, random, sys
    import numpy as np
    import torch
    import samebits

    class Items(torch.utils.data.Dataset):
        def __init__(self):
            self.rng = np.random.default_rng(0)
        def __len__(self):
            return 29
        def __getitem__(self, index):
            torchs = float(torch.rand(()))
            return index, random.random(), float(np.random.rand()), torchs, float(self.rng.random())

    torch.distributed.init_process_group("gloo")
    rank, world_size = torch.distributed.get_rank(), torch.distributed.get_world_size()
    loader = samebits.DataLoader(
        Items(), 8 // world_size, shuffle=True, num_workers=rank, seed=3, collate_fn=list
    )
    seen = [[batch for batch in loader] for epoch in range(2)]
    with open(f"{sys.argv[1]}-{rank}.json", "w") as file:
        json.dump(seen, file)
    torch.distributed.destroy_process_group()
"""

AUGMENTED = """
    import json, sys
    import albumentations, cv2, numpy as np, torch
    import samebits

    class Images(torch.utils.data.Dataset):
        def __init__(self):
            steps = [albumentations.RandomBrightnessContrast(p=0.9), albumentations.Affine(p=0.5)]
            self.transform = albumentations.Compose(steps)
        def __len__(self):
            return 13
        def __getitem__(self, index):
            image = (np.arange(300) % 251).astype(np.uint8).reshape(10, 10, 3)
            noise = cv2.randu(np.zeros(2), 0, 1000)
            return self.transform(image=image)["image"].tolist(), noise.tolist()

    if __name__ == "__main__":
        found = []
        for workers in (0, 1, 2):
            options = {"num_workers": workers, "seed": 3, "collate_fn": list}
            loader = samebits.DataLoader(Images(), 4, shuffle=True, **options)
            found.append([[batch for batch in loader] for epoch in range(2)])
        assert found[0] == found[1] == found[2]
        print(len({json.dumps(one) for batches in found[0] for batch in batches for one in batch}))
"""


def needs(library):
    """Skip where it is not installed; importing it here would leave its patches behind."""
    missing = importlib.util.find_spec(library) is None
    return pytest.mark.skipif(missing, reason=f"{library} is not installed")


def run_plain(script, cwd):
    """Run a script, which must succeed."""
    return subprocess.run(
        [sys.executable, "-W", "ignore", str(script)],
        cwd=cwd, env=environment(), capture_output=True, text=True, timeout=180, check=False,
    )  # fmt: skip


def test_the_number_of_workers_does_not_matter_to_a_script_as_it_is(tmp_path):
    outputs = []
    for workers, options in ((0, ["--keyed-samples"]), (2, ["--keyed-samples"]), (2, [])):
        script = write(tmp_path, f"train{workers}.py", SCRIPT, WORKERS=workers)
        outputs.append(samebits("run", "--seed", 3, *options, script, cwd=tmp_path))

    assert [result.returncode for result in outputs] == [0, 0, 0]
    assert outputs[0].stdout == outputs[1].stdout != outputs[2].stdout


def test_it_needs_a_seed(tmp_path):
    script = write(tmp_path, "train.py", SCRIPT, WORKERS=0)

    for options in (["--keyed-samples"], ["--deterministic", "--keyed-samples"]):
        result = samebits("run", *options, script, cwd=tmp_path)
        assert result.returncode == 2
        assert "--keyed-samples needs a seed" in result.stderr


def test_ranks_of_torchrun_see_what_one_process_sees(tmp_path):
    script = write(tmp_path, "ranks.py", RANKS)
    merged = []
    for world_size in (1, 2):
        command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(world_size)]
        subprocess.run(
            [sys.executable, *command, str(script), f"of{world_size}"],
            cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=180, check=True,
        )  # fmt: skip
        ranks = [
            json.loads((tmp_path / f"of{world_size}-{rank}.json").read_text()) for rank in range(world_size)
        ]
        merged.append(
            [
                [sample for batches in zip(*of_epoch, strict=True) for batch in batches for sample in batch]
                for of_epoch in zip(*ranks, strict=True)
            ]
        )

    assert merged[0] == merged[1]
    assert sorted(sample[0] for sample in merged[0][1]) == list(range(29))


@needs("albumentations")
def test_albumentations_and_opencv_are_keyed(tmp_path):
    result = run_plain(write(tmp_path, "augment.py", AUGMENTED), tmp_path)

    assert result.returncode == 0, result.stderr
    assert int(result.stdout) == 26


LIGHTNING = """
    import os, sys, tempfile
    import lightning, torch
    import samebits

    class Items(torch.utils.data.Dataset):
        def __len__(self):
            return 12
        def __getitem__(self, index):
            return torch.tensor([float(index)]), torch.rand(1)

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer, self.seen = torch.nn.Linear(1, 1), []
        def training_step(self, batch, number):
            self.seen.append([part.flatten().tolist() for part in batch])
            return self.layer(batch[0]).square().mean()
        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 1e-3)

    def fit(*callbacks, path=None):
        module = Module()
        trainer = lightning.Trainer(
            max_epochs=3, accelerator="cpu", logger=False, enable_progress_bar=False,
            enable_checkpointing=bool(callbacks), enable_model_summary=False,
            callbacks=list(callbacks), default_root_dir=folder,
        )
        trainer.fit(module, samebits.DataLoader(Items(), 4, shuffle=True, seed=3), ckpt_path=path)
        return module.seen

    folder = os.getcwd()
    save = lightning.pytorch.callbacks.ModelCheckpoint(
        dirpath=folder, every_n_train_steps=1, save_top_k=-1, filename="{step}"
    )
    whole = fit(save)
    assert len(whole) == 9 and len({str(batch) for batch in whole}) == 9
    for step in (1, 2, 3, 4, 6, 8):
        assert fit(path=os.path.join(folder, f"step={step}.ckpt")) == whole[step:], step
    print("same")
"""


@needs("lightning")
def test_lightning_goes_on_exactly(tmp_path):
    result = run_plain(write(tmp_path, "light.py", LIGHTNING), tmp_path)

    assert result.returncode == 0, result.stderr[-2000:]
    assert result.stdout.rstrip().endswith("same")


def test_without_a_seed_a_loader_is_refused_in_one_line(tmp_path):
    source = "import samebits\nsamebits.DataLoader(range(4))\n"
    result = run_plain(write(tmp_path, "none.py", source), tmp_path)

    assert "no run seed is in force" in result.stderr.splitlines()[-1]
    assert os.listdir(tmp_path) == ["none.py"]
