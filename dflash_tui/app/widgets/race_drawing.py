"""What a race looks like: a bar for each lane in its own colour, and who won by how much."""

from __future__ import annotations

from textual.content import Content

from dflash_tui.core.export.document import CellTable
from dflash_tui.core.export.spans import table_lines
from dflash_tui.core.figures.labels import TIME_BARS, WRITTEN_BARS
from dflash_tui.core.race.clock import RaceClock
from dflash_tui.core.race.race import LaneResult, RaceResult
from dflash_tui.core.race.report import times_of
from dflash_tui.core.text.counted import counted

from ..glyphs import large_number

NAME, FIGURES, BRIEF_FIGURES, ROOMY = 22, 36, 22, 90
"""Cells of a lane's mark and name, and of its figures; those with the passes want so wide a screen."""
COLORS = ("$verdict-pending", "$verdict-bonus", "$primary", "$verdict-corrected", "$verdict-rejected")
"""The lanes' colours; the first is for the lane that the others are compared with."""
MOST_THICK = 6
"""Rows of a bar at most."""
WRITING, TOOK = "━", "█"
"""A bar of tokens written, and one of the time that it took."""


def color_of(index: int) -> str:
    return COLORS[min(index, len(COLORS) - 1)]


def lane_line(
    index: int, name: str, width: int, mark: str, share: float, figures: str, glyph: str = WRITING
) -> Content:
    """A lane's name, a bar in its colour that is filled by ``share``, and figures in a room of one width."""
    room = max(width - NAME - (FIGURES if width >= ROOMY else BRIEF_FIGURES), 4)
    full = min(round(share * room), room)
    color = color_of(index)
    return Content.assemble(
        (mark, color),
        (f"{name:<{NAME - 2}.{NAME - 3}}", f"bold {color}"),
        (glyph * full, color),
        (("─" if glyph == WRITING else " ") * (room - full), "$foreground 25%"),
        (figures, "bold"),
    )


def written(tokens: int) -> str:
    """How many tokens a lane has written, in words of one width."""
    return f" {tokens:>4} token{' ' if tokens == 1 else 's'}"


def time_line(result: RaceResult, index: int, width: int) -> Content:
    """How long a lane took, as a thick bar beside the slowest's."""
    lane = result.lanes[index]
    longest = max(each.decode_ms for each in result.lanes)
    rate = f" {lane.tok_s:>5.0f} tokens/s" if width >= ROOMY else ""
    figures = f" {lane.decode_ms / 1000:6.2f} s{rate} {times_of(result, lane):>7}"
    share = lane.decode_ms / longest if longest else 0.0
    return lane_line(index, lane.lane.name, width, "✓ ", share, figures, TOOK)


def clock_lines(clock: RaceClock, width: int, height: int) -> list[Content]:
    """Bars of what the lanes have written by now, and at the end of the time that each took, as thick as has room; and
    below each how often the target ran."""
    rows = (height - 1) // max(len(clock.lanes), 1)
    thick, roomy = max(min(rows - 2, MOST_THICK), 1), rows > 2
    lines = [Content.styled(TIME_BARS if clock.over else WRITTEN_BARS, "$verdict-pending")] * (rows > 0)
    for index, now in enumerate(clock.lanes):
        if clock.over:
            share = now.seconds / clock.length if clock.length else 0.0
            bare = lane_line(index, "", width, "  ", share, "", TOOK)
            lines += [time_line(clock.result, index, width), *[bare] * (thick - 1)]
        else:
            share, mark = now.tokens / max(clock.most_tokens, 1), "✓ " if now.over else "▸ "
            bare = lane_line(index, "", width, "  ", share, "", TOOK)
            name, figures = now.lane.lane.name, written(now.tokens)
            lines += [lane_line(index, name, width, mark, share, figures, TOOK), *[bare] * (thick - 1)]
        passes = Content.styled(f"  passes of the target: {now.target_passes}", color_of(index))
        lines += [passes, Content()] if roomy else [passes] if rows == 2 else []
    return lines


def winner(result: RaceResult) -> tuple[LaneResult, str]:
    """The lane that the result is about, the first one's rival, and its colour."""
    return result.best, color_of(result.lanes.index(result.best))


def factor_lines(result: RaceResult, ascii: bool, scale: int) -> Content:
    """How many times as fast as the first lane the winner is, in large digits; or that there is no difference."""
    best, color = winner(result)
    if result.winner is None:
        return Content.styled("no difference", "bold")
    return Content.styled("\n".join(large_number(f"{result.speed_up(best).times:.1f}×", ascii, scale)), f"bold {color}")


def winner_lines(result: RaceResult, brief: bool = False) -> Content:
    """The lines beside the large digits, which say what lanes they compare; ``brief``: by the seconds alone."""
    first, (best, color) = result.lanes[0], winner(result)
    text = "as fast as " if result.winner is not None else "beyond what runs differ by anyway, to "
    about = result.speed_up(best).remark if result.winner is not None else ""
    head = Content.assemble((text, "bold"), (first.lane.name, "bold $verdict-pending"), (about, "bold"))
    lines = [
        Content.styled(f"as fast{about}", "bold") if brief and about else head,
        Content.assemble((best.lane.name, f"bold {color}"), f": {_taken(best, brief)}"),
        Content.assemble((first.lane.name, "$verdict-pending"), f": {_taken(first, brief)}"),
    ]
    return Content("\n").join(lines)


def _taken(lane: LaneResult, brief: bool) -> str:
    seconds = f"{lane.decode_ms / 1000:.2f} s"
    return (
        seconds
        if brief
        else f"{counted(lane.num_tokens, 'token')} in {seconds}, {counted(lane.target_passes, 'target pass')}"
    )


def fitted(table: CellTable, width: int) -> list[str]:
    """A table in lines, without the last columns where there is no room for them."""
    lines = table_lines(table)
    if len(lines[0]) <= width or len(table.rows[0]) == 2:
        return lines
    return fitted(CellTable(tuple(row[:-1] for row in table.rows)), width)
