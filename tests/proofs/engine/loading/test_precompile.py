"""What is compiled beside loading is what decoding launches: both are noted in Triton's interpreter and compared.

And the process that compiles is waited for, ended, and never needed.
"""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from torch import Tensor

from engine.commands import Close, EngineOptions, WeightFormat
from engine.decoding.decoder import Decoder
from engine.decoding.device_rounds import DeviceRounds
from engine.decoding.round_launches import Ingestion, Proposal, RoundLaunches, RoundPiece, Verification
from engine.hub.pairs import PairFolders
from engine.kernels.toolchain import disk_cache
from engine.kernels.toolchain.card import HOPPER
from engine.kernels.toolchain.disk_cache import loading_beside
from engine.kernels.toolchain.jit import INTERPRETED, UNSPECIALISED
from engine.kernels.weights.int8 import Int8Weight
from engine.lab.bench import command as bench_command
from engine.lab.bench import weights as bench_weights
from engine.lab.bench.compiling import BenchOrder, launch_shape
from engine.lab.bench.measure import longest
from engine.loading import checkpoint
from engine.loading import cuda_context as waking
from engine.loading import precompile as ahead
from engine.loading.checkpoint import load_drafter, load_target
from engine.loading.memory_plan import Drafting, MemoryPlan
from engine.loading.precompile import Compiling, Order
from engine.loading.precompiler import CUDA, launch_all
from engine.measured.costs import RoundTimer
from engine.models.attention_backends import TRITON
from engine.service import EngineService
from engine.speculation.trees import WIDE_ROWS
from support.checkpoints import FULL, SLIDING, drafter_config, random_target, write_drafter
from support.shapes import published_config
from tests.engine.conftest import CPU, no_progress
from tests.engine.models import gpt_oss
from tests.engine.small_decoders import prompt_ids, run_turn, settings
from tests.pace import only_in_ci
from tests.proofs.kernels.compiling import python, write_libcuda
from tests.surroundings import threads

if INTERPRETED:
    from triton.runtime.driver import driver
    from triton.runtime.interpreter import InterpretedFunction
    from triton.runtime.jit import JITFunction

    from engine.kernels.toolchain.compile_ahead import AbsentGPU

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)")

CONTEXT = 128


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], set[str]]:
    """Runs something and says what it launched, in Triton's own words for a piece of machine code.

    Only kernels of rounds are run as well, and those that tell rows of experts: what is launched depends on no other
    number, and all memory begins with noughts.
    """
    with torch.device("meta"):
        torch.zeros(1)  # PyTorch notes now which functions make tensors, before they are replaced
    monkeypatch.setattr(driver, "_active", AbsentGPU(90))
    run, compilers = InterpretedFunction.run, {}
    noted: set[str] = set()

    def note(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> None:
        if self.fn not in compilers:
            compilers[self.fn] = JITFunction(self.fn, do_not_specialize=UNSPECIALISED)
        *_, bind = compilers[self.fn].device_caches[0]
        _, types, options = bind(*args, **kwargs)
        noted.add(f"{self.fn.__qualname__} {types} {options}")
        is_meta = any(isinstance(value, Tensor) and value.is_meta for value in args)
        if not is_meta and self.fn.__module__.startswith(("engine.kernels.round.", "engine.kernels.prefill.route")):
            run(self, *args, grid=grid, warmup=warmup, **kwargs)

    monkeypatch.setattr(InterpretedFunction, "run", note)
    for owner, name in ((torch, "empty"), (torch, "empty_like"), (Tensor, "new_empty")):
        make = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *what, make=make, **options: make(*what, **options).zero_())

    def launched(work: Callable[[], object]) -> set[str]:
        noted.clear()
        work()
        return set(noted)

    return launched


@pytest.mark.parametrize(
    ("what", "weights"),
    [
        ("dense", "bf16"),
        only_in_ci("experts", "bf16"),
        only_in_ci("experts", "int4"),
        only_in_ci("gpt-oss", "mxfp4"),
    ],
)
def test_what_is_compiled_is_what_turns_launch(
    what: str,
    weights: WeightFormat,
    tmp_path: Path,
    launched: Callable[[Callable[[], object]], set[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = drafter_config([SLIDING, FULL], [0, 1], 2)
    if what == "gpt-oss":
        gpt_oss.write_target(tmp_path / "target", seed=2, num_hidden_layers=2)
        config |= {"attention_bias": True, "final_logit_softcapping": None}
    else:
        random_target([SLIDING, FULL], what == "experts", seed=2).save_pretrained(tmp_path / "target")
    write_drafter(tmp_path / "drafter", config, seed=2)
    order = Order(str(tmp_path / "target"), str(tmp_path / "drafter"), CONTEXT, True, "auto", HOPPER, weights)

    monkeypatch.setattr(checkpoint, "compute_dtype", lambda device: torch.bfloat16)  # as on the GPU
    target = load_target(tmp_path / "target", CPU, no_progress, weights=weights)
    drafter = load_drafter(tmp_path / "drafter", target, no_progress)
    for model in (target, drafter):
        model.use_attention([TRITON] * 2)

    def turns() -> None:
        decoder = Decoder(target, drafter, CONTEXT)
        launches = RoundLaunches(decoder, Int8Weight.of(target.head))
        decoder.use_rounds(DeviceRounds(launches))
        for length, wanted in (
            (1, settings(max_new_tokens=2)),
            (31, settings(max_new_tokens=2, temperature=0.8, top_k=40, top_p=0.9)),
            (17, settings(max_new_tokens=2, speculation=False, temperature=0.8)),
        ):
            run_turn(decoder, prompt_ids(length, seed=length), wanted)
        tree = launches.drafting().tree
        pieces: list[RoundPiece] = [launches.drafting(), Verification(tree=tree), Verification(tree=tree, greedy=False)]
        pieces += [Verification(1), Proposal(lookup=16, ingests=False), Proposal(lookup=16)]
        if launches.fuses:
            pieces.append(launches.drafting(lookup=16))
        if launches.wide is not None:
            pieces += [Proposal(lookup=launches.widest, ingests=False), Proposal(lookup=launches.widest)]
            for rows in WIDE_ROWS:
                pieces += [Verification(rows), Verification(rows, greedy=False), Ingestion(rows)]
        for piece in pieces:
            launches.of(piece)()
        RoundTimer(launches).time(Proposal(), prompt_ids(16), 20, pending=16)

    assert launched(turns) == launched(lambda: launch_all(order))


def test_a_bench_launches_what_it_compiled(
    launched: Callable[[Callable[[], object]], set[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (checkpoint, bench_weights):
        monkeypatch.setattr(module, "compute_dtype", lambda device: torch.bfloat16)
    words = "--shape tiny --layers 6 --device cpu --widths 1 16 --contexts 40 --prompts --count 1 --rounds device"
    order = BenchOrder("tiny", None, longest([40], [], 1, 16), True, "auto", HOPPER, num_layers=6)
    run = launched(lambda: bench_command.run(words.split()))
    assert run and run <= launched(lambda: launch_shape(order))


def an_order(folder: Path) -> Order:
    return Order(str(folder), None, CONTEXT, drafts_in_8_bits=False, attention="auto", card=HOPPER)


@pytest.fixture
def a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is asked of one here, and an empty cache of Triton's."""
    cache = tmp_path / "cache"
    cache.mkdir()
    monkeypatch.setenv("TRITON_CACHE_DIR", str(cache))
    monkeypatch.setattr(ahead, "has_driver", lambda: True)


class Orders:
    """Stands in for the process."""

    def __init__(self) -> None:
        self.order: Order | None = None
        self.ended = False

    def __enter__(self) -> Orders:
        return self

    def __exit__(self, *_error: object) -> None:
        self.ended = True

    def begin(self, order: Order, mark: Path) -> None:
        self.order, self.mark = order, mark

    def end(self) -> None:
        self.ended = True


@pytest.mark.usefixtures("a_gpu")
def test_what_was_compiled_before_takes_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "Compiling", Orders)
    config = tmp_path / "config.json"
    config.write_text("{}")
    drafting = Drafting(0, head_in_8_bits=True)
    plan = SimpleNamespace(
        device_rounds=True,
        target_bytes=ahead.WORTHWHILE,
        weights="fp8",
        device=CUDA,
        context=CONTEXT,
        chunk=512,
        on_host=0,
        drafting=drafting,
    )
    options, pair = EngineOptions(str(tmp_path)), PairFolders("a pair", tmp_path, None, None)

    def started() -> tuple[Orders | None, Order | None]:
        """The process that stood by, and what was ordered of it or of another."""
        with ahead.precompiler_process(options) as compiler:
            stood_by = cast(Orders | None, compiler)
            with ahead.compiling_beside(options, pair, cast(MemoryPlan, plan), compiler) as compiling:
                begun = cast(Orders | None, compiling)
                assert begun is None or stood_by in (None, begun)
                assert begun is not None or stood_by is None or stood_by.ended
                return stood_by, None if begun is None else begun.order

    stood_by, order = started()
    assert stood_by is not None and order is not None
    assert started()[1] == order  # nothing was compiled
    digest = order.digest
    stood_by.mark.write_text(f"{digest}\na launch\nanother")
    brought: list[str] = []
    monkeypatch.setattr(ahead, "loading_beside", lambda launches, _device: nullcontext(brought.extend(launches)))
    assert started() == (None, None) and brought == ["a launch", "another"]
    config.write_text('{"other": "model"}')
    stood_by, other = started()  # what was compiled before seemed to be enough
    assert stood_by is None and other == order and other.digest != digest
    plan.target_bytes = 1
    options = replace(options, max_context=7)
    stood_by, other = started()
    assert stood_by is not None and other is None
    assert started() == (None, None)


class Kernel:
    """As Triton's: a launcher first, then the machine code."""

    def __init__(self, loads: bool):
        self._loads = loads
        self._run: str | None = None
        self.module: str | None = None

    @property
    def run(self) -> str:
        self._run = "launcher"
        if not self._loads:
            raise RuntimeError("Out of memory.")
        self.module = "code"
        return self._run


def test_what_cannot_be_brought_is_left_to_the_first_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = {"good": Kernel(True), "refused": Kernel(False), "last": Kernel(True)}
    brought = threading.Event()

    def prepared(launch: str) -> Kernel:
        if launch == "last":
            brought.set()
        return kernels[launch]

    monkeypatch.setattr(disk_cache, "prepared", prepared)
    monkeypatch.setattr(torch.cuda, "device", lambda _device: nullcontext())
    with loading_beside(["good", "unknown", *kernels], CUDA):
        assert brought.wait(60.0)
    assert [kernel._run for kernel in kernels.values()] == ["launcher", None, "launcher"]


@pytest.mark.usefixtures("a_gpu")
@pytest.mark.parametrize("options", [EngineOptions(), EngineOptions("a", device="cpu")], ids=["bundled", "cpu"])
def test_nothing_stands_by_for_what_is_small_or_runs_on_the_cpu(options: EngineOptions) -> None:
    with ahead.precompiler_process(options) as compiler:
        assert compiler is None


@pytest.mark.usefixtures("a_gpu")
def test_the_engine_begins_with_it_and_ends_it_when_nothing_is_to_be_compiled(
    bundled_pair: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began: list[object] = []
    monkeypatch.setattr(waking, "wake_gpu", lambda: began.append("the GPU"))
    monkeypatch.setattr(ahead, "Compiling", lambda: began.append(Orders()) or began[-1])
    options = EngineOptions(str(bundled_pair / "target"), str(bundled_pair / "drafter"))
    before, service = threads("engine"), EngineService(options, lambda _event: None)
    service.send(Close())
    service.start()
    service.join(60.0)
    assert threads("engine") <= before
    gpu, compiler = began
    assert gpu == "the GPU" and isinstance(compiler, Orders) and compiler.ended and compiler.order is None
    assert ahead.mark_of(options).read_text() == "nothing"


def test_a_process_that_fails_is_waited_for_no_longer(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    mark = tmp_path / "mark"
    with Compiling() as compiling:
        compiling.begin(an_order(tmp_path / "nothing"), mark)
        assert compiling.finished(seconds=100.0)
    assert "kernels were not compiled ahead" in caplog.text and "config.json" in caplog.text
    assert not mark.exists()


@pytest.mark.ci
@pytest.mark.slow
@pytest.mark.timeout(1000)  # the process gives way to whatever else runs
@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs a C compiler")
def test_a_program_compiles_nothing_that_the_process_compiled(tmp_path: Path) -> None:
    write_libcuda(tmp_path)
    target = published_config("SmolLM2-135M-Instruct") | {"num_hidden_layers": 2}  # small heads compile sooner
    (tmp_path / "config.json").write_text(json.dumps(target))
    said = json.loads(
        python(
            "tests.proofs.engine.loading.compiled_beside",
            str(tmp_path),
            seconds=900,
            TRITON_CACHE_DIR=str(tmp_path / "cache"),
            TRITON_LIBCUDA_PATH=str(tmp_path),
            LD_LIBRARY_PATH=str(tmp_path),
        )
    )
    assert said["missed"] == [] and said["loaded"] > 15 and said["found"] == 0
