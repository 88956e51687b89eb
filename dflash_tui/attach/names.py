"""What the names in servers' events mean: the tables by which they are read. What stands in none of them is told as not
understood."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

THINKING = ("reasoning_content", "reasoning", "thinking", "reasoning_text", "reasoning_details", "thought", "thoughts")
"""Fields in which a message holds its thought; the same thought may stand in two of them."""
WRITTEN = (
    "content", "refusal", "text", "output_text", "transcript", "response", "completion", "generated_text", "answer",
    "parts", "value", "summary",
)  # fmt: skip
"""Fields in which a message or a part holds what is said."""
TOOLS = ("tool_calls", "function_call", "tool_call", "functioncall", "tool_use")
ENDS = ("finish_reason", "finishreason", "stop_reason", "done_reason", "stop_type")
ERRORS = frozenset(
    {"error", "errors", "exception", "base_resp", "fault", "error_message", "error_msg", "errormessage", "errmsg"}
)
"""Names of what is an error wherever it stands."""
FLAGS = ("thought", "thinking", "reasoning", "is_thought", "is_thinking", "is_reasoning", "isthought")
"""Fields that say of a message's text, by being true, that it is a thought."""
KINDS = ("type", "channel", "phase", "role", "kind")
"""Fields in which a message or a part says what it is."""
THOUGHT_KINDS = frozenset({
    "thinking", "reasoning", "thought", "redacted_thinking", "summary_text", "reasoning_text", "thinking_delta",
    "analysis", "think",
})  # fmt: skip
TEXT_KINDS = frozenset({
    "", "text", "output_text", "refusal", "message", "input_text", "markdown", "text_delta", "assistant", "model",
    "final",
})  # fmt: skip
SILENT_KINDS = frozenset({
    "reference", "citation", "annotations", "signature", "signature_delta", "step-start", "tool_reference",
})  # fmt: skip
"""Kinds of parts that add nothing to what is said."""
FAILED = frozenset({"error", "failed", "failure", "exception", "fail"})
"""What an event calls itself that is an error."""
SILENT = frozenset({
    *KINDS, *ENDS, "id", "object", "model", "created", "index", "system_fingerprint", "service_tier", "provider",
    "event", "native_finish_reason", "logprobs", "usage", "usagemetadata", "timings", "metrics", "signature",
    "annotations", "citations", "search_results", "sources", "prompt_filter_results", "content_filter_results",
    "x_groq", "obfuscation", "name", "matched_stop", "token_ids", "prompt_token_ids", "generation_settings",
    "prompt", "stopping_word", "__verbose", "dflash", "sglext", "meta_info", "stats", "prompt_progress",
    "request_id", "trace_id", "timestamp", "created_at", "model_version", "modelversion", "responseid", "version",
    "nonce", "citationmetadata", "safetyratings", "encrypted_content", "kv_transfer_params", "tokens", "images",
    "audio", "prompt_logprobs", "url", "images_base64",
})  # fmt: skip
"""Fields whose words are said to nobody."""
NOTHING = re.compile(
    r"\W*+(ping|pong|keep.?alive|heart.?beat|(\w+ )?processing|queued|pending|waiting|in.progress|started?|ok|success|"
    r"alive|null|none|true|false|open|connected|noop|nop|\d*)\W*",
    re.IGNORECASE,
)
"""Matches what is a sign of life and says nothing."""
CUT = frozenset({"length", "max_tokens", "model_length", "limit", "max_output_tokens", "max_new_tokens"})
FULL = frozenset(
    {"context_length_exceeded", "model_context_window_exceeded", "context_length", "context", "context_full"}
)
FILTERED = frozenset({
    "content_filter", "safety", "recitation", "blocklist", "prohibited_content", "sensitive", "refusal", "spii",
})  # fmt: skip
BROKEN = frozenset({
    "error", "abort", "aborted", "failed", "cancelled", "canceled", "insufficient_system_resource", "timeout",
    "network_error", "malformed_function_call", "engine_error", "unknown_error",
})  # fmt: skip


@lru_cache(1 << 12)
def plain_name(name: str) -> str:
    return name.lower().replace("-", "_")


def named(value_: Any) -> dict[str, Any]:
    """An object's fields, by their names in small letters, without those that are empty."""
    fields = value_.items() if isinstance(value_, dict) else ()
    return {plain_name(name): value for name, value in fields if value not in (None, "", [], {})}
