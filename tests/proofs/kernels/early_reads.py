"""What kernels that start early may read before they wait for the kernel in front of them."""

from __future__ import annotations

UNCHANGING = {
    *("weight", "scales", "dense_weight", "dense_scales", "down"),
    *("norms", "frequencies", "q_weight", "k_weight", "bias", "sinks"),
    *("post_attention", "pre_feed_forward", "pre_experts", "router_scale"),
    *("post_dense", "post_experts", "post_feed_forward", "layer_scalar", "next_norm", "table"),
    *("embedded_norm", "hidden_norm", "gate"),
}
"""Arguments that no kernel writes."""
OLDER = {
    "_attend_window": {"cursor", "rows", "depths", "paths", "trunk"},
    "_attend_one_row": {"cursor", "rows", "k", "v"},
    "_attend_full": {"cursor", "rows", "trunk"},
    "_attend_full_one_row": {"cursor", "rows", "k", "v"},
    "_combine_splits": {"cursor", "rows", "depths"},
    "_norm_rope_store": {"cursor", "rows", "depths"},
    "_expert_down": {"experts", "pairs"},
    "_add_and_norm": {"residual"},
    "_inject_and_norm": {"residual"},
    "_after_attention": {"residual"},
    "_after_feed_forward": {"residual"},
    "_after_experts": {"residual", "normed", "partials"},
    "_gate_heads": {"gates"},
    "_scan": {"states"},
    "_norm_and_gate": {"projected"},
}
"""Arguments that neither the kernel just before writes: a round writes the cursor, the rows and their tree before the
embedding, the choice of experts is made two launches before, and the residual is that of the row kernel before, as what
it normed, or of the layer whose states are read and written to; attention runs between the product of gates and them,
the experts' down between the shared expert's and what joins them; a pass's first launches take rows into states, and
what a layer that recurs projects is prepared and scanned before it gates. Of keys and values only those before the
cursor are read: each came in an earlier pass, or before the block's."""
OF_EXPERTS = {"_after_feed_forward": {"partials"}}
"""Likewise of a kernel that reads the scales ``post_experts``: the experts' down runs between the dense one and it."""


def waits_in_time(kernel: str, read: frozenset[str]) -> bool:
    """Whether a kernel that reads these arguments before it waits finds them written."""
    older = OLDER.get(kernel, set())
    if "post_experts" in read:
        older = older | OF_EXPERTS.get(kernel, set())
    return read <= UNCHANGING | older
