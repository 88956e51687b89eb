"""A screen as the face of a desk, as far as any screen can be one: notices, questions, threads, screens above it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from textual.content import Content
from textual.screen import Screen

from dflash_tui.core.desk.desk import REFUSALS, Desk, refusal
from dflash_tui.core.desk.face import MessagePlace, Question, Result, View
from dflash_tui.core.export.document import origin_of
from dflash_tui.core.files.desktop import LONGEST_SEQUENCE, copy_locally
from dflash_tui.core.files.saving import save_block
from dflash_tui.core.race.race import Race
from dflash_tui.core.text.fences import CodeBlock

from ..notices import link
from ..screens.asking import AskScreen
from ..widgets.prompt import Prompt
from .viewer import Viewer
from .views import open_view

LEAST_SECONDS, CHARACTERS_A_SECOND = 3.0, 25
"""Seconds that a notice stays at least, and characters of it that a slow reader reads in one."""


class DeskScreen(Screen[None]):
    """What a chat screen does for its desk that has nothing to do with the parts on it. Subclasses do the rest of
    :class:`dflash_tui.core.desk.face.Face`."""

    desk: Desk
    viewer: Viewer

    @property
    def prompt(self) -> Prompt:
        raise NotImplementedError

    def say(self, text: str, where: MessagePlace = "notice", *, grave: bool = False) -> None:
        seconds = LEAST_SECONDS + len(text) / CHARACTERS_A_SECOND
        self.notify(text, severity="error" if grave else "information", timeout=seconds, markup=False)

    def saved(self, paths: Sequence[Path], remark: str = "", offer: str | None = None) -> None:
        lines = [link(path) for path in paths]
        if remark:
            lines.append(Content(remark))
        title = "Saved" if len(paths) == 1 else f"Saved {len(paths)}"
        self.notify(Content("\n").join(lines).markup, title=title, timeout=6)

    def ask(self, question: Question, then: Callable[[str | None], None]) -> None:
        at_once = question.wanted or not self.prompt.text
        screen = AskScreen(question.title, question.text, question.ways, question.detail, at_once=at_once)
        self.app.push_screen(screen, lambda way: self.attempt(lambda: then(way)))

    def attempt(self, act: Callable[[], object]) -> None:
        """Do something, or say why not."""
        try:
            act()
        except REFUSALS as error:
            self.notify(refusal(error), severity="warning", timeout=4, markup=False)

    def show(self, view: View) -> None:
        open_view(self.app, self.desk, view, self.attempt, self.open_replay)

    def open_replay(self, path: Path | None) -> None:
        """Show a recorded run above this screen, which waits."""
        raise NotImplementedError

    def copy(self, what: str, block: CodeBlock) -> None:
        """Copy a text to the terminal's clipboard and this machine's; one too long for terminals goes into a file."""
        if len(block.content.encode("utf-8", "replace")) > LONGEST_SEQUENCE:
            path = save_block(block, self.desk.out_dir)
            notice = Content.assemble(f"{what} is longer than terminals accept. It is in ", link(path))
            self.notify(notice.markup, title="Not copied", severity="warning", timeout=8)
            return
        self.app.copy_to_clipboard(block.content)
        # A tool may take its time, so it gets a thread. It says nothing when there is none: the terminal was asked.
        self.run_worker(partial(copy_locally, block.content), thread=True, exit_on_error=False)
        self.notify(f"{what} was sent to the terminal's clipboard.", timeout=3, markup=False)

    def wait(
        self, work: Callable[[], Result], then: Callable[[Result], None], stop: Callable[[], object] | None = None
    ) -> None:
        """Do ``work`` on a thread, then call ``then`` with its result here. ``stop`` is unused: Esc asks the desk."""

        def wait() -> None:
            result = work()
            if self.app.is_running:
                self.app.call_from_thread(self.attempt, lambda: then(result))

        self.run_worker(wait, thread=True, exit_on_error=False)

    def race(self, create: Callable[[], Race]) -> None:
        from ..screens.race import RaceScreen  # the first frame needs no race

        origin = origin_of(self.desk.ready)
        self.app.push_screen(RaceScreen(create, self.desk.queue, origin, self.desk.out_dir, self.viewer.motion.moves))
