"""``python -m tests.engine.record_drafts`` writes ``drafts.xz``: the bundled drafter's drafts on held-out questions."""

from __future__ import annotations

from pathlib import Path

import torch

from engine.checkpoint import load_drafter, load_target
from engine.commands import GenerationSettings
from engine.demo.confirm import questions
from engine.hub.pairs import BUNDLED_PAIR
from engine.tuning.files import Recording, save_recordings
from engine.tuning.record import record_drafts

PROMPTS = 8
TEMPERATURES = (0.0, 0.7, 1.0)


def main() -> None:
    device = torch.device("cpu")
    torch.set_num_threads(1)
    target = load_target(BUNDLED_PAIR / "target", device, lambda *_: None)
    drafter = load_drafter(BUNDLED_PAIR / "drafter", target, lambda *_: None)
    recordings = []
    for domain, ids in questions(PROMPTS):
        for temperature in TEMPERATURES:
            settings = GenerationSettings(temperature=temperature, seed=3, max_new_tokens=600)
            anchors = record_drafts(target, drafter, ids, settings)
            recordings.append(Recording(domain, temperature, len(ids), tuple(anchors)))
        print(domain, len(recordings), flush=True)
    save_recordings(Path(__file__).with_name("drafts.xz"), recordings)


if __name__ == "__main__":
    main()
