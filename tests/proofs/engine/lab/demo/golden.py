"""The bundled pair's answers to eight fixed prompts. ``python -m tests.proofs.engine.lab.demo.golden``
writes ``golden.json`` again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from engine.commands import GenerationSettings, Message
from engine.decoding.decoder import Decoder
from engine.hub.pairs import BUNDLED_PAIR
from engine.loading.checkpoint import load_drafter, load_target
from engine.tokenization.tokenizer import ChatTokenizer
from tests.engine.small_decoders import Answer, run_turn

GOLDEN = Path(__file__).with_name("golden.json")
PROMPTS = (
    "Write a quicksort in Python",
    "create a single-file HTML animation of a drone swarm",
    "Write a Python function that reverses a string",
    "Make an HTML page with falling snow",
    "A box holds 12 pens. How many pens are in 7 boxes?",
    "what is 47 + 38?",
    "what does the drafter do?",
    "Who won the world cup in 1998?",
)


class GoldenPair:
    """The bundled pair on the CPU, one decoder for each way."""

    def __init__(self) -> None:
        device = torch.device("cpu")
        self.tokenizer = ChatTokenizer(BUNDLED_PAIR / "target")
        target = load_target(BUNDLED_PAIR / "target", device, lambda *_: None)
        drafter = load_drafter(BUNDLED_PAIR / "drafter", target, lambda *_: None)
        self.plain, self.drafting = Decoder(target, None, 2048), Decoder(target, drafter, 2048)

    def answer(self, prompt: str, speculation: bool) -> Answer:
        """Greedy, to its end."""
        decoder = self.drafting if speculation else self.plain
        decoder.clear()
        ids = self.tokenizer.prompt([Message("user", prompt)], thinking=False).ids
        return run_turn(decoder, ids, GenerationSettings(speculation=speculation))

    def entry(self, prompt: str) -> dict[str, Any]:
        answer = self.answer(prompt, speculation=True)
        return {"prompt": prompt, "text": self.tokenizer.decode(answer.ids), "tau": round(tau(answer), 4)}


def golden_text(prompt: str) -> str:
    """What the pair says to one of ``PROMPTS``. Under another torch it is asked."""
    golden = json.loads(GOLDEN.read_text())
    if golden["torch"] == torch_minor():
        return str(next(entry["text"] for entry in golden["answers"] if entry["prompt"] == prompt))
    pair = GoldenPair()
    return pair.tokenizer.decode(pair.answer(prompt, speculation=True).ids)


def tau(answer: Answer) -> float:
    """Mean acceptance length. The last round is left out, as in the report: the stop token cuts it short."""
    rounds = [done for done in answer.rounds if done.draft_ids][:-1]
    return 1 + sum(done.num_accepted for done in rounds) / len(rounds)


def torch_minor() -> str:
    """The version without its patch number: another one may add up in another order."""
    return ".".join(torch.__version__.split(".")[:2])


def main() -> None:
    pair = GoldenPair()
    golden = {"torch": torch_minor(), "answers": [pair.entry(prompt) for prompt in PROMPTS]}
    GOLDEN.write_text(json.dumps(golden, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
