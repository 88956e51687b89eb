"""The engine thread: which events come, in which order, and what commands do to a running turn."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from queue import Queue
from typing import Any, TypeVar

import pytest
from torch import Tensor

from engine.commands import Adjust, Ask, Close, Command, EngineOptions, GenerationSettings, Message, Stop
from engine.events import (
    EngineError,
    EngineReady,
    Event,
    LoadProgress,
    Notice,
    PrefillDone,
    Step,
    TurnFinished,
    TurnStarted,
    event_from_dict,
    event_to_dict,
)
from engine.models.gemma4.modules import Gemma4
from engine.service import EngineService
from engine.tokenization.tokenizer import ChatTokenizer
from tests.engine.conftest import TinyPair
from tests.engine.edited import edit_config
from tests.surroundings import threads

E = TypeVar("E")
SECONDS = 60.0
BUNDLED = EngineOptions(device="cpu", time_rounds=False)
"""The bundled pair. Timing rounds takes a second, which only a test of what is learnt from them is to spend."""


@pytest.fixture(scope="session")
def endless(dense_pair: TinyPair, tmp_path_factory: pytest.TempPathFactory) -> EngineOptions:
    """The dense pair, told that nothing ends an answer."""
    folder = tmp_path_factory.mktemp("endless")
    shutil.copytree(dense_pair.folder, folder, dirs_exist_ok=True)
    (folder / "target" / "generation_config.json").unlink()
    edit_config(folder / "target", eos_token_id=None)
    return replace(BUNDLED, target=str(folder / "target"), drafter=str(folder / "drafter"))


class Session:
    """A service and all that it has said so far."""

    def __init__(self, options: EngineOptions):
        self.events: list[Event] = []
        self.hooks: list[Callable[[Event], None]] = []
        """Called in the engine thread with every event."""
        self._queue: Queue[Event] = Queue()
        self.service = EngineService(options, self._emit)

    def _emit(self, event: Event) -> None:
        self.events.append(event)
        for hook in self.hooks:
            hook(event)
        self._queue.put(event)

    def send_on(self, wanted: Callable[[Event], bool], *commands: Command) -> None:
        """Sends commands from the engine thread itself, when the first event of a kind is emitted."""
        pending = list(commands)

        def hook(event: Event) -> None:
            if wanted(event):
                while pending:
                    self.service.send(pending.pop(0))

        self.hooks.append(hook)

    def wait_for(self, kind: type[E], turn: int | None = None) -> E:
        """The next event of this kind (of this turn); fails when the engine dies first."""
        while True:
            event = self._queue.get(timeout=SECONDS)
            if isinstance(event, kind) and (turn is None or getattr(event, "turn", None) == turn):
                return event
            assert not (isinstance(event, EngineError) and event.fatal), event

    def of_turn(self, turn: int) -> list[Event]:
        return [event for event in self.events if getattr(event, "turn", None) == turn]

    def steps(self, turn: int) -> list[Step]:
        return [event for event in self.of_turn(turn) if isinstance(event, Step)]


@contextmanager
def running(options: EngineOptions, prepare: Callable[[Session], None] = lambda session: None) -> Iterator[Session]:
    before, session = threads("engine"), Session(options)
    prepare(session)
    session.service.start()
    session.wait_for(EngineReady)
    yield session
    session.service.send(Close())
    session.service.join(SECONDS)
    assert threads("engine") <= before


def ask(turn: int, text: str = "Write a sort.", *history: Message, **values: Any) -> Ask:
    wanted = GenerationSettings(**({"max_new_tokens": 30, "block_size": 16} | values))
    return Ask(turn, (*history, Message("user", text)), wanted)


def is_step(index: int) -> Callable[[Event], bool]:
    return lambda event: isinstance(event, Step) and event.index == index


# --- a whole turn


def test_events_of_a_turn(endless: EngineOptions) -> None:
    with running(endless) as session:
        loading = session.events[:-1]
        ready = session.events[-1]
        assert isinstance(ready, EngineReady) and all(isinstance(event, LoadProgress) for event in loading)
        assert (ready.device, ready.dtype, ready.max_block_size) == ("cpu", "float32", 16)
        phases = [event for event in loading if isinstance(event, LoadProgress) and event.unit == "bytes"]
        assert {event.phase for event in phases} == {"loading the target", "loading the drafter"}
        assert all(0 < event.done <= event.total for event in phases) and phases[-1].done == phases[-1].total

        assert session.service._runner is not None
        session.service._runner._recording = iter([None, Notice("Done before it.")])
        session.service.send(ask(7, temperature=0.7, seed=3))
        session.wait_for(TurnFinished, 7)
        started, prefilled, *steps, finished = session.of_turn(7)
        assert session.events[session.events.index(started) - 1] == Notice("Done before it.")
        assert isinstance(started, TurnStarted) and isinstance(prefilled, PrefillDone)
        assert isinstance(finished, TurnFinished) and finished.reason == "length"
        assert started.settings == ask(7, temperature=0.7, seed=3).settings.to_dict()
        assert steps == session.steps(7)
        assert [step.index for step in session.steps(7)] == list(range(len(steps)))
        check_steps(session.steps(7), finished)


def check_steps(steps: list[Step], finished: TurnFinished) -> None:
    """Every field of the steps against the others, and the turn's statistics recomputed from them."""
    emitted = [token for step in steps for token in step.emitted]
    assert "".join(token.text for token in emitted if token.channel == "answer") == finished.text
    assert steps[0].draft == () and steps[0].emitted[0].verdict == "plain"
    for step in steps[1:]:
        verified = step.verify_width - 1
        assert verified == len(step.draft) or (step.choice is not None and 0 <= verified < len(step.draft))
        # An accepted stop token ends the answer: the target adds nothing of its own.
        stopped_inside = finished.reason == "stop" and step is steps[-1] and len(step.emitted) == step.num_accepted
        assert stopped_inside or len(step.emitted) == step.num_accepted + 1
        assert [t.id for t in step.emitted[: step.num_accepted]] == [t.id for t in step.draft[: step.num_accepted]]
        assert all(0 < token.probability <= 1 for token in step.draft)
        own = "plain" if verified < 1 else "bonus" if step.num_accepted == verified else "corrected"
        assert [t.verdict for t in step.emitted] == ["accepted"] * step.num_accepted + [own] * (not stopped_inside)
        assert 0 <= step.draft_ms <= step.total_ms and 0 < step.verify_ms <= step.total_ms
    assert [step.time for step in steps] == sorted(step.time for step in steps)
    for before, after in pairwise(steps):
        assert after.context_length == before.context_length + len(after.emitted)

    statistics, drafted = finished.statistics, [step for step in steps if step.draft]
    accepted = sum(step.num_accepted for step in drafted)
    assert statistics.num_prompt_tokens == steps[0].context_length
    assert statistics.num_tokens == len(emitted)
    assert statistics.num_spec_steps == len(drafted)
    assert statistics.num_draft_tokens == sum(step.verify_width - 1 for step in drafted)
    assert statistics.num_accepted_draft_tokens == accepted
    assert statistics.mean_acceptance_length == pytest.approx(1 + accepted / len(drafted) if drafted else 0)
    counts = [step.num_accepted for step in drafted]
    assert list(statistics.acceptance_histogram) == [counts.count(k) for k in range(max(counts, default=-1) + 1)]
    seconds = steps[-1].time - steps[0].time
    assert statistics.ttft_ms == pytest.approx(steps[0].time * 1e3)
    assert statistics.decode_ms == pytest.approx(seconds * 1e3)
    assert statistics.tok_s == pytest.approx((len(emitted) - len(steps[0].emitted)) / seconds if seconds else 0)


def test_events_survive_json(endless: EngineOptions) -> None:
    with running(endless) as session:
        session.service.send(ask(1))
        session.service.send(Ask(2, (), GenerationSettings()))
        session.wait_for(TurnFinished, 2)
        kinds = set()
        for event in session.events:
            kinds.add(type(event))
            data = json.loads(json.dumps(event_to_dict(event)))
            assert event_from_dict(data) == event
            assert event_from_dict(data | {"a_later_version": 1}) == event
    assert kinds == {LoadProgress, EngineReady, TurnStarted, PrefillDone, Step, TurnFinished, EngineError}
    with pytest.raises(ValueError, match="Nonsense"):
        event_from_dict({"event": "Nonsense"})


def test_text_and_ids_are_continued_as_they_stand(endless: EngineOptions) -> None:
    """What the template makes of a question, given as ids, has the same answer."""
    assert endless.target is not None
    ids = ChatTokenizer(Path(endless.target)).prompt([Message("user", "Write a sort.")], thinking=False).ids
    with running(endless) as session:
        session.service.send(ask(1))
        session.service.send(Ask(2, (), GenerationSettings(16, max_new_tokens=30), ids))
        session.service.send(Ask(3, (), GenerationSettings(16, max_new_tokens=2), "Write"))
        session.service.send(Ask(4, (), GenerationSettings(), (5, 10**9)))
        answers = [session.wait_for(TurnFinished, turn) for turn in (1, 2, 3, 4)]
        started = [event for event in session.events if isinstance(event, TurnStarted)]
        assert answers[0].text == answers[1].text
        assert [event.question for event in started][::2] == ["Write a sort.", "Write"]
        assert started[1].num_prompt_tokens == len(ids) and started[1].num_reused_tokens == len(ids) - 1
        assert "1000000000" in assert_failed(session, 4, "usage").message


# --- errors


def assert_failed(session: Session, turn: int, kind: str) -> EngineError:
    error, finished = session.of_turn(turn)[-2:]
    assert isinstance(error, EngineError) and isinstance(finished, TurnFinished)
    assert finished.reason == "error" and error.kind == kind and not error.fatal
    assert error.message and error.hint
    return error


def test_a_question_that_cannot_be_asked_keeps_the_caches(endless: EngineOptions) -> None:
    with running(endless) as session:
        session.service.send(ask(0, "Write a sort.", max_new_tokens=2))
        session.service.send(Ask(1, (), GenerationSettings()))
        session.service.send(ask(2, "Write a sort.", max_new_tokens=2))
        session.wait_for(TurnFinished, 2)
        again = next(event for event in session.of_turn(2) if isinstance(event, TurnStarted))
        assert again.num_reused_tokens == again.num_prompt_tokens - 1


def test_a_prompt_longer_than_the_context(endless: EngineOptions) -> None:
    with running(replace(endless, max_context=100)) as session:
        session.service.send(ask(1, "word " * 200))
        session.wait_for(TurnFinished, 1)
        assert "100" in assert_failed(session, 1, "usage").message
        session.service.send(ask(2))
        assert session.wait_for(TurnFinished, 2).reason == "length"


@pytest.mark.parametrize("failing_pass", [1, 4])
def test_an_exception_becomes_an_event(
    failing_pass: int, endless: EngineOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(endless) as session:
        session.service.send(ask(1))
        expected = session.wait_for(TurnFinished, 1)
        count, real = iter(range(1, 1000)), Gemma4.logits

        def logits(model: Gemma4, hidden: Tensor) -> Tensor:
            if next(count) == failing_pass:
                raise RuntimeError("the GPU caught fire")
            return real(model, hidden)

        monkeypatch.setattr(Gemma4, "logits", logits)
        session.service.send(ask(2, "Something else."))
        broken = session.wait_for(TurnFinished, 2)
        assert "caught fire" in assert_failed(session, 2, "generation").message
        assert len(session.steps(2)) == failing_pass - 1
        assert broken.text == "".join(t.text for step in session.steps(2) for t in step.emitted)
        session.service.send(ask(3))
        assert session.wait_for(TurnFinished, 3).text == expected.text


# --- stop, adjust, close


def test_stop_takes_effect_within_the_round(endless: EngineOptions, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stop that arrives in the middle of a round lets this round finish and begins no other."""
    with running(endless) as session:
        real = Gemma4.logits

        def logits(model: Gemma4, hidden: Tensor) -> Tensor:
            if len(session.steps(1)) == 5:
                session.service.send(Stop())
            return real(model, hidden)

        monkeypatch.setattr(Gemma4, "logits", logits)
        session.service.send(ask(1, max_new_tokens=3000))
        finished = session.wait_for(TurnFinished, 1)
        assert finished.reason == "stopped" and len(session.steps(1)) == 6
        check_steps(session.steps(1), finished)


def test_stop_during_the_prompt(endless: EngineOptions) -> None:
    with running(endless, lambda s: s.send_on(lambda event: isinstance(event, TurnStarted), Stop())) as session:
        session.service.send(ask(1))
        assert session.wait_for(TurnFinished, 1).reason == "stopped"
        assert [type(event) for event in session.of_turn(1)] == [TurnStarted, TurnFinished]


def test_stop_before_the_turn_begins(endless: EngineOptions) -> None:
    ready = lambda event: isinstance(event, EngineReady)  # noqa: E731
    with running(endless, lambda s: s.send_on(ready, ask(1), Stop(), ask(2))) as session:
        assert session.wait_for(TurnFinished, 1).reason == "stopped" and session.steps(1) == []
        assert session.wait_for(TurnFinished, 2).reason == "length"


def test_a_stop_and_a_change_concern_the_turn_that_they_name(endless: EngineOptions) -> None:
    """Of one that waits, a stop withdraws the question; of one that is over, nothing happens."""
    late = (ask(2), Adjust(temperature=0.5, turn=2), Stop(2), Stop(9), ask(3), Stop(1))
    with running(endless, lambda s: s.send_on(is_step(2), *late)) as session:
        session.service.send(ask(1, max_new_tokens=3000))
        assert session.wait_for(TurnFinished, 1).reason == "stopped" and session.steps(1)[-1].temperature == 0
        assert session.wait_for(TurnFinished, 3).reason == "length"
        assert [type(event) for event in session.of_turn(2)] == [TurnFinished]


def test_stop_without_a_turn_does_nothing(endless: EngineOptions) -> None:
    with running(endless) as session:
        session.service.send(Stop())
        session.service.send(Adjust(temperature=1.0))
        session.service.send(ask(1))
        assert session.wait_for(TurnFinished, 1).reason == "length"
        assert session.steps(1)[-1].temperature == 0


def test_questions_asked_while_loading_wait_unless_they_are_withdrawn(endless: EngineOptions) -> None:
    def prepare(session: Session) -> None:
        for command in (ask(1), Stop(), ask(2)):
            session.service.send(command)

    with running(endless, prepare) as session:
        assert session.wait_for(TurnFinished, 2).reason == "length"
        assert [type(event) for event in session.of_turn(1)] == [TurnFinished]


def test_close_while_loading(endless: EngineOptions) -> None:
    before, session = threads("engine"), Session(endless)
    session.service.send(Close())
    session.service.start()
    session.service.join(SECONDS)
    assert threads("engine") <= before
    assert session.events and all(isinstance(event, LoadProgress) for event in session.events)


def test_close_ends_the_running_turn(endless: EngineOptions) -> None:
    before = threads("engine")
    with running(endless, lambda s: s.send_on(is_step(2), Close())) as session:
        session.service.send(ask(1, max_new_tokens=3000))
        assert session.wait_for(TurnFinished, 1).reason == "stopped"
        session.service.join(SECONDS)
        assert threads("engine") <= before


def test_adjust_shows_in_the_next_step(endless: EngineOptions) -> None:
    changes = (Adjust(block_size=4), Adjust(temperature=1.25), Adjust(block_size=5))
    with running(endless, lambda s: s.send_on(is_step(3), *changes)) as session:
        session.service.send(ask(1, block_size=12, max_new_tokens=60))
        session.wait_for(TurnFinished, 1)
        before, after = session.steps(1)[1:4], session.steps(1)[4:]
        assert {(step.block_size, step.temperature, step.verify_width) for step in before} == {(12, 0.0, 12)}
        assert {(step.block_size, step.temperature) for step in after} == {(5, 1.25)}
        assert after[0].verify_width == 5


def test_adjust_during_the_prompt_reaches_the_first_token(endless: EngineOptions) -> None:
    started = lambda event: isinstance(event, TurnStarted)  # noqa: E731
    with running(endless, lambda s: s.send_on(started, Adjust(temperature=0.5))) as session:
        session.service.send(ask(1))
        session.wait_for(TurnFinished, 1)
        assert session.steps(1)[0].temperature == 0.5


# --- imports, and the bundled pair


def test_importing_the_service_imports_no_torch() -> None:
    code = "import engine.service, sys; print({'torch', 'transformers'} & sys.modules.keys() or 'none')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "none"
