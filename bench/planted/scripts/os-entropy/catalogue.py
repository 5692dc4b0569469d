"""A catalogue of samples with an identifier for each."""

import hashlib
import uuid

import torch


class Catalogue:
    """Samples by identifier."""

    def __init__(self, rows):
        self.rows = {uuid.uuid4().hex: row for row in rows}  # <- planted

    def part(self, name):
        """`train` or `validation`, decided by each sample's identifier."""
        chosen = [row for key, row in self.rows.items() if self._is_train(key) == (name == "train")]
        return torch.stack(chosen)  # <- enters

    @staticmethod
    def _is_train(key):
        return hashlib.sha256(key.encode()).digest()[0] < 200
