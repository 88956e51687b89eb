"""The DFlash drafter (``z-lab/*-DFlash``): a block-diffusion model that drafts a whole block in one pass. It borrows
the target's embedding and head. Every layer turns the target's hidden states (*features*) into context keys and values
with the weights it uses for the block (*KV injection*)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Protocol, cast

import torch
from torch import Tensor, nn

from ...kernels.decode.block_conv import BEFORE, BEHIND, CONV_TAPS, reference_block_conv
from ...kernels.decode.products.head import capped_logits
from ...kernels.prefill.products import product
from ...kernels.prefill.rope import norm_rope_split
from ...kernels.reference.norm import rms_norm
from ...kernels.reference.rope import apply_rope, inverse_frequencies, rope_table
from ...kernels.round.choices import reference_candidates
from ...kernels.round.lattice import Edges
from ...kernels.shared.heads import HeadNorms
from ...kernels.weights.int8 import Int8Weight
from ...kernels.weights.kinds import weight_of
from ...kv_cache.cache import Cache
from ...kv_cache.layer_cache import LayerCache
from ...layer_config import AttentionConfig
from ...speculation.trees import Lattice
from ..attention_backends import TRITON
from ..drafter import Draft, DraftBinding, Drafter
from ..layers import AttentionModule, GatedMLP, RMSNorm, RopeTable, linear
from ..merged_weights import biases_of, side_by_side
from ..target import TargetModel
from .config import DFlashConfig
from .markov import STAY_FLOATS, MarkovPicker, markov_parts
from .picker import ArgmaxPicker, CandidateSelector, Picker, SelectorPicker

if TYPE_CHECKING:
    from .draft_pass import DFlashDraftPass


Behind = Callable[[Tensor, int], Tensor]
"""What makes of a block [n, hidden], as it is behind the layer of this number, what the next layer reads."""


class DraftAttention(AttentionModule):
    def __init__(self, layer: AttentionConfig, config: DFlashConfig):
        super().__init__(layer)
        hidden, eps, style = config.hidden_size, config.rms_norm_eps, config.norm_style
        kv_size = layer.num_kv_heads * layer.head_dim
        self.q_proj = linear(hidden, layer.num_heads * layer.head_dim, layer.biases)
        self.k_proj = linear(hidden, kv_size, layer.biases)
        self.v_proj = None if layer.value_is_key else linear(hidden, kv_size, layer.biases)
        self.o_proj = linear(layer.num_heads * layer.head_dim, hidden, layer.biases)
        self.q_norm, self.k_norm = (RMSNorm(layer.head_dim, eps, style) for _ in range(2))
        self.norm_values = style == "gemma"

    @property
    def head_norms(self) -> HeadNorms:
        """How kernels norm its heads."""
        norms = self.q_norm.weight, self.k_norm.weight
        return HeadNorms(*norms, self.k_norm.eps, rounded_first=not self.norm_values, norm_values=self.norm_values)

    def merge(self, *names: str) -> None:
        super().merge(*names)
        if self.together is not None:
            self.merge_norms(self.q_norm, self.k_norm)
            self._of_context = self.together.rows(self.q_proj.out_features, self.together.shape[0])

    def keys_values(self, x: Tensor, rope: RopeTable) -> tuple[Tensor, Tensor]:
        """[n, kv_heads, head_dim] each, of context rows or block rows x [n, hidden]."""
        n, head_dim = x.shape[0], self.config.head_dim
        if self.together is None:
            k = v = self.k_proj(x).view(n, -1, head_dim)
            if self.v_proj is not None:
                v = self.v_proj(x).view(n, -1, head_dim)
        else:
            heads, count = product(x, self._of_context).view(n, -1, head_dim), self.config.num_kv_heads
            k, v = heads[:, :count], heads[:, -count:]
        return apply_rope(self.k_norm(k), rope), rms_norm(v, None, self.k_norm.eps) if self.norm_values else v

    def _queries_keys_values(self, x: Tensor, rope: RopeTable) -> tuple[Tensor, Tensor, Tensor]:
        q = apply_rope(self.q_norm(self.q_proj(x).view(len(x), -1, self.config.head_dim)), rope)
        return q, *self.keys_values(x, rope)

    def store(self, x: Tensor, end: int, cache: LayerCache, frequencies: Tensor) -> None:
        """Writes the ``keys_values`` of context rows x [n, hidden] up to ``end`` into the cache, in two launches;
        merges the projections' weights in place."""
        of_values = [] if self.v_proj is None else [self.v_proj]
        qkv = side_by_side(self.q_proj, self.k_proj, *of_values)
        weight = qkv.rows(self.q_proj.out_features, qkv.shape[0])
        projected, bias = product(x, weight), biases_of(self.k_proj, *of_values)
        if bias is not None:
            projected = projected + bias
        stores, is_key = (cache.k, cache.v), self.config.value_is_key
        norm_rope_split(projected, self.head_norms, frequencies, stores, None, end, value_is_key=is_key)

    def forward(self, x: Tensor, start: int, cache: LayerCache, rope: RopeTable) -> Tensor:
        """Attends block rows x [n, hidden] at start .. start + n - 1 over the context and the block, whose own keys and
        values are not kept."""
        if self.together is None:
            q, block_k, block_v = self._queries_keys_values(x, rope)
        else:
            q, block_k, block_v = self.read_merged(self.together, x, rope, self.norm_values)
        k, v = cache.read(cache.first_visible(start), start)
        k = torch.cat((k, block_k.transpose(0, 1)), dim=1)
        v = torch.cat((v, block_v.transpose(0, 1)), dim=1)
        layer = self.config
        mixed = self.attend(q, k, v, causal=layer.causal, window=layer.window, scale=layer.scale)
        out: Tensor = self.o_proj(mixed)
        return out


class BlockConv(nn.Module):
    """DFlash 2's convolutions before and behind a branch. The branch's normed rows choose their weights."""

    def __init__(self, hidden: int, groups: int):
        super().__init__()
        self.base_kernel = nn.Parameter(torch.empty(2, CONV_TAPS, hidden))
        self.kernel_projection = linear(hidden, 2 * CONV_TAPS * groups)

    def forward(self, normed: Tensor, branch: Callable[[Tensor], Tensor]) -> Tensor:
        chosen = self.kernel_projection(normed)
        yielded = branch(reference_block_conv(normed, chosen, self.base_kernel, BEFORE))
        return reference_block_conv(yielded, chosen, self.base_kernel, BEHIND)


class BlockLayer(Protocol):
    """What is asked of a layer, whatever family it is of."""

    self_attn: DraftAttention
    mlp: GatedMLP
    input_layernorm: RMSNorm
    post_attention_layernorm: RMSNorm


class DraftLayer(nn.Module):
    def __init__(self, config: DFlashConfig, layer: AttentionConfig):
        super().__init__()
        hidden, eps = config.hidden_size, config.rms_norm_eps
        if config.second is not None:
            self.attention_conv = BlockConv(hidden, config.second.groups)
            self.mlp_conv = BlockConv(hidden, config.second.groups)
        self.convolves = config.second is not None
        self.self_attn = DraftAttention(layer, config)
        self.mlp = GatedMLP(hidden, config.intermediate_size, "silu")
        self.input_layernorm = RMSNorm(hidden, eps, "qwen")
        self.post_attention_layernorm = RMSNorm(hidden, eps, "qwen")

    def forward(self, x: Tensor, start: int, cache: LayerCache, rope: RopeTable) -> Tensor:
        attend = partial(self.self_attn, start=start, cache=cache, rope=rope)
        normed = self.input_layernorm(x)
        x = x + (self.attention_conv(normed, attend) if self.convolves else attend(normed))
        normed = self.post_attention_layernorm(x)
        out: Tensor = x + (self.mlp_conv(normed, self.mlp) if self.convolves else self.mlp(normed))
        return out


class DFlashDrafter(Drafter):
    """A DFlash drafter, which drafts a whole block in one pass."""

    branch_ends: ClassVar[tuple[str, ...]] = ("post_attention_layernorm.weight",)
    read_together = (("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj"))
    never_packed = ("codebook", "embed_tokens.weight", *STAY_FLOATS)  # of which single rows are looked up, or small
    config: DFlashConfig
    picker: Picker = ArgmaxPicker()
    """Picks the drafted ids from the logits."""

    def __init__(self, config: DFlashConfig):
        super().__init__()
        self.config = config
        self.fc = linear(len(config.target_layer_ids) * config.hidden_size, config.hidden_size)
        self.hidden_norm = RMSNorm(config.hidden_size, config.rms_norm_eps, config.norm_style)
        self.layers = nn.ModuleList(self._layer(layer) for layer in config.layers)
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps, config.norm_style)
        self._bring_tables(config.hidden_size)
        if config.second is not None:
            assert config.vocab_size is not None
            sizes = config.vocab_size, config.second.successors or config.vocab_size
            self.candidate_selector = CandidateSelector(config.hidden_size, *sizes, config.second.rank)
            self.picker = SelectorPicker(self.candidate_selector, config.block_size - 1)
        if config.markov is not None:
            assert config.vocab_size is not None
            drafted = config.tables.vocabulary or config.vocab_size
            parts = markov_parts(config.hidden_size, config.vocab_size, drafted, config.markov)
            self.markov_head, self.confidence_head = parts
            self.picker = MarkovPicker(*parts, config.block_size - 1)

    def _layer(self, layer: AttentionConfig) -> nn.Module:
        """Makes a ``BlockLayer``."""
        return DraftLayer(self.config, layer)

    @property
    def block_layers(self) -> list[BlockLayer]:
        return cast("list[BlockLayer]", list(self.layers))

    @property
    def conditioned(self) -> bool:
        return self.config.second is not None or self.config.markov is not None

    @property
    def in_8_bits(self) -> bool:
        return isinstance(weight_of(self.fc), Int8Weight)

    def prepare(self) -> None:
        # All layers of a drafter share one rotary embedding.
        self.frequencies = inverse_frequencies(self.config.layers[0].rope, self.norm.weight.device)
        second, ids = self.config.second, self.token_ids
        if second is not None and ids is not None and second.successors is None:
            selector = self.candidate_selector  # of all tokens that follow one only those count that are drafted
            selector.successor_codebook = nn.Parameter(selector.successor_codebook.detach()[ids], requires_grad=False)

    def draft_pass(self, target: TargetModel, cache: Cache, bound: DraftBinding) -> DFlashDraftPass:
        from . import draft_pass

        return draft_pass.DFlashDraftPass(self, target, cache, bound)

    def ingest(self, features: Tensor, cache: Cache) -> None:
        start, end = cache.length, cache.length + features.shape[0]
        rope = None if self.attention_backend == TRITON.name else self._rope(start, end, cache)
        context = self.hidden_norm(self.fc(features))
        cache.note_written(end)
        for layer, layer_cache in zip(self.block_layers, cache.attention, strict=True):
            if rope is None:
                layer.self_attn.store(context, end, layer_cache, self.frequencies)
            else:
                layer_cache.write(start, *layer.self_attn.keys_values(context, rope))
        cache.commit(end)

    def hidden(self, block: Tensor, cache: Cache, behind: Behind | None = None) -> Tensor:
        """Normed hidden states [n, hidden] of an embedded block [n, hidden] that starts at the cursor. ``behind``: what
        happens to the block behind each layer."""
        rope = self._rope(cache.length, cache.length + block.shape[0], cache)
        x = block
        for index, (layer, layer_cache) in enumerate(zip(self.layers, cache.attention, strict=True)):
            x = layer(x, cache.length, layer_cache, rope)
            x = x if behind is None else behind(x, index)
        normed: Tensor = self.norm(x)
        return normed

    def draft(self, target: TargetModel, anchor: int, block_size: int, cache: Cache) -> Draft:
        rows = self.rows(target, anchor, block_size, cache)
        return self.picker.pick(self.logits(target, rows), rows, anchor, self.token_ids)

    def probabilities(self, target: TargetModel, anchor: int, block_size: int, cache: Cache) -> Tensor:
        return self.logits(target, self.rows(target, anchor, block_size, cache)).softmax(dim=-1)

    def lattice(
        self, target: TargetModel, anchor: int, block_size: int, cache: Cache
    ) -> tuple[list[list[int]], Lattice]:
        _, edges = self.edges(target, anchor, block_size, cache)
        return edges.tokens.tolist(), edges.lattice()

    def edges(
        self, target: TargetModel, anchor: int, block_size: int, cache: Cache, candidates: Tensor | None = None
    ) -> tuple[Tensor, Edges]:
        """Of one that is ``conditioned``: fp32 logits [block_size - 1, vocabulary of its head], and the scores of pairs
        among the likeliest tokens, or among ``candidates`` int64 [block_size - 1, 16], as its head numbers them."""
        picker = self.picker
        assert isinstance(picker, SelectorPicker | MarkovPicker), "it scores no pairs"
        rows = self.rows(target, anchor, block_size, cache)
        logits = self.logits(target, rows)
        chosen = reference_candidates(logits, picker.others_count, candidates)
        return logits, picker.edges(chosen, rows, anchor, self.token_ids)

    def logits(self, target: TargetModel, rows: Tensor) -> Tensor:
        """fp32 logits [n, vocabulary of its head] of normed rows [n, hidden]."""
        return capped_logits(rows, self.head_of(target), self.config.logit_softcap)

    def rows(
        self, target: TargetModel, anchor: int, block_size: int, cache: Cache, behind: Behind | None = None
    ) -> Tensor:
        """Normed hidden states [block_size - 1, hidden], of the rows that draft: the j-th is about the j-th position
        behind the anchor. By default it stands there, without the shift by one of autoregressive models; where the
        first row drafts, it stands one before."""
        first = self.config.first_slot
        ids = torch.full((block_size - 1 + first,), self.config.mask_token_id, device=self.norm.weight.device)
        ids[0] = anchor
        return self.hidden(self.embed(target, ids), cache, behind)[first:]

    def embed(self, target: TargetModel, ids: Tensor) -> Tensor:
        """Embeddings [n, hidden] of a block, scaled exactly once: by the drafter's config, else as the target does."""
        scale = target.embedding_scale if self.config.embedding_scale is None else self.config.embedding_scale
        scaled: Tensor = self.embedding_of(target)(ids) * scale
        return scaled

    def _rope(self, start: int, end: int, cache: Cache) -> RopeTable:
        return rope_table(cache.positions(start, end), self.frequencies)
