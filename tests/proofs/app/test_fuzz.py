"""Whatever the model says and whatever is typed meanwhile: nothing raises, and the transcript is the decoded text.

``FUZZ_ROUNDS=100 python -m pytest tests/proofs/app/test_fuzz.py`` plays 100 times ``CASES`` of each kind instead of
a few.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from textual.events import Key

from dflash_tui.app.actions import ACTIONS
from dflash_tui.app.chat.screen import ChatScreen
from dflash_tui.core.text.harmless import sanitise
from engine.events import (
    Channel,
    DraftToken,
    EmittedToken,
    EngineError,
    Event,
    PrefillDone,
    Step,
    TurnFinished,
    TurnStarted,
    Verdict,
)
from tests.app.conftest import Driver, running
from tests.app.test_keyboard import SENT, Reading

CASES = 10
"""In one application, one after the other: an evening."""
FUZZ = settings(
    max_examples=int(os.environ.get("FUZZ_ROUNDS", "3")),
    deadline=None,
    phases=[Phase.generate],  # to shrink an evening takes a night
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)

HOSTILE = (
    "\x1b[2J", "\x1b]0;title\x07", "\x1b[?2004l", "\x9b31m", "\r", "\t", "\x00", "\u202e", "e\u0301", "\n",
    "שלום", "日本語", "👩\u200d👩\u200d👧", "[bold]", "[/]",
)  # fmt: skip
texts = st.one_of(
    st.text(max_size=6), st.sampled_from(HOSTILE), st.sampled_from([" the", "\n\n", "```html\n", "```\n", "x" * 200])
)
probabilities = st.integers(0, 1000).map(lambda thousandths: thousandths / 1000)
verdicts: st.SearchStrategy[Verdict] = st.sampled_from(["accepted", "corrected", "bonus", "plain"])
channels: st.SearchStrategy[Channel] = st.sampled_from(["answer", "answer", "answer", "thought", "control"])
tokens = st.builds(EmittedToken, st.integers(0, 2**18), texts, verdicts, channels, probabilities)
drafts = st.builds(DraftToken, st.integers(0, 2**18), texts, probabilities, st.none() | probabilities)
milliseconds = st.integers(0, 10**7).map(lambda microseconds: microseconds / 1000)


@dataclass(frozen=True)
class Round:
    """What one step says, without its place in the turn."""

    draft: tuple[DraftToken, ...]
    accepted: int
    emitted: tuple[EmittedToken, ...]
    width: int
    milliseconds: tuple[float, float, float]

    def step(self, turn: int, index: int) -> Step:
        seconds = (index + 1) / 50
        return Step(
            turn, index, seconds, self.draft, min(self.accepted, len(self.draft)), self.emitted,
            min(self.width, len(self.draft) + 1), *self.milliseconds, 40 + index, 16, 0.0,
        )  # fmt: skip


rounds = st.builds(
    Round,
    st.lists(drafts, max_size=15).map(tuple),
    st.integers(0, 15),
    st.lists(tokens, max_size=16).map(tuple),
    st.integers(1, 16),
    st.tuples(milliseconds, milliseconds, milliseconds),
)
turns = st.tuples(st.lists(rounds, max_size=8), st.sampled_from(["stop", "length", "context", "stopped", "error"]))
QUIET_KEYS = [
    "f3", "f4", "f5", "comma", "full_stop", "left_curly_bracket", "right_curly_bracket", "home", "end", "left",
]  # fmt: skip
LEAVE = {"interrupt", "quit", "editor"}
"""What leaves the program, or starts another one."""
ACTED = [key for action in ACTIONS.values() if action.id not in LEAVE for key in action.keys.split(",") if key]
SAID = [data for data, keys in SENT if keys not in (["ctrl+c"], ["ctrl+q"])]
presses = st.lists(st.sampled_from(ACTED) | st.sampled_from(SAID), min_size=1, max_size=12)


def events_of(turn: int, played: list[Round], reason: str) -> list[Event]:
    steps = [round.step(turn, index) for index, round in enumerate(played)]
    text = "".join(token.text for step in steps for token in step.emitted if token.channel == "answer")
    error = [EngineError("generation", "It [broke].", "Try /again.", turn=turn)] if reason == "error" else []
    start: list[Event] = [TurnStarted(turn, 40, 0, {"block_size": 16}, "what?"), PrefillDone(turn, 3.0)]
    return [*start, *steps, *error, TurnFinished(turn, reason, text)]  # type: ignore[arg-type]


@asynccontextmanager
async def chat(**options: object) -> AsyncIterator[Driver]:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DFLASH_CHAT_STATE"] = folder
        async with running(Path(folder), (80, 24), **options) as driver:  # type: ignore[arg-type]
            yield driver


@FUZZ
@given(st.lists(st.tuples(turns, st.lists(st.sampled_from(QUIET_KEYS), max_size=4)), min_size=CASES, max_size=CASES))
async def test_any_stream_of_events_is_shown_as_it_is(played: list[tuple[tuple[list[Round], str], list[str]]]) -> None:
    async with chat() as driver:
        for turn, ((rounds_played, reason), pressed) in enumerate(played, start=1):
            stream = events_of(turn, rounds_played, reason)
            for number, event in enumerate(stream):
                driver.screen.queue.put(event)
                if number < len(pressed):
                    driver.app.simulate_key(pressed[number])
                    driver.screen.pump.frame()
            driver.screen.pump.frame()
            await driver.pilot.pause()
            (*_, finished) = stream
            assert isinstance(finished, TurnFinished)
            shown = driver.screen.chat.reducer.turns[-1]
            assert shown.text == finished.text and shown.reason == reason
            assert text_on(driver, turn) == "".join(map(sanitise, texts_of(stream))).replace("\n", "")
        assert "\x1b" not in driver.log.text


def texts_of(stream: list[Event]) -> list[str]:
    """Of the tokens that somebody reads."""
    steps = [event for event in stream if isinstance(event, Step)]
    return [token.text for step in steps for token in step.emitted if token.channel != "control"]


def text_on(driver: Driver, turn: int) -> str:
    """What the rows of the transcript have of a turn's tokens: no line ends."""
    document = driver.log._document
    pieces = (piece for row in document.rows for piece in document.pieces(row))
    return "".join(text for text, mark in pieces if mark.turn == turn and mark.token is not None)


@FUZZ
@given(st.lists(presses, min_size=CASES, max_size=CASES))
async def test_any_keys_and_bytes_leave_the_chat_working(evening: list[list[str | bytes]]) -> None:
    async with chat(round_seconds=0.001) as driver:
        for pressed in evening:
            for each in pressed:
                for message in Reading()(each).messages if isinstance(each, bytes) else [Key(each, None)]:
                    driver.app.post_message(message)
            await driver.pilot.pause()
        for _ in range(8):  # whatever is open closes
            driver.app.simulate_key("escape")
            await driver.pilot.pause()
        await driver.until(lambda: isinstance(driver.app.screen, ChatScreen))
        assert driver.app.is_running and driver.app._exception is None
