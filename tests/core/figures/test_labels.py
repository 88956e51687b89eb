"""The list of labels is the only place that says what a figure, a colour or a row is."""

from __future__ import annotations

from pathlib import Path

import dflash_tui
from dflash_tui.core.figures import labels
from dflash_tui.core.figures.labels import Label

SOURCE = Path(dflash_tui.__file__).parent
LABELS = [value for value in vars(labels).values() if isinstance(value, Label)]
LABELS += [label for table in (labels.COLOURS, labels.UNCHECKED, labels.SERVERS) for label in table.values()]
TEXTS = {
    path.relative_to(SOURCE): path.read_text("utf-8")
    for path in SOURCE.rglob("*")
    if path.suffix in {".py", ".js", ".css"} and path.name != "labels.py"
}
SCREENS = [
    text
    for path, text in TEXTS.items()
    if path.name != "ascii.py" and (path.parts[0] == "app" or path.parts[:2] == ("core", "export"))
]


def test_what_a_word_means_stands_in_the_list_alone() -> None:
    assert LABELS
    for label in LABELS:
        assert [path for path, text in TEXTS.items() if label.says and label.says in text] == [], label.name
        if " " in label.name and label not in labels.SERVERS.values():
            written = f'"{label.name}"'
            assert [path for path, text in TEXTS.items() if written in text] == [], "its name is taken from there"


def test_labels_are_plain_english() -> None:
    """No Greek, no interval, no count of observations, no letter for a probability."""
    for label in LABELS:
        words = f"{label.name} {label.brief} {label.says}"
        assert not any(letter.isalpha() and not letter.isascii() for letter in words), words
        assert not {"n", "p", "u", "CI"} & set(words.replace("=", " ").replace(",", " ").split()), words
    for sign in ("τ ", "±", "n={", '"drafter p"', '"target p"', '"its p"', "if reached"):
        assert not any(sign in text for text in SCREENS), sign
