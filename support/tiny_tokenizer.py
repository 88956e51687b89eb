"""A tokenizer for tiny checkpoints: byte-pair encoding with digits apart, runs of spaces together, and Gemma's special
tokens at their published ids. The line break comes right after them (107)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from engine.hub.pairs import BUNDLED_PAIR

PAD, EOS, BOS, UNK, MASK, TURN_END = 0, 1, 2, 3, 4, 106
SPECIAL_TOKENS = {
    PAD: "<pad>", EOS: "<eos>", BOS: "<bos>", UNK: "<unk>", MASK: "<mask>", 46: "<|tool>", 47: "<tool|>",
    48: "<|tool_call>", 49: "<tool_call|>", 50: "<|tool_response>", 51: "<tool_response|>", 52: '<|"|>',
    98: "<|think|>", 100: "<|channel>", 101: "<channel|>", 105: "<|turn>", TURN_END: "<turn|>",
}  # fmt: skip
FIRST_TEXT_ID = TURN_END + 1
WORDS = r"\n+|▁+(?=▁)|▁?[A-Za-z]+|[0-9]|▁?[^\sA-Za-z0-9▁]+|▁"
"""Matches the words that merges never cross."""


def train_tokenizer(texts: Iterable[str], vocab_size: int) -> Tokenizer:
    """Learns the merges from ``texts``; the last 256 ids are the bytes that spell whatever the merges can't."""
    unused = (id for id in range(FIRST_TEXT_ID) if id not in SPECIAL_TOKENS)
    reserved = SPECIAL_TOKENS | {id: f"<unused{n}>" for n, id in enumerate(unused)}
    tokenizer = Tokenizer(models.BPE(unk_token=SPECIAL_TOKENS[UNK], byte_fallback=True, fuse_unk=True))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(WORDS), behavior="isolated")
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()],
    )
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size - 256,
        special_tokens=[reserved[id] for id in range(FIRST_TEXT_ID)],
        initial_alphabet=["\n", "▁", *map(chr, range(0x21, 0x7F))],
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return _with_bytes_and_specials(tokenizer, vocab_size)


def _with_bytes_and_specials(trained: Tokenizer, vocab_size: int) -> Tokenizer:
    """Appends the byte tokens, pads the vocabulary to its size, and keeps only real special tokens special."""
    data: dict[str, Any] = json.loads(trained.to_str())
    vocab: dict[str, int] = data["model"]["vocab"]
    while len(vocab) < vocab_size - 256:  # a small corpus can run out of merges
        vocab[f"<filler{len(vocab)}>"] = len(vocab)
    vocab |= {f"<0x{byte:02X}>": vocab_size - 256 + byte for byte in range(256)}
    data["added_tokens"] = [token for token in data["added_tokens"] if token["id"] in SPECIAL_TOKENS]
    tokenizer = Tokenizer.from_str(json.dumps(data))
    assert tokenizer.token_to_id("\n") == FIRST_TEXT_ID and tokenizer.get_vocab_size() == vocab_size
    return tokenizer


def save_tokenizer(tokenizer: Tokenizer, folder: Path, max_positions: int) -> None:
    """Writes ``tokenizer.json``, ``tokenizer_config.json`` and the chat template, as a Gemma 4 checkpoint has them.

    The class is the generic backend: a model-specific one would rebuild the pipeline without our word pattern.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    named = {"pad": PAD, "eos": EOS, "bos": BOS, "unk": UNK, "mask": MASK}
    config = {f"{name}_token": SPECIAL_TOKENS[id] for name, id in named.items()} | {
        "tokenizer_class": "TokenizersBackend",
        "clean_up_tokenization_spaces": False,
        "model_max_length": max_positions,
        "padding_side": "left",
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")
    (folder / "chat_template.jinja").write_text((BUNDLED_PAIR / "target" / "chat_template.jinja").read_text())
