"""``python -m measure.engine.record_drafts`` writes ``drafts.xz``: the bundled drafter's drafts on held-out questions.

Records the four best choices at every position, and which of them the text takes; and in ``texts.xz``, in the same
order, the tokens of prompts and answers, from which follows what can be looked up in them. Five minutes on a CPU."""

from __future__ import annotations

import argparse
import json
import lzma
import os
from collections.abc import Iterator
from pathlib import Path

import torch

from engine.commands import GenerationSettings
from engine.hub.pairs import BUNDLED_PAIR
from engine.lab.demo.confirm import questions
from engine.lab.judging.record import DraftRecording, record_blocks
from engine.loading.checkpoint import load_drafter, load_target
from measure.engine.recordings import save_recordings
from measure.quick import parse

DOMAINS = ("code", "html", "maths", "explain", "chat", "unknown")
"""Domains of free text. ``measure.engine.edits`` measures what copying is worth."""
PROMPTS = 8
TEMPERATURES = (0.0, 0.7, 1.0)
FILE = Path(__file__).with_name("drafts.xz")
TEXTS = Path(__file__).with_name("texts.xz")

Text = tuple[list[int], list[int]]
"""A prompt and its answer, as ids."""


def asked(prompts: int = PROMPTS) -> Iterator[tuple[str, list[int]]]:
    """Yields the first ``prompts`` questions of each domain, domain after domain."""
    return ((each.domain, ids) for each, ids in questions(prompts) if each.domain in DOMAINS)


def record_all(prompts: int, tokens: int) -> tuple[list[DraftRecording], list[Text]]:
    """Answers to the first held-out questions of each domain."""
    device = torch.device("cpu")
    torch.set_num_threads(1)
    target = load_target(BUNDLED_PAIR / "target", device, lambda *_: None)
    drafter = load_drafter(BUNDLED_PAIR / "drafter", target, lambda *_: None)
    recordings, texts = [], []
    for domain, ids in asked(prompts):
        for temperature in TEMPERATURES:
            settings = GenerationSettings(temperature=temperature, seed=3, max_new_tokens=tokens)
            answer, blocks = record_blocks(target, drafter, ids, settings)
            recordings.append(DraftRecording.of_blocks(domain, temperature, len(ids), blocks))
            texts.append((list(ids), answer))
    return recordings, texts


def load_texts() -> list[Text]:
    """The prompt and the answer of each recording."""
    return [tuple(json.loads(line)) for line in lzma.decompress(TEXTS.read_bytes()).splitlines()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prompts", type=int, default=PROMPTS, help="of each domain")
    parser.add_argument("--tokens", type=int, default=600, help="of an answer, at most")
    parser.add_argument("--out", type=Path, default=FILE, help="of the drafts")
    parser.add_argument("--texts", type=Path, default=TEXTS, help="of the texts")
    options = parse(parser, f"--prompts 1 --tokens 8 --out {os.devnull} --texts {os.devnull}")
    recordings, texts = record_all(options.prompts, options.tokens)
    save_recordings(options.out, recordings)
    options.texts.write_bytes(lzma.compress("".join(json.dumps(text) + "\n" for text in texts).encode()))
    print(f"{len(recordings)} answers' blocks in {options.out}, their texts in {options.texts}")


if __name__ == "__main__":
    main()
