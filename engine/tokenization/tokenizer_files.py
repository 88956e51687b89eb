"""Reads a checkpoint's tokenizer from its files, without ``transformers``, which takes seconds to import.

The files were written for ``transformers``, so its reading of them is the rule. What is read here comes out the same;
anything that would take more work is left to ``transformers``: ``read_tokenizer`` returns None."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import BPE

from ..files.word_splits import WORDS
from .chat_template import ChatTemplate

ASK_FOR_MORE = (
    "auto_map",
    "init_inputs",
    "fast_tokenizer_files",
    "add_prefix_space",
    "split_special_tokens",
    "fix_mistral_regex",
    "clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output",
)
"""Fields of ``tokenizer_config.json`` that change what the tokenizer's file says."""
OFFSETS_ONLY = {"trim_offsets"}
"""Fields of a part that don't change ids."""
ENCODING_ONLY = {"trim_offsets", "add_prefix_space", "use_regex"}
"""Fields that a decoder may have and that it ignores."""


class _Pipeline(NamedTuple):
    """The pipeline that a class of ``transformers`` builds around a checkpoint's vocabulary, whatever its file says."""

    normalizer: Any
    pre_tokenizer: Any
    decoder: Any
    model: dict[str, Any]
    named: dict[str, str]
    """Special tokens by part, where the checkpoint doesn't name them."""


def _pipelines() -> dict[str, _Pipeline | None]:
    """Pipelines by ``tokenizer_class``; None where the file holds as it is."""
    gemma = _Pipeline(
        normalizers.Replace(" ", "▁"),
        pre_tokenizers.Split(" ", "merged_with_previous"),
        decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]),
        {"unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True},
        {f"{name}_token": f"<{name}>" for name in ("unk", "bos", "eos", "pad", "mask")},
    )
    words = pre_tokenizers.Split(Regex(WORDS["qwen2"]), "isolated")
    qwen = _Pipeline(
        normalizers.NFC(),
        pre_tokenizers.Sequence([words, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]),
        decoders.ByteLevel(),
        {"unk_token": None, "fuse_unk": False, "byte_fallback": False},
        {f"{name}_token": "<|endoftext|>" for name in ("unk", "eos", "pad")},
    )
    return {"TokenizersBackend": None, "PreTrainedTokenizer": None, "GemmaTokenizer": gemma, "Qwen2Tokenizer": qwen}


class FileTokenizer:
    """The part of ``transformers``' tokenizers that this program uses, by the same names."""

    def __init__(self, tokenizer: Tokenizer, named: dict[str, str], chat_template: str | None) -> None:
        """``named``: special tokens by part, such as ``bos_token``, which templates may write."""
        self._tokenizer = tokenizer
        self.named = named
        self.chat_template = chat_template
        self.added_tokens_decoder: dict[int, AddedToken] = tokenizer.get_added_tokens_decoder()
        self.mask_token_id, self.eos_token_id = (
            None if token is None else tokenizer.token_to_id(token)
            for token in (named.get("mask_token"), named.get("eos_token"))
        )

    def __len__(self) -> int:
        return int(self._tokenizer.get_vocab_size(with_added_tokens=True))

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=add_special_tokens).ids
        return ids

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = False) -> str:
        return str(self._tokenizer.decode(ids, skip_special_tokens=skip_special_tokens))

    @cached_property
    def _template(self) -> ChatTemplate:
        return ChatTemplate(self.chat_template or "")

    def apply_chat_template(
        self, messages: list[dict[str, Any]], tokenize: bool, add_generation_prompt: bool, **variables: Any
    ) -> str:
        assert not tokenize
        return self._template.render(messages, add_generation_prompt, **{**self.named, **variables})


def read_tokenizer(folder: Path) -> FileTokenizer | None:
    """The tokenizer of a checkpoint; None where only ``transformers`` can say what is meant, or what is wrong."""
    try:
        return _read(folder)
    except Exception:  # the tokenizers library raises a bare Exception for a damaged file
        return None


def _read(folder: Path) -> FileTokenizer | None:
    about = json.loads((folder / "tokenizer_config.json").read_text("utf-8-sig"))
    kind, pipelines = about["tokenizer_class"].removesuffix("Fast"), _pipelines()
    if kind not in pipelines or any(about.get(name) for name in ASK_FOR_MORE):
        return None
    if (folder / "additional_chat_templates").exists():
        return None
    template = about.get("chat_template")
    if (file := folder / "chat_template.jinja").is_file():
        template = file.read_text("utf-8")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    pipeline = pipelines[kind]
    named = _named(about, {} if pipeline is None else pipeline.named)
    if not isinstance(tokenizer.model, BPE) or not isinstance(template, str | None):
        return None
    if not _holds(tokenizer, about, named, folder):
        return None
    if pipeline is not None and not _is_built_so(tokenizer, pipeline, about, named):
        return None
    return FileTokenizer(tokenizer, named, template)


def _named(about: dict[str, Any], otherwise: dict[str, str]) -> dict[str, str]:
    """Special tokens by part: those that the config names, otherwise the defaults."""
    tokens = otherwise | {
        name: _text(token)
        for name, token in about.items()
        if name.endswith("_token") and not isinstance(token, bool)  # such as add_bos_token, a flag
    }
    if isinstance(more := about.get("extra_special_tokens"), dict):
        tokens |= more
    return {name: token for name, token in tokens.items() if token is not None}


def _text(token: Any) -> Any:
    """The text of a token, which may be written as a table."""
    return token["content"] if isinstance(token, dict) and token.get("__type") == "AddedToken" else token


def _holds(tokenizer: Tokenizer, about: dict[str, Any], named: dict[str, str], folder: Path) -> bool:
    """Whether the tokenizer already has all special tokens with the ids that adding them would give."""
    added: dict[int, AddedToken] = tokenizer.get_added_tokens_decoder()
    if (listed := about.get("added_tokens_decoder")) is not None:
        if any(added.get(int(index)) != AddedToken(**token) for index, token in listed.items()):
            return False
    elif any((folder / name).exists() for name in ("special_tokens_map.json", "added_tokens.json")):
        return False
    if not (about.get("model_specific_special_tokens") or {}).items() <= named.items():
        return False
    more = about.get("extra_special_tokens") or about.get("additional_special_tokens") or []
    special = {token.content for token in added.values() if token == AddedToken(token.content, special=True)}
    return special.issuperset((*named.values(), *([] if isinstance(more, dict) else map(_text, more))))


def _is_built_so(tokenizer: Tokenizer, pipeline: _Pipeline, about: dict[str, Any], named: dict[str, str]) -> bool:
    """Whether ``transformers``' pipeline around the file's vocabulary is the one that the file describes."""
    model = tokenizer.model
    if any(getattr(model, name) != value for name, value in pipeline.model.items()):
        return False
    if model.unk_token is not None and named.get("unk_token") != model.unk_token:
        return False
    if model.dropout or model.continuing_subword_prefix or model.end_of_word_suffix or model.ignore_merges:
        return False
    for step, unheeded in (("normalizer", set()), ("pre_tokenizer", OFFSETS_ONLY), ("decoder", ENCODING_ONLY)):
        if _description(getattr(tokenizer, step), unheeded) != _description(getattr(pipeline, step), unheeded):
            return False
    # All are added to the bare vocabulary; those that it lacks get the next ids.
    added, size = tokenizer.get_added_tokens_decoder(), tokenizer.get_vocab_size(with_added_tokens=False)
    behind = sorted(index for index in added if index >= size)
    listed = about.get("added_tokens_decoder")
    return behind == list(range(size, size + len(behind))) and (listed is None or len(listed) == len(added))


def _description(section: Any, unheeded: set[str]) -> Any:
    """A part of a pipeline as its file describes it, without the fields named in ``unheeded``; None for no part."""

    def heeded(fields: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in fields.items() if name not in unheeded}

    return None if section is None else json.loads(section.__getstate__(), object_hook=heeded)
