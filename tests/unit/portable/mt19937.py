"""The generator of `torch.manual_seed` on CPU: mt19937 of 32 bits (Matsumoto and Nishimura 1998)."""

from __future__ import annotations

_SIZE, _SHIFT = 624, 397


class Mt19937:
    """One stream.

    Args:
        seed: its low 32 bits count, as in torch (ATen/core/MT19937RNGEngine.h).
    """

    def __init__(self, seed: int) -> None:
        state = [seed & 0xFFFFFFFF]
        for i in range(1, _SIZE):
            state.append(1812433253 * (state[-1] ^ state[-1] >> 30) + i & 0xFFFFFFFF)
        self._state = state
        self._next = _SIZE

    def word(self) -> int:
        """The next 32 bits."""
        if self._next == _SIZE:
            self._renew()
        y = self._state[self._next]
        self._next += 1
        y ^= y >> 11
        y ^= y << 7 & 0x9D2C5680
        y ^= y << 15 & 0xEFC60000
        return y ^ y >> 18

    def key(self) -> int:
        """The next 64 bits: the first word is the upper one."""
        upper = self.word()
        return upper << 32 | self.word()

    def _renew(self) -> None:
        state = self._state
        for i in range(_SIZE):
            y = (state[i] & 0x80000000) | (state[(i + 1) % _SIZE] & 0x7FFFFFFF)
            state[i] = state[(i + _SHIFT) % _SIZE] ^ y >> 1 ^ (0x9908B0DF if y & 1 else 0)
        self._next = 0
