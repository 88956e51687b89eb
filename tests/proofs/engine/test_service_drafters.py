"""Whole answers through the engine thread, with drafters that are always right, always wrong, or never trained."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from torch import Tensor

from engine.decoding import decoder
from engine.events import TurnFinished
from engine.kv_cache.cache import Cache
from engine.models.dflash.modules import DFlashDrafter, Draft
from engine.models.gemma4.modules import Gemma4
from engine.sampling.sampling import Samples, sample
from engine.tokenization.tokenizer import ChatTokenizer
from tests.engine.test_service import BUNDLED, Session, ask, check_steps, running

QUESTION = "Write a quicksort in Python"
TOKENS = 60
MASK = 4
EVERY = 7


def emitted(session: Session, turn: int) -> list[int]:
    return [token.id for step in session.steps(turn) for token in step.emitted]


def answer(session: Session, turn: int, **values: object) -> TurnFinished:
    session.service.send(ask(turn, QUESTION, max_new_tokens=TOKENS, **values))
    finished = session.wait_for(TurnFinished, turn)
    check_steps(session.steps(turn), finished)
    return finished


def propose(monkeypatch: pytest.MonkeyPatch, first: int, text: Sequence[int], shift: int) -> None:
    """Drafts become the tokens of ``text``, an answer that begins at position ``first``, each moved by ``shift``."""
    padded = [*text, *[0] * 32]

    def draft(drafter: DFlashDrafter, target: Gemma4, anchor: int, block_size: int, cache: Cache) -> Draft:
        place = cache.length - first + 1
        ids = [(token + shift) % target.config.vocab_size for token in padded[place : place + block_size - 1]]
        return Draft(torch.tensor(ids), torch.full((len(ids),), 0.5))

    monkeypatch.setattr(DFlashDrafter, "draft", draft)


@pytest.mark.usefixtures("bundled_pair")
def test_an_oracle_and_an_adversary_say_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    temperature = 1.0
    with running(BUNDLED) as session:
        plain = answer(session, 1, speculation=False, temperature=temperature)
        text = emitted(session, 1)
        trained = answer(session, 2, temperature=temperature)
        propose(monkeypatch, plain.statistics.num_prompt_tokens, text, shift=0)
        oracle = answer(session, 3, temperature=temperature)
        propose(monkeypatch, plain.statistics.num_prompt_tokens, text, shift=1)
        adversary = answer(session, 4, temperature=temperature)
        assert plain.text == trained.text == oracle.text == adversary.text and len(plain.text) > 50
        assert text == emitted(session, 2) == emitted(session, 3) == emitted(session, 4)
        assert adversary.statistics.num_accepted_draft_tokens == 0
        # Whatever the answer's length, all but its last round accept everything.
        assert oracle.statistics.acceptance_histogram[:15].count(0) >= 14
        assert oracle.statistics.num_spec_steps == -(-(len(text) - 1) // 16)


@pytest.mark.parametrize("speculation", [True, False])
def test_a_target_that_says_the_mask_token_loses_no_text(
    speculation: bool, bundled_pair: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mask is a token like any other to the target; what stands around it must all arrive."""

    def masking(logits: Tensor, first_position: int, draft_ids: Sequence[int] = (), **how: float) -> Samples:
        said = sample(logits, first_position, draft_ids, **how)  # type: ignore[arg-type]
        ids = [MASK if (first_position + row) % EVERY == 0 else token for row, token in enumerate(said.ids)]
        return said._replace(ids=ids)

    with running(BUNDLED) as session:
        monkeypatch.setattr(decoder, "sample", masking)
        finished = answer(session, 1, speculation=speculation)
        ids = emitted(session, 1)
        assert ids.count(MASK) >= len(ids) // EVERY > 1
        around = [token for token in ids if token != MASK]
        assert finished.text == ChatTokenizer(bundled_pair / "target").decode(around) != ""
