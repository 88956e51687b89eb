"""What layers that recur keep of rows: a round's rows are taken in by the next pass, to the bit. That such passes are
those of the modules, and a row the same alone and among others, is ``test_passes``."""

from __future__ import annotations

import pytest
import torch

from engine.kernels.round.accept import AcceptedPath
from engine.kernels.round.tree_rows import TreeRows
from engine.kernels.toolchain.jit import INTERPRETED
from engine.kv_cache.delta_state import DeltaState
from engine.models.target import TargetModel
from engine.speculation.trees import Node
from tests.engine.conftest import CPU
from tests.engine.small_decoders import prompt_ids
from tests.proofs.kernels.test_passes import Pass, equal, of, rounded, target

__all__ = ["rounded", "target"]

pytestmark = [
    pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)"),
    pytest.mark.usefixtures("only_live_rows"),
]


def state(of_pass: Pass) -> DeltaState:
    """Of the layer that recurs."""
    (found,) = (layer for layer in of_pass.caches[0].layers if isinstance(layer, DeltaState))
    return found


@of("Qwen3.5")
@torch.inference_mode()
def test_accepted_rows_are_taken_in_by_the_next_pass(rounded: TargetModel) -> None:
    """Whatever was refused, and whatever passes come to nothing: with no row, or after the end. The text begins with
    fewer rows than the convolution's window has."""
    drafted, plain = Pass(rounded, 2), Pass(rounded, 2)
    for number, (width, accepted) in enumerate(((4, 2), (16, 2))):
        ids = prompt_ids(width, seed=number)
        _, rows = drafted.by_rows(ids)
        drafted.commit(accepted)
        drafted.by_rows([], max_rows=1)  # a round after the end changes nothing
        for row, token in enumerate(ids[:accepted]):
            assert torch.equal(plain.by_rows([token], max_rows=1)[1][0], rows[row])
            plain.commit(1)
    assert equal(drafted.kept(), plain.kept())


@of("Qwen3.5")
@torch.inference_mode()
def test_what_the_host_takes_in_has_the_same_bits(rounded: TargetModel) -> None:
    ids = prompt_ids(10, seed=4)
    device, host = Pass(rounded), Pass(rounded)
    for each in (device, host):
        each.by_rows(ids)
        each.commit(9)
    device.by_rows(ids[:1], max_rows=1)  # takes nine rows in, in all layers at once
    state(host).begin(host.length)
    assert equal(state(device).now, state(host).now)


@of("Qwen3.5")
@torch.inference_mode()
def test_a_tree_s_path_is_taken_in_as_a_chain(rounded: TargetModel) -> None:
    """Rows 1 and 3 go on behind others than the row before; what is accepted moves over rows that were not."""
    tree = [Node(0, 1, 0, 0.5), Node(1, 2, 0, 0.4), Node(0, 1, 1, 0.3), Node(1, 2, 1, 0.2), Node(3, 2, 0, 0.1)]
    ids, posed, path = prompt_ids(6, seed=7), TreeRows.allocate(CPU), AcceptedPath.allocate(CPU)
    posed.set_tree(tree)
    for accepted in ([0, 3, 5], [0, 1, 4], [0, 1, 2]):
        drafted, plain = Pass(rounded, 2), Pass(rounded, 2)
        drafted.by_rows(ids, tree=posed)
        plain.by_rows([ids[row] for row in accepted])
        path.rows[:3], path.count[0] = torch.tensor(accepted), 3
        drafted.rows.keep_path(path)
        for each in (drafted, plain):
            each.commit(3)
            each.by_rows(ids[:1], max_rows=1)
        assert equal(state(drafted).now, state(plain).now)
