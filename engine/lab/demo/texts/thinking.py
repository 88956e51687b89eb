"""A short plan before the answer, for the model's thought channel."""

from __future__ import annotations

import random
import re

from .exchanges import Domain, TextExchange
from .noise import pick

_PLANS: dict[Domain, tuple[str, ...]] = {
    "code": (
        "The user wants [a Python program|Python code]: {ask}. I will write it and then show [an example|how to call "
        "it].",
        "This is a Python task: {ask}. I [will|should] name things as asked and end with an example.",
        "[Plan|My plan] for {ask}: one sentence, the code, an example at the end.",
    ),
    "html": (
        "The user wants a web page: {ask}. I will put style and script into [one|a single] file.",
        "This is a page request: {ask}. I [must|should] keep every [wish|detail] of the prompt.",
        "[Plan|My plan] for {ask}: one HTML file, first the style, then the script.",
    ),
    "maths": (
        "The user asks for a number: {ask}. I will [go|work] step by step, tens before ones.",
        "This is arithmetic: {ask}. [Small steps are safest|I will take small steps].",
        "[Plan|My plan] for {ask}: find the operation, write down each step, then state the answer.",
    ),
    "explain": (
        "The user wants to understand something: {ask}. I will [keep it plain|say what it is and why it matters].",
        "This asks for an explanation: {ask}. I know [this topic|it] and [will|can] answer in the form they want.",
    ),
    "chat": (
        "This is small talk: {ask}. I will answer [kindly and briefly|in a friendly way].",
        "The user [is chatting|chats]: {ask}. A short [honest|friendly] reply is best.",
    ),
    "screen": (
        "The user asks about [the screen|this program]: {ask}. I know [its keys and colours|how it works].",
        "This is about the program itself: {ask}. I [will|can] name the key or the meaning.",
    ),
    "follow": (
        "The user wants a change to what I just made: {ask}. I will repeat it with that change alone.",
        "[Plan|My plan] for {ask}: keep everything, change only this.",
    ),
    "edit": (
        "The user wants the text edited: {ask}. I will copy the rest as it is.",
        "[Plan|My plan] for {ask}: find the place, change it, keep the rest.",
    ),
    "unknown": (
        "The user asks: {ask}. I was not trained on this, so I will say so and offer something I can do.",
        "The question {ask} is outside my topics. I should not guess. I will [say what I am|be honest].",
    ),
}

_CHOICE = re.compile(r"\[([^\[\]]*)\]")
_LONGEST_ASK = 80


def thought(rng: random.Random, exchange: TextExchange) -> str | None:
    """A plan of one to three sentences for the exchange's answer, or None if the prompt is too long to repeat."""
    ask = _request(exchange)
    if not ask:
        return None
    plan = _CHOICE.sub(lambda choice: pick(rng, choice[1].split("|")), pick(rng, _PLANS[exchange.domain]))
    return plan.format(ask=ask)


def _request(exchange: TextExchange) -> str | None:
    """The request in quotes: the prompt, or the first sentence of a long one; stories are only called what they are."""
    if len(exchange.prompt) <= _LONGEST_ASK:
        return f'"{exchange.prompt}"'
    if exchange.domain == "maths":
        return "a word problem"
    if exchange.domain == "edit":
        return "an edit"
    first = re.split(r"(?<=[.?!])\s", exchange.prompt, maxsplit=1)[0]
    return f'"{first}"' if len(first) <= _LONGEST_ASK else None
