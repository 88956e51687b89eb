"""``python -m measure.engine.acceptance``: how far SmolLM2's drafter guesses ahead, on questions it has never seen.

Asks greedily, with blocks of sixteen, in batches. Prints for each form of question and for all: tokens per round, the
share of rounds that accept each position, and whether the texts are the target's own. ``dflash-chat train`` reports the
same about the drafter it has made."""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

import torch

from engine.commands import Message
from engine.hub.fetching import Fetching
from engine.hub.pairs import find_pair
from engine.lab.training.generation import GeneratedAnswer, Sampler, generate, speculate
from engine.lab.training.measures import Speculation, speculation
from engine.loading.checkpoint import load_drafter, load_target, pick_device
from engine.models.dflash.modules import DFlashDrafter
from engine.tokenization.tokenizer import ChatTokenizer
from measure.quick import parse

from .questions import held_out

SHOWN = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15)
ALL = "all"


def row(name: str, figures: Speculation) -> str:
    shares = "".join(f"{figures.by_position[position - 1]:6.0%}" for position in SHOWN)
    return f"{name:42}{figures.tau:7.2f}{figures.cycles:8}{shares}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="smollm2")
    parser.add_argument("--drafter", help="a folder; default: the target's own")
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--batch", type=int, default=25)
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    wanted = parse(parser, "--questions 1 --tokens 16 --batch 1 --device cpu")
    folders = find_pair(wanted.target, wanted.drafter, Fetching(offline=True))
    if folders.drafter is None:
        parser.error("this target has no drafter; name one with --drafter")
    device, block = pick_device(wanted.device), 16
    target = load_target(folders.target, device, lambda *_: None)
    drafter = load_drafter(Path(folders.drafter), target, lambda *_: None)
    assert isinstance(drafter, DFlashDrafter)
    tokenizer, greedy = ChatTokenizer(folders.target), Sampler(0, 0, device)
    found: dict[str, list[GeneratedAnswer]] = defaultdict(list)
    same, asked = 0, list(held_out(wanted.questions))
    for begin in range(0, len(asked), wanted.batch):
        part = asked[begin : begin + wanted.batch]
        prompts = [tokenizer.prompt([Message("user", question)], thinking=False).ids for _, question in part]
        drafted = speculate(target, drafter, prompts, wanted.tokens, greedy, block)
        plain = generate(target, prompts, wanted.tokens, greedy)
        same += sum(one.ids == other.ids for one, other in zip(drafted, plain, strict=True))
        for (form, _), answer in zip(part, drafted, strict=True):
            found[ALL].append(answer)
            found[form].append(answer)
        print(f"{begin + len(part)} of {len(asked)}: {speculation(found[ALL], block).tau:.2f}", flush=True)
    print(f"{'':42}{'tokens':>7}{'rounds':>8}" + "".join(f"{position:>6}" for position in SHOWN))
    for name, answers in found.items():
        print(row(name, speculation(answers, block)))
    print(f"{same} of {len(asked)} texts are the target's own, {torch.get_num_threads()} threads, {device}")
    return 0 if same == len(asked) or device.type == "cuda" else 1


if __name__ == "__main__":
    raise SystemExit(main())
