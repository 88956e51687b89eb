"""A checkpoint's tokenizer as its files describe it, without ``transformers``, which takes seconds to import.

``transformers`` is what the files were written for, so its reading of them is the rule. What is read here comes out
the same; anything that would be more work than this is left to ``transformers``: ``read_tokenizer`` returns None.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import BPE

from .chat_template import ChatTemplate
from .files.word_splits import WORDS

NAMED = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
"""Special tokens that have a part, in ``tokenizer_config.json``."""

LEFT = ("auto_map", "split_special_tokens", "fix_mistral_regex", "init_inputs", "gguf_file")
"""Fields of ``tokenizer_config.json`` that ask for more than is done here."""


class _Pipeline(NamedTuple):
    """What a class of ``transformers`` builds around a checkpoint's vocabulary, whatever its file says."""

    normalizer: Any
    pre_tokenizer: Any
    decoder: Any
    model: dict[str, Any]
    named: dict[str, str]
    """Special tokens, where the checkpoint doesn't name them."""


def _pipelines() -> dict[str, _Pipeline | None]:
    """By ``tokenizer_class``; None where the file holds for everything."""
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
        """``named``: special tokens by their part, such as ``bos_token``; templates may write them."""
        self._tokenizer = tokenizer
        self._named = named
        self.chat_template = chat_template
        self.added_tokens_decoder: dict[int, AddedToken] = tokenizer.get_added_tokens_decoder()
        mask = named.get("mask_token")
        self.mask_token_id: int | None = None if mask is None else tokenizer.token_to_id(mask)

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
        self, messages: list[dict[str, str]], tokenize: bool, add_generation_prompt: bool, **said: Any
    ) -> str:
        assert not tokenize
        return self._template.render(messages, add_generation_prompt, **{**self._named, **said})


def read_tokenizer(folder: Path) -> FileTokenizer | None:
    """The tokenizer of a checkpoint; None where only ``transformers`` can say how it is meant, or what is wrong."""
    try:
        about = json.loads((folder / "tokenizer_config.json").read_text("utf-8"))
        if not isinstance(about, dict) or any(about.get(name) for name in LEFT):
            return None
        pipelines = _pipelines()
        kind = str(about.get("tokenizer_class")).removesuffix("Fast")
        if kind not in pipelines or (folder / "additional_chat_templates").exists():
            return None
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        template = about.get("chat_template")
        if (file := folder / "chat_template.jinja").exists():
            template = file.read_text("utf-8")
    except Exception:  # the tokenizers library raises a bare Exception for a damaged file
        return None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    named = _named(about, tokenizer, folder, pipelines[kind])
    if named is None or not isinstance(tokenizer.model, BPE) or not isinstance(template, str | None):
        return None
    if (pipeline := pipelines[kind]) is not None and not _is_built_so(tokenizer, pipeline):
        return None
    return FileTokenizer(tokenizer, named, template)


def _named(
    about: dict[str, Any], tokenizer: Tokenizer, folder: Path, pipeline: _Pipeline | None
) -> dict[str, str] | None:
    """Special tokens by their part; None where reading ``about`` would add a token, or change one."""
    added: dict[int, AddedToken] = tokenizer.get_added_tokens_decoder()
    if (listed := about.get("added_tokens_decoder")) is not None:
        if {int(index): AddedToken(**token) for index, token in listed.items()} != added:
            return None
    elif any((folder / name).exists() for name in ("special_tokens_map.json", "added_tokens.json")):
        return None
    said = {} if pipeline is None else dict(pipeline.named)
    said |= {name: _text(value) for name, value in about.items() if name in NAMED}
    said |= {name: value for name, value in about.items() if name.endswith("_token") and isinstance(value, str)}
    more = about.get("extra_special_tokens") or about.get("additional_special_tokens") or []
    for tokens in (about.get("model_specific_special_tokens") or {}, more if isinstance(more, dict) else {}):
        said |= {name: _text(value) for name, value in tokens.items()}
    named = {name: token for name, token in said.items() if token is not None}
    special = {token.content for token in added.values() if token == AddedToken(token.content, special=True)}
    others = [] if isinstance(more, dict) else map(_text, more)
    return named if special.issuperset((*named.values(), *others)) else None


def _text(token: Any) -> Any:
    """Of a token that is written as a table."""
    return token.get("content", "") if isinstance(token, dict) else token


def _is_built_so(tokenizer: Tokenizer, pipeline: _Pipeline) -> bool:
    """Whether building the pipeline around the file's vocabulary makes what the file describes."""
    model = tokenizer.model
    if any(getattr(model, name) != value for name, value in pipeline.model.items()):
        return False
    if model.dropout or model.continuing_subword_prefix or model.end_of_word_suffix or model.ignore_merges:
        return False
    parts = ("normalizer", "pre_tokenizer", "decoder")
    if any(_state(getattr(tokenizer, part)) != _state(getattr(pipeline, part)) for part in parts):
        return False
    # Tokens beyond the vocabulary get the next ids in order.
    size = tokenizer.get_vocab_size(with_added_tokens=False)
    behind = sorted(index for index in tokenizer.get_added_tokens_decoder() if index >= size)
    return behind == list(range(size, size + len(behind)))


def _state(part: Any) -> bytes | None:
    return None if part is None else part.__getstate__()
