"""Small trainings with dropout and a dataset that draws, for Lightning, transformers, TRL and accelerate.

Each prints the digest of its final state. `--resume` goes on from a checkpoint in a process whose generators
stand elsewhere; `--no` is without samebits' part of the checkpoint; `--fault N` flips one bit in the Nth call
of a layer, on `--faulty` rank; `--replay N` executes every Nth step again. Started on several ranks, each
prints its own digest.
"""

OPTIONS = """
import argparse, itertools, logging, os, random, sys
os.environ["HF_HUB_OFFLINE"] = "1"
import numpy, torch
import samebits

parser = argparse.ArgumentParser()
for name in ("--no", "--own", "--val", "--ends", "--unattached", "--manual", "--unused", "--alone"):
    parser.add_argument(name, action="store_true")
for name in ("--workers", "--replay", "--fault", "--faulty"):
    parser.add_argument(name, type=int, default=0)
parser.add_argument("--every", type=int, default=1)
parser.add_argument("--resume")
parser.add_argument("--record")
o = parser.parse_args()
rank, ranks = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
torch.manual_seed(0), random.seed(rank), numpy.random.seed(rank)  # the same weights, other samples
if o.alone:  # rank 0 saves, the others do not
    import datetime
    import samebits.integrations._all_ranks
    samebits.integrations._all_ranks._PATIENCE = datetime.timedelta(seconds=1)
if o.resume:
    random.seed(77 + rank), numpy.random.seed(77 + rank)

class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 16
    def __getitem__(self, i):
        x = torch.full((8,), float(i)) + torch.rand(8) + random.random() + numpy.random.rand()
        return x.float(), torch.tensor([float(i)])

def net():
    nn = torch.nn
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.3), nn.LayerNorm(16), nn.Linear(16, 1))

def finish(guard, *state):
    if guard is not None:
        sys.stdout.write(f"guard {guard.steps} {guard.replays}\\n")
    if ranks > 1:
        drawn = torch.get_rng_state(), random.random(), numpy.random.rand()
        word = "guarded " if guard is not None and guard.replays > 2 else ""
        # One write, so that ranks do not share a line.
        sys.stdout.write(f"rank {rank} {word}{samebits.digest([list(state), drawn])}\\n"), sys.stdout.flush()
        torch.distributed.barrier()  # a rank that ends while another one waits may abort it
        # The libraries keep the group alive, whose threads may abort a process that ends (pytorch#190489).
        os._exit(0)
    print("digest", samebits.digest(list(state)))

def break_layer(layer):
    calls, real = itertools.count(1), torch.nn.LayerNorm.forward
    def forward(self, x):
        output = real(self, x)
        if self is layer and next(calls) == o.fault and rank == o.faulty:
            with torch.no_grad():
                output.view(torch.int32).view(-1)[0] ^= 1 << 25
        return output
    torch.nn.LayerNorm.forward = forward
"""

LIGHTNING = (
    OPTIONS
    + """
import lightning.pytorch as pl
from lightning.pytorch.callbacks import ModelCheckpoint
from samebits.integrations.lightning import SamebitsCallback

class Module(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = net()
        self.automatic_optimization = not o.manual
    def training_step(self, batch, number):
        loss = torch.nn.functional.mse_loss(self.net(batch[0]), batch[1])
        self.log("loss", loss, on_epoch=True)
        return loss
    def validation_step(self, batch, number):
        self.log("validation", self.net(batch[0]).mean())
    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=0.01)

Loader = samebits.DataLoader if o.own else torch.utils.data.DataLoader
loader = Loader(Data(), 4, shuffle=True, num_workers=o.workers, **({"seed": 3} if o.own else {}))
validation = torch.utils.data.DataLoader(Data(), 4) if o.val else None
save = ModelCheckpoint(dirpath="saved", every_n_train_steps=o.every, save_top_k=-1, filename="{step}")
if o.ends:  # of epochs
    save = ModelCheckpoint(dirpath="saved", save_top_k=-1, filename="{step}")
callback = SamebitsCallback(exact_resume=not o.no, record=o.record, replay_every=o.replay or None)
module = Module()
if o.fault:
    break_layer(module.net[3])
if o.resume:
    torch.rand(7), random.random()
trainer = pl.Trainer(
    max_epochs=3, callbacks=[callback] * (not o.no) + [save], logger=False, enable_progress_bar=False,
    enable_model_summary=False, accelerator="cpu", num_sanity_val_steps=0,
    **(dict(strategy="ddp", devices=ranks) if ranks > 1 else {}),
)
trainer.fit(module, loader, validation, ckpt_path=o.resume)
state = dict(module.state_dict()), trainer.optimizers[0].state_dict(), trainer.callback_metrics["loss_epoch"]
finish(callback.guard, *state)
"""
)

# Of a `trainer` of transformers, with a `callback`.
TRAIN = """
if o.fault:
    break_layer(model.transformer.ln_f)
if ranks > 1:  # the trainer has seeded all alike, and takes the order of samples from that seed
    torch.rand(rank + 5 * bool(o.resume)), random.seed(rank), numpy.random.seed(rank)
trainer.train(resume_from_checkpoint=o.resume)
losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
finish(callback.guard, dict(model.state_dict()), trainer.optimizer.state_dict(), losses)
"""

TRANSFORMERS = (
    OPTIONS
    + """
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments
from samebits.integrations.transformers import SamebitsCallback

class Tokens(Data):
    def __getitem__(self, i):
        ids = (torch.arange(8) * (i + 1)) % 29
        ids[random.randrange(8)] = numpy.random.randint(29)
        ids[int(torch.randint(8, ()))] = 3
        return {"input_ids": ids, "labels": ids}

sizes = dict(vocab_size=29, n_positions=8, n_embd=16, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0)
model = GPT2LMHeadModel(GPT2Config(**sizes))
arguments = TrainingArguments(
    "saved", per_device_train_batch_size=2, gradient_accumulation_steps=2, num_train_epochs=3,
    save_strategy="steps", save_steps=1, logging_steps=1, report_to=[], use_cpu=True, seed=5,
    disable_tqdm=True, dataloader_num_workers=o.workers, eval_strategy="steps" if o.val else "no",
    eval_steps=2, **(dict(ddp_backend="gloo", ddp_find_unused_parameters=o.unused) if ranks > 1 else {}),
)
data = Tokens()
callback = SamebitsCallback(exact_resume=not o.no, record=o.record, replay_every=o.replay or None)
callbacks = [callback] if o.unattached else []
trainer = Trainer(
    model, arguments, train_dataset=data, eval_dataset=data if o.val else None, callbacks=callbacks
)
if not o.unattached and not o.no:
    callback.attach(trainer)
"""
    + TRAIN
)

TRL = (
    OPTIONS
    + """
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
from trl import SFTConfig, SFTTrainer
from samebits.integrations.transformers import SamebitsCallback

words = {word: number for number, word in enumerate(["<pad>", "<eos>", *"abcdefgh"])}
tokenizer = Tokenizer(models.WordLevel(words, unk_token="<eos>"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>")
data = Dataset.from_dict({"text": [" ".join("abcdefgh"[(i * k) % 8] for k in range(6)) for i in range(16)]})
model = GPT2LMHeadModel(GPT2Config(
    vocab_size=10, n_positions=16, n_embd=16, n_layer=2, n_head=2, bos_token_id=1, eos_token_id=1
))

jitter = numpy.random.default_rng(0)  # no library saves it
samebits.register_generator(jitter, name="jitter")

def shake(module, inputs, output):
    return output * (1 + 0.01 * jitter.random()) if module.training else output

model.transformer.wte.register_forward_hook(shake)
arguments = SFTConfig(
    "saved", per_device_train_batch_size=4, num_train_epochs=3, save_strategy="steps", save_steps=1,
    logging_steps=1, report_to=[], use_cpu=True, bf16=False, seed=5, disable_tqdm=True,
    gradient_checkpointing=False, max_length=16,
    **(dict(ddp_backend="gloo", ddp_find_unused_parameters=False) if ranks > 1 else {}),
)
callback = SamebitsCallback(exact_resume=not o.no, record=o.record, replay_every=o.replay or None)
trainer = SFTTrainer(model, arguments, train_dataset=data, processing_class=tokenizer)
if not o.no:
    callback.attach(trainer)
"""
    + TRAIN
)

ACCELERATE = (
    OPTIONS
    + """
from accelerate import Accelerator
from samebits.integrations.accelerate import TrainingState

accelerator = Accelerator(cpu=True)
model = net()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
if o.own:
    loader = samebits.DataLoader(Data(), 4, shuffle=True, seed=3)
else:
    loader = accelerator.prepare(torch.utils.data.DataLoader(Data(), 4, shuffle=True, num_workers=o.workers))
model, optimizer = accelerator.prepare(model, optimizer)
state = TrainingState(
    accelerator, record=o.record, replay_every=o.replay or None, exact_resume=not o.no
)
if o.fault:
    break_layer(getattr(model, "module", model)[3])
step = 0
if o.resume:
    torch.rand(3), random.random()
    accelerator.load_state(o.resume)
    step = int(o.resume.partition("=")[2])

def forward_backward(batch):
    loss = torch.nn.functional.mse_loss(model(batch[0]), batch[1])
    accelerator.backward(loss)
    return loss

with state:
    for epoch in range(step // 4, 3) if o.no else state.epochs(3):
        batches = state.batches(loader)
        if o.no:
            batches = accelerator.skip_first_batches(loader, step % 4) if step % 4 else loader
        for batch in batches:
            optimizer.zero_grad()
            loss = state.step(forward_backward, batch)
            optimizer.step()
            step += 1
            if not o.resume and (rank == 0 or not o.alone):
                accelerator.save_state(f"saved/step={step}")
finish(state.guard, dict(model.state_dict()), optimizer.state_dict(), loss)
accelerator.end_training()
"""
)

SCRIPTS = {"lightning": LIGHTNING, "transformers": TRANSFORMERS, "trl": TRL, "accelerate": ACCELERATE}
CHECKPOINT = {
    "lightning": "saved/step={}.ckpt",
    "transformers": "saved/checkpoint-{}",
    "trl": "saved/checkpoint-{}",
    "accelerate": "saved/step={}",
}
