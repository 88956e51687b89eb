"""Models for the engine's tests: written once per session, loaded by the engine's own loader."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import Gemma4ForConditionalGeneration

from engine.decoding import decoder
from engine.hub.pairs import BUNDLED_PAIR
from engine.kernels.toolchain.jit import INTERPRETED
from engine.loading.checkpoint import load_drafter, load_target
from engine.models.dflash.modules import DFlashDrafter
from engine.models.gemma4.modules import Gemma4
from support.checkpoints import FULL, SLIDING, drafter_config, random_target, write_drafter, write_tokenizer
from tests.engine.small_decoders import set_stops
from tests.kernels.live_rows import leave_out_dead_rows

if INTERPRETED:
    from support.quick_interpreter import hurry

    hurry()

CPU = torch.device("cpu")


def no_progress(phase: str, done: int, total: int) -> None:
    """For loaders whose progress a test doesn't look at."""


@dataclass(frozen=True)
class TinyPair:
    """A checkpoint on disk, as loaded by the engine, and the same target as ``transformers`` has it."""

    folder: Path
    reference: Gemma4ForConditionalGeneration
    target: Gemma4
    drafter: DFlashDrafter
    drafter_config: dict[str, Any]
    drafter_weights: dict[str, Tensor]


def make_pair(folder: Path, kinds: list[str], taps: list[int], *, moe: bool, seed: int) -> TinyPair:
    reference = random_target(kinds, moe, seed)
    reference.save_pretrained(folder / "target")
    write_tokenizer(folder / "target")
    config = drafter_config([SLIDING, SLIDING, FULL], taps, len(kinds))
    weights = write_drafter(folder / "drafter", config, seed)
    target = load_target(folder / "target", CPU, no_progress)
    drafter = load_drafter(folder / "drafter", target, no_progress)
    return TinyPair(folder, reference, target, drafter, config, weights)


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def _only_live_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    if INTERPRETED:
        leave_out_dead_rows(monkeypatch)


@pytest.fixture(scope="session")
def moe_pair(tmp_path_factory: pytest.TempPathFactory) -> TinyPair:
    """Six layers of both kinds, experts beside the dense MLP, as in the 26B model."""
    return make_pair(tmp_path_factory.mktemp("moe"), [SLIDING, SLIDING, FULL] * 2, [1, 3, 4], moe=True, seed=1)


@pytest.fixture(scope="session")
def dense_pair(tmp_path_factory: pytest.TempPathFactory) -> TinyPair:
    """Three layers of both kinds without experts, as in the 12B and 31B models; quick enough for whole answers."""
    return make_pair(tmp_path_factory.mktemp("dense"), [SLIDING, SLIDING, FULL], [0, 2], moe=False, seed=2)


@pytest.fixture
def unstopped_pair(dense_pair: TinyPair, monkeypatch: pytest.MonkeyPatch) -> TinyPair:
    """The dense pair with no stop tokens, and short prefill chunks, so that small prompts cross several."""
    monkeypatch.setattr(decoder, "PREFILL_CHUNK", 16)
    set_stops(monkeypatch, dense_pair.target)
    return dense_pair


@pytest.fixture(scope="session")
def bundled_pair() -> Path:
    if not (BUNDLED_PAIR / "about.json").exists():
        pytest.skip("the bundled pair isn't built yet")
    return BUNDLED_PAIR
