"""``python -m measure.engine.smollm2``: compares SmolLM2, with its real weights, with ``transformers`` and the same
file.

Both answer 200 questions, greedy and in fp32: ``transformers`` by its own ``generate``, the engine by passes of sixteen
rows, as it decodes where drafts are right. Where the two would go on differently the margin between the best two tokens
is printed; more than rounding explains is a mistake."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint
from transformers.models.llama import LlamaConfig, LlamaForCausalLM

from engine.commands import Message
from engine.hub.fetching import Fetching
from engine.hub.pairs import find_pair
from engine.kv_cache.cache import Cache
from engine.loading.checkpoint import load_target
from engine.models.target import TargetModel
from engine.tokenization.tokenizer import ChatTokenizer
from measure.quick import parse

from .questions import questions

CPU = torch.device("cpu")
ROWS = 16
NEAR = 2e-4
"""The margin, in logits, of a near-tie: rounding in fp32 moves logits by a tenth of it."""
BATCH = 25


@dataclass(frozen=True, slots=True)
class Both:
    """The model in the engine and in ``transformers``, and its tokenizer."""

    target: TargetModel
    tokenizer: ChatTokenizer
    reference: LlamaForCausalLM

    def prompt(self, question: str) -> tuple[int, ...]:
        return self.tokenizer.prompt([Message("user", question)], thinking=False).ids


@dataclass(frozen=True, slots=True)
class Difference:
    """A place where the engine would have gone on differently."""

    question: str
    position: int
    margin: float
    """The difference between the engine's token and that of ``transformers``, in the engine's logits."""


def load() -> Both:
    """Loads both. Raises ``WeightsFailure`` where the package with the weights isn't installed."""
    folder = find_pair("smollm2", None, Fetching(offline=True)).target
    return Both(load_target(folder, CPU, lambda *_: None), ChatTokenizer(folder), load_reference(folder))


def load_reference(folder: Path) -> LlamaForCausalLM:
    """The model as ``transformers`` loads the file."""
    (path,) = folder.glob("*.gguf")
    logging.getLogger("transformers").setLevel(logging.ERROR)
    model = LlamaForCausalLM(LlamaConfig.from_pretrained(folder))
    said = load_gguf_checkpoint(str(path), return_tensors=True, model_to_load=model)
    same = {"rope_theta": model.config.rope_parameters["rope_theta"], "rms_norm_eps": model.config.rms_norm_eps}
    assert same == {name: said["config"][name] for name in same}
    model.load_state_dict(said["tensors"], strict=False)
    model.tie_weights()
    return model.eval()


@torch.inference_mode()
def answers(both: Both, prompts: Sequence[Sequence[int]], tokens: int) -> Iterator[list[int]]:
    """Yields the answers of ``transformers``, up to and including the token that ends them."""
    for start in range(0, len(prompts), BATCH):
        part = prompts[start : start + BATCH]
        width = max(map(len, part))
        ids = torch.tensor([[0] * (width - len(prompt)) + list(prompt) for prompt in part])
        seen = torch.tensor([[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in part])
        said = both.reference.generate(ids, attention_mask=seen, max_new_tokens=tokens, do_sample=False)
        stops = both.target.config.stop_token_ids
        for row in said[:, width:].tolist():
            end = next((index + 1 for index, token in enumerate(row) if token in stops), len(row))
            yield row[:end]


@torch.inference_mode()
def logits_of(target: TargetModel, prompt: Sequence[int], answer: Sequence[int]) -> Tensor:
    """Logits [answer, vocab] with which the engine would have chosen each of the answer's tokens."""
    ids = torch.tensor([*prompt, *answer[:-1]])
    cache = Cache(target.config.layers, len(ids), ROWS, torch.float32, CPU)
    hidden = []
    for piece in (ids[: len(prompt)], *ids[len(prompt) :].split(ROWS)):
        hidden.append(target(piece, cache.length, cache).hidden)
        cache.commit(cache.length + len(piece))
    return target.logits(torch.cat(hidden)[len(prompt) - 1 :])


def differences(both: Both, asked: Sequence[str], tokens: int) -> Iterator[Difference]:
    """Yields the differences at all positions of all answers."""
    prompts = [both.prompt(question) for question in asked]
    for question, prompt, answer in zip(asked, prompts, answers(both, prompts, tokens), strict=True):
        logits = logits_of(both.target, prompt, answer)
        expected = torch.tensor(answer)
        margins = logits.max(dim=-1).values - logits.gather(1, expected[:, None])[:, 0]
        for position in (logits.argmax(dim=-1) != expected).nonzero()[:, 0].tolist():
            yield Difference(question, position, float(margins[position]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--tokens", type=int, default=128)
    wanted = parse(parser, "--questions 1 --tokens 8")
    asked, both, wrong, ties = questions(wanted.questions), load(), 0, 0
    for start in range(0, len(asked), BATCH):
        for found in differences(both, asked[start : start + BATCH], wanted.tokens):
            ties, wrong = ties + (found.margin <= NEAR), wrong + (found.margin > NEAR)
            print(f"{found.question!r} at token {found.position}: {found.margin:.2e} apart", flush=True)
        print(f"{min(start + BATCH, len(asked))} answers: {ties} near-ties, {wrong} differences", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
