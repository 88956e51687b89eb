"""``python -m tests.proofs.kernels.offline_cards [80 86:tile ...] [--sizes 26B-A4B ...] [--weights bf16 ...]
[--only ...]``: compiles what rounds and prompts launch for cards of these compute capabilities, and says what is
out of bounds.

All of it is six cards, three sizes and every format: 510 s on one core. ``86:tile`` compiles less: of launches that
are alike one, and one format of sizes behind the first; ``types`` and ``name`` leave out those sizes. What is compiled
for 86 is assembled for those cards, too, for which Triton writes the same.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

from engine.commands import WeightFormat
from engine.kernels.decode.tiling.target_tiles import tiles_of
from engine.kernels.toolchain.card import REPRESENTATIVES, Card, representative
from engine.kernels.weights.kinds import MAKERS
from tests.proofs.kernels import offline_rounds
from tests.proofs.kernels.early_reads import waits_in_time
from tests.proofs.kernels.offline import SAME_PTX, Compiled, Launch, compile_launch, signature_of
from tests.proofs.kernels.offline_target import launches_of

FORMATS = [name for name in MAKERS if tiles_of(name).dense is not None]
"""That Gemma's passes have tiles for."""

SIZES = ("26B-A4B", "31B", "12B", "gpt-oss-20b", "Qwen3.5-9B")
PUBLISHED: dict[str, list[WeightFormat]] = {"gpt-oss-20b": ["mxfp4"], "Qwen3.5-9B": ["bf16"]}
"""Formats that alone are compiled of a size: nobody packs gpt-oss otherwise, and of Qwen3.5 only what recurs is new."""
ROUNDS = "rounds"
ATTENTION = ("_attend_window", "_attend_one_row", "_attend_full", "_attend_full_one_row")
"""Kernels that have other tiles for one row than for sixteen, on some cards."""

PROMPTS = (
    *("_norm_rope_split", "_attend_chunk", "_join_attention", "_join_feed_forward", "_join"),
    *("_gated", "_choose_experts", "_fill_slots", "_spread", "_combine", "_multiply_many"),
)
"""Kernels that only prompts launch: they follow each other without haste."""

Piece = tuple[str, Compiled]
"""Of which size and format a kernel is, or of the rounds, and what the compiler made of it."""


def by_code(launch: Launch) -> str:
    """All that decides about machine code."""
    return launch.key


def by_tile(launch: Launch) -> str:
    """Products of other sizes run the same code with other bounds, as long as their last tiles are as full."""
    types, constants, _ = signature_of(launch)
    named = {launch.kernel.params[index].name: value for (index,), value in constants.items()}
    named |= {name: bool(named[name]) for name in COUNTS if name in named}
    tile = STEP_OF_PROMPTS if launch.name in PROMPTS else TILE
    alike = [value % tile if isinstance(value, int) and value > LARGEST_TILE else value for value in named.values()]
    return repr((launch.name, types, alike, launch.options))


def by_types(launch: Launch) -> str:
    """Whatever the tile."""
    types, _, _ = signature_of(launch)
    return repr((launch.name, types))


def by_name(launch: Launch) -> str:
    """Whatever the format."""
    return launch.name


ALIKE: dict[str, Callable[[Launch], str]] = {"code": by_code, "tile": by_tile, "types": by_types, "name": by_name}
COUNTS = ("EXPERTS",)
"""Constants that masks compare with: what they shape has constants of its own."""
TILE, LARGEST_TILE = 128, 256
"""Of products: what most tiles have of rows and columns, and the most that one has."""
STEP_OF_PROMPTS = 64
"""A prompt's products go no further than this in a step, and columns past the end are the last one's."""


def pieces(
    card: Card,
    sizes: Sequence[str],
    formats: Sequence[WeightFormat],
    only: Sequence[str],
    alike: Callable[[Launch], str] = by_code,
) -> Iterator[Piece]:
    """What each size and format launches, and what rounds do beside; of launches that are ``alike`` one is compiled
    (of attention, whose heads differ, one of each size), and each piece of machine code once."""
    found: dict[str, Compiled] = {}

    def compiled(what: str, launches: list[Launch], among: str) -> Iterator[Piece]:
        for launch in (each for each in launches if not only or each.name in only):
            key = f"{among if launch.name in ATTENTION and alike in (by_types, by_name) else ''} {alike(launch)}"
            if key not in found:
                found[key] = compile_launch(launch) if launch.key not in found else found[launch.key]
                found[launch.key] = found[key]
            yield what, found[key]

    for size in sizes:
        if size == ROUNDS:
            yield from compiled(ROUNDS, offline_rounds.launches(card), size)
            continue
        few = formats[:1] if alike is by_tile else []
        most = formats if size == sizes[0] or alike is by_code else few
        for weights in PUBLISHED.get(size, most):
            yield from compiled(f"{size} {weights}", launches_of(size, card, weights), size)


def why_not(one: Compiled, card: Card) -> str | None:
    """What is wrong with a kernel on a card, or None."""
    prompt = one.name in PROMPTS
    if one.shared > card.shared_memory:
        return f"needs {one.shared} bytes of shared memory"
    if one.name in ATTENTION and one.fades_fused:
        return f"adds up {one.fades_fused} times in another order than it says"
    if one.in_tensor_memory:
        return "multiplies in tensor memory, whose sums may have another order in a tile of other rows"
    if one.name in ATTENTION and not card.multiplies_from_shared_memory and not one.warps_side_by_side:
        return "has warps that share rows, whose sums then depend on the tile"
    if card.capability < 90 and one.waits:
        return "waits in a way that this card doesn't know"
    if card.capability >= 90 and not prompt and not (one.waits and waits_in_time(one.name, one.reads_early)):
        return f"reads {sorted(one.reads_early)} before it waits, or doesn't wait"
    return None


def wrong(one: Compiled, card: Card) -> Iterator[tuple[Card, str]]:
    """What is wrong with a kernel on a card, and on those that run the same."""
    for where in (card, *(representative(other) for other, same in SAME_PTX.items() if same == card.capability)):
        if why := why_not(one if where == card else one.assembled_for(where.capability), where):
            yield where, why


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.proofs.kernels.offline_cards")
    parser.add_argument("cards", nargs="*", default=[str(card.capability) for card in REPRESENTATIVES])
    parser.add_argument("--sizes", nargs="+", choices=(*SIZES, ROUNDS), default=[*SIZES, ROUNDS])
    parser.add_argument("--weights", nargs="+", choices=FORMATS, default=FORMATS)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="kernels with these names")
    options: Any = parser.parse_args()
    formats = cast(list[WeightFormat], options.weights)
    for asked in options.cards:
        capability, _, one_of_each = asked.partition(":")
        card, alike = representative(int(capability)), ALIKE[one_of_each or "code"]
        done = list(pieces(card, options.sizes, formats, options.only, alike))
        for what in dict.fromkeys(what for what, _ in done):
            names = sorted({one.name for of, one in done if of == what})
            print(f"sm_{card.capability}, {what}: {' '.join(names)}")
        for what, one in done:
            for where, why in wrong(one, card):
                print(f"out of bounds: sm_{where.capability}, {what}: {one.name} {why}")
    print(f"{sum(os.times()[:4]):.0f} s of processor time")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
