from collections.abc import Callable, Sequence

import torch

ABI: int

class Reader:
    def __init__(
        self,
        exchange: object,
        classes: tuple[type[torch.Tensor], type[torch.Tensor]],
        bytes_: tuple[torch.dtype, torch.dtype],
        get_num_threads: Callable[[], int],
        digest_to: int,
        digest_threaded: int,
    ) -> None: ...
    def digests(self, tensors: Sequence[torch.Tensor], /) -> bytes | None: ...
    def observe(self, tensors: Sequence[torch.Tensor], /) -> tuple[bytes, bytes, bytes] | None: ...
    def bases(self, tensors: Sequence[torch.Tensor], /) -> bytes | None: ...

class MemoryMap:
    def op_links(self, seq: int, inputs: bytes, outputs: bytes, flags: int, /) -> bytes: ...
    def event_links(self, seq: int, bases: bytes, writes: bool, /) -> bytes: ...
