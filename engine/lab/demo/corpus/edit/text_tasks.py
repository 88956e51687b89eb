"""Editing tasks on prose: quote it, correct it, change a word or a sentence."""

from __future__ import annotations

import random
import re

from engine.lab.demo.corpus.code.values import split
from engine.lab.demo.corpus.edit.content import (
    ADJECTIVES,
    NOUNS,
    File,
    any_word,
    file_name,
    nonsense,
    sentence,
    sentences,
)
from engine.lab.demo.corpus.edit.task import Edit, Task
from engine.lab.demo.corpus.wording import capitalised, phrase, pick

ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")
_WORD = re.compile(r"(?<![\w'])[a-z]{4,}(?![\w'])")
_KNOWN = frozenset(NOUNS + ADJECTIVES) | frozenset(
    split(
        "stands near every found pages never opens before always came costs dollars today nobody knows left night "
        "after days again word means painted there ways reach please bring last year moved took hours clean "
        "without does work road houses when rains turns wrote about most people like more than called Monday noon"
    )
)


def _file(rng: random.Random, text: str) -> File:
    ending = pick(rng, ("txt", "md", "txt"))
    return File(file_name(rng, ending), "markdown" if ending == "md" and rng.random() < 0.3 else "", text)


def _prose(rng: random.Random, low: int, high: int) -> tuple[list[str], str]:
    parts = sentences(rng, low, high)
    if rng.random() < 0.2:
        return parts, "\n".join(parts)
    if rng.random() < 0.2 and len(parts) > 3:
        half = len(parts) // 2
        return parts, " ".join(parts[:half]) + "\n\n" + " ".join(parts[half:])
    return parts, " ".join(parts)


def _which(rng: random.Random, count: int) -> tuple[str, int]:
    index = rng.randrange(min(count, len(ORDINALS)))
    if index == count - 1 and rng.random() < 0.6:
        return "last", index
    return ORDINALS[index], index


def quote_sentence(rng: random.Random) -> Edit:
    parts, text = _prose(rng, 3, 6)
    which, index = _which(rng, len(parts))
    file = _file(rng, text)
    wish = phrase(
        rng,
        pick(
            rng,
            (
                "[Quote|Repeat|Copy|Show] the {w} sentence[ of {f}|].", "What is the {w} sentence[ of {f}|]?",
                "[Give me|I need] the {w} sentence[.|, please.]", "quote the {w} sentence",
            ),
        ),
        w=which, f=file.name,
    )  # fmt: skip
    return Edit(file, wish, f"The {which} sentence:", f"> {parts[index]}", parts[index], fenced=False)


def quote_about(rng: random.Random) -> Edit:
    """The sentence in which a name stands."""
    while True:
        parts, text = _prose(rng, 3, 7)
        counts = {w: text.count(w) for part in parts for w in re.findall(r"(?<!^)\b[A-Z][a-z]{2,}|\b\d+\b", part)}
        names = [word for word, count in counts.items() if count == 1 and word != "Monday"]
        if names:
            break
    name = pick(rng, names)
    found = next(part for part in parts if name in part)
    file = _file(rng, text)
    wish = phrase(
        rng,
        pick(
            rng,
            (
                '[Quote|Show|Find|Copy] the sentence [with|about|that mentions] [{n}|"{n}"][ in {f}|].',
                '[Which sentence|Where does it] mention[s|] [{n}|"{n}"]?', "What does [the text|{f}] say about {n}?",
                "Extract the sentence with {n}[.|]",
            ),
        ),
        n=name, f=file.name,
    )  # fmt: skip
    return Edit(file, wish, f'The sentence with "{name}":', f"> {found}", name, fenced=False)


def quote_paragraph(rng: random.Random) -> Edit:
    paragraphs = [" ".join(sentences(rng, 1, 3)) for _ in range(rng.randint(2, 4))]
    which, index = _which(rng, len(paragraphs))
    file = _file(rng, "\n\n".join(paragraphs))
    wish = phrase(
        rng, pick(rng, ("[Quote|Repeat|Copy|Show] the {w} paragraph[ of {f}|].", "What is the {w} paragraph?")),
        w=which, f=file.name,
    )  # fmt: skip
    return Edit(file, wish, f"The {which} paragraph:", f"> {paragraphs[index]}", paragraphs[index], fenced=False)


def fix_typo(rng: random.Random) -> Edit:
    while True:
        _, text = _prose(rng, 2, 6)
        words = [match for match in _WORD.finditer(text) if match[0] in _KNOWN]
        if words:
            break
    match = pick(rng, words)
    wrong = _misspelt(rng, match[0])
    broken = text[: match.start()] + wrong + text[match.end() :]
    file = _file(rng, broken)
    given = rng.random() < 0.35
    wishes = (
        ('[Fix|Correct] the typo "{x}"[ in {f}|].', '"{x}" is misspelt, [fix it|correct it|please fix it].')
        if given
        else (
            "[Fix|Correct|Please fix] the [typo|spelling|spelling mistake|misspelt word][ in {f}|].", "fix the typo",
            "There is a [typo|spelling mistake] in [it|{f}|the text]. [Fix it.|Correct it.|]",
            "Correct the spelling[ of {f}|].",
        )
    )  # fmt: skip
    wish = phrase(rng, pick(rng, wishes), x=wrong, f=file.name)
    return Edit(file, wish, f'"{wrong}" should be "{match[0]}":', text, match[0] + wrong)


def _misspelt(rng: random.Random, word: str) -> str:
    """Two letters swapped, one doubled or one dropped, never the first."""
    while True:
        at = rng.randint(1, len(word) - 2)
        kind = rng.random()
        swapped = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
        other = word[:at] + word[at] + word[at:] if kind < 0.75 else word[:at] + word[at + 1 :]
        wrong = swapped if kind < 0.5 else other
        if wrong != word and wrong not in _KNOWN:
            return wrong


def replace_word(rng: random.Random) -> Edit:
    while True:
        _, text = _prose(rng, 2, 6)
        words = sorted({match[0] for match in re.finditer(r"\b[A-Za-z]{4,}\b", text)})
        if words:
            break
    old = pick(rng, words)
    new = capitalised(nonsense(rng)) if old[0].isupper() else any_word(rng)
    file = _file(rng, text)
    wish = phrase(
        rng,
        pick(
            rng,
            (
                '[Replace|Exchange] [{o}|"{o}"|the word {o}] [by|with|for] [{n}|"{n}"][ in {f}|].', "s/{o}/{n}/",
                'Write [{n}|"{n}"] instead of [{o}|"{o}"][ in {f}|].', "[Change|Turn] {o} [to|into] {n}[.|]",
            ),
        ),
        o=old, n=new, f=file.name,
    )  # fmt: skip
    result = re.sub(rf"\b{old}\b", new, text)
    return Edit(file, wish, f'With "{new}" in place of "{old}":', result, old + new)


def add_sentence(rng: random.Random) -> Edit:
    _, text = _prose(rng, 2, 5)
    more = sentence(rng)
    file = _file(rng, text)
    at_end = rng.random() < 0.6
    wishes = (
        ('[Add|Append|Put] "{t}" at the end[ of {f}|].', 'append "{t}"')
        if at_end
        else ('[Add|Put|Insert] "{t}" at the [start|beginning][ of {f}|].', 'Begin [it|the text] with "{t}"')
    )
    joint = "\n" if "\n" in text and "\n\n" not in text else " "
    result = text + joint + more if at_end else more + joint + text
    wish = phrase(rng, pick(rng, wishes), t=more, f=file.name)
    return Edit(file, wish, f"Here is `{file.name}` with that sentence:", result, more)


def delete_sentence(rng: random.Random) -> Edit:
    parts = sentences(rng, 3, 6)
    which, index = _which(rng, len(parts))
    file = _file(rng, " ".join(parts))
    wish = phrase(
        rng, pick(rng, ("[Remove|Delete|Drop|Leave out] the {w} sentence[ of {f}|].", "delete the {w} sentence")),
        w=which, f=file.name,
    )  # fmt: skip
    result = " ".join(part for at, part in enumerate(parts) if at != index)
    return Edit(file, wish, f"Here is `{file.name}` without its {which} sentence:", result, parts[index])


def as_list(rng: random.Random) -> Edit:
    parts = sentences(rng, 2, 6)
    file = _file(rng, " ".join(parts))
    numbered = rng.random() < 0.3
    wishes = (
        ("[Number|Please number] the sentences[ of {f}|].", "[Write|Show] [it|{f}] as a numbered list.")
        if numbered
        else (
            "[Write|Show|Put] [it|the text|{f}] as [a list|bullet points].",
            "One sentence per [line|bullet][, please|].",
            "[Make|Give me] a list of the sentences[ of {f}|].",
        )
    )  # fmt: skip
    result = "\n".join(f"{at}. {part}" if numbered else f"- {part}" for at, part in enumerate(parts, 1))
    return Edit(file, phrase(rng, pick(rng, wishes), f=file.name), "As a list:", result, parts[0], fenced=False)


def repeat_text(rng: random.Random) -> Edit:
    parts, text = _prose(rng, 2, 8)
    file = _file(rng, text)
    wish = phrase(
        rng,
        pick(
            rng,
            (
                "[Repeat|Copy|Show|Quote] [the text|{f}|it][ word for word| unchanged|].", "What does {f} say?",
                "[Print|Write out] [{f}|the whole text].", "repeat the text",
            ),
        ),
        f=file.name,
    )  # fmt: skip
    return Edit(file, wish, f"This is `{file.name}`:", text, parts[0])


TEXT_TASKS: dict[str, tuple[Task, int]] = {
    "quote_sentence": (quote_sentence, 5),
    "quote_about": (quote_about, 5),
    "quote_paragraph": (quote_paragraph, 4),
    "fix_typo": (fix_typo, 7),
    "replace_word": (replace_word, 6),
    "add_sentence": (add_sentence, 3),
    "delete_sentence": (delete_sentence, 3),
    "as_list": (as_list, 3),
    "repeat_text": (repeat_text, 4),
}
"""By name, with the weight in the draw."""
