"""Settings of a conversation come back, whatever its file says of them."""

from __future__ import annotations

from dataclasses import replace

from dflash_tui.core.settings.decoding import restored
from engine.commands import AUTO, GenerationSettings

LEFT = GenerationSettings(8, 0.7, 0.9, 40, 5, 99, speculation=False, draft_by="lookup", thinking=True)


def test_every_setting_comes_back_but_for_those_typed() -> None:
    now = GenerationSettings(seed=1)
    assert restored(now, LEFT.to_dict()) == LEFT
    assert restored(now, LEFT.to_dict(), ["seed", "block_size"]) == replace(LEFT, seed=1, block_size=AUTO)


def test_what_is_no_setting_stays_as_it_is() -> None:
    told = {
        "block_size": 99, "temperature": "hot", "top_p": None, "top_k": True, "seed": -1, "speculation": 1,
        "thinking": "on", "max_new_tokens": 2.5, "unknown": 3,
    }  # fmt: skip
    assert restored(GenerationSettings(), told) == GenerationSettings()
