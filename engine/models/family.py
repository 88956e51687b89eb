"""What the engine asks of a family besides computation: a folder here, a line in ``registry.py``. No torch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from ..commands import WeightFormat
from ..files.json_fields import Fields
from ..layer_config import Activation, AttentionConfig, MoeConfig

if TYPE_CHECKING:
    from ..files.gguf import Gguf
    from ..kv_cache.layer_state import StatefulLayer
    from .drafter import Drafter
    from .target import TargetModel

Json = Mapping[str, Any]

DrafterKind = Literal["dflash", "mtp"]

AFTER_NORM = -1
"""A tap behind the final norm: what the head reads. The others are numbers of layers, whose outputs they are."""
EMBEDDED = -2
"""A tap before the first layer: the embedding of a row's own token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetConfig(ABC):
    """What every target has. A family adds what its own modules need, and reads it from JSON."""

    hidden_size: int
    intermediate_size: int
    """Of the dense MLP; 0 where layers have experts alone."""
    activation: Activation = "gelu_tanh"
    """Of MLPs and experts."""
    norms_branches: bool = True
    """Whether what a branch yields is normed before it joins the residual stream."""
    vocab_size: int
    rms_norm_eps: float
    logit_softcap: float | None = None
    max_context: int
    layers: tuple[StatefulLayer, ...]
    moe: MoeConfig | None = None
    stop_token_ids: tuple[int, ...]

    @property
    def sizes(self) -> tuple[int, int]:
        """By which tiles are known: hidden, and between feed-forward products, an expert's where there are any."""
        return self.hidden_size, self.intermediate_size if self.moe is None else self.moe.intermediate_size

    @property
    def attention(self) -> tuple[AttentionConfig, ...]:
        """Those of its layers that attend."""
        return tuple(layer for layer in self.layers if isinstance(layer, AttentionConfig))

    @abstractmethod
    def build(self) -> TargetModel:
        """A model of this shape whose weights are not set yet; under ``torch.device("meta")`` it takes no memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrafterConfig(ABC):
    """What every drafter has. A kind adds what its own modules need, and reads it from JSON."""

    kind: ClassVar[DrafterKind]
    among: ClassVar[str] = ""
    """How the names of its tensors begin, where they lie among those of its target."""
    on_cpu_alone: ClassVar[bool] = False
    """Whether there are no kernels that draft with it."""

    layers: tuple[AttentionConfig, ...]
    block_size: int
    """Tokens per block, the anchor included: 16 drafts 15."""
    target_layer_ids: tuple[int, ...]
    """Its taps: the drafter reads the *outputs* of these target layers."""
    vocab_size: int | None
    """The target's."""

    @property
    @abstractmethod
    def states(self) -> tuple[StatefulLayer, ...]:
        """What it keeps of a text itself."""

    @property
    def sizes(self) -> tuple[int, int] | None:
        """By which tiles are known, as a target's; None where they are not looked for."""
        return None

    @property
    def borrows(self) -> bool:
        """Whether its layers read keys that the target keeps."""
        return False

    @abstractmethod
    def check(self, target: TargetConfig) -> None:
        """Raises ``WeightsFailure`` where it was made for another target."""

    @abstractmethod
    def build(self) -> Drafter:
        """A drafter of this shape whose weights are not set yet; under ``torch.device("meta")`` it takes no memory."""


def read_stops(config: Fields, generation: Json | None, vocab_size: int) -> tuple[int, ...]:
    """``eos_token_id``, of ``generation_config.json`` before ``config.json``: the tokens that end an answer. The
    tokenizer may name another. An empty list says nothing."""
    for fields in (Fields(generation or {}, "generation_config.json"), config):
        if "eos_token_id" in fields and (stops := fields.integers("eos_token_id", 0, vocab_size - 1)):
            return stops
    return ()


@dataclass(frozen=True, slots=True)
class Headers:
    """What begins a message in formats such as OpenAI's harmony: a role, the name of a channel. Other channels than
    these two, and calls of tools, are text for people, header and all."""

    role: str
    """Of the model, as its later messages begin; the template has written the first."""
    end: str
    """The token behind the header."""
    thought: str
    answer: str


@dataclass(frozen=True, slots=True)
class Efforts:
    """What a template calls how long to think (``reasoning_effort``), for models that always do."""

    without: str
    """Where thinking is off."""
    thinking: str


@dataclass(frozen=True, slots=True)
class ChatFormat:
    """How conversations are written for a family."""

    template: Path
    """A Jinja chat template, for checkpoints that come without one."""
    thought_open: str
    thought_close: str
    """The tokens around a thought. The opening one is followed by the rest of its line, which is no text."""
    lines_behind_thought: bool = False
    """Whether line breaks behind a thought belong to its end, and not to the answer."""
    shown: tuple[str, ...] = ()
    """Special tokens that are text for people, such as those of calls of tools."""
    headers: Headers | None = None
    """Of formats whose messages begin with one. ``thought_open`` then stands before every channel's name, and
    ``thought_close`` behind every message but the last."""
    efforts: Efforts | None = None


@dataclass(frozen=True, slots=True)
class PackedCopy:
    """A published copy of a target in fewer bits, which the engine reads as it is."""

    name: str
    weights: WeightFormat
    nbytes: int
    """Of its text model in memory."""


@dataclass(frozen=True, slots=True)
class KnownPair:
    """A published target and the drafter that was trained on it."""

    target: str
    drafter: str
    hidden_size: int
    num_layers: int
    num_parameters: int
    """Of the target's text model and the drafter together."""
    copies: tuple[PackedCopy, ...] = ()
    """Of the target, the largest first."""
    qat: str = ""
    """A copy of the target that was trained for INT4: rounding to it loses nothing more."""
    assistant: str = ""
    """The target's MTP assistant: a drafter of another kind."""
    vocab_size: int | None = None
    """Of a target whose shape others have, too."""
    drafter_package: str = ""
    """A package that carries the drafter, which isn't on the hub."""


@dataclass(frozen=True, slots=True)
class ShortName:
    """A published target that one word means."""

    word: str
    target: str
    package: str = ""
    """A Python package that carries it as a GGUF file. Where that is installed, the hub isn't asked."""
    banner: str = ""
    """What people should know before they ask it anything."""


@dataclass(frozen=True, slots=True)
class GgufNames:
    """How a family's GGUF files differ from its safetensors."""

    architecture: str
    tensor_name: Callable[[str], str]
    """What they call a parameter of the modules."""
    interleaved: tuple[str, ...] = ()
    """How names of parameters end in whose heads the rows of the two halves take turns."""
    unpacked: bool = False
    """Whether matrices in blocks that no kernel computes with are unpacked: right for small models."""
    config: Callable[[Gguf], Json] | None = None
    """What ``config.json`` would say, for files that come without one."""


@dataclass(frozen=True, slots=True)
class Family:
    """A kind of target, as its folder describes it."""

    name: str
    """For people."""
    model_types: tuple[str, ...]
    """``model_type`` of the text model in ``config.json``."""
    read_config: Callable[[Json, Json | None], TargetConfig]
    """Reads ``config.json`` and ``generation_config.json``, if there is one; raises ``WeightsFailure``."""
    tensor_name: Callable[[str], str]
    """What the checkpoint calls a parameter of the modules."""
    skipped_tensors: Mapping[str, str]
    """How the names of tensors begin that text doesn't need, and what they are, for people; "" for what the model holds
    otherwise."""
    chat: ChatFormat
    pairs: tuple[KnownPair, ...] = ()
    """Published pairs, the smallest first."""
    refused_names: str = ""
    """A regular expression for names of checkpoints whose config will be refused: fetching them would be in vain."""
    tensor_name_alone: Callable[[str], str] | None = None
    """The same in checkpoints of the text model alone, where these have other names."""
    own_drafter: Callable[[Json], DrafterConfig | None] | None = None
    """Reads what ``config.json`` says of a drafter among the target's own tensors; None where it says of none."""
    expert_tensors: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """How names of parameters end that stack all experts, and how those of one expert's tensors do in checkpoints that
    don't stack them ({} is its number): below one another they are its part."""
    mxfp4: bool = False
    """Whether experts are published in MXFP4, which products with them read."""
    transposed: tuple[str, ...] = ()
    """How names of parameters end whose floats, unlike packed numbers, lie in files by columns: [..., depth, rows]."""
    gguf: GgufNames | None = None
    """For GGUF files, if any hold such models."""
    short_names: tuple[ShortName, ...] = ()
