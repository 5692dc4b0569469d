"""torch's short cuts for whole layers are off in portable mode: what they stand for arrives op by op.

- The oneDNN LSTM (`mkldnn_rnn_layer`) is one op for a layer and all its steps, with an order of its own.
- The fast paths of `nn.MultiheadAttention`, `nn.TransformerEncoderLayer` and `nn.TransformerEncoder` for
  inference are one op for a layer, and make nested tensors of padded batches.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def layers_op_by_op() -> Iterator[None]:
    """Turn the short cuts off for all threads, and back to what they were."""
    mha = torch.backends.mha
    before = mha.get_fastpath_enabled(), _use_onednn(wanted=False)
    mha.set_fastpath_enabled(value=False)
    try:
        yield
    finally:
        mha.set_fastpath_enabled(value=before[0])
        _use_onednn(wanted=before[1])


def _use_onednn(*, wanted: bool) -> bool:
    """Say whether oneDNN may be used, nothing else about it; what was said before."""
    # The attribute `enabled` cannot be set once anybody has called disable_global_flags, as torch's tests do.
    set_flags: Any = torch.backends.mkldnn.set_flags
    try:
        return bool(set_flags(wanted, None, None, None)[0])
    except TypeError:  # releases before fp32_precision
        return bool(set_flags(wanted)[0])
