"""What the chat screen shows: its parts, and how they are kept in step with the desk, the viewer and the frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from textual.app import ComposeResult
from textual.containers import Container, Horizontal
from textual.widgets import Static

from dflash_tui.core.conversation.chat import Queued
from dflash_tui.core.conversation.slash import SlashError
from dflash_tui.core.conversation.start import Start, starters_of
from dflash_tui.core.conversation.turn import Turn
from dflash_tui.core.desk.desk import Desk
from dflash_tui.core.desk.event_queue import EventQueue
from dflash_tui.core.desk.face import Change, MessagePlace
from dflash_tui.core.desk.views import costs_of_passes
from dflash_tui.core.figures.tables import GaugeFacts, tables
from dflash_tui.core.garbage import freeze_garbage_collector
from dflash_tui.core.settings.config import Gauges
from dflash_tui.core.source import Happening, Rewind, SourceFactory, described
from dflash_tui.core.text.counted import counted
from dflash_tui.core.text.fences import describe_blocks
from engine.commands import MIN_BLOCK_SIZE, GenerationSettings
from engine.events import EngineReady, LoadProgress, Notice, TurnFinished, TurnStarted

from ..options import backed_up, options_of
from ..screens.statistics import StatisticsScreen
from ..widgets.attached import Attached
from ..widgets.completion_menu import CompletionMenu
from ..widgets.gauge_panel import Panel
from ..widgets.prompt import PLACEHOLDER, Prompt
from ..widgets.queued import QueuedQuestions
from ..widgets.rounds.replay_bar import ReplayBar
from ..widgets.rounds.round_strip import RoundStrip, lens_legend
from ..widgets.rounds.step_view import MAX_DIGITS, StepView
from ..widgets.slider import Slider
from ..widgets.status import Header, StatusLine
from .conversation import ConversationView
from .face import DeskScreen
from .facts import beginning, gauge_facts, status_facts
from .pump import FramePump
from .replay import Replay
from .step_words import ELSEWHERE, keys_line
from .viewer import Viewer

FULL_LEGEND = 80
"""Cells in which the longest legend of the transcript's colours has room."""
DRAW = "Ctrl+T draws it"
RECORDED = "A recording. {}: a useful one writes far fewer tokens in a second."


class ChatDisplay(DeskScreen):
    """The chat screen's widgets, kept in step with the desk: all of :class:`Face` that :class:`DeskScreen` lacks."""

    def __init__(
        self,
        settings: GenerationSettings,
        out_dir: Path,
        queue: EventQueue,
        source: SourceFactory,
        begin: Start | None = None,
    ) -> None:
        super().__init__()
        self.queue = queue
        self.desk = Desk(source, settings, queue, begin or Start(), out_dir, self)
        self.chat = self.desk.chat
        self.pump = FramePump(self.chat, queue, self.draw, lambda: backed_up(self))
        self.replay = Replay(self.desk.source.recording, self.pump.frame)
        self.viewer = Viewer(self.desk, self.replay, self.show_view, self.show_lens)
        self.quit_until = 0.0
        """The time, by the monotonic clock in seconds, until which a second Ctrl+C leaves."""
        self.settled = False
        """Whether the objects that loading left were taken from what the garbage collector looks at."""
        self.gauges: Gauges = "full"
        self._started = self._log_failure_told = False
        self._warned = False
        """Whether the transcript has a remark above the answer that runs, which an answer as Markdown would hide."""
        self._offered = False
        """Whether the user was told that answers can be shown as Markdown."""

    def compose(self) -> ComposeResult:
        yield Header(id="header")
        with Container(id="body"):
            yield ConversationView(self.chat, id="conversation")
            yield Panel(self.chat.settings, id="panel")
        yield RoundStrip(id="round")
        yield StepView(id="steps")
        yield QueuedQuestions(id="queue")
        yield Attached(self.desk.files.look, lambda: self.desk.fit.limit, id="attached")
        yield ReplayBar(self.replay.recording, id="replay")
        yield CompletionMenu(id="completion")
        with Horizontal(id="ask"):
            yield Static("❯", id="mark")
            yield Prompt(id="prompt", questions=self.desk.begin.questions)
        yield StatusLine(id="status")

    @property
    def conversation(self) -> ConversationView:
        return self.query_one(ConversationView)

    @property
    def prompt(self) -> Prompt:
        return self.query_one(Prompt)

    # The face of the desk

    def say(self, text: str, where: MessagePlace = "notice", *, grave: bool = False) -> None:
        if where == "waiting":
            self.conversation.note_above(text)
        elif where == "end":
            self.conversation.note(text)
        else:
            super().say(text, where, grave=grave)

    def saved(self, paths: Sequence[Path], remark: str = "", offer: str | None = None) -> None:
        """Say in a notice where files were saved, and in the transcript too unless an answer is being written there."""
        super().saved(paths, remark)
        if offer is not None and not self.chat.busy:
            self.conversation.note(f"saved to {', '.join(map(str, paths))}{f' · {offer}' if offer else ''}")

    def give_back(self, questions: Sequence[Queued]) -> None:
        """Give questions back that were not asked: a single one into an empty prompt, others to be recalled with ↑."""
        if len(questions) == 1 and not self.prompt.text:
            self.prompt.fill(questions[0].text, questions[0].pasted)
        else:
            self.conversation.note(
                f"Not asked: {counted(len(questions), 'question')}; ↑ brings back one after the other"
            )

    def reword(self, exchange: Turn) -> None:
        self.leave_edit()
        self.prompt.put_aside()
        pastes = (exchange.question[start:stop] for start, stop in exchange.attached.pastes)
        self.prompt.fill(exchange.question, tuple(pastes))
        self.desk.editing = exchange.number
        self._show_mark()
        self.prompt.focus()
        self.notify("Enter asks it as a new version; Esc leaves everything as it is.", timeout=4)

    def leave_edit(self) -> bool:
        """Stop editing a question, which stays as it was, and return True; return False when none is edited. What was
        written can be recalled with ↑."""
        edited, self.desk.editing = self.desk.editing, None
        self._show_mark()
        if edited is None:
            return False
        if self.prompt.unfolded != self.chat.tree[edited].question:
            self.prompt.put_aside()
        self.prompt.fill("")
        return True

    def _show_mark(self) -> None:
        """One cell in either case, so that nothing is laid out anew: that would cost half of what a turn's end does."""
        mark, sign = self.query_one("#mark", Static), "❯" if self.desk.editing is None else "✎"
        if mark.content != sign:
            mark.update(sign, layout=False)

    def changed(self, change: Change, number: int = 0) -> None:
        conversation = self.conversation
        match change:
            case "queue":
                self.query_one(QueuedQuestions).show([each.text for each in self.chat.queued])
            case "asked":
                conversation.show_asked()
                if not self.chat.waiting:
                    self.pump.keep_still(self.app.batch_update())
            case "withdrawn":
                conversation.show_withdrawn()
                conversation.note("⏹ not asked; ↑ brings the question back")
            case "path":
                if self.viewer.position is not None:
                    self.viewer.go_live()
                conversation.show_path()
            case "place":
                conversation.show_place(number)
            case "named":
                conversation.show_named(number)
            case "new" | "resumed":
                conversation.clear()
                conversation.show_path()
                self.query_one(QueuedQuestions).show([])
                self._offer_starters()
            case "loading":
                self.settled = False
                conversation.show_loading([], "letting the model before go")
                self.query_one(Header).show(None)
            case "source":
                conversation.show_loading([], beginning(self.desk))
                self._show_placeholder()
            case "settings":
                refused = self.desk.source.capabilities.refused
                self.query_one(Panel).show_settings(self.chat.settings, refused)
                self.show_legend()
        self._show_mark()
        if change in ("path", "new", "resumed", "settings"):
            self.draw_gauges()
        self.draw_status()

    # Showing

    def show_view(self, take_keys: bool = False) -> None:
        """Bring everything on the screen to where the viewer stands; ``take_keys``: the keyboard to the step view."""
        viewer, view = self.viewer, self.query_one(StepView)
        closed = view.display and not viewer.open
        view.display = viewer.open
        self.set_class(viewer.open, "-stepping")
        self.set_class(viewer.hall, "-hall")
        view.set_class(viewer.hall, "-hall")
        if take_keys:
            self.conversation.show_tokens()  # a rendered answer has none to point at
            view.focus()
        self.query_one(Panel).show_pace(viewer.motion.pace)
        self.conversation.transcript.show_at(viewer.spotlight())
        self.draw_gauges()
        self.draw_status()
        if closed:
            self.prompt.focus()

    def show_steps(self) -> None:
        """Draw the step view, if it is open."""
        viewer, view = self.viewer, self.query_one(StepView)
        if not viewer.open:
            return
        scene, position, motion = viewer.scene, viewer.round_place, viewer.motion
        if scene is None or position is None:
            view.show(None, 0, 0, live=True)
            return
        keys = keys_line(self.active_bindings, motion) if view.has_focus else ELSEWHERE
        view.longest_number = len(str(motion.num_guesses)) if motion.waiting else MAX_DIGITS
        live = viewer.position is None and viewer.happens_now
        view.show(replace(scene, keys=keys), position.step, viewer.num_rounds, live=live)

    def show_lens(self) -> None:
        """Colour the transcript through the lens."""
        lenses = self.viewer.lenses
        self.conversation.show_tokens()  # a rendered answer has no tokens to colour
        self.conversation.transcript.paint(None if lenses.lens == "verdict" else lenses.shade)
        self.show_legend()

    def show_legend(self) -> None:
        """Show what the colours of the transcript mean now."""
        lenses, narrow, ready = self.viewer.lenses, self.size.width < FULL_LEGEND, self.desk.ready
        served = ready is not None and bool(ready.server)
        self.query_one("#ask").border_title = lens_legend(lenses.lens, served, narrow)

    def show_gauges(self, *, update: bool = True) -> None:
        """Give the gauges the width that the user wants."""
        wanted = {"-narrow-gauges": self.gauges == "narrow", "-no-gauges": self.gauges == "off"}
        self.update_classes(wanted, update=update)

    def show_statistics(self, section: str = "") -> None:
        """Open the tables behind the gauges at the one with id ``section``. Raises ``SlashError`` when all are
        empty."""
        facts = self.gauge_facts()
        if facts.turn.step is None:
            raise SlashError("There are no numbers before the first answer.")
        where = f"at round {facts.turn.step}" if self.viewer.position else "newest answer"
        self.app.clear_notifications()  # they would lie over the figures
        self.app.push_screen(StatisticsScreen(where, tables(facts, costs_of_passes(self.chat)), section))

    def _show_placeholder(self) -> None:
        self.prompt.placeholder = self.desk.source.capabilities.placeholder or PLACEHOLDER

    def _offer_starters(self) -> None:
        begins = not self.chat.tree and self.desk.source.capabilities.can("ask")
        self.conversation.offer(starters_of(self.desk.ready) if begins else ())

    def _offer_settings(self) -> None:
        recorded = self.replay.recording is not None
        self.query_one(Panel).offer(self.desk.source.capabilities.refused, recorded=recorded)

    # Frames

    def draw(self, events: Sequence[Happening], gauges: bool) -> None:
        """Show what changed. Called by the pump after the events were applied."""
        if not self.app.is_running or not self.display:
            return  # leaving: the widgets go one by one, before the pump does and before the app says that it is over
        log, reducer = self.conversation.transcript, self.chat.reducer
        if any(isinstance(event, Rewind) for event in events):
            log.clear()
        for event in events:
            if isinstance(event, EngineReady):
                self._become_ready(event)
            self._warned |= isinstance(event, Notice) and event.ahead
        self.conversation.add(reducer.take_spans())
        self.viewer.frame()
        self.pump.lively = self.viewer.motion.playing
        if self.replay.recording is not None:
            self.query_one(ReplayBar).show(self.viewer.travel.latest(), len(self.viewer.travel.turns))
        for event in events:
            if isinstance(event, TurnStarted):
                self.query_one(Panel).show_decided(event.settings, self.desk.source.capabilities.refused)
        if not reducer.busy and events:
            self._draw_loading()
        if gauges:
            if any(not isinstance(each, LoadProgress) for each in events):
                self.draw_gauges()
            self.draw_status()
        if any(isinstance(event, TurnFinished) for event in events):
            self._conclude()
        self._tell_log_failure()

    def _draw_loading(self) -> None:
        reducer, lost = self.chat.reducer, self.desk.models.falls_back
        if reducer.failure is not None and lost is not None:
            text = (f"✗ {lost}: {reducer.failure.message}", reducer.failure.hint)
            self.desk.models.failed(self.chat, "\n  ".join(filter(None, text)))
        elif reducer.failure is not None:
            self.conversation.show_failure(reducer.failure, bool(reducer.turns))
        elif reducer.ready is None:
            self.conversation.show_loading(reducer.loading, beginning(self.desk))

    def _conclude(self) -> None:
        """Called when an answer has ended: say which code it holds, and what can be done with it."""
        turn = self.chat.reducer.turn
        drawn = options_of(self).rendered and turn is not None and turn.failure is None and bool(turn.text)
        drawn, self._warned = drawn and not self._warned, False
        if turn is not None and (blocks := describe_blocks(turn.text)):
            offers = not (drawn or self._offered or self.replay.recording)
            self.conversation.note(f"{blocks} · {DRAW}" if offers else blocks)
            self._offered = True
        self.desk.after_turn()
        if drawn and not (self.chat.busy or self.viewer.open) and self.conversation.transcript.following:
            self.conversation.show_rendered()

    def _become_ready(self, ready: EngineReady) -> None:
        conversation, can = self.conversation, self.desk.source.capabilities
        conversation.show_loaded()
        self.query_one(Header).show(ready)
        self.pump.on_gpu(bool(ready.server) or (ready.device != "cpu" and can.local))
        self._offer_settings()
        self._limit_block(ready.max_block_size)
        self._tell_lacking()
        if can.can("verdicts"):
            self.show_legend()
        else:
            self.viewer.lenses.choose("plain")
        if self.desk.begin.conversation is None:
            alone = not conversation.transcript.length
            if ready.banner and not any(exchange.answer for exchange in self.chat.tree.path):
                played = self.replay.recording is not None
                conversation.note_above(RECORDED.format(described(ready.banner)) if played else ready.banner)
            self._offer_starters()
            if alone:
                self.call_after_refresh(conversation.show_beginning)  # the questions to begin with have their rows then
        self.query_one(Attached).look(self.prompt.text)  # tokens can be counted now
        self.desk.became_ready(ready)
        if not self.settled:
            self.settled = True
            freeze_garbage_collector()

    def _limit_block(self, most: int) -> None:
        panel, can = self.query_one(Panel), self.desk.source.capabilities.can("block_size")
        if can or self.replay.recording is not None:
            panel.limit_block(most)
            if can and most >= MIN_BLOCK_SIZE and panel.size_chosen != self.chat.settings.block_size:
                self.chat.adjust(block_size=panel.size_chosen)

    def _tell_lacking(self) -> None:
        """Say which flags of the command line the source can't follow."""
        if lacking := self.desk.source.capabilities.lacks(self.desk.begin.wanted):
            words = "\n".join(f"{flag}: {reason}" for flag, reason in lacking.items())
            self.notify(words, title="Not set", severity="warning", timeout=10, markup=False)

    def draw_gauges(self) -> None:
        facts = self.gauge_facts()
        self.query_one(Panel).show(facts)
        self.query_one(RoundStrip).show(self.viewer.step)
        self.show_steps()

    def gauge_facts(self) -> GaugeFacts:
        """What the gauges show: the figures of the round on show."""
        return gauge_facts(self.desk, self.viewer)

    def draw_status(self) -> None:
        self.prompt.cursor_blink = not self.chat.busy and self.viewer.motion.moves
        hint = self.focused.hint if isinstance(self.focused, Slider) else ""
        facts = status_facts(self.desk, self.viewer, hint)
        self.query_one(StatusLine).show(facts)
        self.query_one(Header).tell_system(self.chat.system)

    def _tell_log_failure(self) -> None:
        trace = self.queue.trace
        failure = self.queue.log.failure or (trace.failure if trace else None)
        if failure and not self._log_failure_told:
            self._log_failure_told = True
            self.notify(failure, title="Not saved", severity="error", timeout=12, markup=False)
