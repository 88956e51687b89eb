"""How fast checkpoints in few bits load, and what that takes: ``python -m measure.gpu.check_loading``. Needs no pytest.

Targets with random weights at a published shape, of a few layers, are written in each published layout and loaded as
they are stored, or packed meanwhile: seconds (from the page cache), the most that tensors took beyond the target, and
whether the target takes what was planned. On a GPU the small shape is loaded on the CPU as well: same bits. Exit code 1
when something is off.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from engine.commands import WeightFormat
from engine.kernels.weights.kinds import bytes_of
from engine.lab.bench.shapes import CONFIGS, PUBLISHED, SHAPES, TINY
from engine.lab.bench.weights import random_tensor
from engine.loading.checkpoint import load_target, target_on_meta
from engine.models.gemma4 import GEMMA4
from engine.models.packed import packable
from measure.gpu.report import Report
from tests.engine.checkpoints import FULL, SLIDING, target_config
from tests.engine.packed_checkpoints import as_fp8, as_int4, of_experts

LAYOUTS = ("bf16", "fp8", "int4", "qat")
"""``fp8``: each expert by itself, as RedHatAI has them; ``int4``: stacked, as cyankiwi; ``qat``: bf16 on a grid."""
WAYS: tuple[tuple[str, WeightFormat | None], ...] = (
    ("bf16", None), ("bf16", "fp8"), ("bf16", "int4"), ("fp8", None), ("int4", None), ("qat", "int4")
)  # fmt: skip
SHARD_BYTES = 4_000_000_000
ROOM = 4_000_000_000
"""What loading may take beyond the target: two of the largest tensors on their way, one as it is packed."""


def config_of(name: str, layers: int) -> dict[str, object]:
    if name == TINY:
        return target_config([SLIDING, FULL], moe=True).to_dict()
    config = json.loads((CONFIGS / f"{PUBLISHED[name][0]}.config.json").read_text())
    text = config["text_config"]
    text |= {"num_hidden_layers": layers, "layer_types": text["layer_types"][:layers]}
    return dict(config)


def stored(name: str, weight: Tensor, layout: str) -> dict[str, Tensor]:
    """The tensors of one parameter that is packed."""
    if layout == "fp8":
        pieces = of_experts(name, weight) if weight.ndim == 3 else {name: weight}
        return {piece + end: each for piece, part in pieces.items() for end, each in as_fp8(piece, part)[0].items()}
    if layout == "int4":
        return {name + end: each for end, each in as_int4(32)(name, weight)[0].items()}
    groups = weight.reshape(*weight.shape[:-1], -1, 32)
    steps = (groups.abs().amax(-1, keepdim=True) / 7.4).bfloat16().float()
    return {name: ((groups / steps).round().clamp(-8, 7) * steps).flatten(-2).bfloat16()}


def tensors_of(folder: Path, layout: str, device: torch.device) -> Iterator[tuple[str, Tensor]]:
    model = target_on_meta(folder, device)
    packs, generator = set(packable(model)), torch.Generator(device).manual_seed(0)
    for name, part in list(model.named_parameters()):
        tensor = random_tensor(name, tuple(part.shape), generator, torch.bfloat16, model.branch_ends)
        name = GEMMA4.tensor_name(name)
        if layout == "bf16" or name.removeprefix(GEMMA4.tensor_name("")) not in packs:
            yield name, tensor.cpu()
        else:
            yield from ((each, piece.cpu()) for each, piece in stored(name, tensor.float(), layout).items())


def write(folder: Path, shape: str, layers: int, layout: str, device: torch.device) -> None:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config_of(shape, layers)))
    where: dict[str, str] = {}
    shard: dict[str, Tensor] = {}

    def flush() -> None:
        file = f"model-{len(set(where.values())) + 1:05}.safetensors"
        save_file(shard, folder / file)
        where.update(dict.fromkeys(shard, file))
        shard.clear()

    for name, tensor in tensors_of(folder, layout, device):
        if shard and sum(part.nbytes for part in shard.values()) + tensor.nbytes > SHARD_BYTES:
            flush()
        shard[name] = tensor.contiguous()
    flush()
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": where}))


def load(folder: Path, weights: WeightFormat | None, device: torch.device, name: str, report: Report) -> None:
    on_gpu = device.type == "cuda"
    size = sum(path.stat().st_size for path in folder.glob("*.safetensors"))
    planned = bytes_of(target_on_meta(folder, device, weights=weights))
    for again in (False, True):
        if on_gpu:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        started = time.perf_counter()
        target = load_target(folder, device, lambda *told: None, weights=weights)
        if on_gpu:
            torch.cuda.synchronize()
        seconds, held = time.perf_counter() - started, bytes_of(target)
        most = torch.cuda.max_memory_allocated() - held if on_gpu else 0
        took = (
            f"{seconds:.2f} s, {size / seconds / 1e9:.1f} GB/s of the file, {most / 1e9:.2f} GB beyond {held / 1e9:.2f}"
        )
        report.line(f"{name}{', again' if again else ''}", took, held == planned and most < ROOM)
        del target


def check_bits(folder: Path, weights: WeightFormat | None, name: str, report: Report) -> None:
    """A GPU's target is the CPU's, but for floats, which are fp32 there."""
    targets = [load_target(folder, torch.device(kind), lambda *told: None, weights=weights) for kind in ("cpu", "cuda")]
    parts = zip(*(target.named_parameters() for target in targets), strict=True)
    same = all(torch.equal(mine.to(other.dtype), other.cpu()) for (_, mine), (_, other) in parts)
    report.line(f"{name}, GPU and CPU", "same bits" if same else "OTHER BITS", same)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--shape", choices=SHAPES, default="26B-A4B")
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--layouts", choices=LAYOUTS, nargs="+", default=list(LAYOUTS))
    parser.add_argument("--folder", type=Path, help="where to write, with a fast disk or plenty of memory")
    parser.add_argument("--out", type=Path, help="write JSON there as well")
    options = parser.parse_args()
    report, device = Report(), torch.device(options.device)
    for layout in options.layouts:
        with tempfile.TemporaryDirectory(dir=options.folder) as scratch:
            folder, small = Path(scratch) / layout, Path(scratch) / "small"
            write(folder, options.shape, options.layers, layout, device)
            write(small, TINY, 2, layout, torch.device("cpu"))
            for stored_as, weights in WAYS:
                if stored_as == layout:
                    name = f"{layout} as {weights or 'stored'}"
                    load(folder, weights, device, name, report)
                    if device.type == "cuda":
                        check_bits(small, weights, name, report)
        report.write(options.out)
    return 0 if report.ok else 1


if __name__ == "__main__":
    sys.exit(main())
