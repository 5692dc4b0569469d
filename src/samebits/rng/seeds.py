"""Seeds: checking them, and deriving other seeds from one."""

from __future__ import annotations

import hashlib
import operator
from typing import Any

from samebits.errors import SamebitsError

MAX_SEED = 2**64 - 1
_DOMAIN = b"samebits seed 1\0"


def check_seed(value: Any) -> int:
    """Return the seed as an `int`.

    Args:
        value: a whole number from 0 to 2**64 - 1; NumPy's integers are taken, booleans and floats are not.

    Raises:
        SamebitsError: anything else; `seed`.
    """
    try:
        seed = operator.index(value)
    except TypeError:
        seed = -1
    if isinstance(value, bool) or not 0 <= seed <= MAX_SEED:
        message = f"the seed is {value!r}; expected a whole number from 0 to 2**64 - 1"
        raise SamebitsError(message, slug="seed")
    return seed


def derive(seed: int, *keys: int | str) -> int:
    """Derive a seed of 64 bits from a seed and a name.

    It is made by SHA-256, so close seeds and close keys give unrelated streams. All bits
    carry entropy, the low 32 too: torch's CPU generator uses no others (`CPUGeneratorImpl::set_current_seed`
    hands the seed to a Mersenne Twister of 32 bits; `manual_seed(1)` is `manual_seed(1 + 2**32)`, 2.13.0).

    Args:
        seed: from 0 to 2**64 - 1.
        keys: the name, such as `"augment", 3, 17`; `("a", "b")` and `("ab",)` are different names, and so
            are `1` and `"1"`.
    """
    hasher = hashlib.sha256(_DOMAIN + seed.to_bytes(8, "little"))
    for key in keys:
        text = f"{'s' if isinstance(key, str) else 'i'}{key}".encode()
        hasher.update(len(text).to_bytes(8, "little") + text)
    return int.from_bytes(hasher.digest()[:8], "little")


def fit(seed: int, source: str) -> int:
    """Return a seed for a generator that takes 32 bits: itself when it fits, else one derived from it.

    So `--seed 3` gives what `torch.manual_seed(3)` and `numpy.random.seed(3)` give, and no two seeds share a
    stream only because their low bits agree.
    """
    return seed if seed < 2**32 else derive(seed, "fit", source) & (2**32 - 1)


def check_keys(keys: tuple[Any, ...]) -> tuple[int | str, ...]:
    """Return the keys, with NumPy's integers as Python's.

    Raises:
        SamebitsError: a key is neither a whole number nor text; `stream-key`.
    """
    return tuple(key if type(key) is str else _check_key(key) for key in keys)


def _check_key(key: Any) -> int | str:
    try:
        if not isinstance(key, bool):
            return str(key) if isinstance(key, str) else operator.index(key)
    except TypeError:
        pass
    message = f"the key {key!r} is of type {type(key).__name__}; expected whole numbers and texts"
    raise SamebitsError(message, slug="stream-key")
