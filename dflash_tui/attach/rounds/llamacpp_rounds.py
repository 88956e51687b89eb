"""Makes rounds of llama.cpp's stream, live and exact, from the counters that ride on every event.

All tokens of one verification carry the same ``predicted_ms``; ``draft_n`` and ``draft_n_accepted`` have grown by that
round's drafts by then, and ``predicted_n`` counts tokens, those too that brought no event because their text was held
back. A round of ``a`` accepted drafts yields ``a + 1`` tokens: so it is whole when as many have been seen, and tokens
that were held back between two rounds are shared out by counting. Where more than one round may hide in them, verdicts
are ``unknown``."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from engine.events import MICROSECONDS, EmittedToken, Verdict, rounded

from ..reading import Chunk, PromptUsage
from ..untrusted import count, real
from .server_counts import Count
from .steps import HELD, WIDEST, StepMaker, StreamRounds, TurnReport, verdicts


@dataclass(frozen=True, slots=True)
class Counters:
    """The counters of one event: totals of the answer so far."""

    tokens: int = 0
    drafted: int = 0
    accepted: int = 0
    milliseconds: float = 0.0


@dataclass(slots=True)
class _Group:
    """The tokens of one verification, as far as they were seen, and those that were held back before them."""

    milliseconds: float = 0.0
    drafted: int = 0
    accepted: int = 0
    anchored: bool = True
    """Whether the round before is known to end where this group's tokens begin."""
    before: int = 0
    """How many of ``tokens`` were held back before the first one that was seen: they are its round's, or of rounds of
    which none was seen."""
    tokens: list[EmittedToken] = field(default_factory=list)
    time: float = 0.0
    told: bool = False
    """Whether its step was given out."""

    @property
    def size(self) -> int:
        """How many tokens its round yields."""
        return self.accepted + 1 if self.drafted else 1

    @property
    def certain(self) -> bool:
        """Whether its tokens begin where its round does, and the counters grew by this round alone."""
        return self.anchored and not self.before

    def hold(self, count: int) -> None:
        self.tokens += [HELD] * count


class LlamaCppRounds(StreamRounds):
    """Turns llama.cpp's stream into rounds."""

    def __init__(self, steps: StepMaker) -> None:
        super().__init__(steps)
        self._last = Counters()
        self._group = _Group()
        """The tokens of the verification that is being read; at first the prefill's, which yields one."""
        self._told_ms = 0.0
        """The server's clock at the last step, in milliseconds."""
        self._prefill_ms: float | None = None
        self._uncounted = False
        """Whether text came without any counter."""

    def _read(self, chunk: Chunk) -> None:
        self._texts.put(chunk.pieces)
        self._read_prompt(chunk)
        now = self._counters(chunk)
        if now is None:
            if chunk.pieces and not self._last.tokens:
                self._tell_uncounted(chunk.time)
        elif self._uncounted:
            self._last = now
        elif now.tokens > self._last.tokens:
            self._advance(now, chunk.time)

    def _finish(self) -> None:
        if self._group.tokens and not self._group.told:
            self._close(self._group, 0, last=True)
        while self._texts:
            self._tell_uncounted(self._group.time)

    def report(self) -> TurnReport:
        last = self._last
        statistics = Count(last.tokens or None, last.drafted, last.accepted).over(self.steps.statistics())
        if last.tokens > 1 and last.milliseconds > 0:
            rate = (last.tokens - 1) / last.milliseconds * 1000
            statistics = replace(statistics, decode_ms=last.milliseconds, tok_s=rate)
        return TurnReport(statistics, counted=last.tokens > 0)

    def _read_prompt(self, chunk: Chunk) -> None:
        timings, progress = chunk.figures("timings"), chunk.figures("prompt_progress")
        if self.steps.made and self.steps.prompt.tokens:
            return
        if (total := count(progress.get("total"))) is not None:
            self.steps.prompt = PromptUsage(total, min(count(progress.get("cache")) or 0, total))
        elif read := count(timings.get("prompt_n")):
            cached = count(timings.get("cache_n")) or 0
            self.steps.prompt = PromptUsage(read + cached, cached)
        self._prefill_ms = real(timings.get("prompt_ms")) or self._prefill_ms

    def _counters(self, chunk: Chunk) -> Counters | None:
        """The counters that an event holds; None where it has none, or they make no sense."""
        timings, last = chunk.figures("timings"), self._last
        tokens = count(timings.get("predicted_n"))
        if tokens is None or (not last.tokens <= tokens <= last.tokens + WIDEST and not self._uncounted):
            return None
        drafted, accepted = count(timings.get("draft_n")), count(timings.get("draft_n_accepted"))
        milliseconds = real(timings.get("predicted_ms"))
        now = Counters(
            tokens,
            last.drafted if drafted is None else drafted,
            last.accepted if accepted is None else accepted,
            last.milliseconds if milliseconds is None else rounded(milliseconds, MICROSECONDS),
        )
        drafts, num_accepted = now.drafted - last.drafted, now.accepted - last.accepted
        return now if 0 <= num_accepted <= drafts and (drafts <= WIDEST or self._uncounted) else None

    def _advance(self, now: Counters, time: float) -> None:
        """Counts one token more, behind those that were held back since the last one."""
        last, group = self._last, self._group
        held = now.tokens - last.tokens - 1
        same = (now.milliseconds, now.drafted, now.accepted) == (last.milliseconds, last.drafted, last.accepted)
        if now.tokens > 1 and not (same and last.tokens > 1):
            held, anchored = self._close(group, held)
            drafted, accepted = now.drafted - last.drafted, now.accepted - last.accepted
            group = self._group = _Group(now.milliseconds, drafted, accepted, anchored, before=held)
        group.hold(held)
        group.tokens.append(self._texts.token())
        group.time, self._last = time, now
        if group.told:
            self._tell_more(group)
        elif not group.drafted:
            self._tell(group, ["plain"] * len(group.tokens))
        elif group.certain and len(group.tokens) >= group.size:
            self._tell(group, verdicts(len(group.tokens), group.drafted, group.accepted))

    def _close(self, group: _Group, held: int, *, last: bool = False) -> tuple[int, bool]:
        """Ends a group when the next round begins, before which ``held`` tokens were held back. Returns how many of
        those belong to later rounds, and whether that is known. The ``last`` group may have been cut off."""
        if group.told:
            return held, True
        missing = group.size - len(group.tokens)
        proved = 0 <= missing <= held if group.certain else group.anchored and 0 <= missing == held and not last
        if last and group.certain:
            proved, missing = True, 0
        if proved:
            group.hold(missing)
            self._tell(group, verdicts(len(group.tokens), group.drafted, group.accepted))
            return held - missing, True
        self._tell(group, _doubtful(group, ends=not held and not last))
        return held, not held

    def _tell(self, group: _Group, judged: list[Verdict]) -> None:
        drafts = self._last.drafted > 0  # without drafts, held tokens were written by the target alone, too
        emitted = [
            replace(token, verdict="unknown" if token is HELD and drafts else verdict)
            for token, verdict in zip(group.tokens, judged, strict=True)
        ]
        time = group.time
        spent = group.milliseconds - self._told_ms
        if not self.steps.made:
            spent = time * 1000 if self._prefill_ms is None else self._prefill_ms
        self.steps.make(emitted, group.drafted, group.accepted, time, spent)
        self._told_ms = group.milliseconds
        group.told = True
        group.tokens = []

    def _tell_more(self, group: _Group) -> None:
        """Tells the tokens of one verification that its drafts don't account for: the target wrote them alone."""
        emitted = [token if token is HELD else replace(token, verdict="plain") for token in group.tokens]
        group.tokens = []
        self.steps.make(emitted, 0, 0, group.time, 0.0)

    def _tell_uncounted(self, time: float) -> None:
        self._uncounted = self._uncounted or not self._last.tokens
        before = self.steps.made[-1].time if self.steps.made else 0.0
        spent = (time - before) * 1000
        self.steps.make([self._texts.token()], 0, 0, time, spent)


def _doubtful(group: _Group, ends: bool) -> list[Verdict]:
    """Verdicts of a group behind tokens of rounds that were not seen. A token that others of its verification follow
    was accepted; the last one seen is known to be its round's last only if the group ``ends`` there, and is a bonus if
    every draft was accepted."""
    seen = len(group.tokens) - group.before
    free = ends and seen > 1 and group.accepted == group.drafted
    return [*["unknown"] * group.before, *["accepted"] * (seen - 1), "bonus" if free else "unknown"]  # type: ignore[list-item]
