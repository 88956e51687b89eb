"""``python -m tests.proofs.kernels.offline_cards [80 86:tile ...] [--sizes 26B-A4B ...] [--weights bf16 ...]
[--only ...]``: compiles what rounds and prompts launch for cards of these compute capabilities, and says what is
out of bounds.

All of it is six cards, three sizes and every format: 510 s on one core. ``86:tile`` compiles less: of launches that
are alike one, and one format of sizes behind the first; ``types`` and ``name`` leave out those sizes. What is compiled
for 86 is assembled for those cards, too, for which Triton writes the same. ``--write`` puts tables into the kernels'
measurements.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from engine.commands import WeightFormat
from engine.kernels.decode.target_tiles import tiles_of
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
MEASUREMENTS = Path(__file__).parents[3] / "engine" / "kernels" / "MEASUREMENTS.md"
BEGIN, END = "<!-- offline_cards: begin -->", "<!-- offline_cards: end -->"
MOST_REGISTERS = 255
SPILLED, SPILLED_BY_PROMPTS = 64, 96
"""Bytes of a thread that may lie in local memory: sixteen registers, of 128 or more. On Hopper none may, where a kernel
reads weights or a cache."""
SPILLED_AND_TIMED = {"_attend_full_one_row": 80}
"""But these bytes, which it has where eight queries of 256 channels share a key, as in 35B-A3B: a token that its MTP
layer drafts behind 2048 others took 3 us more than behind 128 on an H200, what the keys' bytes take. The 9B, whose
four queries share one, passes of one row of which run at 90 % of the rate of copying, has the most."""

PRODUCTS = ("_project", "_gate_up", "_gate_up_and_route", "_expert_gate_up", "_expert_down", "_head")
ATTENTION = ("_attend_window", "_attend_one_row", "_attend_full", "_attend_full_one_row")
"""Kernels that have other tiles for one row than for sixteen, on some cards."""
STREAMS = (*PRODUCTS, *ATTENTION)
"""Kernels that read weights, keys or values: their speed is that of 16-byte loads, or of 8-byte loads of packed weights
of 4 bits, whose rows are read by 16 bytes beside."""

PROMPTS = (
    *("_norm_rope_split", "_attend_chunk", "_join_attention", "_join_feed_forward", "_join"),
    *("_gated", "_choose_experts", "_place", "_spread", "_combine", "_multiply_many"),
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
    (where tiles may differ, one of each size), and each piece of machine code once."""
    found: dict[str, Compiled] = {}

    def compiled(what: str, launches: list[Launch], among: str) -> Iterator[Piece]:
        for launch in (each for each in launches if not only or each.name in only):
            key = f"{among if alike in (by_types, by_name) else ''} {alike(launch)}"
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
    measured = card.was_measured and one.name in STREAMS
    if one.shared > card.shared_memory:
        return f"needs {one.shared} bytes of shared memory"
    most_spilled = SPILLED_AND_TIMED.get(one.name, 0) if measured else SPILLED_BY_PROMPTS if prompt else SPILLED
    if one.registers > MOST_REGISTERS or one.local > most_spilled:
        return f"has {one.registers} registers and {one.local} bytes in local memory"
    if one.name in PRODUCTS and not one.bounded:
        return "leaves it to the assembler how many registers it has"
    if one.name in ATTENTION and one.fades_fused:
        return f"adds up {one.fades_fused} times in another order than it says"
    if one.overwritten:
        return f"writes {one.overwritten} times where tensor cores may have yet to read"
    if one.turns > 1:
        return f"reads shared memory in {one.turns} turns"
    if one.torn:
        return "reads memory twice on its way to shared memory"
    if (one.name in STREAMS and one.wide_loads == 0) or one.in_pieces:
        return "reads weights in small pieces"
    if one.staged:
        return "passes packed weights or their rows through shared memory, or takes more of it than its sums"
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


def tables(by_card: dict[Card, list[Piece]]) -> str:
    """Markdown: kernels that decide how many programs fit; then how much was compiled."""
    cards = list(by_card)
    heads = " | ".join(f"sm_{card.capability}" for card in cards)
    lines = [f"| 26B-A4B | {heads} |", "|--|" + "--|" * len(cards)]
    first = "26B-A4B bf16"
    names = dict.fromkeys(one.name for what, one in by_card[cards[0]] if what == first)
    for name in (*(name for name in names if name in STREAMS), "_attend_chunk"):
        lines.append(f"| `{name}` | " + " | ".join(_largest(by_card[card], first, name) for card in cards) + " |")
    lines += ["", f"| all kernels of | {heads} |", "|--|" + "--|" * len(cards)]
    for what in dict.fromkeys(what for what, _ in by_card[cards[0]]):
        lines.append(f"| {what} | " + " | ".join(_sum(by_card[card], what) for card in cards) + " |")
    return "\n".join(lines)


def _largest(done: list[Piece], what: str, name: str) -> str:
    """Registers and kilobytes of the variant with most shared memory."""
    one = max((one for of, one in done if (of, one.name) == (what, name)), key=lambda one: one.shared)
    spilled = f" ({one.local})" if one.local else ""
    return f"{one.registers}{spilled}, {one.shared / 1024:.0f}"


def _sum(done: list[Piece], what: str) -> str:
    all_of = [one for of, one in done if of == what]
    registers, local, shared = (max(getattr(one, kind) for one in all_of) for kind in ("registers", "local", "shared"))
    return f"{len(all_of)}: {registers} ({local}), {shared / 1024:.0f}"


def write(text: str) -> None:
    """Puts the tables between their marks."""
    before, _, rest = MEASUREMENTS.read_text("utf-8").partition(BEGIN)
    _, _, behind = rest.partition(END)
    MEASUREMENTS.write_text(f"{before}{BEGIN}\n{text}\n{END}{behind}", "utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.proofs.kernels.offline_cards")
    parser.add_argument("cards", nargs="*", default=[str(card.capability) for card in REPRESENTATIVES])
    parser.add_argument("--sizes", nargs="+", choices=(*SIZES, ROUNDS), default=[*SIZES, ROUNDS])
    parser.add_argument("--weights", nargs="+", choices=FORMATS, default=FORMATS)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="kernels with these names")
    parser.add_argument("--write", action="store_true")
    options: Any = parser.parse_args()
    formats = cast(list[WeightFormat], options.weights)
    by_card: dict[Card, list[Piece]] = {}
    for asked in options.cards:
        capability, _, one_of_each = asked.partition(":")
        card, alike = representative(int(capability)), ALIKE[one_of_each or "code"]
        by_card[card] = list(pieces(card, options.sizes, formats, options.only, alike))
        for what in dict.fromkeys(what for what, _ in by_card[card]):
            names = sorted({one.name for of, one in by_card[card] if of == what})
            print(f"sm_{card.capability}, {what}: {' '.join(names)}")
        for what, one in by_card[card]:
            for where, why in wrong(one, card):
                print(f"out of bounds: sm_{where.capability}, {what}: {one.name} {why}")
    print(f"{sum(os.times()[:4]):.0f} s of processor time")
    if options.write:
        write(tables(by_card))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
