"""How servers differ: how each is asked, what it can't do, and which rounds its stream tells."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dflash_tui.core.settings.decoding import SETTINGS
from dflash_tui.core.settings.servers import Dialect as DialectName
from dflash_tui.core.source import Feature
from dflash_tui.core.text.counted import counted
from engine.commands import Ask, GenerationSettings
from engine.events import Clock, EngineReady, Notice

from .rounds.event_rounds import EventKind, EventRounds
from .rounds.llamacpp_rounds import LlamaCppRounds
from .rounds.relayed import relayed
from .rounds.steps import StepMaker, StreamRounds, TurnReport
from .untrusted import count, mapping, sequence, words

CHAT = "/v1/chat/completions"
Answers = Mapping[str, Any]
"""What a server answered to the paths of :mod:`.probe`: JSON, or a text; what it hasn't is missing."""


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What a server says of itself when it is first asked."""

    dialect: DialectName
    shown: str
    """The server's name and version, as a person reads them."""
    models: tuple[str, ...] = ()
    context: int = 0
    """Tokens of prompt and answer together; 0 where it doesn't say."""
    dtype: str = ""
    drafter: str | None = None
    block_size: int = 1
    """The anchor and what a round drafts; 1 where it doesn't say."""
    speculates: bool | None = None
    """Whether the server guesses ahead; None where it doesn't say."""
    template: str = ""
    """The chat template, where the server shows it."""
    version: tuple[int, ...] = ()
    """Major and minor version, where a dialect depends on them."""
    ready: EngineReady | None = None
    """What our own server says of its engine."""


CHOSEN_AT_START = "{} drafts as it was told when it was started: a question can't change that."
NO_THINKING = "This model's chat template knows of no thinking."
UNTOLD = "This server doesn't tell its rounds."
NO_ODDS = "{} doesn't tell how sure its drafter was."
DRAFTING = tuple(setting.name for setting in SETTINGS if setting.drafting)
"""What servers are told when they are started."""


class Dialect(ABC):
    """One kind of server. What isn't said here is as any server with this interface has it."""

    owner = ""
    """The ``owned_by`` in its list of models by which the dialect is known; empty where that doesn't tell."""
    name = "This server"
    times: Clock = "arrival"
    tells_rounds = False
    """Whether its stream tells of rounds as they come."""
    advice = ""
    """How its speculation is switched on."""

    def __init__(self, facts: ServerFacts) -> None:
        self.facts = facts
        self.refused: dict[Feature, str] = dict.fromkeys(DRAFTING, CHOSEN_AT_START.format(self.name))
        """The features that it lacks, and why in words."""
        self.refused["draft_probabilities"] = NO_ODDS.format(self.name)
        if not self.tells_rounds:
            self.refused |= {"drafts": UNTOLD, "verdicts": UNTOLD}
        self._kind = EventKind(speculates=facts.speculates)

    @staticmethod
    @abstractmethod
    def facts_of(answers: Answers, listed: Sequence[Any], sure: bool) -> ServerFacts | None:
        """The facts of a server that speaks this dialect; None where it speaks another. ``answers``: by
        path. ``listed``: its list of models. ``sure``: the user said that it is this one."""

    def body(self, ask: Ask) -> dict[str, Any]:
        """The fields of a request that this dialect adds to the model, the messages and those that every server has."""
        return {}

    def rounds(self, steps: StepMaker) -> StreamRounds:
        """Make what turns the stream of one answer into rounds."""
        return EventRounds(steps, self._kind)

    def uncounted(self) -> Notice | None:
        """What to tell the user where an answer came without any count of drafts; None where nothing was drafted."""
        return Notice("This server doesn't say whether it speculates: tokens have no verdicts here.")

    def notice(self, report: TurnReport) -> Notice | None:
        """What to tell the user after the first whole answer: that speculation is off, or accepts nothing; None where
        it works."""
        if not report.counted and (words := self.uncounted()):
            return words
        drafted, accepted = report.statistics.num_draft_tokens, report.statistics.num_accepted_draft_tokens
        if not drafted and self.facts.speculates:
            return Notice("This server speculates, but drafted nothing for this answer.")
        if not drafted:
            return Notice("Speculation is off on this server: it drafted nothing.", self.advice)
        if not accepted and drafted > 8:
            return Notice(
                f"This server drafted {counted(drafted, 'token')} and accepted none: speculation only costs here.",
                "Look whether the drafter was made for this target, and whether both have the same vocabulary.",
            )
        return None


def names_of(listed: Sequence[Any]) -> tuple[str, ...]:
    return tuple(name for each in listed if (name := words(mapping(each).get("id"))))


def context_of(listed: Sequence[Any]) -> int:
    first = mapping(next(iter(listed), None))
    return count(first.get("max_model_len")) or count(mapping(first.get("meta")).get("n_ctx")) or 0


def common_body(ask: Ask, model: str) -> dict[str, Any]:
    """The fields of a request that every OpenAI-compatible server understands."""
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


def _sampling(settings: GenerationSettings) -> dict[str, Any]:
    """What vLLM and SGLang add to the interface."""
    return {"top_k": settings.top_k or -1, "min_p": 0.0, **_thinking(settings)}


def _thinking(settings: GenerationSettings) -> dict[str, Any]:
    """The fields that switch thinking. Templates call it by either name, and ignore what they don't know."""
    return {"chat_template_kwargs": {"enable_thinking": settings.thinking, "thinking": settings.thinking}}


class LlamaCpp(Dialect):
    """llama.cpp's ``llama-server``: its counters ride on every event."""

    owner, name, tells_rounds = "llamacpp", "llama.cpp", True
    times: Clock = "server"
    advice = "llama-server --spec-type ngram-simple, or --spec-type draft-dflash --model-draft DRAFTER.gguf"

    @staticmethod
    def facts_of(answers: Answers, listed: Sequence[Any], sure: bool) -> ServerFacts | None:
        props = mapping(answers.get("/props"))
        settings = mapping(props.get("default_generation_settings"))
        if not sure and not settings:
            return None
        build = words(props.get("build_info")).partition("-")[0]
        slots = [mapping(slot) for slot in sequence(answers.get("/slots"))]
        speculates = any(slot.get("speculative") is True for slot in slots) if slots else None
        return ServerFacts(
            "llama.cpp",
            "llama.cpp" if build in ("", "b0") else f"llama.cpp {build}",
            names_of(listed) or tuple(filter(None, [words(props.get("model_alias"))])),
            count(settings.get("n_ctx")) or context_of(listed),
            words(props.get("model_ftype")),
            speculates=speculates,
            template=words(props.get("chat_template")),
        )

    def __init__(self, facts: ServerFacts) -> None:
        super().__init__(facts)
        if facts.template and not ("think" in facts.template or "reasoning" in facts.template):
            self.refused["thinking"] = NO_THINKING

    def body(self, ask: Ask) -> dict[str, Any]:
        return {
            "timings_per_token": True,
            "return_progress": True,
            "top_k": ask.settings.top_k,
            "min_p": 0.0,
            "cache_prompt": True,
            **({} if "thinking" in self.refused else _thinking(ask.settings)),
        }

    def rounds(self, steps: StepMaker) -> StreamRounds:
        return LlamaCppRounds(steps)

    def uncounted(self) -> Notice | None:
        return Notice("This server counts no drafts. llama.cpp does since 2025.", "Update llama.cpp.")


class Vllm(Dialect):
    """vLLM: an event per step, and its own count of every round at the end where a flag asks for it."""

    owner, name, tells_rounds = "vllm", "vLLM", True
    advice = 'vllm serve --speculative-config \'{"method": "dflash", "model": DRAFTER, "num_speculative_tokens": 15}\''
    FLAG = "--per-request-spec-decode-metrics detailed"
    COUNTS_SINCE = (0, 29)
    """The version from which on it counts rounds, and speculates even where it is asked for probabilities."""

    @staticmethod
    def facts_of(answers: Answers, listed: Sequence[Any], sure: bool) -> ServerFacts | None:
        version = words(mapping(answers.get("/version")).get("version"))
        if not sure and not version:
            return None
        metrics = words(answers.get("/metrics"))
        speculates = "vllm:spec_decode_num_drafts" in metrics if "vllm:" in metrics else None
        if not sure and speculates is None:
            return None
        places = set(re.findall(r'spec_decode_num_accepted_tokens_per_pos\S*position="(\d{1,4})"', metrics))
        return ServerFacts(
            "vllm",
            f"vLLM {version}".strip(),
            names_of(listed),
            context_of(listed),
            block_size=len(places) + 1,
            version=tuple(int(number) for number in re.findall(r"\d{1,6}", version)[:2]),
            speculates=speculates,
        )

    def __init__(self, facts: ServerFacts) -> None:
        super().__init__(facts)
        self._kind = EventKind(True, facts.speculates, max(facts.block_size - 1, 0))

    def body(self, ask: Ask) -> dict[str, Any]:
        return {
            "return_token_ids": True,
            **({"logprobs": True} if self.facts.version >= self.COUNTS_SINCE else {}),
            **_sampling(ask.settings),
        }

    def rounds(self, steps: StepMaker) -> StreamRounds:
        return EventRounds(steps, self._kind, odds=steps.temperature == 0)

    def uncounted(self) -> Notice | None:
        if self.facts.speculates is False:
            return None
        doubt = "speculates" if self.facts.speculates else "may speculate"
        words = f"This vLLM {doubt}; with a flag it counts its rounds."
        return Notice(words, f"vllm serve {self.FLAG}, from 0.29 on")


class Sglang(Dialect):
    """SGLang: texts, and totals of its rounds at the end."""

    owner, name = "sglang", "SGLang"
    advice = "--speculative-algorithm DFLASH --speculative-draft-model-path DRAFTER"

    @staticmethod
    def facts_of(answers: Answers, listed: Sequence[Any], sure: bool) -> ServerFacts | None:
        info = mapping(answers.get("/server_info")) or mapping(answers.get("/get_server_info"))
        if not sure and "internal_states" not in info:
            return None
        algorithm = words(info.get("speculative_algorithm"))
        drafter = words(info.get("speculative_draft_model_path")) or algorithm
        width = count(info.get("speculative_num_draft_tokens")) or 1
        return ServerFacts(
            "sglang",
            f"SGLang {words(info.get('version'))}".strip(),
            names_of(listed) or tuple(filter(None, [words(info.get("served_model_name"))])),
            count(info.get("context_length")) or context_of(listed),
            words(info.get("dtype")),
            drafter or None,
            max(width, 1),
            bool(algorithm) if info else None,
        )

    def body(self, ask: Ask) -> dict[str, Any]:
        """Asks for no probabilities: some of SGLang's speculative workers fail when they are asked for them."""
        return {
            "stream_options": {"include_usage": True, "continuous_usage_stats": True},
            "return_spec_tokens_details": True,
            **_sampling(ask.settings),
        }

    def uncounted(self) -> Notice | None:
        return Notice("This SGLang counts no drafts.", "Update SGLang.") if self.facts.speculates else None


class Dflash(Dialect):
    """Our own server, which passes the engine's events on."""

    owner, tells_rounds = "dflash-chat", True
    times: Clock = "engine"

    @staticmethod
    def facts_of(answers: Answers, listed: Sequence[Any], sure: bool) -> ServerFacts | None:
        facts = mapping(answers.get("/dflash"))
        ready = relayed(facts, 0)
        if not isinstance(ready, EngineReady) or facts.get("server") != "dflash-chat":
            return None
        shown = f"dflash-chat {words(facts.get('version'))}".strip()
        return ServerFacts(
            "dflash", shown, names_of(listed), ready.max_context, block_size=ready.max_block_size, ready=ready
        )

    def __init__(self, facts: ServerFacts) -> None:
        super().__init__(facts)
        self.refused = {}

    def notice(self, report: TurnReport) -> Notice | None:
        return None

    def body(self, ask: Ask) -> dict[str, Any]:
        settings = ask.settings.to_dict()
        del settings["max_new_tokens"]  # ``max_tokens`` is for any server
        thinking = settings.pop("thinking")
        return settings | {"return_dflash_events": True, "chat_template_kwargs": {"enable_thinking": thinking}}


class OpenAi(Dialect):
    """Any other server with OpenAI's interface: texts, and whatever totals it reports."""

    @staticmethod
    def facts_of(answers: Answers, listed: Sequence[Any], sure: bool) -> ServerFacts:
        owner = words(mapping(next(iter(listed), None)).get("owned_by"))
        family = {"library": "Ollama", "organization_owner": "LM Studio"}.get(owner, "OpenAI-compatible")
        return ServerFacts("openai", family, names_of(listed), context_of(listed))

    def __init__(self, facts: ServerFacts) -> None:
        super().__init__(facts)
        self.refused["top_k"] = "The interface of this server has no top-k."
        self.refused["thinking"] = "The interface of this server has no switch for thinking."


KINDS: Mapping[DialectName, type[Dialect]] = {
    "dflash": Dflash, "llama.cpp": LlamaCpp, "vllm": Vllm, "sglang": Sglang, "openai": OpenAi,
}  # fmt: skip
"""Every dialect, in the order in which servers are asked; the last one fits any server."""
