"""Greetings as people type them: any case, drawn out, misspelt, in other languages."""

from __future__ import annotations

import random

from engine.lab.demo.corpus.wording import phrase, pick

WORDS = (
    "hi", "hi", "hi", "hello", "hello", "hello", "hey", "hey", "yo", "howdy", "hiya", "heya", "hello there", "hi there",
    "hey there", "hello again", "good morning", "good evening", "good afternoon", "good day", "morning", "evening",
    "greetings", "sup", "hola", "hallo", "bonjour", "ciao", "salut", "servus", "moin", "namaste", "aloha", "ahoy",
    "guten tag", "guten morgen", "buenos dias", "buongiorno", "hej", "ola", "salve", "oi", "g'day", "shalom", "ahoj",
    "hi you", "hello you", "hello friend", "hey friend", "hi bot", "hello computer", "hello world", "hello dflash",
    "hi dflash", "konnichiwa", "salaam", "merhaba", "privet", "ni hao", "hello everyone", "hi all", "welcome",
    "olá", "grüß gott", "привет", "你好", "こんにちは",
)  # fmt: skip
ENDS = ("", "", "", "", "!", "!", ".", "!!", "...", "?", " :)", " !", ",", " :-)", "!!!", " 👋")


def greeting(rng: random.Random) -> str:
    """One greeting in one of its many spellings."""
    text = pick(rng, WORDS)
    if rng.random() < 0.3 and text.isascii():
        text = _misspelt(rng, text)
    if rng.random() < 0.12:
        text = phrase(rng, "{t}[, how are you?| model| buddy| mate| again|, I am new here|, can you hear me?]", t=text)
    chance = rng.random()
    if chance < 0.25:
        text = text.capitalize()
    elif chance < 0.4:
        text = text.upper()
    elif chance < 0.45:
        text = "".join(pick(rng, (c.lower(), c.upper())) for c in text)
    elif chance < 0.5:
        text = text.title()
    return text if text.endswith("?") else text + pick(rng, ENDS)


def _misspelt(rng: random.Random, text: str) -> str:
    """A letter swapped, dropped or doubled, or the last vowel of the first word drawn out."""
    first, _, rest = text.partition(" ")
    kind = rng.random()
    if kind < 0.4 or len(first) < 3:
        spots = [at for at, c in enumerate(first) if c in "aeiouy"] or [len(first) - 1]
        at = spots[-1]
        first = first[:at] + first[at] * rng.randint(2, 5) + first[at + 1 :]
    else:
        at = rng.randint(1, len(first) - 2)
        if kind < 0.65:
            first = first[:at] + first[at + 1] + first[at] + first[at + 2 :]
        elif kind < 0.85:
            first = first[:at] + first[at + 1 :]
        else:
            first = first[:at] + first[at] + first[at:]
    return f"{first} {rest}" if rest else first
