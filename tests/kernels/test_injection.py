"""DSpine's kernels against the modules that define them, in Triton's interpreter; no size is a power of two."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from engine.kernels.decode.injection import Heard, gate_messages, inject_and_norm
from engine.kernels.round.edges import reference_walk_edges, score_edges, walk_edges
from engine.kernels.round.lattice import Edges
from engine.kernels.toolchain.jit import INTERPRETED, MAX_ROWS
from engine.models.dflash.injection import AdjacentInjection
from engine.models.layers import RMSNorm
from tests.kernels.tensors import noise

HIDDEN, RANK, MESSAGE, VOCABULARY, COUNT = 300, 96, 40, 90, 3


@pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)")
@torch.inference_mode()
def test_what_places_hear_and_who_follows_whom() -> None:
    module, norm = AdjacentInjection(HIDDEN, 1, RANK, MESSAGE), RMSNorm(HIDDEN, 1e-6, "qwen")
    for seed, parameter in enumerate((*module.parameters(), norm.weight)):
        parameter.copy_(noise(*parameter.shape, seed=seed) / parameter.shape[-1] ** 0.5)
    parts = module.message, module.predecessor_gate, module.receiver_gate
    together = torch.cat([each.weight for each in parts])
    x, codes = noise(MAX_ROWS, HIDDEN, seed=20), F.normalize(noise(VOCABULARY, RANK, seed=21), dim=-1)
    read, write = module.readouts[0].get_parameter("weight"), module.writes[0].get_parameter("weight")
    heard, features, of_codes = (
        Heard(x @ read.T, x @ read.T @ together.T, module.bias),
        module.features(x, 0),
        RANK**0.5 * codes,
    )
    products = codes @ together[: 2 * MESSAGE].T
    candidates = torch.stack([torch.randperm(VOCABULARY)[:16] for _ in range(COUNT)])

    refined, messages = torch.zeros(COUNT * 16, HIDDEN), torch.zeros(COUNT * 16, MESSAGE)
    gate_messages(heard, products[candidates].flatten(0, 1), messages, 16)
    inject_and_norm((messages @ write.T)[None], x, norm.weight, 1e-6, refined, 16)
    some = slice(1, COUNT + 1)
    wanted = norm(module.write(x[some, None], features[some, None], of_codes[candidates], 0))
    torch.testing.assert_close(refined.view(COUNT, 16, HIDDEN), wanted, atol=1e-5, rtol=1e-4)

    head, scores = noise(VOCABULARY, HIDDEN, seed=22), torch.zeros(COUNT, 16, 16)
    score_edges(refined, head, candidates, scores)
    torch.testing.assert_close(scores, wanted @ head[candidates].mT, atol=1e-4, rtol=1e-4)
    scores[0] = 1.0  # of equals the first
    token, chance = torch.zeros(COUNT, dtype=torch.int64), torch.zeros(COUNT)
    walk_edges(scores, candidates, token, chance)
    ids, chances = reference_walk_edges(Edges(candidates, scores))
    assert token.tolist() == ids.tolist() and token[0] == candidates[0, 0]
    torch.testing.assert_close(chance, chances)

    messages, normed = torch.zeros(MAX_ROWS, MESSAGE), torch.zeros(MAX_ROWS, HIDDEN)
    gate_messages(heard, products[7:8], messages)
    wanted = torch.cat((x[:1], module.write(x[1:], features[1:], torch.cat((of_codes[7:8], features[1:-1])), 0)))
    inject_and_norm((messages @ write.T)[None].repeat(2, 1, 1) / 2, x, norm.weight, 1e-6, normed)
    torch.testing.assert_close(x, wanted, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(normed, norm(wanted), atol=1e-5, rtol=1e-4)
