"""Judges whether an answer is right, by what its held-out question says that a right one must hold.

That is data, such as ``{"kind": "number", "answer": "85"}``. Each kind has its verdicts, and an answer is right where
all of them are true."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

from . import programs

Right = dict[str, Any]
Verdicts = dict[str, bool]

_PAGE = re.compile(r"```html[^\n]*\n(.*?)\n```\s*$", re.DOTALL)
_SCRIPT = re.compile(r"<script>\n(.*?)\n</script>", re.DOTALL)
_STYLE = re.compile(r"<style>\n(.*?)\n</style>", re.DOTALL)
_NOT_CODE = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*')
_VOID = frozenset({"meta", "input", "br", "hr", "img", "link"})
_BRACKETS = {")": "(", "]": "[", "}": "{"}
_EQUATION = re.compile(r"(\d+) ([-+*/]) (\d+) = (-?\d+)")
_FINAL = re.compile(r"[Tt]he answer is (-?\d+(?: remainder \d+)?)")
_FENCE = re.compile(r"^(`{3,})[^\n]*\n(.*?)\n?^\1\s*$", re.MULTILINE | re.DOTALL)
_SENTENCE_END = re.compile(r"[.!?](?= [A-Z]|$)")


def verdicts(answer: str, right: Right) -> Verdicts:
    return _KINDS[right["kind"]](answer, right)


def page_of(answer: str) -> str | None:
    """The page inside an answer's closed ```html fence, or None when there is no such fence at its end."""
    fence = _PAGE.search(answer)
    return fence[1] if fence else None


def page(answer: str, right: Right) -> Verdicts:
    """Verdicts on a page: "valid", "slots" (whether all wishes are fulfilled), and "slot_NAME" for each wish. A missing
    page fails all of them."""
    text = page_of(answer)
    wishes = right.get("slots", {})
    checks = {f"slot_{name}": text is not None and _holds(text, wish) for name, wish in wishes.items()}
    valid = text is not None and is_valid_page(text, right["script"])
    return {"valid": valid, "slots": text is not None and all(checks.values()), **checks}


def _holds(text: str, wish: Right) -> bool:
    """Whether all patterns of "has" and none of "lacks" are found, and the "number" that a pattern finds lies between
    two bounds, of which None is none."""
    if "number" in wish:
        pattern, least, most = wish["number"]
        match = re.search(pattern, text)
        try:
            value = float(match[1]) if match else None
        except ValueError:
            value = None
        if value is None or (least is not None and value < least) or (most is not None and value > most):
            return False
    return all(re.search(each, text) for each in wish.get("has", ())) and not any(
        re.search(each, text) for each in wish.get("lacks", ())
    )


def is_valid_page(text: str, script: bool) -> bool:
    """Whether a page is whole, properly nested, and has the one balanced script that it should have."""
    scripts = _SCRIPT.findall(text)
    return (
        text.startswith("<!DOCTYPE html>")
        and text.endswith("</html>")
        and _nests(text)
        and text.count("<script") == len(scripts) == int(script)
        and all(is_balanced(block) for block in scripts + _STYLE.findall(text))
    )


def is_balanced(code: str) -> bool:
    """Whether brackets outside strings and comments close in order, and no string is left open."""
    bare = _NOT_CODE.sub("", code)
    stack: list[str] = []
    for char in bare:
        if char in "([{":
            stack.append(char)
        elif char in _BRACKETS and (not stack or stack.pop() != _BRACKETS[char]):
            return False
    return not stack and '"' not in bare


class _Nesting(HTMLParser):
    """Follows the tags of a page; ``sound`` stays true while every end tag closes the innermost open one."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.sound = True

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self.open and self.open[-1] == tag:
            self.open.pop()
        else:
            self.sound = False


def _nests(text: str) -> bool:
    nesting = _Nesting()
    try:
        nesting.feed(text)
        nesting.close()
    except (AssertionError, ValueError):  # the parser gives up on some malformed declarations
        return False
    return nesting.sound and not nesting.open


def number(answer: str, right: Right) -> Verdicts:
    """Verdicts on a calculation: "answer" (the final number is right) and "steps" (there are steps, and all of them
    hold)."""
    final, equations = _FINAL.findall(answer), _EQUATION.findall(answer)
    return {
        "answer": bool(final) and final[-1] == right["answer"],
        "steps": bool(equations) and all(_equal(*equation) for equation in equations),
    }


def _equal(left: str, symbol: str, right: str, result: str) -> bool:
    a, b, c = int(left), int(right), int(result)
    if symbol == "/":
        return b != 0 and a == b * c
    return c == {"+": a + b, "-": a - b, "*": a * b}[symbol]


def prose(answer: str, right: Right) -> Verdicts:
    """Verdicts on prose: "ends" (in punctuation), one for each list of words of which some must be there, and "form"
    (as many sentences or bullet points as asked for) where one is asked for."""
    text = answer.strip()
    checks = {"ends": text.endswith((".", "!", "?"))}
    for name, (least, words) in right["words"].items():
        checks[name] = sum(word in text.lower() for word in words) >= least
    if "form" in right:
        checks["form"] = _has_form(text, *right["form"])
    return checks


def _has_form(text: str, bullets: bool, count: int) -> bool:
    lines = text.splitlines()
    if bullets:
        return len(lines) == count and all(line.startswith("- ") for line in lines)
    return len(lines) == 1 and len(_SENTENCE_END.findall(text)) == count


def edit(answer: str, right: Right) -> Verdicts:
    """Verdicts on an edited text: "exact" (right to the character), the same under the name of the task, and "lines"
    (nine of ten of its lines are there)."""
    text = answer
    if right["fenced"]:
        fences = _FENCE.findall(text)
        given = fences[-1][1] if fences else ""
    else:
        given = text.partition("\n\n")[2].strip("\n")
    exact = given.rstrip() == right["result"].rstrip()
    there, wanted = given.split("\n"), right["result"].split("\n")
    num_found = sum(line in there for line in wanted)
    return {"exact": exact, f"task_{right['task']}": exact, "lines": num_found >= 0.9 * len(wanted)}


def change(answer: str, right: Right) -> Verdicts:
    """Verdicts on a changed page or program: "valid" (the page is whole, the program right), "changed" (the lines
    wished for are there) and "kept" (the rest is as it was)."""
    text = answer
    whole = verdicts(text, right["whole"])
    if right["whole"]["kind"] == "page":
        made, valid = page_of(text) or "", whole["valid"]
    else:
        made, valid = programs.code_of(text), all(whole.values())
    there, wanted = made.split("\n"), right["text"].split("\n")
    return {
        "valid": valid,
        "changed": bool(made) and all(line in there for line in right["changed"]),
        "kept": sum(line in there for line in wanted) >= 0.95 * len(wanted),
    }


def says(answer: str, right: Right) -> Verdicts:
    """The verdict on whether an answer holds a sentence, word for word."""
    return {"says": right["text"] in answer}


_KINDS: dict[str, Callable[[str, Right], Verdicts]] = {
    "program": programs.verdicts,
    "page": page,
    "number": number,
    "prose": prose,
    "edit": edit,
    "change": change,
    "says": says,
}
