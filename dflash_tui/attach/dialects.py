"""How servers differ: how each is asked, what it can't do, and which rounds its stream tells."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from dflash_tui.core.settings.servers import Dialect as DialectName
from dflash_tui.core.source import Feature
from engine.commands import Ask, GenerationSettings
from engine.events import Clock, EngineReady, Notice

from .chunk_rounds import ChunkRounds, Count, Guess
from .chunks import Chunk
from .llamacpp_rounds import LlamaCppRounds
from .matching import RoundCount
from .reading import count, counts, mapping
from .rounds import Report, Rounds, Steps

CHAT = "/v1/chat/completions"


@dataclass(frozen=True, slots=True)
class Facts:
    """What a server says of itself."""

    dialect: DialectName
    shown: str
    """Its name and version, for people."""
    models: tuple[str, ...] = ()
    context: int = 0
    """Tokens of prompt and answer together; 0 where it doesn't say."""
    dtype: str = ""
    drafter: str | None = None
    block_size: int = 1
    """The anchor and what a round drafts; 1 where it doesn't say."""
    speculates: bool | None = None
    """None where it doesn't say."""
    template: str = ""
    """Its chat template, where it shows it."""
    version: tuple[int, ...] = ()
    """Major and minor, where a dialect needs them."""
    ready: EngineReady | None = None
    """What our own server says of its engine."""


class Dialect(Protocol):
    """One kind of server."""

    times: Clock
    relays: bool
    """Its stream carries the events themselves."""
    refused: Mapping[Feature, str]
    """What it can't do, and why."""

    def body(self, ask: Ask) -> dict[str, Any]:
        """The fields of a request beside model, messages and those that every server has."""

    def rounds(self, steps: Steps) -> Rounds: ...

    def notice(self, report: Report) -> Notice | None:
        """What to tell the user after the first whole answer."""


CHOSEN_AT_START = "{} drafts as it was told when it was started: a question can't change that."
NO_THINKING = "This model's chat template knows of no thinking."
NO_ODDS = "{} doesn't tell how sure its drafter was."


def _never(name: str) -> dict[Feature, str]:
    """What no server lets a client do."""
    chosen = CHOSEN_AT_START.format(name)
    return {
        "block_size": chosen,
        "speculation": chosen,
        "draft_by": chosen,
        "draft_probabilities": NO_ODDS.format(name),
    }


def common_body(ask: Ask, model: str) -> dict[str, Any]:
    """What every OpenAI-compatible server understands."""
    settings = ask.settings
    body: dict[str, Any] = {
        "messages": [{"role": message.role, "content": message.content} for message in ask.messages],
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": settings.temperature,
        "top_p": settings.top_p,
        "max_tokens": settings.max_new_tokens,
    }
    if model:
        body["model"] = model
    if settings.temperature > 0:
        body["seed"] = settings.seed
    return body


def _thinking(settings: GenerationSettings) -> dict[str, Any]:
    """Templates call it by either name, and pass over what they don't know."""
    return {"chat_template_kwargs": {"enable_thinking": settings.thinking, "thinking": settings.thinking}}


class LlamaCpp:
    """llama-server: counters on every event."""

    refused: Mapping[Feature, str]
    times: Clock = "server"
    relays = False

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        template = facts.template
        self._thinks = not template or "think" in template or "reasoning" in template
        thinking: dict[Feature, str] = {} if self._thinks else {"thinking": NO_THINKING}
        self.refused = {**_never("llama.cpp"), **thinking}

    def body(self, ask: Ask) -> dict[str, Any]:
        return {
            "timings_per_token": True,
            "return_progress": True,
            "top_k": ask.settings.top_k,
            "min_p": 0.0,
            "cache_prompt": True,
            **(_thinking(ask.settings) if self._thinks else {}),
        }

    def rounds(self, steps: Steps) -> Rounds:
        return LlamaCppRounds(steps)

    def notice(self, report: Report) -> Notice | None:
        if not report.counted:
            return Notice("This server counts no drafts. llama.cpp does since 2025.", "Update llama.cpp.")
        return speculation_notice(
            report,
            self._facts.speculates,
            "llama-server --spec-type ngram-simple, or --spec-type draft-dflash --model-draft DRAFTER.gguf",
        )


class Vllm:
    """vLLM: an event per step, and its own count of every round at the end where a flag says so."""

    times: Clock = "arrival"
    relays = False
    FLAG = "--per-request-spec-decode-metrics detailed"
    UNCOUNTED = "vLLM sent no count of this answer's rounds: they stay a guess by its events."
    COUNTS_SINCE = (0, 29)
    """From here on it counts rounds, and speculates also where it is asked for probabilities."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.refused: Mapping[Feature, str] = _never("vLLM")
        self._drafted = max(facts.block_size - 1, 0)
        self._detailed = False

    def body(self, ask: Ask) -> dict[str, Any]:
        return {
            "return_token_ids": True,
            **({"logprobs": True} if self.facts.version >= self.COUNTS_SINCE else {}),
            "top_k": ask.settings.top_k or -1,
            "min_p": 0.0,
            **_thinking(ask.settings),
        }

    def rounds(self, steps: Steps) -> Rounds:
        guess = Guess(self.facts.speculates, self._drafted)
        odds = steps.temperature == 0
        return ChunkRounds(steps, guess, self._count, self.UNCOUNTED, odds)

    def _count(self, ends: Sequence[Chunk]) -> Count:
        tokens, spec = _tokens(ends), mapping(None)
        for chunk in ends:
            spec = mapping(chunk.metrics.get("speculative_decoding")) or spec
        accepted, drafted = counts(spec.get("per_step_accepted")), counts(spec.get("per_step_drafted"))
        order: tuple[RoundCount, ...] = ()
        if accepted and drafted and len(accepted) == len(drafted):
            order = tuple(RoundCount(d, a) for d, a in zip(drafted, accepted, strict=True) if a <= d)
            order = order if len(order) == len(drafted) else ()
        self._drafted = count(spec.get("num_spec_tokens")) or self._drafted
        self._detailed = self._detailed or bool(order)
        return Count(
            tokens,
            count(spec.get("num_draft_tokens")),
            count(spec.get("num_accepted_draft_tokens")),
            count(spec.get("num_spec_steps")),
            counts(spec.get("acceptance_histogram")) or (),
            order,
        )

    def notice(self, report: Report) -> Notice | None:
        if not report.counted and self.facts.speculates is not False:
            doubt = "speculates" if self.facts.speculates else "may speculate"
            words = f"This vLLM {doubt}; with a flag it counts its rounds."
            return Notice(words, f"vllm serve {self.FLAG}, from 0.29 on")
        return speculation_notice(
            report,
            self.facts.speculates,
            'vllm serve --speculative-config \'{"method": "dflash", "model": DRAFTER, "num_speculative_tokens": 15}\'',
        ) or self._summary(report)

    def _summary(self, report: Report) -> Notice | None:
        if self._detailed or not report.statistics.num_spec_steps:
            return None
        return Notice("This vLLM sends totals of its rounds only.", f"vllm serve {self.FLAG}")


class Sglang:
    """SGLang: an event per verify step, proved by a histogram at the end."""

    times: Clock = "arrival"
    relays = False
    UNCOUNTED = "SGLang sent no count of this answer's rounds: they stay a guess by its events."

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self.refused: Mapping[Feature, str] = _never("SGLang")
        self._drafted = max(facts.block_size - 1, 0)

    def body(self, ask: Ask) -> dict[str, Any]:
        """No probabilities: some of its speculative workers fail when asked for them."""
        return {
            "stream_options": {"include_usage": True, "continuous_usage_stats": True},
            "return_spec_tokens_details": True,
            "top_k": ask.settings.top_k or -1,
            "min_p": 0.0,
            **_thinking(ask.settings),
        }

    def rounds(self, steps: Steps) -> Rounds:
        return ChunkRounds(steps, Guess(self._facts.speculates, self._drafted), sglang_count, self.UNCOUNTED)

    def notice(self, report: Report) -> Notice | None:
        if not report.counted and self._facts.speculates:
            return Notice(
                "This SGLang doesn't say how its rounds went: what was accepted is a guess.", "Update SGLang."
            )
        return speculation_notice(
            report,
            self._facts.speculates,
            "--speculative-algorithm DFLASH --speculative-draft-model-path DRAFTER",
        )


def sglang_count(ends: Sequence[Chunk]) -> Count:
    """Field names have changed twice; a detailed list of rounds may stand beside."""
    details: Mapping[str, Any] = {}
    stats: Mapping[str, Any] = {}
    for chunk in ends:
        extra = {**mapping(chunk.data.get("sglext")), **mapping(chunk.data.get("meta_info"))}
        details = mapping(extra.get("spec_tokens_details")) or (extra if "spec_verify_ct" in extra else details)
        stats = mapping(extra.get("speculative_decoding_stats")) or stats

    def first(*names: str) -> Any:
        return next((details[name] for name in names if details.get(name) is not None), None)

    verified, accepted = counts(stats.get("verify_lengths")) or (), counts(stats.get("accept_lengths")) or ()
    order: tuple[RoundCount, ...] = ()
    if verified and len(verified) == len(accepted) and all(a <= v for v, a in zip(verified, accepted, strict=True)):
        order = tuple(RoundCount(v, a) for v, a in zip(verified, accepted, strict=True))
    rounds = count(first("spec_verify_ct"))
    return Count(
        _tokens(ends),
        count(first("spec_num_proposed_drafts", "spec_proposed_drafts", "spec_draft_token_num")),
        count(first("spec_num_correct_drafts", "spec_accepted_drafts", "spec_accept_token_num")),
        len(order) or rounds,
        counts(first("spec_correct_drafts_histogram", "spec_accept_histogram")) or (),
        order,
    )


class Dflash:
    """Our own server: it passes the events on."""

    times: Clock = "engine"
    relays = True

    def __init__(self, facts: Facts) -> None:
        self.refused: Mapping[Feature, str] = {}

    def body(self, ask: Ask) -> dict[str, Any]:
        settings = ask.settings
        return {
            "return_dflash_events": True,
            "top_k": settings.top_k,
            "seed": settings.seed,
            "block_size": settings.block_size,
            "speculation": settings.speculation,
            **({} if settings.draft_by == "both" else {"draft_by": settings.draft_by}),
            "chat_template_kwargs": {"enable_thinking": settings.thinking},
        }

    def rounds(self, steps: Steps) -> Rounds:
        """Of an answer that brought no events."""
        return ChunkRounds(steps, Guess(by_event=False), openai_count, "")

    def notice(self, report: Report) -> Notice | None:
        return None


class OpenAi:
    """Any other server with that interface: texts, and whatever totals it reports."""

    times: Clock = "arrival"
    relays = False

    def __init__(self, facts: Facts) -> None:
        unknown = "This server doesn't tell which tokens were drafted."
        self.refused: Mapping[Feature, str] = {
            **_never("This server"),
            "top_k": "The interface of this server has no top-k.",
            "thinking": "The interface of this server has no switch for thinking.",
            "drafts": unknown,
            "verdicts": unknown,
        }

    def body(self, ask: Ask) -> dict[str, Any]:
        return {}

    def rounds(self, steps: Steps) -> Rounds:
        return ChunkRounds(steps, Guess(by_event=False), openai_count, "")

    def notice(self, report: Report) -> Notice | None:
        if not report.counted:
            return Notice("This server doesn't say whether it speculates: tokens have no verdicts here.")
        return speculation_notice(report, None, "")


def openai_count(ends: Sequence[Chunk]) -> Count:
    """Totals as mlx-vlm, LM Studio and TokenSpeed report them."""
    drafted = accepted = rounds = None
    for chunk in ends:
        for place in (chunk.timings, chunk.usage, mapping(chunk.data.get("stats"))):
            drafted = _one_of(place, "draft_n", "spec_draft_tokens", "total_draft_tokens_count") or drafted
            kept = _one_of(place, "draft_n_accepted", "spec_accepted_tokens", "accepted_draft_tokens_count")
            accepted = kept or accepted
            rounds = _one_of(place, "draft_rounds", "spec_verify_ct") or rounds
    if drafted is not None:
        accepted = min(accepted or 0, drafted)
    return Count(_tokens(ends), drafted, accepted if drafted is not None else None, rounds)


def _one_of(place: Mapping[str, Any], *names: str) -> int | None:
    return next((number for name in names if (number := count(place.get(name))) is not None), None)


def _tokens(ends: Sequence[Chunk]) -> int | None:
    """The last word on how many tokens the answer has."""
    told = [number for chunk in ends if (number := count(chunk.usage.get("completion_tokens"))) is not None]
    return told[-1] if told else None


def speculation_notice(report: Report, speculates: bool | None, advice: str) -> Notice | None:
    """A server whose speculation is off, or accepts nothing."""
    facts = report.statistics
    if facts.num_draft_tokens == 0:
        if speculates:
            return Notice("This server speculates, but drafted nothing for this answer.")
        return Notice("Speculation is off on this server: it drafted nothing.", advice)
    if facts.num_accepted_draft_tokens == 0 and facts.num_draft_tokens > 8:
        return Notice(
            f"This server drafted {facts.num_draft_tokens} tokens and accepted none: speculation only costs here.",
            "Look whether the drafter was made for this target, and whether both have the same vocabulary.",
        )
    return None


MADE_BY: Mapping[DialectName, Callable[[Facts], Dialect]] = {
    "dflash": Dflash,
    "llama.cpp": LlamaCpp,
    "vllm": Vllm,
    "sglang": Sglang,
    "openai": OpenAi,
}
