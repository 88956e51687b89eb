"""Gets the prompts that the target is asked: from a file, or as the target itself expects people to write them."""

from __future__ import annotations

import itertools
import json
import os
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...commands import Message
from ...errors import UsageFailure
from ...models.target import TargetModel
from ...tokenization.tokenizer import ChatTokenizer
from .generation import Sampler, generate

MARK = "MARK"
"""Stands for a question, to find what a template writes before and behind one."""
INVENTED = "invented"
GIVEN = "given"
INVENTING = 0.9
"""The temperature at which questions are drawn."""
LONGEST_QUESTION = 160
"""The most tokens of an invented question: one that doesn't end by then isn't one."""


@dataclass(frozen=True, slots=True)
class TrainingPrompt:
    """A question as the template writes it."""

    ids: tuple[int, ...]
    domain: str
    """The kind of prompt; those of one domain share figures."""


def read_prompts(path: Path, tokenizer: ChatTokenizer) -> list[TrainingPrompt]:
    """Reads a prompt from each line: text, or JSON with ``prompt`` or ``messages``, and ``domain`` if there are
    several. Raises ``UsageFailure`` for a file that holds something else."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageFailure(f"The prompts in {path} can't be read: {error}.", "Name a text file.") from None
    prompts = [_read(line, f"{path}, line {number}", tokenizer) for number, line in enumerate(lines, 1) if line.strip()]
    if not prompts:
        raise UsageFailure(f"{path} holds no prompt.", "Write one a line, or leave the file out.")
    return prompts


def _read(line: str, where: str, tokenizer: ChatTokenizer) -> TrainingPrompt:
    if not line.startswith("{"):
        return TrainingPrompt(_ids(tokenizer, [Message("user", line.strip())]), GIVEN)
    try:
        entry = json.loads(line)
        messages = entry["messages"] if "messages" in entry else [{"role": "user", "content": entry["prompt"]}]
        talk = [Message(each["role"], str(each["content"])) for each in messages]
        domain = str(entry.get("domain", GIVEN))
    except (ValueError, KeyError, TypeError) as error:
        what = f"{where} is no prompt: {type(error).__name__}: {error}."
        raise UsageFailure(what, 'A line is text, or JSON such as {"prompt": "Hi", "domain": "chat"}.') from None
    return TrainingPrompt(_ids(tokenizer, talk), domain)


def _ids(tokenizer: ChatTokenizer, talk: Sequence[Message]) -> tuple[int, ...]:
    return tokenizer.prompt(talk, thinking=False).ids


@dataclass(frozen=True, slots=True)
class Inventor:
    """Invents questions: the target writes the user's turn, behind what its template writes before that."""

    target: TargetModel
    tokenizer: ChatTokenizer
    seed: int

    def batch(self, index: int, size: int) -> list[str]:
        """Lets the target write ``size`` questions and returns those that ended and differ, so at most ``size``. The
        same ``index`` always gives the same."""
        before, behind = self.tokenizer.around(MARK)
        stops = {*self.target.config.stop_token_ids, behind[0]}
        sampler = Sampler(INVENTING, self.seed * 1_000_003 + index, self.target.device)
        turns = generate(self.target, [before] * size, LONGEST_QUESTION, sampler, sorted(stops))
        texts = [self.tokenizer.decode(turn.ids).strip() for turn in turns if turn.ended]
        return list(dict.fromkeys(text for text in texts if text))


def invent(
    inventor: Inventor,
    count: int,
    size: int,
    folder: Path,
    report: Callable[[int, int], None],
    enough: Callable[[], bool] = lambda: False,
) -> list[str]:
    """Invents ``count`` different questions and writes a file to ``folder`` for each batch of ``size``; batches that
    are there aren't made again. ``enough``: asked behind each new batch, whether what there is will do. Raises
    ``UsageFailure`` where the target has no more."""
    seen: dict[str, None] = {}
    for index in itertools.count():
        path = folder / f"questions-{index:04d}.json"
        new = not path.exists()
        if new:
            write_text(path, json.dumps(inventor.batch(index, size), ensure_ascii=False, indent=0))
        known = len(seen)
        seen.update(dict.fromkeys(json.loads(path.read_text("utf-8"))))
        report(min(len(seen), count), count)
        if len(seen) >= count or (new and enough()):
            return list(seen)[:count]
        if len(seen) == known:
            raise UsageFailure(
                f"The target invents no more than {known} different prompts.", "Give it prompts from a file."
            )
    raise AssertionError


def write_text(path: Path, text: str) -> None:
    """Writes a file whole or not at all."""
    temporary = path.with_suffix(".partial")
    temporary.write_text(text, "utf-8")
    os.replace(temporary, path)


def asked(texts: Sequence[str], tokenizer: ChatTokenizer) -> list[TrainingPrompt]:
    """Invented questions, rendered as prompts."""
    return [TrainingPrompt(_ids(tokenizer, [Message("user", text)]), INVENTED) for text in texts]


def split(
    prompts: Sequence[TrainingPrompt], held_out: int, seed: int
) -> tuple[list[TrainingPrompt], list[TrainingPrompt]]:
    """The prompts to train on, and those held out: different ones, in random order. At most a tenth is held out."""
    distinct = list(dict.fromkeys(prompts))
    random.Random(f"split/{seed}").shuffle(distinct)
    count = min(held_out, max(1, len(distinct) // 10))
    return distinct[count:], distinct[:count]
