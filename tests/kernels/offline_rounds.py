"""``python -m tests.kernels.offline_rounds``: compiles for Hopper what a round launches beside the target's pass.

At the shapes of the 26B pair: ingestion, drafting, sampling, and what begins and ends a round. Prints what each takes.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import torch

from engine.config import DrafterConfig, TargetConfig
from engine.decoder import Decoder
from engine.device_rounds import DeviceRounds
from engine.kernels.quantised import QuantisedWeight
from engine.models.dflash import DFlashDrafter
from engine.models.gemma4 import Gemma4
from tests.kernels.offline import Launch, compile_launch, distinct, record, table

CONFIGS = Path(__file__).parents[1] / "engine" / "configs"
TARGET, DRAFTER = "gemma-4-26B-A4B-it.config.json", "gemma-4-26B-A4B-it-DFlash.config.json"
CONTEXT = 32768


def launches() -> list[Launch]:
    """Once per piece of machine code. The target has one layer: its kernels are ``offline_target``'s."""
    target_config = TargetConfig.from_json(json.loads((CONFIGS / TARGET).read_text()))
    drafter_config = DrafterConfig.from_json(json.loads((CONFIGS / DRAFTER).read_text()))
    with torch.device("meta"):
        target = Gemma4(replace(target_config, layers=target_config.layers[:1])).to(torch.bfloat16)
        drafter = DFlashDrafter(drafter_config).to(torch.bfloat16)
    target.prepare()
    drafter.prepare()
    embedding = QuantisedWeight.allocate(target_config.vocab_size, target_config.hidden_size, torch.device("meta"))
    rounds = DeviceRounds(Decoder(target, drafter, CONTEXT), embedding)
    rounds._target.forward = lambda max_rows=16, beside=False: None  # type: ignore[method-assign,assignment]
    with record() as made:
        rounds._ingest()
        rounds._draft()
        rounds._verify("verify", greedy=True)
        rounds._verify("plain", greedy=False)
    return distinct(made)


if __name__ == "__main__":
    print(table([compile_launch(launch) for launch in launches()]))
