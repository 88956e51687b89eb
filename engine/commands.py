"""What a front end may ask of the engine, and with which settings. Standard library only, like ``events``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, Literal, TypedDict, get_args

BlockSize = int | Literal["auto"]
"""Tokens of a block, anchor included: 16 drafts 15, and the target verifies all of them. ``auto`` drafts as many as the
drafter can, and chooses in every round how many of them the target verifies, or leaves drafting alone where it would
lose. Never changes the text."""

AUTO: Final = "auto"

DraftBy = Literal["both", "drafter", "lookup"]
"""Where drafts come from: a drafter; the text itself (what followed where its newest tokens stood before); or both.
Without a drafter ``both`` is the text alone. Drafts are looked up only while ``auto`` chooses block sizes, since their
worth is weighed as its costs are."""

AttentionBackend = Literal["auto", "sdpa", "flash_attn", "triton"]

WeightFormat = Literal["bf16", "fp8", "int4", "mxfp4"]
"""How a target's weights lie in memory: as trained; E4M3 with a scale per row; whole numbers of 4 bits with a scale per
group; floats of 4 bits with a power of two per group. Head, router and norms stay as they were."""

FORMAT_NAMES: Final[Mapping[WeightFormat, str]] = {
    each: each if each == "bf16" else each.upper() for each in get_args(WeightFormat)
}
"""The formats' names as people read them, such as ``FP8``."""

MADE_FORMATS: Final[tuple[WeightFormat, ...]] = ("bf16", "fp8", "int4")
"""Formats into which bf16 weights can be packed here, those with the most bits first. The others are read where they
are published."""

WeightChoice = WeightFormat | Literal["auto"]
"""``auto`` takes a packed checkpoint as it is, and packs others into the most exact format that fits the card together
with the context."""

BUNDLED = "bundled"
"""The name of a target that stands for the bundled pair."""
NO_DRAFTER = "none"
"""The name of a drafter that stands for none."""
DFLASH: Final = "dflash"
MTP: Final = "mtp"
"""Kinds of drafters. As a drafter's name each asks for the one of this kind that belongs to the target; a drafter that
lies among the target's own tensors has no other name than ``MTP``."""
Method = Literal["dflash", "dflash2", "dspark", "dspine", "eagle3", "mtp"]
METHODS: dict[Method, str] = {
    "dflash": "DFlash", "dflash2": "DFlash 2", "dspark": "DSpark", "dspine": "DSpine", "eagle3": "EAGLE-3",
    "mtp": "MTP",
}  # fmt: skip
"""Ways in which drafters guess, with their names for people."""
MIN_BLOCK_SIZE, MAX_BLOCK_SIZE = 2, 16
MAX_TEMPERATURE = 2.0


CallSyntax = Literal["gemma", "qwen", "llama", "harmony"]
"""How a model writes a call of a tool into its answer."""


@dataclass(frozen=True, slots=True)
class Tool:
    """What a model may call."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """A JSON schema of the arguments."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    name: str
    arguments: Mapping[str, Any]
    id: str = ""
    """By which its result names it."""


@dataclass(frozen=True, slots=True)
class Message:
    role: Literal["system", "user", "assistant", "tool"]
    content: str
    """What was said; what a tool gave back."""
    calls: tuple[ToolCall, ...] = ()
    """What an assistant called."""
    name: str = ""
    """The tool whose result this is."""
    call_id: str = ""
    """The call whose result this is."""


@dataclass(frozen=True, slots=True)
class GenerationSettings:
    """How to decode. Raises ``ValueError``, in words for people, when a value is out of range."""

    block_size: BlockSize = AUTO
    """A number is capped at the block size that the drafter was trained with."""
    temperature: float = 0.0
    """The temperature of sampling; 0 takes the likeliest token."""
    top_p: float = 1.0
    top_k: int = 0
    """How many of the likeliest tokens may be sampled; 0 keeps the whole vocabulary."""
    seed: int = 0
    max_new_tokens: int = 1024
    speculation: bool = True
    """False decodes without drafts: one token for each pass of the target."""
    draft_by: DraftBy = "both"
    thinking: bool = False

    def __post_init__(self) -> None:
        def require(ok: bool, name: str, rule: str, value: object) -> None:
            if not ok:
                raise ValueError(
                    f"{name} must be {rule}, not {format(value, 'g') if isinstance(value, float) else value}"
                )

        block, top = self.block_size, MAX_BLOCK_SIZE
        in_range = block == AUTO or (isinstance(block, int) and MIN_BLOCK_SIZE <= block <= top)
        require(in_range, "block size", f"between {MIN_BLOCK_SIZE} and {top}, or auto", block)
        require(0 <= self.temperature <= MAX_TEMPERATURE, "temperature", "between 0 and 2", self.temperature)
        require(0 < self.top_p <= 1, "top-p", "above 0 and at most 1", self.top_p)
        require(self.top_k >= 0, "top-k", "0 (off) or more", self.top_k)
        require(0 <= self.seed < 2**63, "seed", "between 0 and 2^63 - 1", self.seed)
        require(self.draft_by in get_args(DraftBy), "draft-by", "both, drafter or lookup", self.draft_by)
        require(self.max_new_tokens >= 1, "max-new-tokens", "at least 1", self.max_new_tokens)

    def block_rows(self, most: int) -> int:
        """How many rows a block has, anchor included, with a drafter that was trained with ``most``."""
        return most if self.block_size == AUTO else min(self.block_size, most)

    @property
    def uses_drafter(self) -> bool:
        return self.speculation and self.draft_by != "lookup"

    @property
    def looks_up(self) -> bool:
        """Whether drafts may be looked up in the text."""
        return self.speculation and self.draft_by != "drafter"

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON. Those that came after settings were first written are left out while they have their
        defaults."""
        return {name: value for name, value in asdict(self).items() if (name, value) not in ADDED_LATER.items()}

    def with_changes(self, change: Adjust) -> GenerationSettings:
        changes = {key: value for key, value in asdict(change).items() if value is not None and key != "turn"}
        return replace(self, **changes)


ADDED_LATER: Final[Mapping[str, Any]] = {"draft_by": "both"}
"""Settings that were added after settings were first written to files, and the value that a file without them means."""


class Settings(TypedDict, total=False):
    """Keywords of :meth:`engine.Pair.generate`: the fields of :class:`GenerationSettings`."""

    block_size: BlockSize
    temperature: float
    top_p: float
    top_k: int
    seed: int
    max_new_tokens: int
    speculation: bool
    draft_by: DraftBy
    thinking: bool


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """Which pair to load, and where."""

    target: str | None = None
    """A folder, or a model's name on the hub; None is the bundled pair."""
    drafter: str | None = None
    """A folder or name; None finds the target's own, ``none`` goes without."""
    device: str = "auto"
    """``auto``, ``cpu`` or ``cuda``. The CPU computes in fp32, CUDA in bf16."""
    max_context: int | None = None
    """Tokens to reserve caches for; None takes the model's own limit, within reason."""
    offline: bool = False
    """Never ask the hub: what isn't on this machine is missing. ``HF_HUB_OFFLINE`` says the same."""
    attention_backend: AttentionBackend = "auto"
    """Which kernels compute attention."""
    noise_embed_scale: float | None = None
    """Scale of the drafter's input embeddings, on which implementations disagree for Gemma."""
    weights: WeightChoice = AUTO
    """The format in which the target's weights are held. ``bf16`` also unpacks a packed checkpoint; on a CPU it means
    fp32, which ``auto`` takes there for weights stored as floats."""
    time_rounds: bool = True
    """Whether to time what rounds cost here before the first question; otherwise they are timed before the first one
    with an ``auto`` block size."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Answer a conversation; its last message is the user's. Caches are reused as far as the prefix is the same."""

    turn: int
    messages: tuple[Message, ...]
    settings: GenerationSettings
    prompt: str | tuple[int, ...] = ()
    """In the messages' place, where it isn't empty: text or token ids to continue as they stand, without a template."""
    tools: tuple[Tool, ...] = ()
    """What the model may call, for models whose template knows of tools."""
    compares: bool = False
    """Whether to take passes of one row now and then, which change nothing, to tell what the target alone would take
    (``Step.alone_ms``)."""


@dataclass(frozen=True, slots=True)
class Stop:
    """End a turn after the round in flight, keeping what it wrote; one that waits is never begun. Nothing happens to a
    turn that has ended."""

    turn: int | None = None
    """Which one; None for whichever runs, as for whoever leaves."""


@dataclass(frozen=True, slots=True)
class Adjust:
    """Change a running turn's settings from the next round on."""

    block_size: BlockSize | None = None
    temperature: float | None = None
    turn: int | None = None
    """Which one; None for whichever runs."""


@dataclass(frozen=True, slots=True)
class Close:
    """End the engine thread."""


Command = Ask | Stop | Adjust | Close
