"""The lines at the top and the bottom: which models, what they are doing, what it costs."""

from __future__ import annotations

from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size
from textual import events
from textual.content import Content
from textual.widget import Widget

from dflash_tui.core.conversation.context import NEARLY_FULL
from dflash_tui.core.conversation.models import short_name
from dflash_tui.core.figures.labels import CONTEXT
from dflash_tui.core.text.harmless import sanitise
from engine.events import EngineReady

from .meters import fullness_style

WITH_LAST = 4
"""Of so many keys that have room, the last one is always the last of all."""
SHORTEST_SYSTEM = 16
"""Cells: where less of the system prompt would show, the header only says that there is one."""


BEFORE = ("F1 help", "^Q quit")
RUNNING = ("Esc stop", "F5 slow", "F1 help")
LOOKING = ("F3 look inside", "F5 slow motion")
BRIEFLY = {"F3 look inside": "F3 inside", "F5 slow motion": "F5 slow"}
"""Keys in fewer words, where all of them don't fit otherwise."""
RACE, PROJECT, SAVE, HELP = "F6 race", "F8 project", "^S save", "F1 help"
"""Keys as they are offered: before the first answer, while one runs, and when there is one to look at."""


@dataclass(frozen=True, slots=True)
class StatusFacts:
    """What the status line says. A fact that is not known yet is left out."""

    state: str
    active: bool = False
    tok_s: float = 0.0
    acceptance_length: float = 0.0
    context_length: int = 0
    max_context: int = 0
    reused: int = 0
    keys: tuple[str, ...] = BEFORE
    """The keys that do something now, the most important first; as many as have room are shown."""
    hint: str = ""
    """What the focused widget does, which stands in the place of the figures; empty for the figures."""


class Header(Widget):
    """Program and pair, the system prompt if there is one, and where it all runs."""

    DEFAULT_CSS = """
    Header { height: 1; background: $panel; color: $foreground; padding: 0 1; }
    """

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.ready: EngineReady | None = None
        self._system = ""

    def show(self, ready: EngineReady | None) -> None:
        """Show the pair of models that is ready; ``ready`` is None while one loads."""
        self.ready = ready
        self.refresh()

    def tell_system(self, prompt: str | None) -> None:
        """Show the system prompt that the next question is asked under."""
        text = sanitise(" ".join((prompt or "").split()))
        if text != self._system:
            self._system = text
            self.refresh()

    def render(self) -> Content:
        name = Content.assemble(("dflash-chat", "bold $primary"))
        if self.ready is None:
            return name
        pair = f"  {short_name(self.ready.target)}"
        if self.ready.drafter:
            pair += f" + {short_name(self.ready.drafter)}"
        free = self.size.width - name.cell_length - len(pair)
        here = f"{self.ready.device} · {self.ready.dtype}"
        places: tuple[str, ...] = (here, self.ready.device, "")
        if self.ready.server:
            places = (f"{self.ready.dialect} · {self.ready.server}", self.ready.dialect, "")
        elif self.ready.dialect:
            places = (f"{here} · {self.ready.dialect}", *places)
        where = next(title for title in places if len(title) + 2 <= free or not title)
        room = free - len(where)
        system = self._system_text(room - 2)
        gap = max(room - cell_len(system), 2)
        return Content.assemble(name, pair, (system + " " * gap + where, "$verdict-pending"))

    def _system_text(self, room: int) -> str:
        """The system prompt, cut to ``room`` cells; in too few of them, only that there is one."""
        if not self._system:
            return ""
        text = f"  system: {self._system}"
        if cell_len(text) <= room:
            return text
        return set_cell_size(text, room - 1) + "…" if room > SHORTEST_SYSTEM else "  system"


class StatusLine(Widget):
    """The line at the bottom: the state on the left, on the right the keys that do something now."""

    DEFAULT_CSS = """
    StatusLine { height: 1; background: $panel; color: $verdict-pending; padding: 0 1; }
    """

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.facts = StatusFacts("starting")

    def show(self, facts: StatusFacts) -> None:
        if facts != self.facts:
            self.facts = facts
            self.refresh()

    def render(self) -> Content:
        facts = self.facts
        figures = [(facts.hint, "$foreground")] if facts.hint else _figures(facts)
        # The first two keys are said before the figures, but for a figure that stands out.
        least = max((n for n, (_, style) in enumerate(figures, 1) if facts.hint or style != "$foreground"), default=0)
        many, whole, brief = len(figures), facts.keys, tuple(BRIEFLY.get(key, key) for key in facts.keys)
        tries = [(many, whole, len(whole)), (many, brief, len(brief)), (least, brief, len(brief))]
        tries += [(many, brief, n) for n in range(len(brief) - 1, 1, -1)]
        tries += [(n, brief, min(len(brief), 2)) for n in range(many - 1, least - 1, -1)]
        tries += [(n, brief, 1) for n in range(many, least - 1, -1)]
        for shown, words, offered in tries:
            last = words[-1:] if offered >= WITH_LAST else ()  # the help
            parts, keys = self._parts(figures[:shown]), " · ".join((*words[: offered - len(last)], *last))
            gap = self.size.width - parts.cell_length - cell_len(keys)
            if gap >= 2:
                return parts + " " * gap + keys
        return self._parts(figures)

    async def on_click(self, event: events.Click) -> None:
        """Press the key that is named there: a mouse alone gets everywhere from here."""
        text = self.render().plain
        start = max(text.rfind(sign, 0, event.x) + len(sign) for sign in ("  ", " · "))
        name = text[start:].partition(" ")[0]
        key = "escape" if name == "Esc" else name.lower().replace("^", "ctrl+")
        pressed = self.screen.active_bindings.get(key)
        if pressed is not None and any(each.startswith(f"{name} ") for each in self.facts.keys):
            await self.app.run_action(pressed.binding.action, pressed.node)

    def _parts(self, figures: list[tuple[str, str]]) -> Content:
        dot = ("● ", "$verdict-bonus" if self.facts.active else "$verdict-pending")
        says = [(self.facts.state, "$foreground"), *figures]
        return Content.assemble(
            dot, Content.styled(" · ", "$foreground").join([Content.styled(*each) for each in says])
        )


def _figures(facts: StatusFacts) -> list[tuple[str, str]]:
    """The context alone, with its style: nearly full it stands out, and says what still fits. Other figures have their
    gauges."""
    return [_context(facts.context_length, facts.max_context)] if facts.context_length else []


def _context(used: int, most: int) -> tuple[str, str]:
    share = used / most if most else 0.0
    text = f"{CONTEXT.name} {used}/{most}" if most else f"{CONTEXT.name} {used}"
    if share < NEARLY_FULL:
        return text, "$foreground"
    return f"{text}, {max(most - used, 0)} left", f"bold {fullness_style(share)}"
