"""What the gauges and the status line say about the place that the user looks at."""

from __future__ import annotations

from dataclasses import replace

from dflash_tui.core.desk import views
from dflash_tui.core.desk.desk import Desk
from dflash_tui.core.figures.statistics import TurnSnapshot
from dflash_tui.core.figures.tables import GaugeFacts

from ..widgets.status import BEFORE, HELP, LOOKING, PROJECT, RACE, RUNNING, SAVE, StatusFacts
from .viewer import Viewer


def gauge_facts(desk: Desk, viewer: Viewer) -> GaugeFacts:
    """What the gauges show at the place on show."""
    return views.gauge_facts(desk.chat, viewer.turn, _shown(desk, viewer))


def status_facts(desk: Desk, viewer: Viewer, hint: str) -> StatusFacts:
    """What the status line shows. ``hint`` says what the focused part of the screen does."""
    chat = desk.chat
    turn, state = chat.reducer.turn, _state(desk)
    if turn is None or chat.reducer.ready is None:
        return StatusFacts(state, chat.busy, hint=hint, keys=_keys(desk, viewer))
    shown = _shown(desk, viewer)
    return StatusFacts(
        state=state,
        active=chat.busy,
        hint=hint,
        keys=_keys(desk, viewer),
        tok_s=round(shown.rate.mean),
        acceptance_length=shown.tokens_per_round,
        context_length=shown.context_length,
        max_context=chat.reducer.ready.max_context,
        reused=turn.num_reused_tokens,
    )


def _keys(desk: Desk, viewer: Viewer) -> tuple[str, ...]:
    """The keys that do something now, such as ``F6 race``; what is done most comes first."""
    chat, can = desk.chat, desk.source.capabilities.can
    if can("ask") and chat.busy:
        return RUNNING if can("drafts") else (RUNNING[0], HELP)
    if viewer.turn is None or viewer.turn.latest_drafted is None:
        return BEFORE
    race = (RACE,) if can("ask") and can("speculation") else ()
    newest = chat.newest
    save = (SAVE,) if newest is not None and "```" in newest.answer else ()
    return (*LOOKING, *race, PROJECT, *save, HELP)


def _shown(desk: Desk, viewer: Viewer) -> TurnSnapshot:
    """The figures of the turn on show; after a refused question with the context's length of the turn before."""
    shown = viewer.snapshot or TurnSnapshot()
    if shown.context_length or desk.chat.busy:
        return shown
    before = (turn.snapshot.context_length for turn in reversed(desk.chat.turns))
    return replace(shown, context_length=next((length for length in before if length), 0))


def _state(desk: Desk) -> str:
    chat, local = desk.chat, desk.source.capabilities.local
    if chat.reducer.phase == "failed":
        failure = chat.reducer.failure
        return "no server" if failure and failure.kind == "server" else "the engine has ended"
    if chat.waiting:
        return "waiting for the models" if local else "waiting for the server"
    if chat.stopping:
        return "stopping"
    if chat.busy:
        return "streaming" if chat.reducer.phase == "streaming" else "reading the prompt"
    return chat.reducer.phase


def beginning(desk: Desk) -> str:
    """The words of the status line until the source sends its first event."""
    elsewhere = desk.source.recording is None and not desk.source.capabilities.local
    return "asking the server" if elsewhere else "starting the engine"
