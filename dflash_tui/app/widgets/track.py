"""A line with a knob that the mouse drags."""

from __future__ import annotations

from textual import events
from textual.widget import Widget


class Track(Widget):
    """One row. Subclasses say where their track lies, and what a place on it means."""

    @property
    def track(self) -> tuple[int, int]:
        """First column of the track and the one behind it."""
        raise NotImplementedError

    def dragged(self, share: float) -> None:
        """The mouse holds the knob there, from 0 on the left to 1 on the right."""
        raise NotImplementedError

    def on_mouse_down(self, event: events.MouseDown) -> None:
        self.capture_mouse()
        self._drag(event)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self.app.mouse_captured is self:
            self._drag(event)

    def on_mouse_up(self) -> None:
        self.release_mouse()

    def _drag(self, event: events.MouseEvent) -> None:
        left, right = self.track
        self.dragged(min(max((event.x - left) / max(right - left - 1, 1), 0.0), 1.0))
