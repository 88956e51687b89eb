"""Whole answers through the engine thread, with drafters that are always right, always wrong, or never trained."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from engine import runner
from engine.decoding import decoder
from engine.events import Notice, TurnFinished
from engine.kv_cache.cache import Cache
from engine.models.dflash.modules import DFlashDrafter, Draft
from engine.models.gemma4.modules import Gemma4
from engine.sampling.sampling import Samples, sample
from engine.tokenization.tokenizer import ChatTokenizer
from support.checkpoints import FULL, SLIDING, random_target, write_tokenizer
from tests.engine.assistants import lending_keys, write_assistant
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


def test_an_assistants_drafts_name_it(tmp_path: Path) -> None:
    """In steps and statistics; where nobody is named it was a DFlash drafter."""
    with lending_keys():
        theirs = random_target([SLIDING, FULL], False, seed=2)
    theirs.save_pretrained(tmp_path / "target")
    write_tokenizer(tmp_path / "target")
    write_assistant(tmp_path / "assistant", theirs)
    named = replace(BUNDLED, target=str(tmp_path / "target"), drafter=str(tmp_path / "assistant"))
    with running(named) as session:
        plain = answer(session, 1, speculation=False)
        drafted = answer(session, 2, block_size=3, draft_by="drafter")
        assert drafted.text == plain.text
        assert {token.source for step in session.steps(2) for token in step.draft} == {"mtp"}
        assert [each.source for each in drafted.statistics.by_source] == ["mtp"]
        assert drafted.statistics.by_source[0].num_draft_tokens == drafted.statistics.num_draft_tokens > 0


def test_a_config_that_is_read_otherwise_than_it_was_trained_is_told_after_the_first_long_answer(
    bundled_pair: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once, and only while nothing is asked."""
    monkeypatch.setattr(runner, "IDLE_MS", 1e9)  # whatever this machine's pace
    drafter = shutil.copytree(bundled_pair / "drafter", tmp_path / "drafter")
    config = json.loads((drafter / "config.json").read_text())
    config["dflash_config"]["target_layer_ids"] = [tap + 1 for tap in config["dflash_config"]["target_layer_ids"]]
    (drafter / "config.json").write_text(json.dumps(config))
    with running(replace(BUNDLED, drafter=str(drafter))) as session:
        session.service.send(ask(1, QUESTION, max_new_tokens=2 * TOKENS))
        session.wait_for(TurnFinished, 1)
        assert not any(isinstance(event, Notice) for event in session.events)
        assert "target_layer_ids" in session.wait_for(Notice).message
        answer(session, 2)
    assert sum(isinstance(event, Notice) for event in session.events) == 1
