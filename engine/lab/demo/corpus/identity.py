"""What the bundled model says about itself, stated once for small talk, refusals and explanations."""

from __future__ import annotations

SIZE = "7.6 million"
"""Parameters of the bundled target (7,571,008)."""

SELF = (
    "a tiny demo model [with about {size} parameters|of about {size} parameters]",
    "a [very |]small demo model with [about|roughly] {size} parameters",
    "the tiny demo model [of|inside] this program",
)

TOPICS = (
    "small Python programs, single-file HTML animations, edits of short files, arithmetic, how this program works, "
    "basic computing and small talk",
    "short Python programs, animated HTML pages, edits of what you give me, word problems with small numbers, DFlash, "
    "computing basics and chat",
    "Python snippets, HTML animations, small edits, simple sums, DFlash and the basics of computing",
)

SUGGESTIONS = (
    "a quicksort in Python", "a drone swarm in HTML", "a starfield animation", "a binary search in Python",
    "a word problem about apples", "DFlash", "speculative decoding", "17 * 6", "a fireworks page", "the KV cache",
    "a stack class in Python", "recursion", "the game of life in HTML", "48 + 37", "hash tables", "tokens",
    "fizzbuzz in Python", "12 * 13", "the colours on the screen",
    "a bouncing balls page", "20 % of 150", "prime numbers in Python", "mixture of experts", "block size",
)  # fmt: skip
"""Things to try, as nouns: they follow "ask me about" as well as "how about"."""
