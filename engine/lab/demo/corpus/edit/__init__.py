"""The domain "edit": a file in the prompt, one thing to change, and the file again with that change.

All names are random, so what is learnt is to copy from the prompt, not to know the file.
"""

from __future__ import annotations

import random
import re
from typing import Any

from engine.lab.demo.corpus.edit.code_tasks import CODE_TASKS
from engine.lab.demo.corpus.edit.data_tasks import DATA_TASKS
from engine.lab.demo.corpus.edit.layout import handed_over, prompt_of
from engine.lab.demo.corpus.edit.task import Edit, Task
from engine.lab.demo.corpus.edit.text_tasks import TEXT_TASKS
from engine.lab.demo.corpus.noise import noisy
from engine.lab.demo.corpus.sample import Sample

__all__ = ["TASKS", "check", "generate", "generate_task"]

TASKS: dict[str, tuple[Task, int]] = CODE_TASKS | TEXT_TASKS | DATA_TASKS
_NAMES, _WEIGHTS = tuple(TASKS), tuple(weight for _, weight in TASKS.values())

NAMED = 0.75
"""Share of files that come with their name."""
SECOND_FILE = 0.12
HANDED_OVER = 0.12
"""Share of files that came in an earlier exchange."""
NOISY = 0.3
LONGEST = 2400
"""Characters of a result."""

_FENCE = re.compile(r"^(`{3,})[^\n]*\n(.*?)\n?^\1\s*$", re.MULTILINE | re.DOTALL)


def generate(rng: random.Random) -> Sample:
    """One editing task, any of them."""
    return generate_task(rng, rng.choices(_NAMES, _WEIGHTS)[0])


def generate_task(rng: random.Random, name: str) -> Sample:
    """One exchange of the task with this name."""
    task, _ = TASKS[name]
    edit = task(rng)
    while len(edit.result) > LONGEST or not edit.result.strip():
        edit = task(rng)
    named = edit.file.name in edit.wish or rng.random() < NAMED
    wish = noisy(rng, edit.wish) if rng.random() < NOISY and edit.file.name not in edit.wish else edit.wish
    files = [edit.file]
    if named and rng.random() < SECOND_FILE:
        other, _ = rng.choice(tuple(TASKS.values()))
        second = other(rng).file
        if second.name != edit.file.name and len(second.text) < LONGEST and edit.file.name in wish:
            files.insert(0, second)
    before: tuple[tuple[str, str], ...] = ()
    if rng.random() < HANDED_OVER:
        before, prompt = (handed_over(rng, files),), wish
    else:
        prompt = prompt_of(rng, wish, files, named)
    facts = {"task": name, "result": edit.result, "fenced": edit.fenced}
    return Sample("edit", prompt, _response(edit, named), f"edit/{name}/{edit.key}", facts, before)


_LANGUAGES = {
    "py": "python", "md": "markdown", "csv": "csv", "toml": "toml", "json": "json", "yaml": "yaml", "ini": "ini",
}  # fmt: skip
"""Of a file, by the ending of its name."""
_BY_LOOKS = ("python", "csv", "toml", "json", "yaml", "ini")
"""Those that a text without a name shows."""


def _response(edit: Edit, named: bool) -> str:
    if not edit.fenced:
        return f"{edit.intro}\n\n{edit.result}"
    name = edit.file.name
    language = _LANGUAGES.get(name.rpartition(".")[2], "text")
    if named:
        return f"{edit.intro}\n\n```{language} {name}\n{edit.result}\n```"
    intro = edit.intro.replace(f"Here is `{name}`", "Here it is").replace(f"`{name}`", "it")
    return f"{intro}\n\n```{language if language in _BY_LOOKS else ''}\n{edit.result}\n```"


def check(response: str, check: dict[str, Any]) -> dict[str, bool]:
    """Verdicts: "exact" (the result, to the character), the same under the name of the task, and "lines" (at least nine
    of ten of its lines are there)."""
    expected = str(check.get("result", ""))
    text = response.removesuffix("<turn|>")
    if check.get("fenced"):
        fences = _FENCE.findall(text)
        given = fences[-1][1] if fences else ""
    else:
        given = text.partition("\n\n")[2].strip("\n")
    wanted = expected.split("\n")
    there = given.split("\n")
    found = sum(line in there for line in wanted)
    exact = given.rstrip() == expected.rstrip()
    return {"exact": exact, f"task_{check.get('task')}": exact, "lines": found >= 0.9 * len(wanted)}
