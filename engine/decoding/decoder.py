"""The decoding loop: ingest, draft, verify, accept. Token ids in, rounds out. The *anchor* is the newest token, not yet
in the caches; every target pass starts with it. Plain decoding is the same loop with nothing drafted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import perf_counter

import torch
from torch import Tensor

from ..commands import GenerationSettings
from ..events import FinishReason, Match, PrefillDone, TurnStarted
from ..kv_cache.cache import Cache
from ..kv_cache.prefix import Prefix
from ..models.attention_backends import SDPA
from ..models.drafter import Drafter
from ..models.packed import disable_fused_unpacking
from ..models.target import PrefillPass, TargetModel, TargetOutput
from ..sampling.sampling import Samples, sample
from ..speculation.choice import LookupOutcome
from ..speculation.lookup import LookedUpChain, num_agreed
from ..speculation.one_row import OneRowPasses
from ..speculation.policy import Policy
from ..speculation.trees import ROWS, Chances, choices_of
from .host_rounds import HostRounds
from .rounds import Poll, Prompt, Round, Rounds
from .text_index import TextIndex

PREFILL_CHUNK = 256
"""Rows of one prefill pass on a CPU, and the slack of the ring caches: how far back a turn may go without a
snapshot."""

GPU_PREFILL_CHUNK = 4096
"""Rows of one prefill pass on a GPU. A pass reads every expert, which takes as long as a few hundred rows compute, and
the fewer rows an expert gets, the more of the last tile of its products is wasted: half of them all at 2048 rows."""
LEAST_PREFILL_CHUNK = 512
"""Rows of one prefill pass on a GPU that has no room for ``GPU_PREFILL_CHUNK``."""

__all__ = ["Decoder", "Poll", "Prompt", "Round", "Turn"]


class Decoder:
    """A target, perhaps its drafter, and the caches of one conversation."""

    def __init__(self, target: TargetModel, drafter: Drafter | None, max_context: int, chunk: int = GPU_PREFILL_CHUNK):
        """``chunk``: rows of a prefill pass on a GPU."""
        self.target = target
        self.drafter = drafter
        self.max_context = max_context
        self.device, dtype = target.device, target.dtype
        self.prefill_chunk = chunk if self.device.type == "cuda" else PREFILL_CHUNK
        self.cache = Cache(target.config.layers, max_context, PREFILL_CHUNK, target.cache_dtype or dtype, self.device)
        self.read: PrefillPass = target.prefill_pass(self.cache)
        """The pass that runs pieces of prompts: kernels, or the target's modules."""
        self.draft_cache: Cache | None = None
        if drafter is not None:
            self.draft_cache = drafter.new_cache(self.cache, max_context, PREFILL_CHUNK, dtype, self.device)
        self.prefix = Prefix(self.cache, self.draft_cache)
        """What these caches hold of the conversation."""
        self.one_row = OneRowPasses()
        """When the host's rounds have a pass of one row beside them, in answers that ask for it."""
        self._rounds: Rounds = HostRounds()
        self._policy: Policy | None = None

    @property
    def rounds(self) -> Rounds:
        return self._rounds

    @property
    def policy(self) -> Policy | None:
        """The policy that chooses the verify width where the settings leave it open; without one, whole drafts are
        verified."""
        return self._policy

    def use_rounds(self, rounds: Rounds) -> None:
        """Sets who runs the rounds from the next answer on."""
        self._rounds = rounds

    def use_policy(self, policy: Policy | None) -> None:
        """Sets the policy that chooses widths from the next answer on."""
        self._policy = policy

    @torch.inference_mode()
    def decode(
        self, prompt: Prompt, poll: Poll, compares: bool = False, number: int = 0
    ) -> Iterator[TurnStarted | PrefillDone | Round]:
        """Prefills what the caches lack of the prompt (shorter than ``max_context``), then runs rounds until one has a
        ``finish`` or ``poll`` says stop. The first round holds the token that the prefill yields. ``compares``: whether
        rounds tell now and then what a pass of one row takes; ``number``: the turn's, in its events."""
        settings = poll()
        if settings is None:
            return
        turn = Turn(self, settings, prompt, compares)
        if self._policy is not None:
            self._policy.begin(turn.drafter is not None)
        started = perf_counter()
        start = self.prefix.reuse(prompt.ids, turn.caches)
        yield TurnStarted(number, len(prompt.ids), start, settings.to_dict())
        hidden = turn.prefill(start, poll)
        if hidden is None:
            return
        yield PrefillDone(number, _milliseconds_since(started))
        first = turn.first_round(hidden)
        yield first
        if first.finish is None:
            yield from self._rounds.run(turn, poll)

    def disable_fused_unpacking(self) -> None:
        """Lets prompts be multiplied by weights that were unpacked before, because the kernel that does both is wrong
        here."""
        disable_fused_unpacking(self.target, *([] if self.drafter is None else [self.drafter]))
        self.read = self.target.prefill_pass(self.cache)

    def read_by_modules(self) -> None:
        """Lets PyTorch's modules run prompts and attention from now on, because kernels fail here."""
        self.target.use_attention([SDPA] * len(self.target.config.attention))
        if self.drafter is not None:
            self.drafter.use_attention([SDPA] * len(self.drafter.config.layers))
        self.read = self.target

    def clear(self) -> None:
        """Forgets the conversation."""
        self.prefix.clear()


class Turn:
    """The state of one answer while it is being decoded."""

    def __init__(self, decoder: Decoder, settings: GenerationSettings, prompt: Prompt, compares: bool = False):
        self.decoder = decoder
        self.target = decoder.target
        self.prefix = decoder.prefix
        self.cache = decoder.cache
        self.drafter = decoder.drafter if settings.uses_drafter else None
        self.draft_cache = decoder.draft_cache if settings.uses_drafter else None
        self.caches = [self.cache] if self.draft_cache is None else [self.cache, self.draft_cache]
        self.taps = () if self.drafter is None else self.drafter.config.target_layer_ids
        self.settings = settings
        self.prompt = prompt
        self.compares = compares and settings.speculation
        """Whether rounds tell now and then what a pass of one row takes."""
        decoder.one_row.begin()
        self.num_emitted = 0
        self.anchor = -1
        self.text: TextIndex | None = None
        """Prompt and answer, where drafts may be looked up. That takes a policy, which weighs what they are worth."""
        if settings.looks_up and decoder.policy is not None:
            self.text = TextIndex(prompt.ids)
        self.match: Match | None = None
        """Where the newest tokens stood before; None where they are new."""
        self.pending: Tensor | None = None
        """Features of rows that are committed but not yet in the drafter's context, [n, features]."""

    @property
    def room(self) -> int:
        """Tokens that still fit into the context; the anchor takes a place although no cache holds it yet."""
        return self.decoder.max_context - self.cache.length - 1

    def rows(self, wanted: int) -> int:
        """The rows of a round's pass: ``wanted``, as far as the token budget and the context allow."""
        return min(wanted, self.settings.max_new_tokens - self.num_emitted, self.room)

    def prefill(self, start: int, poll: Poll) -> Tensor | None:
        """Runs the prompt from ``start`` in chunks; returns its last row's hidden state [1, hidden], or None when
        ``poll`` said stop."""
        ids = self.prompt.ids
        # The same prompt again must leave its last token to run, so a snapshot never lies behind that.
        stable = min(self.prompt.stable_length, len(ids) - 1)
        hidden = None
        while start < len(ids):
            now = poll()
            if now is None:
                return None
            self.settings = now
            if start == stable:
                self.prefix.remember(self.caches, stable)
            end = min(start + self.decoder.prefill_chunk, len(ids))
            if start < stable < end and not all(cache.could_rewind(stable, end) for cache in self.caches):
                end = stable  # further on, the layers would have lost what the next turn needs from there
            output = self.run(self.decoder.read, ids[start:end])
            self.commit_pass(ids[start:end], output)
            self.ingest()
            if start < stable < end:
                self.prefix.remember(self.caches, stable)
            hidden = output.hidden[-1:]
            start = end
        if self.decoder.device.type == "cuda":
            torch.cuda.synchronize(self.decoder.device)  # the time of a prompt is the GPU's, not that of enqueuing it
        return hidden

    def first_round(self, hidden: Tensor) -> Round:
        """Samples the answer's first token from the prompt's last row."""
        started = perf_counter()
        samples = self.sample(hidden)
        return Round(
            emitted=tuple(samples.ids),
            probabilities=tuple(samples.probabilities),
            verify_width=0,
            total_ms=_milliseconds_since(started),
            context_length=self.cache.length,
            settings=self.settings,
            finish=self.append_tokens(samples.ids),
        )

    def run(self, run: PrefillPass, ids: Sequence[int]) -> TargetOutput:
        """Runs rows behind the cursor, which stays: they may be committed, or others run in their place."""
        start = self.cache.length
        self.cache.note_written(start + len(ids))
        return run(torch.tensor(ids, device=self.decoder.device), start, self.cache, self.taps)

    def one_row_ms(self) -> float | None:
        """Milliseconds of a pass over the anchor alone and of sampling behind it, where one is due; None where none is.
        The cursor stays, so that the coming round writes the same rows anew: the text and its bits are as without."""
        if not self.compares or not self.decoder.one_row.due:
            return None
        started = perf_counter()
        self.sample(self.run(self.target, [self.anchor]).hidden)
        return _milliseconds_since(started)

    def sample(self, hidden: Tensor, draft_ids: Sequence[int] = ()) -> Samples:
        settings = self.settings
        return sample(
            self.target.logits(hidden),
            len(self.prompt.ids) + self.num_emitted,
            draft_ids,
            temperature=settings.temperature,
            top_k=settings.top_k,
            top_p=settings.top_p,
            seed=settings.seed,
        )

    def commit_pass(self, ids: Sequence[int], output: TargetOutput) -> None:
        """Commits the first rows of a forward pass: exactly those of ``ids``."""
        self.prefix.commit(ids)
        if output.features is not None:
            features = output.features[: len(ids)]
            self.pending = features if self.pending is None else torch.cat((self.pending, features))

    def ingest(self) -> None:
        """Takes the pending features into the drafter's context."""
        if self.drafter is not None and self.draft_cache is not None and self.pending is not None:
            self.drafter.ingest(self.pending, self.draft_cache)
            self.pending = None

    def append_tokens(self, emitted: Sequence[int]) -> FinishReason | None:
        """Enters a round's tokens into the turn's state; the rows before them must be committed. Returns why the turn
        ends with them, None if it doesn't."""
        if self.text is not None:
            self.text.extend(emitted)
            self.match = self.text.find()
        self.anchor = emitted[-1]
        self.num_emitted += len(emitted)
        return self._finish_reason()

    def guess(self, count: int) -> list[int]:
        """Up to ``count`` tokens that followed where the newest ones stood before; empty where they are new."""
        if self.text is None or self.match is None:
            return []
        return self.text.guess(self.match, count, self.target.config.stop_token_ids)

    def looked_up_chain(
        self, guess: Sequence[int], first_ids: Sequence[int], drafted: Sequence[Sequence[int]], chances: Chances
    ) -> LookedUpChain | None:
        """Describes the looked up tokens ``guess`` for a policy, beside a draft; None where nothing was looked up.
        ``first_ids``: the drafter's first choices; ``drafted``: ids of its candidates, by position, with their
        ``chances``."""
        if not guess or self.match is None:
            return None
        agreed = num_agreed(guess, first_ids)
        choices, candidates = choices_of(guess, drafted, chances) if drafted and len(drafted[0]) > 1 else ((), ())
        return LookedUpChain(self.match.length, len(choices) or len(guess), agreed, choices, candidates)

    def lookup_outcome(
        self, emitted: Sequence[int], taken: bool, choices: tuple[int, ...] = ()
    ) -> LookupOutcome | None:
        """Compares the tokens that a round emitted, not yet booked, with the chain that could be looked up before it;
        None where nothing could be. ``taken``: whether that chain was what was verified. ``choices``: the chain's
        choices in the tree that it entered, if it did."""
        if self.match is None:
            return None
        guess = self.guess(max(len(emitted), ROWS) - 1)
        right = num_agreed(guess, emitted)
        return LookupOutcome(self.match.length, right, right < min(len(guess), len(emitted)), taken, choices)

    def _finish_reason(self) -> FinishReason | None:
        if self.anchor in self.target.config.stop_token_ids:
            return "stop"
        if self.num_emitted >= self.settings.max_new_tokens:
            return "length"
        if self.room == 0:
            return "context"
        return None


def _milliseconds_since(started: float) -> float:
    return (perf_counter() - started) * 1e3
