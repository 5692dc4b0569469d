"""samebits inside other libraries: one module for each of them, imported by its name.

Callbacks for trainers are `lightning`, `transformers` (and TRL) and `accelerate`; `mlflow`, `wandb` and
`tensorboard` log a record; `notebook` has the magics of IPython. Nothing else imports such a module.
"""
