"""``python -m measure.gpu.check_loaded``: pairs of published shapes, loaded as the program loads them.

Each is written as a checkpoint with random weights and few layers, loaded by :func:`engine.load`, and asked over two
turns, greedily and warm. What other scripts build by hand passes by what the program asks of a pair first; here rounds
must run on the device, and the answers with speculation must be those without, token for token.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import traceback
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

import engine
from engine.commands import AUTO, GenerationSettings, Message, WeightFormat
from engine.events import LoadProgress, Step
from engine.lab.bench.shapes import SHAPES, configs_of, period_of, shorten
from engine.loading.memory_plan import plan_memory
from engine.loading.pair_loader import DEFAULT_MAX_CONTEXT
from engine.models.host_embedding import HostEmbedding
from engine.models.registry import drafter_config_of, family_of
from measure.gpu.random_checkpoint import write_checkpoint
from measure.gpu.report import Report
from measure.quick import parse
from support.checkpoints import write_tokenizer

QUESTIONS = ("Say something about rivers, and then the same once more.", "And now about the sea, in as many words.")
TEMPERATURES = (0.0, 0.8)


def write_pair(folder: Path, shape: str, periods: int, device: torch.device) -> int:
    """Writes a target of few layers and its drafter in the published layout; returns the target's layers."""
    target_json, drafter_json = configs_of(shape)
    layers = periods * period_of(target_json)
    shorten(target_json, drafter_json, layers)
    family = family_of(target_json)
    with torch.device("meta"):
        target = family.read_config(target_json, None).build()
        drafter = drafter_config_of(drafter_json).build()
    write_checkpoint(folder / "target", target_json, target, family.tensor_name, device)
    write_checkpoint(folder / "drafter", drafter_json, drafter, str, device)
    write_tokenizer(folder / "target")
    return layers


def fill(folder: Path, weights: WeightFormat, context: int, device: torch.device) -> Tensor:
    """Takes so much of the card that the pair has room only with its embedding in the machine's memory."""
    where = folder / "target", folder / "drafter", context, device
    plan = plan_memory(*where, weights=weights, embedding_on_host=True)
    least = replace(plan, available=0).allocated + plan.reserve
    return torch.empty(plan.available - least - plan.on_host // 4, dtype=torch.uint8, device=device)


def tokens_of(
    pair: engine.Pair, messages: list[Message], temperature: float, tokens: int, speculation: bool
) -> list[int | None]:
    """An answer's tokens."""
    settings = GenerationSettings(temperature=temperature, speculation=speculation, seed=5, max_new_tokens=tokens)
    steps = (event for event in pair.generate(messages, **asdict(settings)) if isinstance(event, Step))
    return [token.id for step in steps for token in step.emitted]


def forget(pair: engine.Pair) -> None:
    """Asks something else, after which next to nothing of a conversation is known."""
    pair.answer("Hm?", max_new_tokens=1)


def parting(ours: list[int | None], theirs: list[int | None]) -> int:
    """The first place at which two answers differ."""
    return next((place for place, pair in enumerate(zip(ours, theirs, strict=False)) if pair[0] != pair[1]), -1)


def check(shape: str, options: argparse.Namespace, report: Report) -> None:
    device, weights, tokens = torch.device(options.device), options.weights, options.tokens
    said: list[str] = []

    def tell(event: LoadProgress) -> None:
        if event.remark:
            said.append(event.phase)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        layers = write_pair(folder, shape, options.periods, device)
        ballast = fill(folder, weights, options.context, device) if options.short and weights != AUTO else None
        with engine.load(
            str(folder / "target"), tell, drafter=str(folder / "drafter"), device=device.type, weights=weights,
            max_context=options.context,
        ) as pair:  # fmt: skip
            assert pair._runner is not None
            on_device = pair._runner.runs_on_device
            words = f"{layers} layers, {pair.ready.dtype}, {pair.ready.load_seconds:.1f} s"
            report.line(f"{shape} {weights}", words)
            meant = on_device or device.type == "cpu"
            report.line("  rounds", "on the device" if on_device else f"on the host: {said}", meant)
            if ballast is not None:
                apart = isinstance(pair._runner.decoder.target.embed_tokens, HostEmbedding)
                report.line("  embedding", "in the machine's memory" if apart else f"on the card: {said}", apart)
            for temperature in TEMPERATURES:
                messages: list[Message] = []
                for turn, question in enumerate(QUESTIONS, 1):
                    messages.append(Message("user", question))
                    ask = partial(tokens_of, pair, messages, temperature, tokens)
                    forget(pair)
                    plain = ask(speculation=False)
                    forget(pair)
                    guessed = ask(speculation=True)
                    # A prompt that is known already ends in a row of other kernels than one that is read: both caches
                    # know it now.
                    plain_again, guessed_again, once_more = (ask(speculation=way) for way in (False, True, False))
                    same = plain == guessed and plain_again == guessed_again == once_more
                    words = f"{len(plain)} tokens {'equal' if same else 'PART'}"
                    words += "" if plain == plain_again else f" (as read and as known at {parting(plain, plain_again)})"
                    report.line(f"  T {temperature}, turn {turn}", words, same)
                    messages.append(Message("assistant", f"An answer of turn {turn}."))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--shapes", nargs="+", default=["26B-A4B", "Qwen3.5-27B"], help=f"of {', '.join(SHAPES)}")
    parser.add_argument("--periods", type=int, default=2, help="of layers, in each target")
    parser.add_argument("--weights", default="bf16", help="in which the target is held")
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--context", type=int, default=DEFAULT_MAX_CONTEXT)
    parser.add_argument("--short", action="store_true", help="of memory: the embedding has no room on the card")
    parser.add_argument("--out", type=Path, help="write JSON there as well")
    options = parse(parser, "--device cpu --shapes tiny --tokens 12", kernels=True)
    report = Report()
    for shape in options.shapes:
        try:
            check(shape, options, report)
        except Exception:
            traceback.print_exc()
            report.line(shape, "FAILED", False)
    report.write(options.out)
    return 0 if report.ok else 1


if __name__ == "__main__":
    sys.exit(main())
