"""Reads DSpine drafters: DFlash's layers, behind each of which every place of a block hears from the one before it, and
guesses chosen by what each candidate would say to the next place. SpecForge writes one file; Tencent's own have the
codes of tokens in a second one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from ...commands import MAX_BLOCK_SIZE, Method
from ...errors import WeightsFailure
from ...files.headers import opened
from ...files.json_fields import DOWNLOAD_AGAIN, Fields
from ...layer_config import MAX_SIZE, MAX_VOCABULARY
from ..family import Json
from .config import CANDIDATES, CAUSAL, DFlashConfig, refuse
from .dspark import FULL

if TYPE_CHECKING:
    from ...files.headers import Headers
    from .injection import DSpineDrafter

CODES, OWN_FILE, READY = "transfer_codes", "codes", "transfer_ready"
"""Names of the codes beside the other tensors and in a file of their own, and of what says that they are made."""
MESSAGE = "injection.message.weight"
"""A tensor [message, rank]."""
DEFAULTS = {"transfer_rank": 1024, "message_size": 512, "top_k": CANDIDATES}
"""Fields of ``dspine_config``, and what they are where it lacks them; its others are of training."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DSpineConfig(DFlashConfig):
    """A DSpine drafter."""

    elsewhere: ClassVar[tuple[str, ...]] = (OWN_FILE,)

    rank: int = 0
    """Channels of what a place hears, and of a token's code; 0 for as many as its tensors have."""
    message: int = 0
    """Channels of what is made of it; 0 as for ``rank``."""

    @property
    def method(self) -> Method:
        return "dspine"

    def bytes_between(self, itemsize: int) -> int:
        """Of the rows of all pairs: codes, what these say, messages, what is heard, and states with it."""
        pairs = CANDIDATES * (self.block_size - 1)
        numbers = pairs * (self.rank + 3 * self.message + 2 * self.hidden_size)
        return numbers * itemsize + pairs * (CANDIDATES * 4 + 8 + 8 + 4)  # scores, candidates and their logits

    def with_files(self, headers: Headers) -> DSpineConfig:
        """Raises ``WeightsFailure`` where there are two tables of codes, or none that is made."""
        if CODES in headers and OWN_FILE in headers:
            raise _damaged(f"it has its codes twice, as {CODES} and as {OWN_FILE}")
        if CODES not in headers and OWN_FILE not in headers:
            raise _damaged(f"{CODES} is missing, and no other file in its folder holds {OWN_FILE}")
        ready = headers.get(READY)
        if ready is None and CODES in headers:
            raise _damaged(f"{READY}, which says that {CODES} are made, is missing")
        if ready is not None:
            if ready.dtype not in ("BOOL", "U8") or ready.shape not in ((), (1,)):
                raise _damaged(f"{READY} is {ready}, not BOOL[]")
            with opened(ready.path, "numpy") as file:
                if not file.get_tensor(READY).all():
                    raise _damaged(f"{READY} is false: its codes were never made")
        if self.rank:
            return self
        header = headers.get(MESSAGE)
        if header is None or len(header.shape) != 2 or 0 in header.shape:
            raise _damaged(f"{MESSAGE} is {header or 'missing'}")
        return replace(self, message=header.shape[0], rank=header.shape[1])

    def tensor_name(self, headers: Headers) -> Callable[[str], str]:
        return lambda name: OWN_FILE if name == CODES and CODES not in headers else name

    def build(self) -> DSpineDrafter:
        from .injection import DSpineDrafter

        return DSpineDrafter(self)


def read_dspine(config: Json) -> DSpineConfig:
    """Reads a drafter's ``config.json``, whose layers see no later row of their block. Raises ``WeightsFailure`` for a
    damaged one."""
    whole = Fields(config, "the drafter's config.json")
    both = whole.merged(whole.nested("dflash_config", {}))
    if any(name in both and not both.flag(name, True) for name in CAUSAL):
        refuse("whose rows see their whole block (is_causal), where DSpine's see what is before them")
    for name in ("final_logit_softcapping", "output_multiplier"):
        if both.raw(name) not in (None, 1, 1.0):
            refuse(f"that bends its scores ({name})")
    vocabulary = both.integer("vocab_size", 1, MAX_VOCABULARY)  # it has a code for each token
    flat: dict[str, Any] = {**config, "is_causal": True}
    options = whole.nested("dspine_config", {})
    if sized := config.get("dspine_config"):
        both.integer("block_size", 2, MAX_BLOCK_SIZE)
    else:  # a copied config: these drafters have sixteen rows and no windows whatever it says
        flat |= {"layer_types": None, "block_size": MAX_BLOCK_SIZE}
        flat["dflash_config"] = {**(config.get("dflash_config") or {}), "block_size": MAX_BLOCK_SIZE}
    if flat.get("layer_types") is None:
        flat["layer_types"] = [FULL] * both.integer("num_hidden_layers", 1, MAX_SIZE)
    if (count := options.integer("top_k", 1, MAX_VOCABULARY, CANDIDATES)) != CANDIDATES:
        refuse(f"that chooses among {count} tokens (top_k), not {CANDIDATES}")
    read = DSpineConfig.from_json(flat)
    leftovers = (*read.leftovers, READY)
    if not sized:
        return replace(read, leftovers=leftovers)
    rank = options.integer("transfer_rank", 1, min(read.hidden_size, vocabulary - 1), DEFAULTS["transfer_rank"])
    message = options.integer("message_size", 1, MAX_SIZE, DEFAULTS["message_size"])
    return replace(read, rank=rank, message=message, leftovers=leftovers)


def _damaged(why: str) -> WeightsFailure:
    return WeightsFailure(f"This DSpine drafter is damaged: {why}.", DOWNLOAD_AGAIN)
