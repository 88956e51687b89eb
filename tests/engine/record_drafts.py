"""``python -m tests.engine.record_drafts`` writes ``drafts.xz``: the bundled drafter's drafts on held-out questions.

Of every position the four best choices, and which of them the text says. Five minutes on a CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from engine.checkpoint import load_drafter, load_target
from engine.commands import GenerationSettings
from engine.demo.confirm import questions
from engine.hub.pairs import BUNDLED_PAIR
from engine.kernels.head import capped_logits
from engine.models.dflash import DFlashDrafter
from engine.models.gemma4 import Gemma4
from engine.trees import CHOICES
from engine.tuning.files import Recording, save_recordings
from engine.tuning.play import Block
from engine.tuning.record import drafted_answer

DOMAINS = ("chat", "explain", "maths", "code", "html", "unknown")
PROMPTS = 8
TEMPERATURES = (0.0, 0.7, 1.0)
SEEDS = (3,)
FILE = Path(__file__).with_name("drafts.xz")


def record(target: Gemma4, drafter: DFlashDrafter, prompt: Sequence[int], settings: GenerationSettings) -> list[Block]:
    """Lets the target write an answer, and keeps the drafter's best choices behind every token of it."""
    drafts: list[tuple[list[list[int]], list[list[float]]]] = []

    def keep(norm: nn.Module, inputs: object, rows: Tensor) -> None:
        logits = capped_logits(rows[1:], target.embed_tokens.weight, drafter.config.logit_softcap)
        best = logits.softmax(dim=-1).topk(CHOICES)
        drafts.append((best.indices.tolist(), best.values.tolist()))

    hook = drafter.norm.register_forward_hook(keep)
    try:
        text = [token for token, _, _ in drafted_answer(target, drafter, prompt, settings)]
    finally:
        hook.remove()
    return [_block(ids, chances, text[place:]) for place, (ids, chances) in enumerate(drafts[:-1], 1)]


def _block(ids: list[list[int]], chances: list[list[float]], text: list[int]) -> Block:
    said = [choices.index(token) if token in choices else -1 for choices, token in zip(ids, text, strict=False)]
    return Block(tuple(map(tuple, chances[: len(said)])), tuple(said))


def record_all(domains: Sequence[str], prompts: int, seeds: Sequence[int]) -> list[tuple[int, Recording]]:
    """Answers to the first held-out questions of each domain, each with the number of its question.

    Greedy ones need no second seed.
    """
    device = torch.device("cpu")
    torch.set_num_threads(1)
    target = load_target(BUNDLED_PAIR / "target", device, lambda *_: None)
    drafter = load_drafter(BUNDLED_PAIR / "drafter", target, lambda *_: None)
    recordings = []
    for question, (domain, ids) in enumerate(questions(prompts)):
        for temperature in TEMPERATURES if domain in domains else ():
            for seed in seeds if temperature else seeds[:1]:
                settings = GenerationSettings(temperature=temperature, seed=seed, max_new_tokens=600)
                blocks = record(target, drafter, ids, settings)
                recordings.append((question, Recording.of_blocks(domain, temperature, len(ids), blocks)))
    return recordings


def main() -> None:
    save_recordings(FILE, [recording for _, recording in record_all(DOMAINS, PROMPTS, SEEDS)])


if __name__ == "__main__":
    main()
