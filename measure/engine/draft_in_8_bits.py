"""``python -m measure.engine.draft_in_8_bits`` measures what drafting in 8 bits costs, on held-out questions.

The bundled target writes greedy answers. At every token of them a whole block is drafted twice: by the drafter, and by
one whose weights, and whose copy of the head, have 8 bits.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from statistics import fmean, stdev

import torch
from torch import Tensor, nn

from engine.commands import GenerationSettings
from engine.demo.confirm import questions
from engine.hub.pairs import BUNDLED_PAIR
from engine.kernels.decode.head import capped_logits
from engine.kernels.weights.int8 import Int8Weight
from engine.loading.checkpoint import load_drafter, load_target
from engine.models.dflash.modules import DFlashDrafter
from engine.models.gemma4.modules import Gemma4
from engine.tuning.record import drafted_answer

Drafts = tuple[tuple[int, ...], ...]
"""One behind every token of an answer."""


@dataclass(frozen=True)
class Answer:
    text: tuple[int, ...]
    full: Drafts
    eighth: Drafts
    """In 8 bits."""

    def agreement(self) -> tuple[int, int]:
        """Drafted tokens that both agree on, and all."""
        pairs = [each for two in zip(self.full, self.eighth, strict=True) for each in zip(*two, strict=True)]
        return sum(full == eighth for full, eighth in pairs), len(pairs)

    def num_right(self, drafts: Drafts) -> list[int]:
        """How many tokens of each draft the target says too. Drafts that reach past the answer's end are left out."""
        inside = [(place, draft) for place, draft in enumerate(drafts) if place + len(draft) < len(self.text)]
        return [_common_length(draft, self.text[place + 1 :]) for place, draft in inside]


def rounded_drafter(drafter: DFlashDrafter) -> DFlashDrafter:
    """A copy, every product of which has the weights that 8 bits leave."""
    copy = deepcopy(drafter)
    for module in copy.modules():
        if isinstance(module, nn.Linear):
            module.weight = nn.Parameter(Int8Weight.of(module.weight).restored(), requires_grad=False)
    return copy


@torch.inference_mode()
def drafted_by_both(
    target: Gemma4, drafter: DFlashDrafter, rounded: DFlashDrafter, prompt: Sequence[int], max_new_tokens: int
) -> Answer:
    """A greedy answer, which the target writes twice: once for each drafter to draft at every token of it."""
    settings = GenerationSettings(temperature=0.0, max_new_tokens=max_new_tokens)
    written = [(token, tuple(ids)) for token, ids, _ in drafted_answer(target, drafter, prompt, settings)]
    copy = Int8Weight.of(target.head).restored()
    eighth: list[tuple[int, ...]] = []

    def pick(norm: nn.Module, inputs: object, rows: Tensor) -> None:
        logits = capped_logits(rows[1:], copy, drafter.config.logit_softcap)
        eighth.append(tuple(logits.argmax(dim=-1).tolist()))

    hook = rounded.norm.register_forward_hook(pick)
    try:
        for _ in drafted_answer(target, rounded, prompt, settings):
            pass
    finally:
        hook.remove()
    return Answer(tuple(token for token, _ in written), tuple(ids for _, ids in written), tuple(eighth))


def block_lengths(num_right: Sequence[int]) -> list[int]:
    """Tokens of each round that an answer takes, given what a draft at any of its places gets right."""
    lengths, place = [], 0
    while place < len(num_right):
        lengths.append(num_right[place] + 1)
        place += lengths[-1]
    return lengths


def _common_length(draft: Sequence[int], text: Sequence[int]) -> int:
    return next((i for i, (a, b) in enumerate(zip(draft, text, strict=False)) if a != b), len(draft))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prompts", type=int, default=8, help="of each of the six domains")
    parser.add_argument("--tokens", type=int, default=600, help="per answer, at most")
    options = parser.parse_args()
    device = torch.device("cpu")
    torch.set_num_threads(1)
    target = load_target(BUNDLED_PAIR / "target", device, lambda *_: None)
    drafter = load_drafter(BUNDLED_PAIR / "drafter", target, lambda *_: None)
    rounded = rounded_drafter(drafter)
    answers = [drafted_by_both(target, drafter, rounded, ids, options.tokens) for _, ids in questions(options.prompts)]
    agreed, drafted = (sum(each) for each in zip(*(answer.agreement() for answer in answers), strict=True))
    print(f"{len(answers)} answers, {drafted} drafted tokens, of which both agree on {agreed / drafted:.4%}")
    rights = [(answer.num_right(answer.full), answer.num_right(answer.eighth)) for answer in answers]
    pairs = [pair for two in rights for pair in zip(*two, strict=True)]
    differences = [eighth - full for full, eighth in pairs]
    print(
        f"a block at every token: {len(pairs)} blocks, {1 + fmean(full for full, _ in pairs):.4f} tokens with all bits,"
        f" {fmean(differences):+.4f} +- {stdev(differences) / len(pairs) ** 0.5:.4f} with 8;"
        f" {sum(each != 0 for each in differences)} blocks differ"
    )
    for name, which in (("all bits", 0), ("8 bits", 1)):
        lengths = [length for two in rights for length in block_lengths(two[which])]
        print(f"rounds one after the other, {name}: {len(lengths)} rounds, acceptance length {fmean(lengths):.4f}")


if __name__ == "__main__":
    main()
