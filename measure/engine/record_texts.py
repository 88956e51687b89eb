"""``python -m measure.engine.record_texts`` writes ``texts.xz``: the tokens of the answers in ``drafts.xz``.

They are in the same order, prompt and answer; what can be looked up in them follows. Two minutes on a CPU."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import torch

from engine.commands import GenerationSettings
from engine.decoding.decoder import Decoder, Prompt, Round
from engine.hub.pairs import BUNDLED_PAIR
from engine.loading.checkpoint import load_drafter, load_target
from measure.engine.record_drafts import TEMPERATURES, asked, recording

FILE = Path(__file__).with_name("texts.xz")


def record_all(prompts: int, tokens: int) -> list[tuple[list[int], list[int]]]:
    device = torch.device("cpu")
    torch.set_num_threads(1)
    target = load_target(BUNDLED_PAIR / "target", device, lambda *_: None)
    drafter = load_drafter(BUNDLED_PAIR / "drafter", target, lambda *_: None)
    decoder = Decoder(target, drafter, 4096)
    texts = []
    for _, ids in asked(prompts):
        for temperature in TEMPERATURES:
            settings = GenerationSettings(16, temperature, seed=3, max_new_tokens=tokens)
            rounds = decoder.decode(Prompt(tuple(ids), len(ids)), lambda settings=settings: settings)  # type: ignore[misc]
            answer = [token for done in rounds if isinstance(done, Round) for token in done.emitted]
            texts.append((list(ids), answer))
    return texts


def load_texts() -> list[tuple[list[int], list[int]]]:
    """The prompt and the answer of each recording, as ids."""
    return [tuple(json.loads(line)) for line in lzma.decompress(FILE.read_bytes()).splitlines()]


def main() -> None:
    options = recording(__doc__, FILE)
    texts = record_all(options.prompts, options.tokens)
    options.out.write_bytes(lzma.compress("".join(json.dumps(text) + "\n" for text in texts).encode()))
    print(f"{len(texts)} texts in {options.out}")


if __name__ == "__main__":
    main()
