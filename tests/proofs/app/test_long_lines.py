"""A line of 200 000 characters and a paste of 5 MB: the screen answers all the while.

What is measured is the processor time that the screen's thread takes at once, for how long it had to wait for a
processor says nothing about the program.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from textual import events

from engine.events import EmittedToken, Event, PrefillDone, Step, TurnFinished, TurnStarted
from tests.app.conftest import Launch
from tests.pace import only_in_ci

FREEZE = 0.3
"""Seconds that are felt as a freeze."""
CHARACTERS = 200_000
LINES = {"one word": "x" * CHARACTERS, "words": "word " * (CHARACTERS // 5), "wide": "日本" * (CHARACTERS // 2)}


@asynccontextmanager
async def never_frozen() -> AsyncIterator[None]:
    """Fails when the loop was held for longer than ``FREEZE`` at a time."""
    longest = 0.0

    async def watch() -> None:
        nonlocal longest
        while True:
            before = time.thread_time()
            await asyncio.sleep(0)
            longest = max(longest, time.thread_time() - before)

    watcher = asyncio.create_task(watch())
    await asyncio.sleep(0)
    try:
        yield
    finally:
        watcher.cancel()
    assert 0 < longest <= FREEZE


def token(text: str) -> EmittedToken:
    return EmittedToken(7, text, "plain")


def answer(turn: int, texts: list[str]) -> list[Event]:
    """A turn that says ``texts``, a token each, in rounds of 16."""
    rounds = [texts[start : start + 16] for start in range(0, len(texts), 16)]
    steps = [
        Step(turn, index, index / 100, (), 0, tuple(map(token, said)), 1, 0.0, 9.0, 9.0, 40, 16, 0.0)
        for index, said in enumerate(rounds)
    ]
    start: list[Event] = [TurnStarted(turn, 40, 0, {"block_size": 16}, "what?"), PrefillDone(turn, 1.0)]
    return [*start, *steps, TurnFinished(turn, "stop", "".join(texts))]


@pytest.mark.alone
@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
async def test_a_long_line_is_pasted_sent_and_recalled(launch: Launch, line: str) -> None:
    async with launch() as chat:
        reducer = chat.screen.chat.reducer
        reducer.ready = replace(reducer.ready, max_context=2 * CHARACTERS)
        async with never_frozen():
            chat.prompt.post_message(events.Paste(line))
            await chat.until(lambda: chat.prompt.unfolded == line)
            await chat.pilot.press("enter")
            await chat.until(lambda: len(chat.screen.chat.answers) == 1)
            await chat.pilot.press("up")
            await chat.pilot.resize_terminal(100, 30)
            assert chat.prompt.unfolded == line and line not in chat.log.text
            await chat.pilot.press("ctrl+c", "ctrl+n")
            chat.screen.desk.ask(line)  # in one piece, as what was said in a file from elsewhere
            await chat.until(lambda: line in chat.log.text)


@pytest.mark.alone
@pytest.mark.parametrize(
    ("line", "piece"),
    [
        (LINES["one word"], CHARACTERS),
        (LINES["words"], 20),
        (LINES["wide"], CHARACTERS),
        *(only_in_ci(LINES[name], piece) for name, piece in (("one word", 20), ("words", CHARACTERS), ("wide", 20))),
    ],
    ids=lambda value: str(value) if isinstance(value, int) else value[:6].strip(),
)
async def test_a_long_line_is_answered(launch: Launch, line: str, piece: int) -> None:
    stream = answer(1, [line[start : start + piece] for start in range(0, CHARACTERS, piece)])
    async with launch() as chat:
        async with never_frozen():
            for event in stream:
                chat.screen.queue.put(event)
            await chat.until(lambda: chat.screen.chat.reducer.turns[-1:] != [] and not chat.screen.chat.busy)
            await chat.pilot.resize_terminal(100, 30)
        assert line in chat.log.text
