"""Words a request as a prompt: a concise search-box line, or sentences of a chat."""

from __future__ import annotations

import random

from .program import Program
from .request import Request

CONCISE = (
    "{noun} in python", "python {noun}", "{noun} python", "{noun} python code", "{noun} in Python", "Python {noun}",
    "code {noun} in python", "write {noun} in python", "{noun} python example", "show {noun} in python",
)  # fmt: skip

NO_LANGUAGE = (
    "write {bare}", "Write {noun}", "write {noun}", "code {bare}", "{bare} code", "code for {noun}", "implement {bare}",
    "Implement {noun}", "show me {noun} in code", "write me {noun}", "Give me code for {noun}", "a program for {bare}",
    "Can you write {noun}?", "can you code {bare}",
)  # fmt: skip
"""Python is what the model knows, so nobody needs to say it."""
NO_LANGUAGE_TASKS = (
    "Write a {kind} to {task}", "write code to {task}", "write a {kind} to {task}", "Write a program to {task}",
    "Give me a {kind} to {task}", "Code to {task}", "I need a {kind} to {task}", "a {kind} to {task}",
)  # fmt: skip
UNSAID = 0.15
"""Share of prompts that leave the language out."""

BY_NOUN = (
    "Write {noun} in Python",
    "Implement {noun} in Python",
    "Show me {noun} in Python",
    "Give me {noun} in Python",
    "I need {noun} in Python",
    "Write me {noun} in Python",
    "Create {noun} in Python",
    "Write Python code for {noun}",
    "Give me the Python code for {noun}",
    "Show me the code of {noun} in Python",
    "I would like to see {noun} in Python",
    "I am learning Python and want to see {noun}",
    "Can you write {noun} in Python?",
    "Can you show me {noun} in Python?",
    "Could you implement {noun} in Python?",
    "How do I write {noun} in Python?",
    "What does {noun} look like in Python?",
    "How would you code {noun} in Python?",
)

BY_TASK = (
    "Write a Python {kind} to {task}",
    "Write a {kind} in Python to {task}",
    "Give me a Python {kind} to {task}",
    "I need a Python {kind} to {task}",
    "Write Python code to {task}",
    "I want to {task} in Python",
    "Show me how to {task} in Python",
    "Write a short Python program to {task}",
    "Help me {task} in Python",
    "How do I {task} in Python?",
    "How can I {task} in Python?",
    "Can you write a Python {kind} to {task}?",
    "What is a clean way to {task} in Python?",
    "Is there a simple way to {task} in Python?",
)

TYPED = ("with type hints", "with type annotations", "using type hints", "with types")
DOCUMENTED = ("with a docstring", "including a docstring", "with docstrings")
TESTED = ("with a test", "with tests", "with asserts", "including some asserts")
COMMENTED = ("with comments", "with a comment", "including comments")
GUARDED = ("with a main guard", "with an if __name__ block", "as a script with a main guard")
TYPED_SENTENCES = ("Use type hints.", "Add type hints.", "Please add type annotations.", "I like type hints.")
DOCUMENTED_SENTENCES = ("Add a docstring.", "Include a docstring.", "Write a docstring too.", "It needs a docstring.")
TESTED_SENTENCES = (
    "Add a test.",
    "Test it with asserts.",
    "Include a few asserts.",
    "Show that it works with asserts.",
)
COMMENTED_SENTENCES = ("Add comments.", "Add a comment.", "Comment the code.", "I like comments.")
GUARDED_SENTENCES = ("Use a main guard.", "Add a main guard.", "Put the example under if __name__.")
HOW_SENTENCES = ("Do it {how}.", "Write it {how}.", "I want it {how}.", "Make it {how}.", "It should be written {how}.")
NAME_SENTENCES = (
    "Call it {name}.",
    "Name it {name}.",
    "Call the {kind} {name}.",
    "The {kind} should be called {name}.",
)
LIST_SENTENCES = ("The list is called {list}.", "Call the parameter {list}.", "It gets a list called {list}.")
VALUE_SENTENCES = (
    "Show it with {values}.",
    "Use {values} as the example.",
    "Call it with {values}.",
    "Try it on {values}.",
    "The example input is {values}.",
)


def word_prompt(request: Request, noun: str, rng: random.Random) -> str:
    """The prompt of a request.

    Args:
        noun: the noun phrase of the program that the prompt (if it uses one) and the answer share.
    """
    clauses = _clauses(request, rng)
    rng.shuffle(clauses)
    if rng.random() < UNSAID:
        return _join(_unsaid(request, noun, rng), clauses, rng)
    if request.concise:
        base = rng.choice(CONCISE).format(noun=without_article(noun))
        return " ".join([base, *(inline for inline, _ in clauses)])
    program = request.program
    if rng.random() < 0.5:
        base = _ranked(BY_NOUN, rng).format(noun=noun)
    else:
        base = _ranked(BY_TASK, rng).format(kind=program.kind, task=rng.choice(program.tasks))
    return _join(base, clauses, rng)


def _unsaid(request: Request, noun: str, rng: random.Random) -> str:
    """A request that doesn't name the language."""
    if rng.random() < 0.6:
        return rng.choice(NO_LANGUAGE).format(noun=noun, bare=without_article(noun))
    return rng.choice(NO_LANGUAGE_TASKS).format(kind=request.program.kind, task=rng.choice(request.program.tasks))


def _ranked(frames: tuple[str, ...], rng: random.Random) -> str:
    """One of the frames, the first ones more often: most people ask in the same few ways."""
    return frames[int(len(frames) * rng.random() ** 2)]


def without_article(noun: str) -> str:
    first, _, rest = noun.partition(" ")
    return rest if first in ("a", "an", "the") else noun


def _join(base: str, clauses: list[tuple[str, str]], rng: random.Random) -> str:
    """The base, up to two clauses inside its sentence, and the others as sentences of their own."""
    inside = min(len(clauses), rng.choice((0, 1, 1, 2)))
    question = base.endswith("?")
    text = " ".join([base.rstrip("?"), " and ".join(inline for inline, _ in clauses[:inside])]).rstrip()
    sentences = [sentence for _, sentence in clauses[inside:]]
    if question:
        text += "?"
    elif sentences or rng.random() < 0.4:
        text += "."
    return " ".join([text, *sentences])


def _clauses(request: Request, rng: random.Random) -> list[tuple[str, str]]:
    """Each control of the request twice: as a clause inside a sentence and as a sentence."""
    program, pick = request.program, rng.choice
    clauses: list[tuple[str, str]] = []
    if request.says_how:
        how = pick(request.variant.phrases)
        clauses.append((how, pick(HOW_SENTENCES).format(how=how)))
    if request.named:
        sentence = pick(NAME_SENTENCES).format(name=request.name, kind=program.kind)
        clauses.append((f"{pick(('called', 'named'))} {request.name}", sentence))
    if request.names_list:
        inline = pick(("for a list of {list}", "for {list}", "with a list called {list}"))
        clauses.append((inline.format(list=request.parameter), pick(LIST_SENTENCES).format(list=request.parameter)))
    if request.typed:
        clauses.append((pick(TYPED), pick(TYPED_SENTENCES)))
    if request.documented:
        clauses.append((pick(DOCUMENTED), pick(DOCUMENTED_SENTENCES)))
    if request.tested:
        clauses.append((pick(TESTED), pick(TESTED_SENTENCES)))
    if request.commented:
        clauses.append((pick(COMMENTED), pick(COMMENTED_SENTENCES)))
    if request.guarded:
        clauses.append((pick(GUARDED), pick(GUARDED_SENTENCES)))
    if request.gives_arguments:
        values = " and ".join(request.arguments)
        inline = f"for {values}" if program.kind == "function" else f"with {values} in the example"
        clauses.append((inline, pick(VALUE_SENTENCES).format(values=values)))
    return clauses


def intro(request: Request, noun: str, rng: random.Random) -> str:
    """The sentence before the code; it takes up what the prompt stressed."""
    options = [f"Here is {noun} in Python:", f"Here is {noun}:"]
    if request.named:
        options = [f"Here is `{request.name}`, {noun}:", f"This is `{request.name}`:"]
    elif request.says_how:
        options.append(f"Here is {noun} {request.variant.phrases[0]}:")
    elif request.typed:
        options.append(f"Here is {noun} with type hints:")
    elif request.documented:
        options.append(f"Here is {noun} with a docstring:")
    elif request.tested:
        options.append(f"Here is {noun} with a test:")
    return rng.choice(options)


def noun_of(program: Program, rng: random.Random) -> str:
    return program.nouns[0] if rng.random() < 0.5 else rng.choice(program.nouns)
