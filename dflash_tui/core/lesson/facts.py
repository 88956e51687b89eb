"""A trace's numbers by name, and lesson texts with them. ``{t2.tok_s / t1.tok_s:.1f}``: an expression of facts and
numbers with + - * / and brackets, and its format. Nothing else is evaluated."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from statistics import fmean

from engine.events import Step
from engine.sampling.philox import uniform
from engine.speculation.lookup import num_agreed

from ..export.document import ExportedAnswer, is_set
from ..figures import labels
from .parsing import FigureRequest, LessonError, LessonStop, TextLine

Fact = float | int | str
Facts = Mapping[str, Fact]
_FORM = re.compile(r",?(\.\d)?[dfg%]?")
_HOLE = re.compile(r"\{([^{}]{0,200})\}")
_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def words() -> dict[str, Fact]:
    """The facts ``words.NAME``, what the screen calls its figures and colours, and ``words.NAME_says``, what they
    are."""
    known = {name.lower(): label for name, label in vars(labels).items() if isinstance(label, labels.Label)}
    known |= {str(fate): label for fate, label in labels.COLOURS.items()}
    named: dict[str, Fact] = {f"words.{name}": label.name for name, label in known.items()}
    return named | {f"words.{name}_says": label.says for name, label in known.items()}


def turn_facts(number: int, answer: ExportedAnswer) -> dict[str, Fact]:
    """The facts of one turn, as ``t1.…``. Times in milliseconds."""
    facts = answer.statistics
    rounds = [step for step in answer.steps if step.verify_width]
    drafted = [step for step in rounds if step.draft]
    values: dict[str, Fact | None] = {
        "question": answer.question,
        "tokens": facts.num_tokens,
        "tok_s": facts.tok_s,
        "ms_per_token": 1000 / facts.tok_s if facts.tok_s else 0.0,
        "decode_ms": facts.decode_ms,
        "ttft_ms": facts.ttft_ms,
        "rounds": len(rounds),
        "block": max((step.block_size for step in drafted), default=1),
        "drafted": facts.num_draft_tokens,
        "accepted": facts.num_accepted_draft_tokens,
        "acceptance": facts.mean_acceptance_length,
        "draft_ms": _mean(step.draft_ms for step in rounds),
        "verify_ms": _mean(step.verify_ms for step in rounds),
        "round_ms": fmean(step.total_ms for step in rounds) if rounds else 0.0,
        "full_rounds": sum(step.num_accepted == len(step.draft) for step in drafted),
        "empty_rounds": sum(step.num_accepted == 0 for step in drafted),
        "temperature": rounds[-1].temperature if rounds else 0.0,
    }
    return {f"t{number}.{name}": value for name, value in values.items() if value is not None}


def round_facts(answer: ExportedAnswer, index: int) -> dict[str, Fact]:
    """The facts of the round that a stop shows, as ``round.…``."""
    step = answer.steps[index]
    values: dict[str, Fact | None] = {
        "number": step.index,
        "drafted": len(step.draft),
        "kept": step.num_accepted,
        "tokens": len(step.emitted),
        "discarded": max(len(step.draft) - step.num_accepted - 1, 0),
        "draft_ms": step.draft_ms,
        "verify_ms": step.verify_ms,
        "total_ms": step.total_ms,
    }
    own = next((token for token in step.emitted if token.verdict != "accepted"), None)
    if own is not None:
        values |= {"chosen": _shown(own.text), "chosen_p": own.probability}
    if own is not None and own.verdict == "corrected":
        rejected = step.draft[step.num_accepted]
        values |= {"rejected": _shown(rejected.text or ""), "rejected_drafter_p": rejected.probability}
        values["rejected_target_p"] = rejected.target_probability or 0.0
    seed = answer.settings.get("seed")
    if isinstance(seed, int):
        before = sum(len(earlier.emitted) for earlier in answer.steps[:index])
        values["random"] = uniform(seed, answer.num_prompt_tokens + before + step.num_accepted)
    return {f"round.{name}": value for name, value in values.items() if value is not None}


def same_tokens(answers: Sequence[ExportedAnswer]) -> dict[str, Fact]:
    """How many tokens each two answers share from their beginning, under names such as ``same_t1_t2``."""
    ids = [[token.text if token.id is None else token.id for token in answer.tokens] for answer in answers]
    return {
        f"same_t{first + 1}_t{second + 1}": num_agreed(ids[first], ids[second])
        for first in range(len(ids))
        for second in range(first + 1, len(ids))
    }


def _mean(values: Iterable[float | None]) -> float | None:
    """The mean of some values: 0 of nothing, None when one of them is not known."""
    known = list(values)
    return None if None in known else fmean(value or 0.0 for value in known) if known else 0.0


def _shown(text: str) -> str:
    return text.replace("\n", "⏎").replace("\t", "⇥").strip() or "␣"


def choose_round(path: Path, request: FigureRequest, answer: ExportedAnswer) -> int:
    """The index of the round that a figure asks for. Raises :class:`LessonError` when the turn has no such round."""
    word, number = request.choice.word, request.choice.number
    drafted = [index for index, step in enumerate(answer.steps) if step.draft]
    match word:
        case "":
            found = [index for index, step in enumerate(answer.steps) if step.index == number]
        case "best" | "worst":
            ranked = sorted(drafted, key=lambda index: answer.steps[index].num_accepted, reverse=word == "best")
            found = ranked[:1]
        case "bonus":
            found = [index for index in drafted if _ends_with(answer.steps[index], "bonus")][:1]
        case "rejection":
            found = [index for index in drafted if _ends_with(answer.steps[index], "corrected")][number - 1 :][:1]
        case _:
            found = drafted[:1]
    if not found:
        what = f"round {number}" if not word else f"{word} round" + (f" {number}" if number > 1 else "")
        raise LessonError(path, request.line, f"turn {request.turns[0]} of the trace has no {what}.")
    return found[0]


def _ends_with(step: Step, verdict: str) -> bool:
    return bool(step.emitted) and step.emitted[-1].verdict == verdict


def fill(path: Path, stop: LessonStop, facts: Facts) -> str:
    """The stop's text with its numbers, a paragraph per line of its own, empty lines between them; lines that begin
    with four blanks stay as they are. Raises :class:`LessonError` for a hole that can't be filled."""
    lines = (_fill_line(path, line, facts) for line in stop.lines)
    groups = (list(group) for blank, group in groupby(lines, key=lambda line: not line) if not blank)
    return "\n\n".join("\n".join(group) if is_set(group[0]) else " ".join(group) for group in groups)


def _fill_line(path: Path, line: TextLine, facts: Facts) -> str:
    def value(hole: re.Match[str]) -> str:
        expression, _, form = hole[1].partition(":")
        try:
            if not _FORM.fullmatch(form):
                raise ValueError("behind the colon stands a form such as .1f, .0% or ,")
            return format(_evaluate(ast.parse(expression.strip(), mode="eval").body, facts), form)
        except KeyError as error:
            known = ", ".join(sorted(name for name in facts if name.split(".")[0] in ("t1", "round")))
            raise LessonError(path, line.number, f"there is no fact {error.args[0]}. Some of them: {known}") from None
        except ZeroDivisionError:
            raise LessonError(path, line.number, f"{hole[0]} divides by zero.") from None
        except (SyntaxError, TypeError, ValueError, RecursionError) as error:
            raise LessonError(path, line.number, f"{hole[0]} can't be written: {error}") from None

    return _HOLE.sub(value, line.text)


def _evaluate(node: ast.expr, facts: Facts) -> Fact:
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.Name(id=name):
            return facts[name]
        case ast.Attribute(value=ast.Name(id=owner), attr=name):
            return facts[f"{owner}.{name}"]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_number(left, facts), _number(right, facts))
    raise ValueError("only facts, numbers and + - * / can stand here")


def _number(node: ast.expr, facts: Facts) -> float:
    value = _evaluate(node, facts)
    if isinstance(value, str):
        raise ValueError(f"{value!r} is no number")
    return value
