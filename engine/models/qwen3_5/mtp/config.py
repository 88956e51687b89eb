"""What a target's ``config.json`` says of the layer that drafts beside its own (MTP)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ....commands import NO_DRAFTER
from ....errors import Option, WeightsFailure
from ....files.json_fields import Fields
from ....layer_config import MAX_LAYERS
from ...family import AFTER_NORM, EMBEDDED, DrafterConfig, DrafterKind, Json, TargetConfig
from ..config import Qwen35Config, read_qwen3_5

if TYPE_CHECKING:
    from ....kv_cache.layer_state import StatefulLayer
    from .modules import QwenMtp

BLOCK_SIZE = 16
"""The anchor and as many drafts as a pass of the target verifies. The layer was trained to guess one token, and is run
again for each further one: ``speculation/depth.py`` says how many are worth it."""

ANOTHER = ("Draft with ", Option("drafter", "dflash"), ", or go without: ", Option("drafter", NO_DRAFTER), ".")


@dataclass(frozen=True, slots=True, kw_only=True)
class QwenMtpConfig(DrafterConfig):
    """The config of a target's own drafter: one attending layer of the target's kind, whose input is projected from the
    embedding of a token and the hidden state before it."""

    kind: ClassVar[DrafterKind] = "mtp"
    among: ClassVar[str] = "mtp."

    target: Qwen35Config
    """The config of the target to which the layer belongs."""

    @property
    def states(self) -> tuple[StatefulLayer, ...]:
        from ....kv_cache.last_rows import LastRows

        return (*self.layers, LastRows(self.target.hidden_size))

    def check(self, target: TargetConfig) -> None:
        wanted, given = (
            (each.hidden_size, each.vocab_size, len(each.layers), each.attention[:1], each.moe)
            for each in (self.target, target)
        )
        if wanted != given:
            raise WeightsFailure(
                f"This MTP layer belongs to a target of {wanted[2]} layers of width {wanted[0]} and {wanted[1]} tokens;"
                f" this one has {given[2]} of width {given[0]}, and {given[1]} tokens.",
                ANOTHER,
            )

    def build(self) -> QwenMtp:
        from .modules import QwenMtp

        return QwenMtp(self)


def read_mtp(config: Json, *, experts: bool = False) -> QwenMtpConfig | None:
    """Reads a target's ``config.json``; None where it says of no such layer. Raises ``WeightsFailure`` for one that is
    otherwise than all published ones."""
    whole = Fields(config, "config.json")
    fields = whole.nested("text_config") if "text_config" in whole else whole
    depth = fields.integer("mtp_num_hidden_layers", 0, MAX_LAYERS, 0)
    if depth == 0:
        return None
    what = None
    if depth > 1:
        what = f"drafts by {depth} layers (mtp_num_hidden_layers), of which the engine takes one"
    elif fields.flag("mtp_use_dedicated_embeddings", False):
        what = "drafts by embeddings of its own (mtp_use_dedicated_embeddings), which the engine lacks"
    if what is not None:
        raise WeightsFailure(f"This checkpoint {what}.", ANOTHER)
    target = read_qwen3_5(config, None, experts=experts)
    return QwenMtpConfig(
        layers=target.attention[:1], block_size=BLOCK_SIZE, target_layer_ids=(AFTER_NORM, EMBEDDED),
        vocab_size=target.vocab_size, target=target,
    )  # fmt: skip
