"""Turns a turn's rounds into the events that front ends read."""

from __future__ import annotations

from dataclasses import replace
from itertools import zip_longest
from math import isnan
from time import perf_counter
from typing import TYPE_CHECKING

from .commands import Ask
from .decoding.rounds import Prompt, Round
from .errors import WeightsFailure
from .events import (
    MICROSECONDS,
    PROBABILITY_STEPS,
    DraftToken,
    EmittedToken,
    FinishReason,
    Source,
    Step,
    TreeToken,
    TurnFinished,
    TurnStarted,
    WidthChoice,
    rounded,
)
from .files.json_fields import DOWNLOAD_AGAIN
from .speculation.trees import LOOKED_UP
from .statistics import TurnMeter
from .tokenization.tokenizer import stream_of

if TYPE_CHECKING:
    from .runner import Runner


class TurnEvents:
    """Turns the rounds of one turn into events, and adds up its statistics.

    ``begun`` opens the turn, ``step`` follows for every round, ``finished`` closes it."""

    def __init__(self, runner: Runner, ask: Ask, prompt: Prompt, started: float):
        self.runner = runner
        self.turn = ask.turn
        self.settings = ask.settings
        self.question = runner.tokenizer.decode(prompt.ids) if ask.prompt else ask.messages[-1].content
        self.started = started
        self.stream = stream_of(runner.tokenizer, prompt.ids)
        self.meter = TurnMeter(len(prompt.ids))
        self.index = 0
        self.thought = ""
        drafter = runner.decoder.drafter
        self.by_drafter: Source | None = "mtp" if drafter is not None and drafter.config.kind == "mtp" else None
        """The source named for tokens that the drafter guessed; None for a DFlash drafter, which is the default."""
        self.reason: FinishReason = "stopped"

    def begun(self, started: TurnStarted) -> TurnStarted:
        """The decoder's event with the question, and with the settings that were asked for."""
        self.meter.num_reused_tokens = started.num_reused_tokens
        return replace(started, settings=self.settings.to_dict(), question=self.question)

    def step(self, done: Round) -> Step:
        step = Step(
            turn=self.turn,
            index=self.index,
            time=rounded(perf_counter() - self.started, 1000 * MICROSECONDS),
            draft=self._drafted(done),
            num_accepted=done.num_accepted,
            emitted=self._emitted(done),
            verify_width=done.verify_width,
            draft_ms=rounded(done.draft_ms, MICROSECONDS),
            verify_ms=rounded(done.verify_ms, MICROSECONDS),
            total_ms=rounded(done.total_ms, MICROSECONDS),
            context_length=done.context_length,
            block_size=done.settings.block_rows(self.runner.max_block_size),
            temperature=done.settings.temperature,
            choice=_width_choice(done),
            tree=self._tree(done),
            match=done.match,
            alone_ms=None if done.alone_ms is None else rounded(done.alone_ms, MICROSECONDS),
        )
        self.index += 1
        self.meter.add(step)
        self.reason = done.finish or "stopped"
        return step

    def _drafted(self, done: Round) -> tuple[DraftToken, ...]:
        piece = self.runner.tokenizer.piece
        drafted = zip_longest(done.draft_ids, done.draft_probabilities, done.target_probabilities)
        all_drafted = done.match is None or done.tree
        first_looked_up = len(done.draft_ids) if all_drafted else done.num_agreed
        return tuple(
            DraftToken(
                token,
                piece(token),
                _probability(by_drafter),
                None if given is None else _probability(given),
                "lookup" if place >= first_looked_up else self.by_drafter,
            )
            for place, (token, by_drafter, given) in enumerate(drafted)
        )

    def _tree(self, done: Round) -> tuple[TreeToken, ...]:
        piece = self.runner.tokenizer.piece
        return tuple(
            TreeToken(
                *node[:3], token, piece(token), _probability(probability),
                "lookup" if node.choice == LOOKED_UP else self.by_drafter,
            )
            for node, token, probability in zip(done.tree, done.tree_ids, done.tree_probabilities, strict=True)
        )  # fmt: skip

    def _emitted(self, done: Round) -> tuple[EmittedToken, ...]:
        tokens = []
        said = zip(done.emitted, done.verdicts, done.probabilities, strict=True)
        for position, (token, verdict, probability) in enumerate(said, start=1):
            last = done.finish is not None and position == len(done.emitted)
            text, channel = self.stream.push(token, last)
            if channel == "answer":
                self.runner.text_so_far += text
            elif channel == "thought":
                self.thought += text
            tokens.append(EmittedToken(token, text, verdict, channel, _probability(probability)))
        return tuple(tokens)

    def finished(self) -> TurnFinished:
        return TurnFinished(self.turn, self.reason, self.runner.text_so_far, self.thought, self.meter.statistics())


def _width_choice(done: Round) -> WidthChoice | None:
    choice = done.choice
    if choice is None:
        return None
    tok_s = float(round(choice.tok_s))
    return WidthChoice(_probability(choice.chance), rounded(choice.cost_ms, MICROSECONDS), tok_s)


def _probability(value: float) -> float:
    """The probability, rounded. Raises ``WeightsFailure`` for one that is no number, which only weights can cause that
    loading had no reason to refuse."""
    if isnan(value):
        raise WeightsFailure("The model computes values that are no numbers (NaN).", DOWNLOAD_AGAIN)
    return rounded(value, PROBABILITY_STEPS)
