"""What the engine asks of a family besides computation. A family is a folder here and a line in ``registry.py``. No
torch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from ..commands import METHODS, Method, WeightFormat
from ..files.json_fields import Fields
from ..layer_config import Activation, AttentionConfig, MoeConfig

if TYPE_CHECKING:
    from ..files.gguf import Gguf
    from ..files.headers import Headers as TensorHeaders
    from ..kv_cache.layer_state import StatefulLayer
    from .drafter import Drafter
    from .target import TargetModel

Json = Mapping[str, Any]

DrafterKind = Literal["dflash", "mtp", "eagle3"]

AFTER_NORM = -1
"""The number of a tap behind the final norm, which the head reads. Other taps are layers' numbers and take their
outputs."""
EMBEDDED = -2
"""The number of a tap before the first layer: the embedding of a row's own token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetConfig(ABC):
    """What every target's config has. A family adds what its own modules need, and reads it from JSON."""

    hidden_size: int
    intermediate_size: int
    """The dense MLP's width; 0 where layers have only experts."""
    activation: Activation = "gelu_tanh"
    """The activation of MLPs and experts."""
    vocab_size: int
    rms_norm_eps: float
    logit_softcap: float | None = None
    max_context: int
    layers: tuple[StatefulLayer, ...]
    moe: MoeConfig | None = None
    stop_token_ids: tuple[int, ...]

    @property
    def sizes(self) -> tuple[int, int]:
        """The sizes by which tiles are looked up: the hidden size, and the width of an MLP, or of an expert where there
        are any."""
        return self.hidden_size, self.intermediate_size if self.moe is None else self.moe.intermediate_size

    @property
    def attention(self) -> tuple[AttentionConfig, ...]:
        """The configs of those layers that attend."""
        return tuple(layer for layer in self.layers if isinstance(layer, AttentionConfig))

    @abstractmethod
    def build(self) -> TargetModel:
        """A model of this shape whose weights are not set yet; under ``torch.device("meta")`` it takes no memory."""


@dataclass(frozen=True, slots=True)
class OwnTables:
    """Which tables a drafter brings. What it doesn't bring, and what equals its target's, it borrows."""

    embedding: bool = False
    head: bool = False
    vocabulary: int | None = None
    """How many tokens it drafts among, where these are not all of the target's: rows of its own head, each with the
    target's id of its token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrafterConfig(ABC):
    """What every drafter's config has. A kind adds what its own modules need, and reads it from JSON."""

    kind: ClassVar[DrafterKind]
    among: ClassVar[str] = ""
    """How the names of its tensors begin, where they lie among those of its target."""

    elsewhere: ClassVar[tuple[str, ...]] = ()
    """Names of tensors that may lie in a file of their own beside those of which an index tells."""

    layers: tuple[AttentionConfig, ...]
    block_size: int
    """Tokens of a block, the anchor included: 16 drafts 15."""
    target_layer_ids: tuple[int, ...]
    """The target's layers that are tapped: the drafter reads their *outputs*."""
    vocab_size: int | None
    """The target's vocabulary size; None where the config doesn't say."""
    tables: OwnTables = OwnTables()
    leftovers: tuple[str, ...] = ("lm_head.",)
    """Beginnings of names of tensors that its files may hold and that stay on disk."""

    @property
    def method(self) -> Method:
        """How it guesses."""
        return self.kind

    def describe(self) -> str:
        """What it is, in a line for people."""
        own = [what for what, brings in (("embedding", self.tables.embedding), ("head", self.tables.head)) if brings]
        few = [] if self.tables.vocabulary is None else [f"among {self.tables.vocabulary:,} tokens"]
        brings = [f"with {' and '.join(own)} of its own"] if own else []
        taps = sum(tap >= 0 for tap in self.target_layer_ids)
        reads = [f"reads {taps} of the target's layers"] if taps else []
        return ", ".join((METHODS[self.method], f"up to {self.block_size - 1} guesses", *few, *brings, *reads))

    @property
    def first_drafts(self) -> bool:
        """Whether a block's first row, the anchor's, drafts, too: then it runs a row fewer than ``block_size``."""
        return False

    @property
    @abstractmethod
    def states(self) -> tuple[StatefulLayer, ...]:
        """The configs of what it keeps of a text itself."""

    @property
    def sizes(self) -> tuple[int, int] | None:
        """The sizes by which tiles are looked up, as a target's; None where they are not."""
        return None

    @property
    def borrows(self) -> bool:
        """Whether its layers read keys that the target keeps."""
        return False

    def bytes_between(self, itemsize: int) -> int:
        """Bytes that each graph in which it drafts needs of its own, for what its launches leave for one another."""
        return 0

    def beside(self, target: TargetConfig) -> DrafterConfig:
        """The config with what only its target says."""
        return self

    def with_files(self, headers: TensorHeaders) -> DrafterConfig:
        """The config with what only the tensors of its files say."""
        return self

    def tensor_name(self, headers: TensorHeaders) -> Callable[[str], str]:
        """What makes a tensor's name in these files of a parameter's."""
        return str

    @abstractmethod
    def check(self, target: TargetConfig) -> None:
        """Raises ``WeightsFailure`` where it was made for another target."""

    @abstractmethod
    def build(self) -> Drafter:
        """A drafter of this shape whose weights are not set yet; under ``torch.device("meta")`` it takes no memory."""


SEPARATE_EXPERTS: Mapping[str, tuple[str, ...]] = {
    "experts.gate_up_proj": ("experts.{}.gate_proj.weight", "experts.{}.up_proj.weight"),
    "experts.down_proj": ("experts.{}.down_proj.weight",),
}
"""``Family.expert_tensors`` of checkpoints whose experts have tensors of their own."""


def read_stops(config: Fields, generation: Json | None, vocab_size: int) -> tuple[int, ...]:
    """The tokens that end an answer: ``eos_token_id`` of ``generation_config.json``, or else of ``config.json``. (The
    tokenizer may name another.) An empty list counts as missing."""
    for fields in (Fields(generation or {}, "generation_config.json"), config):
        if "eos_token_id" in fields and (stops := fields.integers("eos_token_id", 0, vocab_size - 1)):
            return stops
    return ()


@dataclass(frozen=True, slots=True)
class Headers:
    """The headers with which messages begin in formats such as OpenAI's harmony: a role, and the name of a channel.
    Channels other than these two, and tool calls, are text for people, header and all."""

    role: str
    """The model's role, with which its later messages begin; the template has written the first."""
    end: str
    """The token that ends the header."""
    thought: str
    answer: str


@dataclass(frozen=True, slots=True)
class Efforts:
    """The template's words for how long to think (``reasoning_effort``), for models that always think."""

    without: str
    """The word for where thinking is switched off."""
    thinking: str


@dataclass(frozen=True, slots=True)
class ChatFormat:
    """How conversations are written in a family."""

    template: Path
    """A Jinja chat template, for checkpoints that come without one."""
    thought_open: str
    thought_close: str
    """The tokens around a thought. The rest of the opening one's line belongs to it, and is no text."""
    lines_behind_thought: bool = False
    """Whether line breaks behind a thought belong to its end rather than to the answer."""
    shown: tuple[str, ...] = ()
    """Special tokens that are text for people, such as those of tool calls."""
    headers: Headers | None = None
    """For formats whose messages begin with headers. ``thought_open`` then stands before every channel's name, and
    ``thought_close`` behind every message but the last."""
    efforts: Efforts | None = None


@dataclass(frozen=True, slots=True)
class PackedCopy:
    """A published copy of a target in fewer bits, which the engine reads as it is."""

    name: str
    weights: WeightFormat
    nbytes: int
    """Bytes of its text model in memory."""


@dataclass(frozen=True, slots=True)
class KnownPair:
    """A published target and the drafter that was trained on it."""

    target: str
    drafter: str
    hidden_size: int
    num_layers: int
    num_parameters: int
    """The number of parameters of the target's text model and the drafter together."""
    copies: tuple[PackedCopy, ...] = ()
    """Packed copies of the target, the largest first."""
    qat: str = ""
    """The name of a copy of the target that was trained for INT4, so that rounding to it loses nothing more."""
    assistant: str = ""
    """The target's MTP assistant: a drafter of another kind."""
    vocab_size: int | None = None
    """The vocabulary size, where other targets have the same shape."""
    drafter_package: str = ""
    """A package that carries the drafter, where it isn't on the hub."""


@dataclass(frozen=True, slots=True)
class ShortName:
    """A published target that a single word names."""

    word: str
    target: str
    package: str = ""
    """A Python package that carries it as a GGUF file. Where that is installed, the hub isn't asked."""
    banner: str = ""
    """What people should know before they ask the model anything."""


@dataclass(frozen=True, slots=True)
class GgufNames:
    """How a family's GGUF files differ from its safetensors."""

    architecture: str
    tensor_name: Callable[[str], str]
    """The name of a parameter of the modules in such files."""
    interleaved: tuple[str, ...] = ()
    """Endings of parameter names in whose heads the rows of the two halves alternate."""
    unpacked: bool = False
    """Whether matrices in blocks with which no kernel computes are unpacked: right for small models."""
    config: Callable[[Gguf], Json] | None = None
    """Makes the contents of ``config.json``, for files that come without one."""


@dataclass(frozen=True, slots=True)
class Family:
    """A kind of target, as its folder describes it."""

    name: str
    """The name for people."""
    model_types: tuple[str, ...]
    """Values of ``model_type`` in the text model's ``config.json``."""
    read_config: Callable[[Json, Json | None], TargetConfig]
    """Reads ``config.json`` and ``generation_config.json``, if there is one; raises ``WeightsFailure``."""
    tensor_name: Callable[[str], str]
    """The checkpoint's name of a parameter of the modules."""
    skipped_tensors: Mapping[str, str]
    """Beginnings of names of tensors that text doesn't need, and what these are, for people; "" for what the model
    holds otherwise."""
    chat: ChatFormat
    pairs: tuple[KnownPair, ...] = ()
    """Published pairs, the smallest first."""
    refused_names: str = ""
    """A regular expression for names of checkpoints whose config would be refused, so that they aren't fetched."""
    own_drafter: Callable[[Json], DrafterConfig | None] | None = None
    """Reads what ``config.json`` says of a drafter among the target's own tensors; None where it says of none."""
    expert_tensors: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Endings of parameter names that stack all experts; and of the tensors of one expert, in checkpoints that don't
    stack them ({} is its number), which make its part when put below one another."""
    published_in: tuple[WeightFormat, ...] = ()
    """Formats that only some families are published in, with which products compute directly."""
    transposed: tuple[str, ...] = ()
    """Endings of parameter names whose floats, unlike packed numbers, are stored by columns: [..., depth, rows]."""
    gguf: GgufNames | None = None
    """The names in GGUF files; None if no such file holds such a model."""
    short_names: tuple[ShortName, ...] = ()
