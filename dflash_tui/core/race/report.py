"""A race in words, as a table and as JSON: the same on the screen, on stdout and in an export."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from statistics import median
from typing import Any

from engine.events import EngineReady

from ..export.document import CellTable, ExportedPage, Heading, Lanes, Origin, Prose
from ..text.counted import counted
from .lanes import LOOKUP
from .race import Divergence, LaneResult, RaceResult

HOW = (
    "One engine ran the lanes one after the other, each from the same caches and warmed up. The clock starts at the "
    "first token; the time to it stands apart. Of several runs figures are medians."
)
IN_TURNS = (
    "The lanes ran in turns, never two at once, each warmed up by a short question. The clock starts at the first "
    "token; the time to it stands apart. Of several runs figures are medians."
)


def how(sides: Sequence[EngineReady]) -> str:
    """How the lanes were run, and on what."""
    if not any(side.server for side in sides):
        return HOW
    return " ".join((IN_TURNS, *map(_told_of, sides)))


def _told_of(side: EngineReady) -> str:
    if not side.server:
        return f"This machine's engine runs {side.target} on {side.device}."
    clock = "" if side.times == "engine" else "; its times are arrivals here"
    return f"{host_of(side.server)} is {side.dialect or 'a server'} with {side.target}{clock}."


def host_of(server: str) -> str:
    """A server's name in a race: host and port."""
    return server.partition("://")[2].partition("/")[0] or server


def times_of(result: RaceResult, lane: LaneResult) -> str:
    """How many times as fast a lane was, such as ``2.41×``; with a tilde where that is about right, and with ``≤``
    where its time seems shorter than its passes allow."""
    faster = result.speed_up(lane)
    return f"{'≤' if result.seems_faster(lane) else '~' * faster.about}{faster.times:.2f}×"


def race_table(result: RaceResult, *, brief: bool = False) -> CellTable:
    """A row per lane. ``brief`` leaves out what the lanes show anyway."""
    columns = {"": [lane.lane.name for lane in result.lanes]}
    columns["tokens/s"] = [f"{lane.tok_s:.0f}" for lane in result.lanes]
    columns["speed-up"] = [times_of(result, lane) for lane in result.lanes]
    columns["decoding"] = [f"{lane.decode_ms / 1000:.3f} s" for lane in result.lanes]
    columns["first token"] = [f"{lane.ttft_ms:.0f} ms" for lane in result.lanes]
    if not brief:
        columns["tokens"] = [str(lane.num_tokens) for lane in result.lanes]
        columns["rounds"] = [str(lane.target_passes) for lane in result.lanes]
        kept = (lane.shown.answer.statistics.num_accepted_draft_tokens for lane in result.lanes)
        columns["kept"] = list(map(str, kept))
        columns["tokens/round"] = [f"{lane.tokens_per_pass:.2f}" for lane in result.lanes]
        columns["ms/round"] = [f"{lane.pass_ms:.2f}" for lane in result.lanes]
    return CellTable((tuple(columns), *zip(*columns.values(), strict=True)))


def cut_off(result: RaceResult) -> str:
    """Where the race stops before the answer does, in words; empty where every lane wrote all of it."""
    limits = [lane.limit for lane in result.lanes if lane.limit]
    return f"stopped at {counted(max(limits), 'token')}" if limits else ""


def race_remarks(result: RaceResult) -> list[str]:
    """How the answers compare, a sentence per lane behind the first, and what to be careful about."""
    remarks = [f"The lanes {cut_off(result)}: the answer is longer."] if cut_off(result) else []
    remarks += [describe_divergence(result, lane) for lane in result.lanes[1:]]
    remarks += [
        f"{lane.lane.name}: its passes write {result.speed_up(lane).times:.2f} times as many tokens as those of "
        f"{result.lanes[0].lane.name}, and none is cheaper; a time that is shorter still is chance."
        for lane in result.lanes
        if result.seems_faster(lane)
    ]
    remarks += [
        f"{lane.lane.name}: {lane.looked_up:.0%} of its accepted tokens were looked up in the text before."
        for lane in result.lanes
        if lane.looked_up and lane.lane.settings.draft_by != LOOKUP
    ]
    for lane in result.lanes:
        facts = lane.shown.answer.statistics
        if lane.lane.side and facts.num_tokens and not facts.num_spec_steps:
            remarks.append(f"{lane.lane.name}: no round of its answer is known to have been drafted.")
    remarks += [
        f"{lane.lane.name}: its runs differ from each other." for lane in result.lanes if not lane.repeats_itself
    ]
    for side in {lane.lane.side for lane in result.lanes}:
        runs = [run for lane in result.lanes if lane.lane.side == side for run in lane.runs]
        reused = {run.answer.num_reused_tokens for run in runs}
        if len(reused) > 1:
            remarks.append(
                f"The runs found different prefixes in the caches ({min(reused)} to {counted(max(reused), 'token')})."
            )
    return remarks


def describe_divergence(result: RaceResult, lane: LaneResult) -> str:
    """Says in a sentence whether a lane's answer is the first lane's, or from which token on it is another."""
    first, parting = result.lanes[0], result.divergence(lane)
    if parting is None:
        return f"{lane.lane.name}: the same {counted(lane.num_tokens, 'token')} as {first.lane.name}."
    where = f"{lane.lane.name}: the same tokens up to number {parting.index + 1}"
    if parting.first is None or parting.other is None:
        return f"{where}, where one of the answers ends."
    if parting.margin is None:
        return f"{where}, which is {parting.other.text!r} instead of {parting.first.text!r}."
    return (
        f"{where}, which is {parting.other.text!r} (p {parting.other.probability:.3f}) instead of "
        f"{parting.first.text!r} (p {parting.first.probability:.3f}): the target's probabilities in the two runs, "
        f"{parting.margin:.3f} apart."
    )


def race_object(result: RaceResult) -> dict[str, Any]:
    """What ``dflash-chat race --json`` prints. Times in milliseconds; ``..._runs`` holds each run's value, in order."""
    return {
        "question": result.question,
        "lanes": [_lane_object(result, lane) for lane in result.lanes],
        "identical": all(result.divergence(lane) is None for lane in result.lanes[1:]),
        "remarks": race_remarks(result),
    }


def _lane_object(result: RaceResult, lane: LaneResult) -> dict[str, Any]:
    parting, faster = result.divergence(lane), result.speed_up(lane)
    facts = lane.shown.answer.statistics
    return {
        "name": lane.lane.name,
        "settings": lane.lane.settings.to_dict(),
        "tok_s": lane.tok_s,
        "tok_s_runs": [run.answer.statistics.tok_s for run in lane.runs],
        "speed_up": faster.times,
        "about": faster.about,
        "wins": lane is result.winner,
        "decode_ms": lane.decode_ms,
        "ttft_ms": lane.ttft_ms,
        "num_tokens": lane.num_tokens,
        "target_passes": lane.target_passes,
        "draft_passes": lane.draft_passes,
        "mean_acceptance_length": facts.mean_acceptance_length,
        "tokens_per_round": facts.tokens_per_round,
        "round_ms": lane.pass_ms,
        "num_reused_tokens": median(run.answer.num_reused_tokens for run in lane.runs),
        "first_divergence": None if parting is None else _divergence_object(parting),
        "text": lane.shown.answer.text,
    }


def _divergence_object(parting: Divergence) -> dict[str, Any]:
    return {
        "index": parting.index,
        "first": None if parting.first is None else asdict(parting.first),
        "other": None if parting.other is None else asdict(parting.other),
        "margin": parting.margin,
    }


def race_document(result: RaceResult, origin: Origin) -> ExportedPage:
    remarks = Prose("\n\n".join((how(result.sides), *race_remarks(result))))
    best = result.best
    lanes = Lanes(
        tuple(lane.shown.answer for lane in result.lanes),
        result.lanes.index(best),
        None if result.winner is None else result.speed_up(best),
    )
    title = f"{best.lane.name} against {result.lanes[0].lane.name}"
    return ExportedPage(title, (Heading(result.question), lanes, race_table(result), remarks), origin)
