"""What the engine is doing before it can answer, and what went wrong if it can't."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Static

from dflash_tui.core.progress import describe_amount
from engine.events import EngineError, LoadProgress

BAR = 24
ENDED, NO_SERVER = "The engine has ended.", "Nobody answers."
STAYS, QUITS = "What was said stays here; Ctrl+S still saves, Ctrl+Q quits.", "Ctrl+Q quits."


class LoadPanel(Static):
    """Phases of loading, the running one with a bar; the same place shows a fatal error."""

    DEFAULT_CSS = """
    LoadPanel {
        height: auto;
        padding: 1 2;
        background: $surface;
        &.-error { border-left: outer $error; }
    }
    """

    _num_lines = 0

    def show_progress(self, phases: list[LoadProgress], beginning: str) -> None:
        """Show the phases of loading; ``beginning`` says what happens before the first one."""
        lines = [Content.styled("loading", "bold")]
        lines += [_finished(phase) for phase in phases[:-1]]
        lines += [_running(phase) for phase in phases[-1:]]
        if not phases:
            lines.append(Content.styled(beginning, "$verdict-pending"))
        # Only another line moves what stands below. While a phase goes on its line changes ten times a second, and
        # laying out and drawing the whole screen for that would take a tenth of the interpreter from who loads.
        self.update(Content("\n").join(lines), layout=len(lines) != self._num_lines)
        self._num_lines = len(lines)

    def show_error(self, error: EngineError, said: bool) -> None:
        """``said``: whether something was said that stays."""
        self._num_lines = 0
        self.add_class("-error")
        self.update(
            Content.assemble(
                (error.message, "bold $text-error"),
                f"\n{error.hint}" if error.hint else "",
                (
                    f"\n\n{NO_SERVER if error.kind == 'server' else ENDED} {STAYS if said else QUITS}",
                    "$verdict-pending",
                ),
            )
        )


def _finished(phase: LoadProgress) -> Content:
    return Content.assemble(("✓ ", "$verdict-bonus"), (phase.phase, "$verdict-pending"))


def _running(phase: LoadProgress) -> Content:
    if phase.total <= 0:
        return Content.assemble(("… ", "$primary"), phase.phase)
    share = min(phase.done / phase.total, 1.0)
    full = round(share * BAR)
    return Content.assemble(
        ("▸ ", "$primary"),
        f"{phase.phase}  ",
        ("━" * full, "$primary"),
        ("━" * (BAR - full), "$foreground 25%"),
        (f"  {describe_amount(phase)}", "$verdict-pending"),
    )
