from collections.abc import Callable, Sequence

import torch

ABI: int

def append(path: str, identity: tuple[int, int, int, bytes], data: bytes, /) -> int: ...
def libraries_from(first: int, /) -> tuple[int, int, bool]: ...

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
    def rows(
        self, tensors: Sequence[torch.Tensor], device_type: int, device_id: int, unit: int, /
    ) -> tuple[bytes, bytes, bytes] | None: ...
    def bases(self, tensors: Sequence[torch.Tensor], /) -> bytes | None: ...

class Scanner:
    def __init__(self, exchange: object, classes: tuple[type[torch.Tensor], type[torch.Tensor]]) -> None: ...
    def scan(self, values: Sequence[object], /) -> int: ...
    def signature(self, values: Sequence[object], /) -> bytes | None: ...

class Kernel:
    threads: Callable[[], int] | None
    def __init__(
        self, name: str, fields: tuple[str, ...], types: bytes, address: int, set_threads: int
    ) -> None: ...
    def call(self, **parameters: object) -> None: ...

class MemoryMap:
    def op_links(self, seq: int, inputs: bytes, outputs: bytes, flags: int, /) -> bytes: ...
    def event_links(self, seq: int, bases: bytes, writes: bool, /) -> bytes: ...

class Observer:
    def __init__(
        self, reader: Reader, storage: type[torch.UntypedStorage], folder: str, digest_rest: int
    ) -> None: ...
    def observe(
        self, tensors: Sequence[torch.Tensor], n_inputs: int, births: bool, /
    ) -> tuple[bytes, bytes, bytes] | None: ...
    def begin(
        self, inputs: Sequence[torch.Tensor], written: Sequence[torch.Tensor], /
    ) -> tuple[tuple[bytes, bytes, bytes], bytes] | None: ...
    def finish(
        self,
        outputs: Sequence[torch.Tensor],
        written: Sequence[torch.Tensor],
        bases: bytes,
        marks: bytes,
        births: bool,
        /,
    ) -> tuple[bytes, bytes, bytes] | None: ...
    def expose(self, tensor: torch.Tensor, /) -> None: ...
    def forget(self) -> None: ...

class Calls:
    def __init__(
        self,
        observer: Observer,
        memory_map: MemoryMap,
        next_seq: Callable[[], int],
        name_of: Callable[[object], str],
    ) -> None: ...
    def observe(
        self,
        args: tuple[object, ...],
        kwargs: dict[str, object],
        outcome: object,
        births: bool,
        flags: int,
        alias: bool,
        /,
    ) -> tuple[int, bytes, bytes, bytes, str] | None: ...
    def begin(
        self,
        call: tuple[tuple[object, ...], dict[str, object]],
        written: tuple[tuple[int, ...], tuple[str, ...]],
        /,
    ) -> tuple[list[torch.Tensor], list[torch.Tensor], str, tuple[bytes, bytes, bytes], bytes] | None: ...
    def finish(
        self,
        begun: tuple[list[torch.Tensor], list[torch.Tensor], str, tuple[bytes, bytes, bytes], bytes],
        outcome: object,
        births: bool,
        flags: int,
        /,
    ) -> tuple[int, bytes, bytes, bytes, str] | None: ...
