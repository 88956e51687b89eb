"""Scripted drafts: how many drafts each round accepts, and how sure the drafter seems. Kernels of their own overrule
the target's tokens before acceptance and the drafter's confidence before the choice, so the rest of a round is
untouched."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ...decoding.decoder import Decoder, Turn
from ...decoding.host_rounds import Drafted, HostRounds
from ...decoding.round_launches import RoundLaunches
from ...kernels.decode.tiling.tiles import DraftTiles, TargetTiles
from ...kernels.round.accept import DraftTree
from ...kernels.round.sample import SampledRows
from ...kernels.round.state import AT_DRAFT_WIDTH, AT_WIDTH, RoundState
from ...kernels.toolchain.early_launch import early_kernel, let_next_start, wait_for_inputs
from ...kernels.toolchain.jit import MAX_ROWS, tl
from ...kernels.weights.int8 import Int8Weight
from ...models.target import TargetOutput
from ...sampling.sampling import Samples

MAX_SCRIPT = 512
"""The most entries, one for each round."""


class Script:
    """What drafts shall look like: an entry for each round that drafts, over and over again. An empty script leaves
    rounds alone."""

    def __init__(self, device: torch.device):
        self.accepted: tuple[int, ...] = ()
        self.confidences: tuple[tuple[float, ...], ...] = ()
        self.position = 0
        """The next entry, where the host runs the rounds."""
        self.accepted_on_device = torch.zeros(MAX_SCRIPT, dtype=torch.int32, device=device)
        self.confidences_on_device = torch.full((MAX_SCRIPT, MAX_ROWS), -1.0, device=device)
        """fp32 [entries, 16]; negative numbers leave the drafter's own confidence."""
        self.length_on_device = torch.zeros(1, dtype=torch.int32, device=device)
        self.place_on_device = torch.zeros(1, dtype=torch.int32, device=device)

    def play(self, accepted: Sequence[int] = (), confidences: Sequence[Sequence[float]] = ()) -> None:
        """Sets the script from the next round on: how many drafts are accepted, and, where given, the drafter's
        confidences."""
        self.accepted, self.confidences = tuple(accepted), tuple(map(tuple, confidences))
        self.position = 0
        self.accepted_on_device[: len(accepted)] = torch.tensor(self.accepted, dtype=torch.int32)
        given = torch.tensor(self.confidences)
        self.confidences_on_device.fill_(-1)
        self.confidences_on_device[: len(given), : given.shape[-1]] = given
        self.length_on_device.fill_(len(accepted))
        self.place_on_device.zero_()


class ScriptedHostRounds(HostRounds):
    """Rounds of chains on the host in which a script says how many drafts are accepted, and how sure the drafter
    seems."""

    def __init__(self, script: Script):
        super().__init__()
        self._script = script
        self._entry = -1
        """The entry of the round that runs."""

    def draft(self, turn: Turn, choices: int) -> Drafted:
        draft, script = super().draft(turn, choices), self._script
        self._entry = -1
        if not draft.ids or not script.accepted:
            return draft
        self._entry = script.position % len(script.accepted)
        script.position += 1
        if not script.confidences:
            return draft
        given = script.confidences[self._entry]
        return draft._replace(chances=tuple((chance,) for chance in given[: len(draft.ids)]))

    def say(self, turn: Turn, ids: Sequence[int], output: TargetOutput, asked: Sequence[int]) -> Samples:
        samples = super().say(turn, ids, output, asked)
        if self._entry >= 0:
            accepted = min(self._script.accepted[self._entry], len(ids) - 1)
            samples.ids[:accepted] = ids[1 : accepted + 1]
            if accepted < len(ids) - 1 and samples.ids[accepted] == ids[accepted + 1]:
                samples.ids[accepted] = (samples.ids[accepted] + 1) % turn.target.config.vocab_size
        return samples


class ScriptedLaunches(RoundLaunches):
    """Rounds on the device whose drafts follow a script. Where it has confidences, trees consist of first choices."""

    def __init__(
        self,
        script: Script,
        decoder: Decoder,
        head: Int8Weight | None = None,
        tiles: TargetTiles | None = None,
        draft_tiles: DraftTiles | None = None,
    ):
        super().__init__(decoder, head, tiles, draft_tiles)
        self._script = script

    def draft(self, count: int, tree: bool = False) -> None:
        super().draft(count, tree)
        set_confidences(self._script, self.drafter_probability[:, None])
        if self.tree is not None:
            set_confidences(self._script, self.tree.choices.probabilities)

    def say(self, tree: DraftTree | None, greedy: bool) -> SampledRows | None:
        sampled = super().say(tree, greedy)
        samples = (self.target.out if sampled is None else sampled).token
        overrule(self._script, self.state, self.ids, samples, self.decoder.target.config.vocab_size)
        return sampled


def set_confidences(script: Script, probabilities: torch.Tensor) -> None:
    """Replaces confidences fp32 [16, choices], or [16, 16, choices] behind each token before, by the entry's; those of
    further choices become 0."""
    _set_confidences[(1,)](
        probabilities,
        script.confidences_on_device,
        script.length_on_device,
        script.place_on_device,
        CHOICES=probabilities.shape[-1],
        BEFORES=probabilities.numel() // probabilities.shape[-1] // 16,
        num_warps=1,
    )


def overrule(script: Script, state: RoundState, ids: torch.Tensor, samples: torch.Tensor, vocab: int) -> None:
    """Makes the target accept as many of a chain's drafts as the script's entry says. ``ids`` int64 [17]: the rows;
    ``samples`` int64 [16]: the target's tokens, which are overwritten."""
    _overrule[(1,)](
        state.numbers, ids, samples, script.accepted_on_device, script.length_on_device, script.place_on_device,
        VOCAB=vocab, num_warps=1,
    )  # fmt: skip


@early_kernel
def _set_confidences(
    probabilities: tl.tensor,
    confidences: tl.tensor,
    script_length: tl.tensor,
    script_place: tl.tensor,
    CHOICES: tl.constexpr,
    BEFORES: tl.constexpr,
) -> None:
    wait_for_inputs()
    let_next_start()
    length, entry = tl.load(script_length), tl.load(script_place)
    lane = tl.arange(0, 16 * BEFORES)
    confidence = tl.load(confidences + entry % tl.maximum(length, 1) * 16 + lane // BEFORES)
    scripted = (length > 0) & (confidence >= 0)
    tl.store(probabilities + lane * CHOICES, confidence, mask=scripted)
    for later in tl.static_range(1, CHOICES):
        tl.store(probabilities + lane * CHOICES + later, lane * 0.0, mask=scripted)


@early_kernel
def _overrule(
    state: tl.tensor,
    ids: tl.tensor,
    samples: tl.tensor,
    accepted: tl.tensor,
    script_length: tl.tensor,
    script_place: tl.tensor,
    VOCAB: tl.constexpr,
) -> None:
    wait_for_inputs()
    let_next_start()
    lane = tl.arange(0, 16)
    length, entry = tl.load(script_length), tl.load(script_place)
    width, drafted = tl.load(state + AT_WIDTH), tl.load(state + AT_DRAFT_WIDTH)
    draft = tl.load(ids + 1 + lane)
    own = tl.load(samples + lane)
    num_accepted = tl.minimum(tl.load(accepted + entry % tl.maximum(length, 1)), width - 1)
    other = tl.where((own == draft) & (lane + 1 < width), (own + 1) % VOCAB, own)
    token = tl.where(lane < num_accepted, draft, tl.where(lane == num_accepted, other, own))
    if (length > 0) & (drafted > 0):
        tl.store(samples + lane, token, mask=lane < width)
        tl.store(script_place, entry + 1)
