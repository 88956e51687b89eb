"""Calls of tools by a real pair: a tiny target that writes one call, drafted for by a drafter and looked up in the
conversation, says the same to every client as it does one token at a time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import AddedToken, Tokenizer

from dflash_tui.sources import local_source
from engine.commands import EngineOptions, Message
from engine.events import Step, TurnFinished
from engine.tokenization.tokenizer import ChatTokenizer
from support.checkpoints import FULL, VOCAB_SIZE, drafter_config, write_drafter
from tests.engine.models import pre_norm
from tests.serve.conftest import Served, serving
from tests.serve.test_dialects import QUESTION, WAYS, Way, ask, said

PIECES = (
    "I look.", "\n\n<tool_call>", '\n{"na', 'me": ', '"wea', 'ther", ', '"argum', 'ents": ', '{"city"', ': "Zürich"',
    "}}\n", "</tool_call>",
)  # fmt: skip
"""A token each, and each is followed by the next."""
END = 1
HEADS = {"num_attention_heads": 2, "num_key_value_heads": 1}


def write_pair(folder: Path) -> None:
    size = VOCAB_SIZE + len(PIECES)
    target = folder / "target"
    model = pre_norm.write_target(target, "qwen3", 7, num_hidden_layers=2, vocab_size=size, **HEADS)
    tokenizer = Tokenizer.from_file(str(target / "tokenizer.json"))
    tokenizer.add_tokens([AddedToken(piece, normalized=False) for piece in PIECES])
    tokenizer.save(str(target / "tokenizer.json"))
    begin = ChatTokenizer(target).prompt([Message("user", QUESTION)], thinking=False).ids[-1]
    _chain(model, [begin, *(tokenizer.token_to_id(piece) for piece in PIECES), END])
    model.save_pretrained(target)
    drafter = drafter_config([FULL], [0, 1], 2, final_logit_softcapping=None, vocab_size=size, **HEADS)
    write_drafter(folder / "drafter", drafter, 2)


@torch.no_grad()
def _chain(model: Any, ids: list[int]) -> None:
    """Has each of these tokens follow the one before, whatever stands before that."""
    for layer in model.model.layers:
        layer.self_attn.o_proj.weight.zero_()
        layer.mlp.down_proj.weight.zero_()
    model.model.norm.weight.fill_(1.0)
    model.lm_head.weight.zero_()
    for before, behind in pairwise(ids):
        model.lm_head.weight[behind] = model.model.embed_tokens.weight[before]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("pair")
    write_pair(folder)
    options = EngineOptions(str(folder / "target"), str(folder / "drafter"), device="cpu", time_rounds=False)
    source = local_source(options)
    with serving(make=lambda emit, **_: source(emit)) as running:  # type: ignore[arg-type, return-value]
        yield running


@pytest.mark.parametrize("way", WAYS.values(), ids=list(WAYS))
@pytest.mark.parametrize("stream", [False, True])
def test_calls_are_the_same_with_speculation_and_without(served: Served, way: Way, stream: bool) -> None:
    more = {**way.tools, way.messages: way.body[way.messages] + way.result}
    for speculation in (True, False):
        before = len(served.finished())
        told = ask(served, way, stream, **more, speculation=speculation)
        assert said(way, told, stream) == ("I look.", [("weather", {"city": "Zürich"})])
        served.until(lambda before=before: len(served.finished()) > before)  # type: ignore[misc]
        finished: TurnFinished = served.finished()[-1]
        steps = [event for event in served.events if isinstance(event, Step) and event.turn == finished.turn]
        assert any(step.num_accepted > 0 for step in steps) == any(step.draft for step in steps) == speculation
        assert finished.text == "".join(PIECES)
