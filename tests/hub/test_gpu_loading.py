"""Loading to a GPU: the weights pass through the host shard by shard, and none of them stays there."""

from __future__ import annotations

import json
import os
from pathlib import Path
from threading import Event, Thread

import pytest
import torch
from safetensors.torch import save_file

from engine.loading.checkpoint import load_target
from engine.models.gemma4 import GEMMA4
from engine.models.gemma4.config import Gemma4Config
from engine.models.gemma4.modules import Gemma4

CONFIGS = Path(__file__).parents[1] / "engine" / "configs"
NUM_LAYERS = 6
ALLOWED_BYTES = 4_000_000_000
"""Of host memory, above the largest shard."""


def write_checkpoint(folder: Path) -> tuple[int, int]:
    """The 26B model's first layers, a shard each; returns the bytes of all shards and of the largest."""
    config = json.loads((CONFIGS / "gemma-4-26B-A4B-it.config.json").read_text())
    text = config["text_config"]
    text |= {"num_hidden_layers": NUM_LAYERS, "layer_types": text["layer_types"][:NUM_LAYERS]}
    (folder / "config.json").write_text(json.dumps(config))
    with torch.device("meta"):
        shapes = {
            name: parameter.shape for name, parameter in Gemma4(Gemma4Config.from_json(config)).named_parameters()
        }
    weight_map: dict[str, str] = {}
    for part in [f"layers.{index}." for index in range(NUM_LAYERS)] + [""]:
        names = [name for name in shapes if name.startswith(part) and GEMMA4.tensor_name(name) not in weight_map]
        shard = f"model-{part or 'rest.'}safetensors"
        weights = {GEMMA4.tensor_name(name): torch.zeros(shapes[name], dtype=torch.bfloat16) for name in names}
        save_file(weights, folder / shard)
        weight_map |= dict.fromkeys(weights, shard)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    sizes = [path.stat().st_size for path in folder.glob("*.safetensors")]
    return sum(sizes), max(sizes)


def host_memory() -> int:
    """Bytes of host memory that this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class PeakMemory:
    """The most host memory held inside the ``with`` block, above what was held before, looked up every few ms."""

    def __enter__(self) -> PeakMemory:
        self._before = self._most = host_memory()
        self._done = Event()
        self._thread = Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._done.set()
        self._thread.join()

    @property
    def taken(self) -> int:
        return self._most - self._before

    def _watch(self) -> None:
        while not self._done.wait(0.005):
            self._most = max(self._most, host_memory())


@pytest.mark.gpu
def test_no_host_copy_of_the_weights_is_kept(tmp_path: Path) -> None:
    total, largest = write_checkpoint(tmp_path)
    assert total - largest > 1.5 * ALLOWED_BYTES, "too small to tell"
    device = torch.device("cuda", 0)
    torch.zeros(1, device=device)  # what CUDA itself takes is not the loader's
    with PeakMemory() as peak:
        target = load_target(tmp_path, device, lambda *told: None)
    print(f"loaded {total / 1e9:.1f} GB, largest shard {largest / 1e9:.1f} GB, host peak {peak.taken / 1e9:.2f} GB")
    assert peak.taken <= largest + ALLOWED_BYTES
    assert {parameter.device for parameter in target.parameters()} == {device}
    assert {parameter.dtype for parameter in target.parameters()} == {torch.bfloat16}
