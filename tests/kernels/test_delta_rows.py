"""Qwen3.5's passes as kernels against its modules, in Triton's interpreter; what they keep of rows, to the bit."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch
from torch import Tensor

from engine.kernels.decode.delta import take_by_kernels
from engine.kernels.decode.tiles import TargetTiles, Tiles
from engine.kernels.reference.delta import DeltaRows, scan
from engine.kernels.toolchain.jit import INTERPRETED
from engine.kv_cache.cache import Cache
from engine.kv_cache.delta_state import DeltaState, Moment
from engine.layer_config import DeltaConfig
from engine.loading.checkpoint import load_target
from engine.models.qwen3_5.decode_pass import DecodePass
from engine.models.qwen3_5.modules import Qwen35Target
from engine.models.qwen3_5.prefill_pass import PrefillPass
from tests.engine.checkpoints import FULL, VOCAB_SIZE, drafter_config, write_drafter
from tests.engine.conftest import no_progress
from tests.engine.models.qwen3_5 import ATTENDS, RECURS, write_target
from tests.engine.small_decoders import prompt_ids
from tests.pace import only_in_ci

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)")

CPU = torch.device("cpu")
TILES = TargetTiles(
    qkv=Tiles(64, 64), output=Tiles(32, 64, splits=2), gate_up=Tiles(32, 64), down=Tiles(32, 32, splits=3),
    head=Tiles(128, 64), router=Tiles(16, 32, splits=2), expert_gate_up=Tiles(32, 64),
    expert_gate_up_alone=Tiles(32, 64, warps=2), expert_down=Tiles(64, 32),
)  # fmt: skip
KINDS = [RECURS, ATTENDS]
FEW = {"linear_num_key_heads": 1, "linear_num_value_heads": 3, "num_attention_heads": 3, "num_key_value_heads": 1}
TAPS = (0, 1)
PROMPT = 21


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("qwen3_5")
    write_target(folder / "target", 7, num_hidden_layers=2, layer_types=KINDS, **FEW)
    config = drafter_config([FULL], list(TAPS), 2, final_logit_softcapping=None)
    write_drafter(folder / "drafter", config)
    return folder


@pytest.fixture(scope="module")
def mixture(tmp_path_factory: pytest.TempPathFactory) -> Qwen35Target:
    folder = tmp_path_factory.mktemp("qwen3_5_moe")
    write_target(folder, 8, fused=True, num_hidden_layers=2, layer_types=KINDS, **FEW)
    found = load_target(folder, CPU, no_progress)
    assert isinstance(found, Qwen35Target)
    return found


@pytest.fixture(scope="module")
def target(folder: Path) -> Qwen35Target:
    found = load_target(folder / "target", CPU, no_progress)
    assert isinstance(found, Qwen35Target)
    return found


class Pass:
    """A target's rows by kernels, over a cache that holds a prompt."""

    def __init__(self, target: Qwen35Target, length: int = PROMPT):
        self.target = target
        self.cache = Cache(target.config.layers, 64, 16, torch.float32, CPU)
        self.cursor, self.rows = (torch.zeros(1, dtype=torch.int32) for _ in range(2))
        self.kernels = DecodePass(target, self.cache, self.cursor, self.rows, TAPS, TILES)
        target(torch.tensor(prompt_ids(length)), 0, self.cache)
        self.cache.commit(length)
        self.cursor.fill_(length)

    def run(self, ids: list[int], max_rows: int = 16) -> Tensor:
        """Features of rows at the cursor."""
        self.kernels.ids[: len(ids)] = torch.tensor(ids)
        self.rows.fill_(len(ids))
        self.kernels.forward(max_rows)
        self.cache.follow(self.cache.length, self.cache.length + len(ids))
        return self.kernels.features[: len(ids)].clone()

    def accept(self, count: int) -> None:
        """As a round's kernels do: they move the cursor, and nothing else."""
        start = self.cache.length
        self.cursor += count
        self.cache.follow(start + count, start + int(self.rows))

    def moments(self) -> list[Moment]:
        return [layer.moment(self.cache.length) for layer in self.cache.layers if isinstance(layer, DeltaState)]


def same(ours: list[Moment], theirs: list[Moment]) -> bool:
    pairs = [pair for one, other in zip(ours, theirs, strict=True) for pair in zip(one, other, strict=True)]
    return all(torch.equal(*pair) for pair in pairs)


@torch.inference_mode()
def test_rows_are_those_of_the_modules(target: Qwen35Target) -> None:
    ids = list(prompt_ids(16, 1))
    ours = Pass(target)
    other = Cache(target.config.layers, 64, 16, torch.float32, CPU)
    target(torch.tensor(prompt_ids(PROMPT)), 0, other)
    other.commit(PROMPT)
    wanted = target(torch.tensor(ids), PROMPT, other, TAPS).features
    torch.testing.assert_close(ours.run(ids), wanted, atol=1e-4, rtol=1e-4)
    ours.accept(11)
    other.commit(PROMPT + 11)
    wanted = target(torch.tensor(ids[:5]), PROMPT + 11, other, TAPS).features
    torch.testing.assert_close(ours.run(ids[:5]), wanted, atol=1e-4, rtol=1e-4)


@torch.inference_mode()
@pytest.mark.usefixtures("ordered_sums")
def test_rows_of_a_mixture(mixture: Qwen35Target) -> None:
    """Qwen3-Next's, against the modules, alone and among others; and a prompt's."""
    ids = list(prompt_ids(5, 1))
    ours, alone = Pass(mixture), Pass(mixture)
    other = Cache(mixture.config.layers, 64, 16, torch.float32, CPU)
    PrefillPass(mixture, other)(torch.tensor(prompt_ids(PROMPT)), 0, other)
    other.commit(PROMPT)
    wanted = mixture(torch.tensor(ids), PROMPT, other, TAPS).features
    found = ours.run(ids)
    torch.testing.assert_close(found, wanted, atol=1e-4, rtol=1e-4)
    for row in range(2):
        assert torch.equal(alone.run(ids[row : row + 1], 1)[0], found[row])
        alone.accept(1)


@torch.inference_mode()
@pytest.mark.usefixtures("ordered_sums")
def test_a_row_alone_has_the_bits_it_has_among_others(target: Qwen35Target) -> None:
    ids = list(prompt_ids(16, 2))
    among, alone = Pass(target), Pass(target)
    wanted = among.run(ids)
    for row in range(5):
        assert torch.equal(alone.run(ids[row : row + 1], 1)[0], wanted[row])
        alone.accept(1)
    among.accept(5)
    assert same(among.moments(), alone.moments())


@torch.inference_mode()
@pytest.mark.usefixtures("ordered_sums")
def test_accepted_rows_are_taken_in_by_the_next_pass(target: Qwen35Target) -> None:
    """Whatever was refused, and whatever passes come to nothing: with no row, or after the end."""
    rng = random.Random(3)
    drafted, plain = Pass(target, 2), Pass(target, 2)
    text: list[int] = []
    while len(text) < 14:
        ids = [rng.randrange(VOCAB_SIZE) for _ in range(rng.choice((1, 4, 16)))]
        accepted = rng.randint(1, len(ids))
        rows = drafted.run(ids)
        drafted.accept(accepted)
        drafted.rows.zero_()
        drafted.kernels.forward()  # a round after the end changes nothing
        text += ids[:accepted]
        for row, token in enumerate(ids[:accepted]):
            assert torch.equal(plain.run([token], 1)[0], rows[row])
            plain.accept(1)
    assert same(drafted.moments(), plain.moments())


@torch.inference_mode()
def test_what_the_host_takes_in_has_the_same_bits(target: Qwen35Target) -> None:
    ids = list(prompt_ids(16, 4))
    device, host = Pass(target), Pass(target)
    for each in (device, host):
        each.run(ids)
        each.accept(9)
    device.run(ids[:1])  # takes nine rows in, in all layers at once
    for layer in host.cache.layers:
        if isinstance(layer, DeltaState):
            layer.begin(host.cache.length)
    for ours, theirs in zip(device.cache.layers, host.cache.layers, strict=True):
        if isinstance(ours, DeltaState) and isinstance(theirs, DeltaState):
            assert same([ours.now], [theirs.now])


@torch.inference_mode()
def test_rows_of_a_cursor_that_was_put_somewhere_are_no_rows(target: Qwen35Target) -> None:
    """Whoever measures moves the cursor: then nothing is taken in, least of all from beyond what is kept."""
    posed = Pass(target)
    posed.run(list(prompt_ids(16, 5)))
    before = posed.cache.layers[0].now.recurrent.clone()  # type: ignore[attr-defined]
    for place in (PROMPT + 17, 3):
        posed.cursor.fill_(place)
        posed.run(list(prompt_ids(2, 6)))
        assert torch.equal(posed.cache.layers[0].now.recurrent, before)  # type: ignore[attr-defined]


@torch.inference_mode()
@pytest.mark.parametrize("sizes", [[16, 21], only_in_ci([1, 36])])
def test_prompts_in_any_pieces(sizes: list[int], target: Qwen35Target) -> None:
    ids = torch.tensor(prompt_ids(37, 8))
    ours, theirs = (Cache(target.config.layers, 64, 16, torch.float32, CPU) for _ in range(2))
    read = PrefillPass(target, ours)
    wanted = target(ids, 0, theirs, TAPS)
    features = []
    for size in sizes:
        out = read(ids[ours.length : ours.length + size], ours.length, ours, TAPS)
        ours.commit(ours.length + size)
        assert out.features is not None
        features.append(out.features)
    assert wanted.features is not None
    torch.testing.assert_close(torch.cat(features), wanted.features, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(out.hidden[-1], wanted.hidden[-1], atol=1e-4, rtol=1e-4)


@torch.inference_mode()
def test_a_scan_is_the_definition() -> None:
    config = DeltaConfig(2, 6, 16, 32)
    generator = torch.Generator().manual_seed(0)

    def drawn(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator)

    k = torch.nn.functional.normalize(drawn(9, 2, 16), dim=-1)
    rows = DeltaRows(drawn(9, config.channels), k, drawn(9, 6, 32), torch.rand(9, 6), torch.rand(9, 6))
    moment = Moment(drawn(6, 32, 16), drawn(3, config.channels))
    wanted = moment.copy()
    scan(wanted.recurrent, rows)
    wanted.slide(rows.raw)
    take_by_kernels(config, moment, rows)
    torch.testing.assert_close(moment.recurrent, wanted.recurrent, atol=1e-5, rtol=1e-5)
    assert torch.equal(moment.window, wanted.window)
