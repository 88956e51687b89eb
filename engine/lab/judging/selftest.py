"""Tests whether this drafter is wired to this target as trained, and whether the text is the same with speculation. A
miswired drafter fails silently and is only slow. So the target writes, and the drafter drafts behind every token of the
true text (*teacher-forced*): acceptance by position tells what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch

from ...commands import MAX_BLOCK_SIZE, GenerationSettings, Message, WeightFormat
from ...decoding.decoder import Decoder, Prompt, Round
from ...decoding.readings import Reading, better_reading
from ...hub.published_drafters import Reported
from ...kv_cache.cache import Cache
from ...models.packed import format_of_target
from ...speculation.calibration import NUM_BINS, bin_of
from ...speculation.lookup import num_agreed
from ...tokenization.tokenizer import ChatTokenizer
from .play import RecordedDraft
from .record import record_drafts

PROMPTS = (
    "Write a quicksort in Python",
    "Create a single-file HTML page with a bouncing ball",
    "A box holds 12 pens. How many pens are in 7 boxes? Think step by step.",
    "Explain what a hash table is",
    "Hello, how are you?",
)
CHUNK = 256
"""Rows of one pass when a text is run again; the rings of the caches have room for as many."""

WIRED_RATE, HEALTHY_RATE = 0.4, 0.6
"""First-position acceptance below which a drafter hardly reads this target at all, and from which it is as published
drafters are. The bundled drafter reaches 0.9, and 0.3 when it reads the target's layers in the wrong order; about
0.75 was published for Gemma 4 26B-A4B in conversation."""
WORSE = 0.95
"""The share of the acceptance length in bf16 below which packed weights make a drafter worse. FP8 moves the bundled
pair's by -1 to +3 %, from domain to domain (``engine/lab/demo/FORMATS.md``)."""
TIE = {torch.float32: 1e-3}
COARSE_TIE = 0.5
"""The margin, in logits, of a near-tie: how far two ways of computing the same row may be apart in fp32, and in 16-bit
floats."""


class RightByPosition(NamedTuple):
    """How often the draft at one position was right, given that every draft before it was."""

    reached: int
    right: int


class Bin(NamedTuple):
    """Drafts whose confidence lay in one tenth of [0, 1], and how often they were right."""

    reached: int
    predicted: float
    """The mean confidence of the drafts; 0 where none was reached."""
    observed: float
    """The share of the drafts that was right."""


class DepartedText(NamedTuple):
    """The place where a text with speculation departed from the one without."""

    prompt: str
    token: int
    """The index of the token in the answer."""
    margin: float
    """The difference of the target's two best logits there."""


@dataclass(frozen=True, slots=True)
class SelfTest:
    num_tokens: int
    positions: tuple[RightByPosition, ...]
    """One per drafted position, the first right behind the anchor."""
    bins: tuple[Bin, ...]
    """Ten bins, in order of confidence."""
    divergences: tuple[DepartedText, ...]
    num_answers: int
    tie: float
    """The margin up to which a divergence counts as rounding."""
    weights: WeightFormat = "bf16"
    """The format in which the target's weights are held."""
    in_bf16: float | None = None
    """The acceptance length of the same pair in bf16, where that is known."""
    better: Reading | None = None
    """Another way to read the drafter's config that drafts clearly better."""
    reported: Reported | None = None
    """What the drafter's makers say of it, where that is known."""

    @property
    def first_rate(self) -> float:
        """How often the first drafted token was right."""
        reached, right = self.positions[0]
        return right / reached if reached else 0.0

    @property
    def acceptance_length(self) -> float:
        """Mean tokens per round that a whole block would yield, from any token of these texts."""
        anchors = self.positions[0].reached
        return 1 + sum(position.right for position in self.positions) / anchors if anchors else 1.0

    @property
    def exact(self) -> bool:
        """Whether no text changed except by rounding."""
        return all(divergence.margin <= self.tie for divergence in self.divergences)

    @property
    def healthy(self) -> bool:
        return self.exact and self.first_rate >= WIRED_RATE and self.better is None

    @property
    def verdict(self) -> str:
        """What the test found, in one to four sentences for people."""
        reported = "" if self.reported is None else self.reported.beside(self.acceptance_length)
        return " ".join(filter(None, (self._drafter_verdict(), reported, self._format_verdict(), self._text_verdict())))

    def _drafter_verdict(self) -> str:
        rate = f"the first drafted token is right {self.first_rate:.0%} of the time"
        if (better := self.better) is not None:
            return (
                f"Wrong: {rate}, and a block yields {self.acceptance_length:.1f} tokens; {better.words} it would yield"
                f" {better.acceptance_length:.1f}. Its config ({better.field}) says otherwise than it was trained."
            )
        if self.first_rate < WIRED_RATE:
            return f"Wrong: {rate}. The drafter belongs to another target, or is not wired as it was trained."
        if self.first_rate < HEALTHY_RATE:
            return f"Weak: {rate}. Published drafters reach more; speculation may not pay on such texts."
        return f"Sound: {rate}, and a block yields {self.acceptance_length:.1f} tokens."

    def _format_verdict(self) -> str:
        """Says what packed weights do to the drafter, which was trained on those of bf16."""
        name, length = self.weights.upper(), self.acceptance_length
        if self.weights == "bf16":
            return ""
        if self.in_bf16 is None:
            return f"What {name} costs the drafter is not known: the pair in bf16 isn't here, or doesn't fit."
        lengths = f"a block yields {length:.1f} tokens, and {self.in_bf16:.1f} in bf16."
        if length < WORSE * self.in_bf16:
            return f"{name} makes the drafter worse: {lengths}"
        return f"{name} leaves the drafter as good: {lengths}"

    def _text_verdict(self) -> str:
        count = len(self.divergences)
        if not count:
            return f"All {self.num_answers} answers are the same with and without speculation."
        worst = max(divergence.margin for divergence in self.divergences)
        differing = f"{count} of {self.num_answers} answers differ, at margins up to {worst:.3g} logits:"
        return f"{differing} rounding." if self.exact else f"{differing} more than rounding explains."


def self_test(
    decoder: Decoder,
    tokenizer: ChatTokenizer,
    num_tokens: int,
    prompts: Sequence[str] = PROMPTS,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> SelfTest:
    """Tests a decoder's pair on greedy answers of at most ``num_tokens`` tokens; ``ValueError`` without a drafter."""
    if decoder.drafter is None:
        raise ValueError("a self-test needs a drafter")
    anchors: list[RecordedDraft] = []
    texts: list[tuple[list[int], int]] = []
    divergences: list[DepartedText] = []
    for done, prompt in enumerate(prompts):
        progress(done, len(prompts))
        ids = tokenizer.prompt([Message("user", prompt)], thinking=False).ids
        settings = GenerationSettings(max_new_tokens=num_tokens)
        answer, drafts = record_drafts(decoder.target, decoder.drafter, ids, settings)
        texts.append(([*ids, *answer], len(ids)))
        anchors += drafts
        divergences += _compare(decoder, prompt, ids, settings)
    decoder.clear()
    dtype = decoder.target.dtype
    return SelfTest(
        num_tokens=len(anchors),
        positions=tuple(right_by_position(anchors, decoder.drafter.config.block_size - 1)),
        bins=tuple(bins_of(anchors)),
        divergences=tuple(divergences),
        num_answers=len(prompts),
        tie=TIE.get(dtype, COARSE_TIE),
        weights=format_of_target(decoder.target),
        better=better_reading(decoder.target, decoder.drafter, texts),
    )


def right_by_position(anchors: Sequence[RecordedDraft], width: int) -> Iterator[RightByPosition]:
    for index in range(width):
        reached = [anchor for anchor in anchors if anchor.num_right >= index and len(anchor.confidences) > index]
        yield RightByPosition(len(reached), sum(anchor.num_right > index for anchor in reached))


def bins_of(anchors: Sequence[RecordedDraft]) -> Iterator[Bin]:
    seen: list[list[tuple[float, bool]]] = [[] for _ in range(NUM_BINS)]
    for anchor in anchors:
        for index in range(min(anchor.num_right + 1, len(anchor.confidences))):
            confidence = anchor.confidences[index]
            seen[bin_of(confidence)].append((confidence, index < anchor.num_right))
    for drafts in seen:
        count = max(len(drafts), 1)
        yield Bin(len(drafts), sum(c for c, _ in drafts) / count, sum(right for _, right in drafts) / count)


def _compare(decoder: Decoder, prompt: str, ids: Sequence[int], settings: GenerationSettings) -> list[DepartedText]:
    """The place, if any, where an answer with speculation departs from the one without."""
    plain = _answer(decoder, ids, GenerationSettings(max_new_tokens=settings.max_new_tokens, speculation=False))
    drafted = _answer(decoder, ids, replace(settings, block_size=MAX_BLOCK_SIZE))
    if plain == drafted:
        return []
    index = num_agreed(plain, drafted)
    return [DepartedText(prompt, index, margin(decoder, [*ids, *plain[:index]]))]


def _answer(decoder: Decoder, ids: Sequence[int], settings: GenerationSettings) -> list[int]:
    decoder.clear()
    rounds = decoder.decode(Prompt(tuple(ids), len(ids)), lambda: settings)
    return [token for done in rounds if isinstance(done, Round) for token in done.emitted]


@torch.inference_mode()
def margin(decoder: Decoder, text: Sequence[int]) -> float:
    """The difference of the target's two best logits behind a text."""
    target = decoder.target
    cache = Cache(target.config.layers, len(text) + CHUNK, CHUNK, target.dtype, target.device)
    hidden = None
    for start in range(0, len(text), CHUNK):
        ids = torch.tensor(text[start : start + CHUNK], device=target.device)
        hidden = target(ids, start, cache).hidden[-1:]
        cache.commit(start + len(ids))
    assert hidden is not None, "a text has at least its prompt"
    best, second = target.logits(hidden).topk(2).values[0].tolist()
    return float(best - second)
