"""Callbacks for trainers: `lightning`, `transformers` (and TRL), `accelerate`.

Each module imports its library, and nothing else imports such a module.
See docs/how-to/use-with-trainers.md.
"""
