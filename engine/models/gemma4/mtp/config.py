"""Reads an MTP assistant's ``config.json``. Field names in comments are those of ``google/gemma-4-*-assistant``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from ....commands import NO_DRAFTER
from ....errors import Option, WeightsFailure
from ....files.json_fields import Fields
from ....layer_config import GELU_TANH, MAX_LAYERS, MAX_SIZE, MAX_VOCABULARY, Activation, AttentionConfig
from ...family import AFTER_NORM, DrafterConfig, DrafterKind, Json, TargetConfig
from ...unread_fields import refuse_unread
from ..config import read_layers

if TYPE_CHECKING:
    from ....kv_cache.layer_state import StatefulLayer
    from .modules import MtpDrafter

BLOCK_SIZE = 16
"""The anchor and as many drafts as a pass of the target verifies. An assistant wasn't trained with a number of its own:
each draft is a pass, and ``speculation/depth.py`` says how many are worth it."""

BEYOND_WINDOW = 2
"""How many positions farther than a target's query an assistant's sees: it stands at the anchor, whose key no cache
holds, and ``transformers`` shows it the last window + 1 keys."""

ANOTHER = ("Name the assistant of this target, or go without: ", Option("drafter", NO_DRAFTER), ".")


@dataclass(frozen=True, slots=True, kw_only=True)
class MtpConfig(DrafterConfig):
    """The config of an assistant: a few layers of Gemma 4 that attend over the target's own keys and values."""

    kind: ClassVar[DrafterKind] = "mtp"
    activation: ClassVar[Activation] = "gelu_tanh"
    moe: ClassVar[None] = None

    hidden_size: int
    intermediate_size: int
    rms_norm_eps: float
    target_hidden_size: int
    """``backbone_hidden_size``: the width of the target's hidden states."""

    @classmethod
    def from_json(cls, config: Json) -> MtpConfig:
        """Reads an assistant's ``config.json``; raises ``WeightsFailure`` for a damaged or unknown one."""
        whole = Fields(config, "the assistant's config.json")
        text = whole.nested("text_config")
        if whole.flag("use_ordered_embeddings", False):
            raise WeightsFailure(
                "This assistant orders its vocabulary by centroids (E2B, E4B), which the engine lacks.",
                ANOTHER,
            )
        _require_what_the_engine_computes(whole, text)
        return cls(
            layers=tuple(_draft_layer(layer) for layer in read_layers(text)), block_size=BLOCK_SIZE,
            target_layer_ids=(AFTER_NORM,), vocab_size=text.integer("vocab_size", 1, MAX_VOCABULARY),
            hidden_size=text.integer("hidden_size", 1, MAX_SIZE),
            intermediate_size=text.integer("intermediate_size", 1, MAX_SIZE),
            rms_norm_eps=text.number("rms_norm_eps", 0, 1),
            target_hidden_size=whole.integer("backbone_hidden_size", 1, MAX_SIZE),
        )  # fmt: skip

    @property
    def states(self) -> tuple[StatefulLayer, ...]:
        from ....kv_cache.borrowed import LastRow

        return (LastRow(self.target_hidden_size),)

    @property
    def borrows(self) -> bool:
        return True

    def check(self, target: TargetConfig) -> None:
        if self.target_hidden_size != target.hidden_size:
            raise WeightsFailure(
                f"This assistant was made for a target of width {self.target_hidden_size};"
                f" this one's is {target.hidden_size}.",
                ANOTHER,
            )
        if self.vocab_size != target.vocab_size:
            raise WeightsFailure(
                f"This assistant was made for a vocabulary of {self.vocab_size} tokens;"
                f" this target's has {target.vocab_size}.",
                ANOTHER,
            )
        for layer in self.layers:
            lent = lender(layer, target)
            if lent is None:
                raise WeightsFailure(
                    f"This assistant reads keys of a {layer.kind.replace('_', ' ')} layer, and the target has none.",
                    ANOTHER,
                )
            wanted, given = (
                (each.num_kv_heads, each.head_dim, each.rope, each.window) for each in (layer, _draft_layer(lent))
            )
            if wanted != given:
                raise WeightsFailure(
                    f"This assistant reads {layer.num_kv_heads} heads of {layer.head_dim} from the target's last"
                    f" {layer.kind.replace('_', ' ')} layer, which has {lent.num_kv_heads} of {lent.head_dim}"
                    f"{'' if wanted[:2] != given[:2] else ' and turns or sees them otherwise'}.",
                    ANOTHER,
                )

    def build(self) -> MtpDrafter:
        from .modules import MtpDrafter

        return MtpDrafter(self)


def lender(layer: AttentionConfig, target: TargetConfig) -> AttentionConfig | None:
    """The target's layer whose keys and values this one reads: the last of its kind."""
    return next((each for each in reversed(target.attention) if each.kind == layer.kind), None)


def _draft_layer(layer: AttentionConfig) -> AttentionConfig:
    return replace(layer, window=None if layer.window is None else layer.window + BEYOND_WINDOW)


def _require_what_the_engine_computes(whole: Fields, text: Fields) -> None:
    """Refuses variants that no published assistant of these targets has, since it would compute something else."""
    refuse_unread(text)
    text.text("hidden_activation", GELU_TANH, "gelu_pytorch_tanh")
    depth = text.integer("num_hidden_layers", 1, MAX_LAYERS)
    shared = text.integer("num_kv_shared_layers", 0, MAX_LAYERS, 0)  # 0 means all layers
    for name in ("enable_moe_block", "use_double_wide_mlp"):
        if text.flag(name, False):
            raise WeightsFailure(f"This assistant's {name} is set, which the engine lacks.", ANOTHER)
    if text.given("hidden_size_per_layer_input") or shared not in (0, depth):
        raise WeightsFailure(
            "This assistant's layers have keys or embeddings of their own, which none should.", ANOTHER
        )
    for fields in (whole, text):
        if not fields.flag("tie_word_embeddings", True):
            raise WeightsFailure("This assistant has an output head of its own.", ANOTHER)
