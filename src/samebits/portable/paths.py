"""torch's short cuts for whole layers are off in portable mode: what they stand for arrives op by op.

- The oneDNN LSTM (`mkldnn_rnn_layer`) is one op for a layer and all its steps, with an order of its own.
- The fast paths of `nn.MultiheadAttention`, `nn.TransformerEncoderLayer` and `nn.TransformerEncoder` for
  inference are one op for a layer, and make nested tensors of padded batches.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def layers_op_by_op() -> Iterator[None]:
    """Turn the short cuts off for all threads, and back to what they were."""
    mha, mkldnn = torch.backends.mha, torch.backends.mkldnn
    before = mha.get_fastpath_enabled(), mkldnn.enabled
    mha.set_fastpath_enabled(value=False)
    mkldnn.enabled = False  # type: ignore[assignment]
    try:
        yield
    finally:
        mha.set_fastpath_enabled(value=before[0])
        mkldnn.enabled = before[1]
