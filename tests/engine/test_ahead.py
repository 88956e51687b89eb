"""What is compiled beside loading is what decoding launches: both are noted in Triton's interpreter and compared.

And the process that compiles is waited for, ended, and never needed.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from torch import Tensor

from engine import ahead, runner
from engine.ahead import CUDA, Compiling, Order
from engine.backends import TRITON
from engine.checkpoint import compute_dtype, load_drafter, load_target
from engine.commands import EngineOptions
from engine.decoder import Decoder
from engine.device_rounds import DeviceRounds
from engine.events import EngineReady, Event
from engine.hub.pairs import PairFolders
from engine.kernels.jit import INTERPRETED, UNSPECIALISED
from engine.kernels.quantised import QuantisedWeight
from engine.plan import MemoryPlan
from tests.engine.checkpoints import FULL, SLIDING, drafter_config, random_target, write_drafter
from tests.engine.conftest import CPU, no_progress
from tests.engine.decoding import prompt_ids, run_turn, settings

if INTERPRETED:
    from triton.runtime.driver import driver
    from triton.runtime.interpreter import InterpretedFunction
    from triton.runtime.jit import JITFunction

    from engine.kernels import ahead as kernels_ahead
    from engine.kernels.ahead import AbsentGPU

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)")

CONTEXT = 128


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], set[str]]:
    """Runs something and says what it launched, in Triton's own words for a piece of machine code.

    Launches on tensors without memory are noted only.
    """
    monkeypatch.setattr(driver, "_active", AbsentGPU(90))
    run, compilers = InterpretedFunction.run, {}
    noted: set[str] = set()

    def note(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> None:
        if self.fn not in compilers:
            compilers[self.fn] = JITFunction(self.fn, do_not_specialize=UNSPECIALISED)
        *_, bind = compilers[self.fn].device_caches[0]
        _, types, options = bind(*args, **kwargs)
        noted.add(f"{self.fn.__qualname__} {types} {options}")
        if not any(isinstance(value, Tensor) and value.is_meta for value in args):
            run(self, *args, grid=grid, warmup=warmup, **kwargs)

    monkeypatch.setattr(InterpretedFunction, "run", note)

    def launched(work: Callable[[], object]) -> set[str]:
        noted.clear()
        work()
        return set(noted)

    return launched


@pytest.mark.slow
@pytest.mark.parametrize("experts", [False, True], ids=["dense", "experts"])
def test_what_is_compiled_is_what_turns_launch(
    experts: bool, tmp_path: Path, launched: Callable[[Callable[[], object]], set[str]]
) -> None:
    random_target([SLIDING, FULL], experts, seed=2).save_pretrained(tmp_path / "target")
    write_drafter(tmp_path / "drafter", drafter_config([SLIDING, FULL], [0, 1], 2), seed=2)
    order = Order(str(tmp_path / "target"), str(tmp_path / "drafter"), CONTEXT, True, "auto", 90)

    target = load_target(tmp_path / "target", CPU, no_progress).to(compute_dtype(CUDA))
    drafter = load_drafter(tmp_path / "drafter", target, no_progress).to(compute_dtype(CUDA))
    for model in (target, drafter):
        model.use_attention([TRITON] * 2)

    def turns() -> None:
        decoder = Decoder(target, drafter, CONTEXT)
        decoder.rounds = DeviceRounds(decoder, QuantisedWeight.of(target.embed_tokens.weight))
        for length, wanted in (
            (1, settings(max_new_tokens=3)),
            (31, settings(max_new_tokens=2, temperature=0.8, top_k=40, top_p=0.9)),
            (16, settings(max_new_tokens=2, speculation=False)),
            (17, settings(max_new_tokens=2, speculation=False, temperature=0.8)),
        ):
            run_turn(decoder, prompt_ids(length, seed=length), wanted)
        decoder.rounds.time_ingest(prompt_ids(16), 20)

    assert launched(turns) == launched(order.launch_all)


def an_order(folder: Path) -> Order:
    return Order(str(folder), None, CONTEXT, drafts_in_8_bits=False, draft_attention="auto", capability=90)


def test_what_was_compiled_before_takes_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(ahead.torch.cuda, "get_device_capability", lambda _device: (9, 0))
    monkeypatch.setattr(ahead, "Compiling", lambda order: nullcontext(order))
    config = tmp_path / "config.json"
    config.write_text("{}")
    plan = SimpleNamespace(
        device_rounds=True, weights=ahead.WORTHWHILE, device=CUDA, context=CONTEXT, drafts_in_8_bits=True
    )
    pair = PairFolders("a pair", tmp_path, None, None)

    def ordered() -> Order | None:
        with ahead.compiling_beside(pair, cast(MemoryPlan, plan), "auto") as order:
            return cast(Order | None, order)

    order = ordered()
    assert order is not None
    monkeypatch.setattr(kernels_ahead, "compile_for", lambda _capability: None)
    monkeypatch.setattr(kernels_ahead, "noted_launches", lambda _run: [])
    monkeypatch.setattr(ahead.sys, "argv", ["ahead", json.dumps(asdict(order))])
    with monkeypatch.context() as broken:
        broken.setattr(kernels_ahead, "compile_all", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            ahead.main()
    assert ordered() == order  # nothing was compiled
    monkeypatch.setattr(kernels_ahead, "compile_all", lambda *_: None)
    ahead.main()
    assert ordered() is None
    config.write_text('{"other": "model"}')
    assert ordered() == order


def test_a_process_that_fails_is_waited_for_no_longer(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with Compiling(an_order(tmp_path / "nothing")) as compiling:
        assert compiling.finished(seconds=100.0)
    assert "kernels were not compiled ahead" in caplog.text and "config.json" in caplog.text


def test_leaving_ends_the_process(tmp_path: Path) -> None:
    with Compiling(an_order(tmp_path)) as compiling:
        assert not compiling.finished(seconds=0.0)
    assert compiling._process.returncode == -signal.SIGKILL


class StillCompiling:
    def __init__(self, looks: int):
        self.looks_left = looks

    def finished(self, _seconds: float) -> bool:
        self.looks_left -= 1
        return self.looks_left <= 0


@pytest.mark.parametrize("cancelled", [False, True])
def test_loading_waits_for_it_unless_cancelled(
    cancelled: bool, bundled_pair: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiling = StillCompiling(looks=3)
    monkeypatch.setattr(runner, "compiling_beside", lambda *_: nullcontext(compiling))
    events: list[Event] = []
    loaded = runner.Runner.load(
        EngineOptions(device="cpu"), events.append, lambda: cancelled and compiling.looks_left < 3
    )
    assert (loaded is None) == cancelled
    assert compiling.looks_left == (2 if cancelled else 0)
    assert isinstance(events[-1], EngineReady) != cancelled
