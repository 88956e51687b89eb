"""Editing tasks on lists, tables, settings and logs."""

from __future__ import annotations

import json
import random

from engine.lab.demo.corpus.edit.content import (
    ADJECTIVES,
    NOUNS,
    PEOPLE,
    VERBS,
    File,
    any_word,
    distinct,
    file_name,
    nonsense,
    number,
    variable_name,
)
from engine.lab.demo.corpus.edit.task import Edit, Task
from engine.lab.demo.corpus.wording import capitalised, phrase, pick

HEADERS = {
    "name": ("Name", "nom", "nombre"), "price": ("Preis", "prix", "precio"), "date": ("Datum", "date", "fecha"),
    "city": ("Stadt", "ville", "ciudad"), "number": ("Nummer", "numéro", "número"),
    "color": ("Farbe", "couleur", "color"), "age": ("Alter", "âge", "edad"), "country": ("Land", "pays", "país"),
    "weight": ("Gewicht", "poids", "peso"), "day": ("Tag", "jour", "día"), "month": ("Monat", "mois", "mes"),
    "year": ("Jahr", "année", "año"), "street": ("Straße", "rue", "calle"),
    "order": ("Bestellung", "commande", "pedido"), "customer": ("Kunde", "client", "cliente"),
    "amount": ("Menge", "quantité", "cantidad"), "size": ("Größe", "taille", "talla"),
    "time": ("Zeit", "heure", "hora"), "product": ("Produkt", "produit", "producto"),
    "total": ("Summe", "total", "total"), "language": ("Sprache", "langue", "idioma"),
    "address": ("Adresse", "adresse", "dirección"), "animal": ("Tier", "animal", "animal"),
    "fruit": ("Obst", "fruit", "fruta"), "school": ("Schule", "école", "escuela"), "book": ("Buch", "livre", "libro"),
    "friend": ("Freund", "ami", "amigo"), "house": ("Haus", "maison", "casa"), "car": ("Auto", "voiture", "coche"),
    "week": ("Woche", "semaine", "semana"),
}  # fmt: skip
LANGUAGES = ("German", "French", "Spanish")

SERIES = (
    ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
     "December"),
    ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"),
    ("a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n"),
    ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"),
)  # fmt: skip
LEVELS = ("INFO", "ERROR", "DEBUG", "WARNING")


def _cell(rng: random.Random) -> str:
    chance = rng.random()
    if chance < 0.35:
        return number(rng)
    return pick(rng, PEOPLE) if chance < 0.55 else any_word(rng) if chance < 0.75 else capitalised(nonsense(rng))


def _table(header: list[str], rows: list[list[str]], markdown: bool) -> str:
    if not markdown:
        return "\n".join(",".join(cells) for cells in (header, *rows))
    lines = ["| " + " | ".join(cells) + " |" for cells in (header, *rows)]
    return "\n".join([lines[0], "|" + " --- |" * len(header), *lines[1:]])


def _draw_table(rng: random.Random, known: bool) -> tuple[list[str], list[list[str]], bool]:
    width = rng.randint(2, 4)
    header = rng.sample(sorted(HEADERS), width) if known else distinct(rng, variable_name, width)
    rows = [[_cell(rng) for _ in header] for _ in range(rng.randint(2, 7))]
    return header, rows, rng.random() < 0.6


def _table_file(rng: random.Random, text: str, markdown: bool) -> File:
    ending = "md" if markdown else "csv"
    return File(file_name(rng, ending), pick(rng, ("markdown", "")) if markdown else pick(rng, ("csv", "")), text)


def translate_header(rng: random.Random) -> Edit:
    header, rows, markdown = _draw_table(rng, known=True)
    if rng.random() < 0.4:
        header = [capitalised(word) for word in header]
    language = rng.randrange(3)
    words = [HEADERS[word.lower()][language] for word in header]
    new = [capitalised(word) if old[0].isupper() else word for word, old in zip(words, header, strict=True)]
    file = _table_file(rng, _table(header, rows, markdown), markdown)
    wish = phrase(
        rng,
        pick(
            rng,
            (
                "[Translate|Please translate] the [header|first row|column names|headings][ of {f}| of the table|] "
                "[to|into] {l}.",
                "[Give|Write] the header[ of {f}|] in {l}.", "translate the header to {l}",
                "The column names should be in {l}.",
            ),
        ),
        f=file.name, l=LANGUAGES[language],
    )  # fmt: skip
    intro = f"Here is the table with its header in {LANGUAGES[language]}:"
    return Edit(file, wish, intro, _table(new, rows, markdown), "".join(header) + rows[0][0])


def rename_column(rng: random.Random) -> Edit:
    header, rows, markdown = _draw_table(rng, known=rng.random() < 0.4)
    at = rng.randrange(len(header))
    new = distinct(rng, variable_name, 1, tuple(header))[0]
    file = _table_file(rng, _table(header, rows, markdown), markdown)
    wish = phrase(
        rng,
        pick(rng, ("Rename the column [{o}|`{o}`] to [{n}|`{n}`][ in {f}|].", "[Call|Name] the column {o} {n}.")),
        o=header[at], n=new, f=file.name,
    )  # fmt: skip
    result = _table([*header[:at], new, *header[at + 1 :]], rows, markdown)
    return Edit(file, wish, f"Here is the table with the column `{new}`:", result, new)


def add_row(rng: random.Random) -> Edit:
    header, rows, markdown = _draw_table(rng, known=rng.random() < 0.5)
    more = [_cell(rng) for _ in header]
    file = _table_file(rng, _table(header, rows, markdown), markdown)
    wish = phrase(
        rng, pick(rng, ("Add [the|a] row {r}[ to {f}|].", "[Append|Add] {r} [to the table|as a new row].")),
        r=", ".join(more), f=file.name,
    )  # fmt: skip
    result = _table(header, [*rows, more], markdown)
    return Edit(file, wish, "Here is the table with the new row:", result, "".join(more))


def extract_column(rng: random.Random) -> Edit:
    header, rows, markdown = _draw_table(rng, known=rng.random() < 0.5)
    at = rng.randrange(len(header))
    file = _table_file(rng, _table(header, rows, markdown), markdown)
    wish = phrase(
        rng,
        pick(
            rng,
            (
                "[List|Give me|Show|Extract] [only |just |]the column [{c}|`{c}`][ of {f}|].",
                "What [is|stands] in the column {c}?",
            ),
        ),
        c=header[at], f=file.name,
    )  # fmt: skip
    result = "\n".join(f"- {row[at]}" for row in rows)
    return Edit(file, wish, f"The column `{header[at]}`:", result, header[at] + rows[0][at], fenced=False)


def _item(rng: random.Random) -> str:
    chance = rng.random()
    if chance < 0.4:
        return f"{pick(rng, ADJECTIVES)} {pick(rng, NOUNS)}"
    if chance < 0.7:
        return f"{pick(rng, VERBS)} the {pick(rng, NOUNS)}"
    return pick(rng, PEOPLE) if chance < 0.8 else nonsense(rng)


def _list(items: list[str], style: str) -> str:
    return "\n".join(f"{at}. {item}" if style == "1" else f"{style} {item}" for at, item in enumerate(items, 1))


def _list_file(rng: random.Random, text: str) -> File:
    return File(file_name(rng, pick(rng, ("md", "txt"))), "", text)


def continue_list(rng: random.Random) -> Edit:
    """A series with its next three members: days, months, numbers in steps."""
    more = 3
    label = capitalised(any_word(rng))
    pattern = pick(rng, ("{x}", "{x}", f"{label} {{x}}", f"{{x}}: {any_word(rng)}", f"{any_word(rng)}_{{x}}"))
    length = rng.randint(2, 5)
    if rng.random() < 0.5:
        series = pick(rng, [s for s in SERIES if len(s) >= length + more])
        begin = rng.randint(0, len(series) - length - more)
        members = list(series[begin : begin + length + more])
    else:
        step = pick(rng, (1, 1, 1, 2, 5, 10))
        begin = rng.randint(0, 60) if step == 1 else step * rng.randint(0, 8)
        members = [str(begin + step * at) for at in range(length + more)]
    items = [pattern.format(x=member) for member in members]
    style = pick(rng, ("-", "*", "1"))
    file = _list_file(rng, _list(items[:length], style))
    wish = phrase(
        rng,
        pick(
            rng,
            (
                "[Continue|Please continue|Go on with] the list[ in {f}|].", "[Add|Write] the next three [items|lines]"
                "[ of the list| to {f}|].", "continue the list", "Continue {f} with three more items.",
                "How does the list go on?",
            ),
        ),
        f=file.name,
    )  # fmt: skip
    return Edit(file, wish, "The list with three more items:", _list(items, style), "".join(items))


def _edit_items(rng: random.Random) -> tuple[list[str], str]:
    return distinct(rng, _item, rng.randint(3, 8)), pick(rng, ("-", "*", "1", "-"))


def add_item(rng: random.Random) -> Edit:
    items, style = _edit_items(rng)
    more = _item(rng)
    file = _list_file(rng, _list(items, style))
    at_end = rng.random() < 0.7
    wish = phrase(
        rng,
        pick(
            rng,
            ('[Add|Append|Put] "{i}" [to the list|at the end][.|, please.]', "add {i} to [the list|{f}]")
            if at_end
            else ('[Add|Put] "{i}" at the [top|beginning|start] of the list.',),
        ),
        i=more, f=file.name,
    )  # fmt: skip
    result = _list([*items, more] if at_end else [more, *items], style)
    return Edit(file, wish, "Here is the list with that item:", result, more)


def delete_item(rng: random.Random) -> Edit:
    items, style = _edit_items(rng)
    gone = pick(rng, items)
    file = _list_file(rng, _list(items, style))
    wish = phrase(
        rng, pick(rng, ('[Remove|Delete|Cross out|Drop] "{i}"[ from the list| from {f}|].',
        "{i} is done, remove it[.|]")),
        i=gone, f=file.name,
    )  # fmt: skip
    result = _list([item for item in items if item != gone], style)
    return Edit(file, wish, f'Here is the list without "{gone}":', result, gone)


def reverse_list(rng: random.Random) -> Edit:
    items, style = _edit_items(rng)
    file = _list_file(rng, _list(items, style))
    wish = phrase(
        rng, pick(rng, ("[Reverse|Turn around] the [list|order][ in {f}|].",
        "[Write|Show] the list from last to first.")),
        f=file.name,
    )  # fmt: skip
    return Edit(file, wish, "The list in reverse order:", _list(items[::-1], style), items[0] + items[1])


def number_list(rng: random.Random) -> Edit:
    items, _ = _edit_items(rng)
    file = _list_file(rng, _list(items, pick(rng, "-*")))
    wish = phrase(
        rng, pick(rng, ("[Number|Please number] the [items|list|lines][ in {f}|].",
        "[Make|Turn] it [into |]a numbered list.")),
        f=file.name,
    )  # fmt: skip
    return Edit(file, wish, "The list with numbers:", _list(items, "1"), items[0] + items[1])


def set_key(rng: random.Random) -> Edit:
    """One value of a settings file: TOML, INI, an env file, YAML or JSON."""
    keys = distinct(rng, variable_name, rng.randint(3, 7))
    kind = pick(rng, ("toml", "toml", "json", "yaml", "env", "ini"))
    values = {key: _plain_literal(rng, kind) for key in keys}
    key = pick(rng, keys)
    new = _plain_literal(rng, kind)
    while new == values[key]:
        new = _plain_literal(rng, kind)
    section = f"[{any_word(rng)}]\n" if kind in ("toml", "ini") and rng.random() < 0.5 else ""
    text, result = (section + _settings(v, kind) for v in (values, values | {key: new}))
    language = {"env": "", "ini": "ini"}.get(kind, kind)
    file = File(file_name(rng, kind), language if rng.random() < 0.8 else "", text)
    wish = phrase(
        rng,
        pick(
            rng,
            (
                "[Set|Change] [{k}|`{k}`] to [{n}|`{n}`][ in {f}|].", "[{k}|`{k}`] should be {n}[ in {f}|].",
                "change {k} from {o} to {n}", "Give {k} the value {n}[.|]",
            ),
        ),
        k=key, n=new, o=values[key], f=file.name,
    )  # fmt: skip
    return Edit(file, wish, f"Here is `{file.name}` with `{key}` set to `{new}`:", result, key + new)


def _plain_literal(rng: random.Random, kind: str) -> str:
    chance = rng.random()
    if chance < 0.5:
        return str(rng.randint(0, 9999))
    if chance < 0.65:
        return pick(rng, ("true", "false"))
    word = any_word(rng)
    return f'"{word}"' if kind in ("toml", "json") else word


def _settings(values: dict[str, str], kind: str) -> str:
    if kind == "json":
        return "{\n" + ",\n".join(f"  {json.dumps(key)}: {value}" for key, value in values.items()) + "\n}"
    joint = {"yaml": ": ", "env": "="}.get(kind, " = ")
    return "\n".join(f"{key.upper() if kind == 'env' else key}{joint}{value}" for key, value in values.items())


def _log(rng: random.Random) -> list[str]:
    hour = rng.randint(0, 22)
    return [
        f"{hour:02}:{rng.randint(10, 59)} {pick(rng, LEVELS)} {any_word(rng)} {pick(rng, VERBS)} {any_word(rng)} "
        f"{rng.randint(1, 999)}"
        for _ in range(rng.randint(4, 9))
    ]


def extract_lines(rng: random.Random) -> Edit:
    """Lines of a log by their number, or those with a word."""
    lines = _log(rng)
    file = File(file_name(rng, pick(rng, ("log", "txt"))), "", "\n".join(lines))
    chance = rng.random()
    if chance < 0.5:
        level = pick(rng, [line.split()[1] for line in lines])
        found = [line for line in lines if f" {level} " in line]
        wishes: tuple[str, ...] = (
            "[Show|Extract|Quote|Give me] [the|all|only the] lines with {w}[ of {f}| from {f}|].",
            "[Which|What] lines [have|contain] {w}?", "grep {w}[ {f}|]", "[Show|List] the {w} lines[ of {f}|].",
        )  # fmt: skip
        words = {"w": level}
    elif chance < 0.75:
        count = rng.randint(1, 3)
        first = rng.random() < 0.5
        found = lines[:count] if first else lines[-count:]
        number_word = ("line", "two lines", "three lines")[count - 1]
        wishes = ("[Show|Extract|Quote|Give me] the {w}[ of {f}|].", "the {w}, please")
        words = {"w": f"{'first' if first else 'last'} {number_word}"}
    else:
        begin = rng.randint(1, len(lines) - 1)
        end = rng.randint(begin + 1, min(len(lines), begin + 3))
        found = lines[begin - 1 : end]
        wishes = ("[Show|Extract|Quote|Give me] lines {w}[ of {f}|].", "lines {w}")
        words = {"w": f"{begin} to {end}"}
    wish = phrase(rng, pick(rng, wishes), f=file.name, **words)
    return Edit(file, wish, f"From `{file.name}`:", "\n".join(found), found[0])


DATA_TASKS: dict[str, tuple[Task, int]] = {
    "translate_header": (translate_header, 8),
    "rename_column": (rename_column, 3),
    "add_row": (add_row, 3),
    "extract_column": (extract_column, 3),
    "continue_list": (continue_list, 7),
    "add_item": (add_item, 4),
    "delete_item": (delete_item, 3),
    "reverse_list": (reverse_list, 3),
    "number_list": (number_list, 3),
    "set_key": (set_key, 5),
    "extract_lines": (extract_lines, 6),
}
"""By name, with the weight in the draw."""
