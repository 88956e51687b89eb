"""An application in the user's look. Themes are files, shown before chosen."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from typing import Any, ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.driver import Driver
from textual.events import DescendantFocus, Event, Paste
from textual.filter import LineFilter
from textual.theme import BUILTIN_THEMES, Theme
from textual.widgets import Input

from dflash_tui.core.files.places import log_file
from dflash_tui.core.platforms import suspend
from dflash_tui.core.settings.config import ScreenOptions
from dflash_tui.core.text.harmless import signed

from .ascii import AsciiFilter
from .options import OptionsApp
from .screens.palette import Palette
from .screens.picker import ThemePicker
from .theming import DEFAULT_THEME, MONO_DARK, MONO_LIGHT, defaults_for, load_themes

_ASCII = AsciiFilter()
_log = logging.getLogger(__name__)


class ThemedApp(OptionsApp):
    """Registers the bundled themes and the user's own. A file that can't be used is told on the screen, by line."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+z", "suspend_process", "Suspend", show=False, priority=True)]
    CSS = """
    /* Every scroll bar is one quiet column on what is there already; only under the mouse it stands out. */
    * {
        scrollbar-size-vertical: 1;
        scrollbar-color: $foreground 25%;
        scrollbar-color-hover: $foreground 50%;
        scrollbar-color-active: $primary;
        scrollbar-background: transparent;
        scrollbar-background-hover: transparent;
        scrollbar-background-active: transparent;
    }
    /* A text for a hall: see theming.shown. */
    TokenLog.shown > .token-log--accepted { color: $shown-accepted; }
    TokenLog.shown > .token-log--corrected { color: $shown-corrected; }
    TokenLog.shown > .token-log--bonus { color: $shown-bonus; }
    TokenLog.shown > .token-log--plain { color: $shown-plain; }
    /* What is there already is the screen below, where the box itself scrolls. */
    BoxScreen > VerticalScroll {
        scrollbar-background: $surface;
        scrollbar-background-hover: $surface;
        scrollbar-background-active: $surface;
    }
    """

    def __init__(self, theme: str | None = None, screen_options: ScreenOptions | None = None) -> None:
        self.screen_options = screen_options or ScreenOptions()
        super().__init__()
        for name in BUILTIN_THEMES:
            self.unregister_theme(name)
        self.backed_up = lambda: False
        self.mistake = ""
        """What is told of an exception that ended the screen."""
        # A scroll that glides would be overtaken by the text that follows it, and each glide costs frames.
        self.animation_level = "none"
        self._theme_problems = self._register_themes()
        self._choose_theme(theme or DEFAULT_THEME)
        if self.no_color:
            self.theme = MONO_DARK if self.current_theme.dark else MONO_LIGHT

    def get_driver_class(self) -> type[Driver]:
        driver = super().get_driver_class()
        if driver.__name__ != "LinuxDriver":  # one that the environment names
            return driver
        from .keyboard import PatientDriver  # not for who draws without a terminal

        return PatientDriver

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return defaults_for(self.current_theme)

    def get_line_filters(self) -> Sequence[LineFilter]:
        filters = super().get_line_filters()
        return [*filters, _ASCII] if self.screen_options.ascii else filters

    def refresh_css(self, animate: bool = True) -> None:
        """The palette, which Textual counts among no application's children, would keep the colours it began with."""
        super().refresh_css(animate)
        if self.screen_stack and isinstance(self.screen, Palette):
            self.stylesheet.update(self.screen, animate=animate)

    @on(DescendantFocus)
    def keep_caret_still(self, event: DescendantFocus) -> None:
        """Stop the caret of a field from blinking for users who want no motion; Textual's own fields blink."""
        if self.screen_options.reduced_motion and isinstance(event.widget, Input):
            event.widget.cursor_blink = False

    async def on_event(self, event: Event) -> None:
        """A paste, like a key, goes where the focus was before the terminal lost its own: a middle click, tmux."""
        if isinstance(event, Paste):
            self.app_focus = True
        await super().on_event(event)

    def action_suspend_process(self) -> None:
        """Go back to the shell, whose ``fg`` goes on here; the driver leaves the terminal meanwhile."""
        if self.is_headless or not suspend():
            self.notify("Ctrl+Z goes back to the shell, and there is none that would go on from here.", timeout=4)

    def action_command_palette(self) -> None:
        if self.use_command_palette and not isinstance(self.screen, Palette):
            self.push_screen(Palette())

    def _fatal_error(self) -> None:
        """Textual's last resort: one sentence, not pages of locals that may hold what was asked."""
        _log.error("The screen ended.", exc_info=True)
        self.mistake = f"dflash-chat ended by a mistake of its own. What is known about it is in {log_file()}"
        self.panic()

    def run(self, **options: Any) -> Any:
        """Run as Textual does; a mistake is told once the terminal is the user's again."""
        result = super().run(**options)
        if self.mistake:
            sys.stderr.write(f"{signed(self.mistake)}\n")
        return result

    def search_themes(self) -> None:
        """Let the user look at the themes; the one they leave with stays. The palette's own entry opens this too."""
        before = self.theme

        def settle(chosen: str | None) -> None:
            self.theme = chosen or before
            if chosen and chosen != before:
                self.notify(f'theme = "{chosen}" in config.toml keeps it for the next time.', timeout=5, markup=False)

        self.push_screen(ThemePicker(before), settle)

    def on_mount(self) -> None:
        """Called beside a subclass's own."""
        self._tell_problems()

    def _register_themes(self) -> list[str]:
        themes, errors = load_themes()
        for theme in themes:
            self.register_theme(theme)
        return [str(error) for error in errors]

    def _tell_problems(self) -> None:
        if self._theme_problems:
            self.notify("\n".join(self._theme_problems), title="Theme", severity="warning", timeout=10, markup=False)
        self._theme_problems = []

    def _choose_theme(self, name: str) -> None:
        known: dict[str, Theme] = self.available_themes
        if name not in known:
            self._theme_problems.append(f"There is no theme {name!r}. Known: {', '.join(sorted(known))}.")
            name = DEFAULT_THEME
        self.theme = name
