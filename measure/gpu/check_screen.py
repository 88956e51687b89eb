"""What the screen costs a GPU's answers: ``python -m measure.gpu.check_screen``; needs neither pytest nor Textual.

The same answer, at the 26B-A4B's shape with random weights, is written in turns for nobody and for the screen. For
nobody means that the events are thrown away. For the screen they go where the application's go: through its queue and
its session log on the disk, into its frame loop on the main thread, which applies them to its state. Textual, which a
GPU's machine need not have, is stood in for: every frame keeps the interpreter busy with Python. Frames cost so much by
default that the application's own governor has to space them out: the screen then takes all of a core that it is ever
allowed beside a GPU (``dflash_tui.app.chat.pump.GPU_SHARE``). The terminal itself is missing.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from threading import Thread
from time import thread_time
from types import ModuleType

import torch

from engine.commands import Ask, GenerationSettings, Message
from engine.decoding.decoder import Decoder
from engine.decoding.device_rounds import DeviceRounds
from engine.decoding.rounds import Prompt
from engine.events import Event, Step
from engine.hub.pairs import BUNDLED_PAIR
from engine.kernels.weights.int8 import Int8Weight
from engine.lab.bench.measure import acceptance_script
from engine.lab.bench.routing import force_routing, forced_scores
from engine.lab.bench.script import Script, ScriptedHostRounds, ScriptedLaunches
from engine.lab.bench.shapes import SHAPES, read_shape
from engine.lab.bench.weights import random_pair
from engine.runner import Runner
from engine.tokenizer import ChatTokenizer
from measure.gpu.report import Report

if find_spec("platformdirs") is None:  # it would name a folder, which is given here
    stand_in = ModuleType("platformdirs")
    stand_in.user_state_dir = tempfile.gettempdir  # type: ignore[attr-defined]
    sys.modules["platformdirs"] = stand_in

from dflash_tui.app.chat.pump import FramePump
from dflash_tui.core.conversation.chat import Chat
from dflash_tui.core.desk.event_queue import EventQueue
from dflash_tui.core.sessions.sessions import SessionLog
from measure.quick import parse

QUESTION = "Write a quicksort in Python"
ACCEPTANCE, BLOCK = 7.8, 16
SWITCH_INTERVAL = 0.0005
"""See ``dflash_tui.app.main``, which sets the same."""
DRAWING = 0.012
"""Processor seconds of a frame: at 30 frames a second, more than the governor lets the screen have."""
LEAST = 0.97


class FoldedTokenizer(ChatTokenizer):
    """The bundled pair's tokenizer for another vocabulary: ids that one of the two lacks stand for those it has."""

    def __init__(self, vocab_size: int) -> None:
        super().__init__(BUNDLED_PAIR / "target")
        self._known, self._vocab_size = len(self._tokenizer), vocab_size

    def prompt(self, messages: Sequence[Message], thinking: bool) -> Prompt:
        prompt = super().prompt(messages, thinking)
        return Prompt(tuple(token % self._vocab_size for token in prompt.ids), prompt.stable_length)

    def piece(self, token: int) -> str:
        return super().piece(token % self._known)

    def decode(self, ids: Sequence[int]) -> str:
        return super().decode([token % self._known for token in ids])


class Speed:
    """Measures the tokens per second of an answer, as the engine's thread emits its rounds."""

    def __init__(self) -> None:
        self._steps: list[Step] = []

    def note(self, event: Event) -> None:
        if isinstance(event, Step):
            self._steps.append(event)

    @property
    def tokens_per_second(self) -> float:
        first, *rest = self._steps
        return sum(len(step.emitted) for step in rest) / (rest[-1].time - first.time)


def ask(tokens: int) -> Ask:
    settings = GenerationSettings(block_size=BLOCK, max_new_tokens=tokens)
    return Ask(1, (Message("user", QUESTION),), settings)


def answer(runner: Runner, tokens: int, emit: Callable[[Event], None]) -> None:
    """Does what the engine's thread does for an answer."""
    for event in runner.answer(ask(tokens), list):
        emit(event)


def for_nobody(runner: Runner, tokens: int) -> float:
    speed = Speed()
    runner.forget()
    engine = Thread(target=answer, args=(runner, tokens, speed.note), name="engine")
    engine.start()
    engine.join()
    return speed.tokens_per_second


def for_the_screen(runner: Runner, tokens: int, drawing: float, folder: Path) -> tuple[float, float]:
    """Tokens per second, and the share of a core that the screen took."""
    speed, queue = Speed(), EventQueue(SessionLog.create(folder))
    chat = Chat(ask(tokens).settings, lambda command: None)
    queue.log.user(1, QUESTION)

    def emit(event: Event) -> None:
        speed.note(event)
        queue.put(event)

    runner.forget()
    engine = Thread(target=answer, args=(runner, tokens, emit), name="engine")
    load = asyncio.run(draw_until_done(engine, chat, queue, drawing))
    queue.log.close()
    return speed.tokens_per_second, load


async def draw_until_done(engine: Thread, chat: Chat, queue: EventQueue, drawing: float) -> float:
    pump = FramePump(chat, queue, lambda events, gauges: keep_busy(drawing))
    pump.on_gpu(True)
    frames = asyncio.create_task(pump.run())
    engine.start()
    load = 0.0
    while engine.is_alive():
        await asyncio.sleep(0.05)
        load = max(load, pump.governor.load)
    frames.cancel()
    return load


def keep_busy(seconds: float) -> None:
    """Runs Python for this many seconds of the thread's time."""
    until = thread_time() + seconds
    while thread_time() < until:
        sum(range(50))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--shape", choices=SHAPES, default="26B-A4B")
    parser.add_argument("--layers", type=int)
    parser.add_argument("--tokens", type=int, default=2500, help="of an answer")
    parser.add_argument("--times", type=int, default=3, help="answers for nobody, and for the screen")
    parser.add_argument("--drawing", type=float, default=1e3 * DRAWING, metavar="MS", help="of a frame")
    parser.add_argument("--out", type=Path, help="write JSON there as well")
    options = parse(parser, "--device cpu --shape tiny --layers 6 --tokens 40 --times 1")
    report, device = Report(options.quick), torch.device(options.device)
    shape = read_shape(options.shape, options.layers)
    target, drafter = random_pair(shape, device)
    moe = shape.target.moe
    if moe is not None:
        force_routing(target, forced_scores("uniform", len(shape.target.layers), moe.num_experts, device))
    runner = Runner(Decoder(target, drafter, options.tokens + 512), FoldedTokenizer(shape.target.vocab_size))
    script = Script(device)
    if device.type == "cuda":
        copy = Int8Weight.of(target.head)
        runner.decoder.use_rounds(DeviceRounds(ScriptedLaunches(script, runner.decoder, copy)))
    else:
        runner.decoder.use_rounds(ScriptedHostRounds(script))
    script.play(acceptance_script(ACCEPTANCE, BLOCK, 64))
    for_nobody(runner, min(options.tokens, 200))  # a first answer warms up
    alone, watched, loads = [], [], []
    sys.setswitchinterval(SWITCH_INTERVAL)
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(options.times):
            alone.append(for_nobody(runner, options.tokens))
            speed, load = for_the_screen(runner, options.tokens, options.drawing / 1e3, Path(folder))
            watched.append(speed)
            loads.append(load)
    ratio = median(watched) / median(alone)
    report.line("for nobody", " ".join(f"{speed:.1f}" for speed in alone) + " tokens/s")
    report.line("for the screen", " ".join(f"{speed:.1f}" for speed in watched) + " tokens/s")
    report.line("the screen's share of a core", f"{median(loads):.0%} at most, {options.drawing:g} ms a frame")
    report.timed("with the screen / without", f"{ratio:.2%} (at least {LEAST:.0%})", ratio >= LEAST)
    report.write(options.out)
    return 0 if report.ok else 1


if __name__ == "__main__":
    sys.exit(main())
