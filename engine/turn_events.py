"""Turns a turn's rounds into the events that front ends read."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter

from .commands import Ask
from .decoding.rounds import Prompt, Round
from .errors import WeightsFailure
from .events import (
    MICROSECONDS,
    PROBABILITY_STEPS,
    DraftSource,
    FinishReason,
    Step,
    TurnFinished,
    TurnStarted,
    WidthChoice,
    rounded,
)
from .files.json_fields import DOWNLOAD_AGAIN
from .models.drafter import Drafter
from .rounds.statistics import TurnMeter
from .rounds.step import DraftColumns, EmittedColumns, TreeColumns, in_columns
from .speculation.trees import LOOKED_UP
from .tokenization.tokenizer import ChatTokenizer, stream_of


class TurnEvents:
    """Turns the rounds of one turn into events, and adds up its statistics.

    ``begun`` opens the turn, ``step`` follows for every round, ``finished`` closes it."""

    def __init__(self, ask: Ask, prompt: Prompt, started: float, tokenizer: ChatTokenizer, drafter: Drafter | None):
        self.turn = ask.turn
        self.settings = ask.settings
        self.question = tokenizer.decode(prompt.ids) if ask.prompt else ask.messages[-1].content
        self.started = started
        self.piece, self.stream = tokenizer.piece, stream_of(tokenizer, prompt.ids)
        self.meter, self.num_prompt_tokens, self.num_reused_tokens = TurnMeter(), len(prompt.ids), 0
        self.index = 0
        self.text = self.thought = ""
        """The answer so far, and what was thought."""
        self.max_block_size = 1 if drafter is None else drafter.config.block_size
        kind = None if drafter is None else drafter.config.kind
        self.by_drafter: DraftSource | None = None if kind == "dflash" else kind
        """The source named for tokens that the drafter guessed; None for a DFlash drafter, which is the default."""
        self.reason: FinishReason = "stopped"

    def begun(self, started: TurnStarted) -> TurnStarted:
        """The decoder's event with the question, and with the settings that were asked for."""
        self.num_reused_tokens = started.num_reused_tokens
        return replace(started, settings=self.settings.to_dict(), question=self.question)

    def step(self, done: Round) -> Step:
        step = Step(
            turn=self.turn,
            index=self.index,
            time=rounded(perf_counter() - self.started, 1000 * MICROSECONDS),
            draft=in_columns(self._drafted(done)),
            num_accepted=done.num_accepted,
            emitted=in_columns(self._emitted(done)),
            verify_width=done.verify_width,
            draft_ms=rounded(done.draft_ms, MICROSECONDS),
            verify_ms=rounded(done.verify_ms, MICROSECONDS),
            total_ms=rounded(done.total_ms, MICROSECONDS),
            context_length=done.context_length,
            block_size=done.settings.block_rows(self.max_block_size),
            temperature=done.settings.temperature,
            choice=_width_choice(done),
            tree=in_columns(self._tree(done)) if done.tree else (),
            match=done.match,
            alone_ms=None if done.alone_ms is None else rounded(done.alone_ms, MICROSECONDS),
        )
        self.index += 1
        self.meter.add(step)
        self.reason = done.finish or "stopped"
        return step

    def _drafted(self, done: Round) -> DraftColumns:
        ids, judged = done.draft_ids, done.target_probabilities
        by_drafter = len(ids) if done.match is None or done.tree else done.num_agreed
        return DraftColumns(
            ids,
            tuple(map(self.piece, ids)),
            _probabilities(done.draft_probabilities),
            (*_probabilities(judged), *[None] * (len(ids) - len(judged))),
            (*[self.by_drafter] * by_drafter, *["lookup"] * (len(ids) - by_drafter)),  # type: ignore[arg-type]
        )

    def _tree(self, done: Round) -> TreeColumns:
        parents, depths, choices = zip(*(node[:3] for node in done.tree), strict=True)
        sources = tuple("lookup" if choice == LOOKED_UP else self.by_drafter for choice in choices)
        texts, chances = map(self.piece, done.tree_ids), _probabilities(done.tree_probabilities)
        return TreeColumns(parents, depths, choices, done.tree_ids, tuple(texts), chances, sources)

    def _emitted(self, done: Round) -> EmittedColumns:
        ids, push = done.emitted, self.stream.push
        last = len(ids) if done.finish is not None else 0
        emitted = [push(token, index == last) for index, token in enumerate(ids, start=1)]
        for text, channel in emitted:
            if channel == "answer":
                self.text += text
            elif channel == "thought":
                self.thought += text
        texts, channels = zip(*emitted, strict=True)
        return EmittedColumns(ids, texts, done.verdicts, channels, _probabilities(done.probabilities))

    def finished(self) -> TurnFinished:
        statistics = self.meter.statistics(self.num_prompt_tokens, self.num_reused_tokens)
        return TurnFinished(self.turn, self.reason, self.text, self.thought, statistics)


def _width_choice(done: Round) -> WidthChoice | None:
    choice = done.choice
    if choice is None:
        return None
    (chance,) = _probabilities((choice.chance,))
    return WidthChoice(chance, rounded(choice.cost_ms, MICROSECONDS), float(round(choice.tok_s)))


def _probabilities(values: tuple[float, ...]) -> tuple[float, ...]:
    """The probabilities, rounded. Raises ``WeightsFailure`` for one that is no number, which only weights can cause
    that loading had no reason to refuse."""
    try:
        return tuple([round(value * PROBABILITY_STEPS) / PROBABILITY_STEPS for value in values])
    except ValueError as error:
        raise WeightsFailure("The model computes values that are no numbers (NaN).", DOWNLOAD_AGAIN) from error
