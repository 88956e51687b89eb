"""The random numbers of sampling: one for each position, whatever was computed before it. Standard library only, so
that a screen can show the number that decided about a token."""

from __future__ import annotations

_ROUNDS = 10
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_WORD = 0xFFFFFFFF


def uniform(seed: int, position: int) -> float:
    """The random number of a position, in [0, 1): Philox4x32-10 (Salmon et al. 2011) with the seed as key and the
    position as counter, so it doesn't depend on how the position was reached."""
    a, b, c, d = position & _WORD, position >> 32, 0, 0
    key_a, key_b = seed & _WORD, seed >> 32
    for _ in range(_ROUNDS):
        product_a, product_c = a * _MULTIPLIERS[0], c * _MULTIPLIERS[1]
        a, b, c, d = (product_c >> 32) ^ b ^ key_a, product_c & _WORD, (product_a >> 32) ^ d ^ key_b, product_a & _WORD
        key_a, key_b = (key_a + _KEY_STEPS[0]) & _WORD, (key_b + _KEY_STEPS[1]) & _WORD
    return a / 2**32
