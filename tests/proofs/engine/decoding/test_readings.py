"""What a chat looks at while nobody waits: whether the drafter's first guesses would be right by another reading of its
config."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from engine.commands import Message
from engine.decoding.decoder import Decoder
from engine.decoding.readings import FirstGuesses, look_at_guesses
from engine.hub.published_drafters import Reported
from engine.loading.checkpoint import load_drafter, load_target
from engine.models.dflash.modules import DFlashDrafter
from engine.models.target import TargetModel
from engine.runner import Runner
from engine.service import EngineService
from engine.tokenization.tokenizer import ChatTokenizer
from tests.engine.conftest import CPU, no_progress
from tests.engine.small_decoders import run_turn, settings


@pytest.fixture(scope="module")
def trained(bundled_pair: Path) -> tuple[TargetModel, DFlashDrafter, list[int]]:
    """A trained pair, and a text of its target's."""
    target = load_target(bundled_pair / "target", CPU, no_progress)
    drafter = cast(DFlashDrafter, load_drafter(bundled_pair / "drafter", target, no_progress))
    prompt = ChatTokenizer(bundled_pair / "target").prompt([Message("user", "Write a quicksort in Python")], False).ids
    answer = run_turn(Decoder(target, drafter, 512), prompt, settings(max_new_tokens=90)).ids
    return target, drafter, [*prompt, *answer]


def test_a_config_read_as_it_was_trained_is_not_spoken_of(
    trained: tuple[TargetModel, DFlashDrafter, list[int]],
) -> None:
    target, drafter, text = trained
    assert set(look_at_guesses(target, drafter, text, rows=16)) == {None}
    assert not list(look_at_guesses(target, drafter, text[:40])), "a short text says nothing"


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("target_layer_ids", {"target_layer_ids": (2, 4, 6)}),
        ("sample_from_anchor", {"first_slot": 0}),
    ],
)
def test_another_reading_that_is_clearly_better_is_named(
    field: str, change: dict[str, Any], trained: tuple[TargetModel, DFlashDrafter, list[int]]
) -> None:
    target, drafter, text = trained
    other = copy(drafter)
    other.config = replace(drafter.config, **change)
    *between, found = look_at_guesses(target, other, text, rows=16)
    assert set(between) == {None} and len(between) > 100, "it can be put off at many places"
    assert isinstance(found, FirstGuesses) and found.field == field and found.share > found.own + 0.3
    assert field in found.says


class OnceIdle:
    """A runner that has work for while nobody waits."""

    def __init__(self, service: EngineService, pieces: list[str]):
        self.while_idle = self._work(service, pieces)

    def _work(self, service: EngineService, pieces: list[str]) -> Iterator[None]:
        for piece in ("a", "b", "c"):
            pieces.append(piece)
            if piece == "b":
                service.send(cast(Any, "a command"))
            yield None


def test_a_command_puts_off_what_can_wait() -> None:
    service, pieces = EngineService(cast(Any, None), lambda _: None), list[str]()
    runner = cast(Any, OnceIdle(service, pieces))
    assert service._next(runner) == cast(Any, "a command") and pieces == ["a", "b"]
    service.send(cast(Any, "another"))
    assert service._next(runner) == cast(Any, "another") and pieces == ["a", "b"]


def test_far_fewer_than_published_is_told(
    trained: tuple[TargetModel, DFlashDrafter, list[int]],
) -> None:
    target, drafter, text = trained
    runner = Runner(Decoder(target, drafter, 512), cast(Any, None))
    runner.reported = Reported(5.0, "MT-Bench")
    for kept, said in ((2.0, True), (4.0, False)):
        found = [each for each in runner._look_at_guesses(text, 16, kept) if each is not None]
        assert [each.message for each in found] == [
            "The drafter guesses worse than was published. It keeps 2.0 tokens a round here, its makers report 5"
            " (MT-Bench)."
        ] * said
