"""A stand-in for the engine thread: the same interface and events, an answer that was written down beforehand."""

from __future__ import annotations

import random
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from queue import Empty, SimpleQueue

from dflash_tui.core.source import Capabilities
from engine.commands import MAX_BLOCK_SIZE, Adjust, Ask, CallSyntax, Close, Command, Stop
from engine.events import (
    MICROSECONDS,
    PROBABILITY_STEPS,
    DraftToken,
    EmittedToken,
    EngineError,
    EngineReady,
    Event,
    FinishReason,
    LoadProgress,
    PrefillDone,
    Step,
    TurnFinished,
    TurnStarted,
    TurnStatistics,
    WidthChoice,
    rounded,
)
from engine.rounds.statistics import TurnMeter
from support.events_for_tests import make_tree_step

PAGE = """Here is a page with three drones that follow each other.

```html index.html
<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Drone swarm</title></head>
<body style="margin:0;background:#0b1020">
<canvas id="sky" width="960" height="540"></canvas>
<script>
const sky = document.getElementById("sky").getContext("2d");
const drones = Array.from({length: 48}, (_, i) => ({x: 480, y: 270, a: i * 0.13}));
function frame(t) {
  sky.clearRect(0, 0, 960, 540);
  for (const d of drones) {
    d.x = 480 + 220 * Math.cos(d.a + t / 900);
    d.y = 270 + 160 * Math.sin(2 * d.a + t / 700);
    sky.fillStyle = "#24d287";
    sky.fillRect(d.x, d.y, 4, 4);
  }
  requestAnimationFrame(frame);
}
requestAnimationFrame(frame);
</script>
</body>
</html>
```

Each drone moves on the same curve with its own phase, so the swarm keeps its shape while it turns.
"""


FIRST_ROUNDS = 3
"""That come also while an answer is held."""
TREE_CHOICE = WidthChoice(0.04, 0.02, 700.0)
"""What decided how much of a tree was verified."""


def tokenise(text: str) -> list[str]:
    """Pieces about as long as a tokenizer's; joined they are the text."""
    return re.findall(r"\n+| ?\w{1,6}| +|[^\w\s]", text)


class ScriptedEngine:
    """Emits ``answer`` in rounds of random acceptance, ``round_seconds`` apart; obeys Stop, Adjust and Close.

    ``work`` replaces the pause between rounds by something that costs what an engine costs.
    """

    capabilities = Capabilities()
    recording = None

    def __init__(
        self,
        emit: Callable[[Event], None],
        *,
        answer: str = PAGE,
        round_seconds: float = 0.03,
        work: Callable[[], None] | None = None,
        load_seconds: float = 0.0,
        load_error: EngineError | None = None,
        turn_error: EngineError | None = None,
        device: str = "cpu",
        calls: CallSyntax | None = None,
        trees: bool = False,
        holds: bool = False,
        seed: int = 0,
        speed: float = 300.0,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """``speed``: tokens per second, by the times that rounds tell, however fast they really come; ``clock`` tells
        them instead, in seconds, asked once per turn and once per round. ``trees``: drafts are trees, of which some
        further choices are kept. ``holds``: answers stop behind their first rounds until :attr:`holds` is taken back,
        for tests of what happens meanwhile; commands are heard."""
        self.holds = holds
        self.commands: list[Command] = []
        """Everything that was sent, in order."""
        self._emit = emit
        self.answer = tokenise(answer)
        self.round_seconds = round_seconds
        self.work = work or partial(time.sleep, round_seconds)
        self._load_seconds = load_seconds
        self._load_error, self.turn_error = load_error, turn_error
        self._device, self._trees, self._calls = device, trees, calls
        self._speed, self._clock = speed, clock
        self._random = random.Random(seed)
        self._queue: SimpleQueue[Command] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def send(self, command: Command) -> None:
        self.commands.append(command)
        self._queue.put(command)

    def join(self, timeout: float | None = None) -> None:
        if self._thread.ident is not None:
            self._thread.join(timeout)

    @property
    def asked(self) -> list[Ask]:
        """The questions it was given."""
        return [command for command in self.commands if isinstance(command, Ask)]

    def _run(self) -> None:
        if self._load():
            while not isinstance(command := self._queue.get(), Close):
                if isinstance(command, Ask) and self.answer_turn(command):
                    return

    def _load(self) -> bool:
        """False when that failed."""
        for phase in ("import torch", "find the models", "read the target", "warm up"):
            for done in range(4):
                self._emit(LoadProgress(phase, done + 1, 4))
                time.sleep(self._load_seconds / 16)
        self._emit(LoadProgress("loading the target", 15_000_000, 15_000_000, "bytes"))
        if self._load_error is not None:
            self._emit(self._load_error)
            return False
        banner = "A little model that knows one page."
        ready = EngineReady("demo/gemma4-tiny", "demo/dflash-b16", self._device, "float32", 16, 4096, 1.0, banner)
        self._emit(replace(ready, calls=self._calls))
        return True

    def answer_turn(self, ask: Ask) -> bool:
        """True when Close came meanwhile."""
        if self.turn_error is not None:
            self._emit(replace(self.turn_error, turn=ask.turn))
            self._emit(TurnFinished(ask.turn, "error", ""))
            return False
        question = ask.messages[-1].content if ask.messages else str(ask.prompt)
        self._emit(TurnStarted(ask.turn, 40, 12, ask.settings.to_dict(), question))
        time.sleep(self.round_seconds)
        self._emit(PrefillDone(ask.turn, 1000 * self.round_seconds))
        settings, reason, closing = ask.settings, "stop", False
        text: list[str] = []
        steps: list[Step] = []
        started = 0.0 if self._clock is None else self._clock()
        place = 0
        while place < len(self.answer):
            while self.holds and len(steps) >= FIRST_ROUNDS and self._queue.empty():
                time.sleep(0.001)
            for command in self._waiting_commands():
                if isinstance(command, Adjust):
                    settings = settings.with_changes(command)
                elif isinstance(command, Stop | Close):
                    reason, closing = "stopped", isinstance(command, Close)
                    break  # what was sent behind it is for later
            if reason == "stopped":
                break
            step = self._round(
                ask.turn, len(steps), place, settings.block_rows(MAX_BLOCK_SIZE), settings.temperature, started
            )
            steps.append(step)
            place += len(step.emitted)
            text += [token.text for token in step.emitted]
            self._emit(step)
            self.work()
        self._emit(TurnFinished(ask.turn, _reason(reason), "".join(text), "", _statistics(steps)))
        return closing

    def _waiting_commands(self) -> Iterator[Command]:
        while True:
            try:
                yield self._queue.get_nowait()
            except Empty:
                return

    def _round(self, turn: int, index: int, place: int, block: int, temperature: float, started: float) -> Step:
        left = self.answer[place:]
        draft: tuple[DraftToken, ...] = ()
        emitted: tuple[EmittedToken, ...] = (EmittedToken(7, left[0], "plain"),)
        accepted = 0
        if index and self._trees:
            made = self._tree_round(left[: min(block, len(left))])
            return replace(
                made, turn=turn, index=index, time=self._since(started, place + len(made.emitted)),
                draft_ms=3.1, verify_ms=6.4, total_ms=9.8, context_length=52 + place, block_size=block,
                temperature=temperature, choice=TREE_CHOICE,
            )  # fmt: skip
        if index:
            width = min(block - 1, len(left) - 1)
            accepted = min(width, int(self._random.expovariate(0.18)))
            wrong = [DraftToken(9, " moon", 0.31, 0.08)] if accepted < width else []
            rest = left[accepted + 1 : width]
            sure = [rounded(self._random.uniform(0.1, 1.0), PROBABILITY_STEPS) for _ in range(width)]
            kept = list(zip(left[:accepted], sure, strict=False))
            fallen = [DraftToken(8, text, p) for text, p in zip(rest, sure, strict=False)]
            draft = (*(DraftToken(8, text, p, p) for text, p in kept), *wrong, *fallen)
            own = EmittedToken(8, left[accepted], "corrected" if accepted < width else "bonus", probability=0.62)
            given = [EmittedToken(8, text, "accepted", probability=p) for text, p in kept]
            emitted = (*given, own)
        return Step(
            turn, index, self._since(started, place + len(emitted)), draft, accepted, emitted, len(draft) + 1,
            3.1, 6.4, 9.8, 52 + place, block, temperature,
        )  # fmt: skip

    def _since(self, started: float, tokens: int) -> float:
        """Seconds of an answer with so many tokens, as exact as an engine tells them."""
        seconds = tokens / self._speed if self._clock is None else self._clock() - started
        return rounded(seconds, 1000 * MICROSECONDS)

    def _tree_round(self, left: list[str]) -> Step:
        """What comes next is the drafter's first choice, or its second, or now and then none of the four."""
        choices, said = [], []
        for place, text in enumerate(left[:-1]):
            said.append(self._random.choices((0, 1, 9), (0.75, 0.2, 0.05))[0])
            sure = self._random.uniform(0.55, 0.95) if said[-1] == 0 else self._random.uniform(0.35, 0.5)
            texts = [" moon", " some", ".", " was"]
            texts[min(said[-1], 1)] = text if said[-1] < 9 else " sun"
            chances = (sure, *((1 - sure) * share for share in (0.5, 0.25, 0.1)))
            choices.append([
                (20 + 4 * place + choice, word, rounded(chance, PROBABILITY_STEPS))
                for choice, (word, chance) in enumerate(zip(texts, chances, strict=True))
            ])  # fmt: skip
        made = make_tree_step(said, choices)
        own = replace(made.emitted[-1], id=8, text=left[made.num_accepted], probability=0.62)
        return replace(made, emitted=(*made.emitted[:-1], own))


def _reason(reason: str) -> FinishReason:
    return "stopped" if reason == "stopped" else "stop"


def _statistics(steps: list[Step]) -> TurnStatistics:
    meter = TurnMeter()
    for step in steps:
        meter.add(step)
    return meter.statistics(40, 12)
