"""Which model answers, and another in the same chat: the one before is let go first, and comes back when the new one
can't be had."""

from __future__ import annotations

from engine.commands import Close, Stop
from engine.events import EngineReady

from ..conversation.chat import Chat
from ..conversation.models import BEFORE, LEAVE_SECONDS, ModelChoice, ModelChoices
from ..conversation.slash import SlashError
from ..conversation.start import Models
from ..source import Emit, Happening, Source, SourceFactory
from .face import Face


class Gate:
    """Lets a source speak until it is shut: what it says later belongs to nobody."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._open = True

    def put(self, happening: Happening) -> None:
        if self._open:
            self._emit(happening)

    def shut(self) -> None:
        self._open = False


class ModelSwitch:
    """Holds the source that answers, and puts another model's in its place."""

    def __init__(self, factory: SourceFactory, models: Models | None, emit: Emit, face: Face) -> None:
        self._choices = ModelChoices(models, factory)
        self._free = models.free if models is not None else lambda: None
        self._emit, self._face = emit, face
        self._wanted: ModelChoice | None = None
        """The model that is being loaded; None when none is."""
        self._gate = Gate(emit)
        self.source = factory(self._gate.put)

    def switch(self, chat: Chat, name: str, drafter: str = "") -> None:
        """Have the model called ``name`` answer, or the present one with another drafter. Raises ``SlashError`` while
        an answer runs, and ``Failure`` too for what can't be a model."""
        if self._wanted is not None:
            raise SlashError("A model is being loaded. When it answers, another can be chosen.")
        if chat.busy:
            raise SlashError("An answer is on its way. Esc stops it first.")
        self._begin(chat, self._choices.choose(name, drafter, self.source.capabilities.models))

    @property
    def falls_back(self) -> str | None:
        """The name of the model that is being loaded, if the one before it comes back should it fail; None
        otherwise."""
        wanted = self._wanted
        return None if wanted is None or wanted is self._choices.now else wanted.name or "That model"

    def _begin(self, chat: Chat, choice: ModelChoice) -> None:
        old = self.source
        self._wanted = choice
        chat.reducer.load_anew()
        self._gate.shut()
        old.send(Stop())
        old.send(Close())
        self._face.changed("loading")
        self._face.wait(lambda: self._let_go(old), lambda _: self._come(choice))

    def _let_go(self, old: Source) -> None:
        """Wait until a source has ended, then free the memory that its model held."""
        old.join(LEAVE_SECONDS)
        self._free()

    def _come(self, choice: ModelChoice) -> None:
        self._gate = Gate(self._emit)
        self.source = choice.factory(self._gate.put)
        self._face.changed("source")
        self.source.start()

    def ready(self, chat: Chat, ready: EngineReady) -> None:
        """Take note that a source can answer; the desk calls this."""
        wanted, self._wanted = self._wanted, None
        if wanted is None:
            return
        back = wanted is self._choices.now
        self._choices.settle(wanted)
        who = f"{ready.target} with {ready.drafter}" if ready.drafter else ready.target
        how = "answers again" if back else f"answers from here on; /model {BEFORE} goes back"
        self._face.say(f"{who} {how}.", "waiting")

    def failed(self, chat: Chat, reason: str = "") -> None:
        """Go back to the model before; to be called when one has failed that ``falls_back``. ``reason``: why, where the
        face has not said that yet."""
        self._wanted = None
        if chat.unasked is not None:  # it was for that model
            chat.withdraw(chat.unasked)
            self._face.changed("withdrawn")
        self._face.say(f"{reason}\nThe model before comes back.".lstrip(), "end")
        self._begin(chat, self._choices.now)
