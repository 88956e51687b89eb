"""Two pairs in one process: what is decided for one holds for that one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import nn

from engine.commands import Ask, GenerationSettings, Message
from engine.decoding.decoder import Decoder
from engine.events import Event, Step
from engine.kernels.weights.kinds import MAKERS, hold_in, weight_of
from engine.models.packed import disable_fused_unpacking
from engine.runner import Runner
from engine.tokenization.tokenizer import ChatTokenizer
from tests.engine.conftest import TinyPair


def test_each_round_runs_on_the_threads_of_its_pair(dense_pair: TinyPair) -> None:
    before, answers = torch.get_num_threads(), dict[int, Iterator[Event]]()
    ask = Ask(1, (Message("user", "hi"),), GenerationSettings(max_new_tokens=4, speculation=False))
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            runner = Runner(Decoder(dense_pair.target, None, 64), ChatTokenizer(dense_pair.folder / "target"))
            answers[threads] = runner.answer(ask, list)
        for _ in range(6):
            for threads, answer in answers.items():
                event = next(answer, None)
                assert torch.get_num_threads() == threads or not isinstance(event, Step)
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("name", ["fp8", "int4"])
def test_weights_that_one_pair_unpacks_first_are_its_own(name: str) -> None:
    one, other = nn.Linear(256, 64, bias=False), nn.Linear(256, 64, bias=False)
    for module in (one, other):
        hold_in(module, "weight", MAKERS[name](module.weight.detach()))
    disable_fused_unpacking(one)
    mine, parts = weight_of(one), [weight_of(one).rows(0, 32), weight_of(one).rows(32, 64)]
    assert not any(each.inside for each in (mine, *parts, type(mine).below_one_another(parts)))
    assert weight_of(other).inside
