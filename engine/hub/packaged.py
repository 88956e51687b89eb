"""Uses models that installed packages carry as GGUF files: such a file holds all that a checkpoint's folder does, in
other words, so that folder is written once, beside a link to the file."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

from ..errors import WeightsFailure
from ..files.cache_folder import cache_folder
from ..files.gguf import PART, Gguf, in_llama_cpp, read_gguf
from ..files.headers import damaged
from ..files.word_splits import DIGITS_APART, WORDS
from ..models.family import Json
from ..models.registry import FAMILIES
from .own_drafters import made_whole

TOKENS, MERGES, TYPES = (f"tokenizer.ggml.{name}" for name in ("tokens", "merges", "token_type"))
CONTROL, OF_USERS = 3, 4
"""Types of tokens that text is never split into: those for the model alone, and those that are text."""
NAMED_TOKENS = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}
"""Special tokens: names in ``tokenizer_config.json``, and in GGUF files."""
FORMAT = 1
"""The version of the way in which the folder is written."""


def packaged_folder(package: str) -> Path | None:
    """A folder like those of published checkpoints, for the one GGUF file in a package; None where that isn't
    installed. Raises ``WeightsFailure`` for a file that is damaged, or of a family whose files the engine can't read
    alone, and where the folder can't be written."""
    spec = find_spec(package)
    files = [] if spec is None or spec.origin is None else sorted(Path(spec.origin).parent.glob("*.gguf"))
    return folder_of(files[0]) if len(files) == 1 else None


def folder_of(path: Path) -> Path:
    """The folder for one file. It is written once for every state of the file."""
    status = path.stat()
    state = sha256(f"{FORMAT}\0{path}\0{status.st_size}\0{status.st_mtime_ns}".encode()).hexdigest()[:16]
    folder = cache_folder("models") / f"{path.stem}-{state}"
    if not (folder / "config.json").exists():
        _write(path, folder)
    return folder


def _write(path: Path, folder: Path) -> None:
    if PART.search(path.name):
        raise WeightsFailure(
            f"{path.name} is one of a model's parts; the engine reads whole files.", in_llama_cpp(path)
        )
    file = read_gguf(path, whole=(TOKENS, MERGES, TYPES))
    config, tokenizer = _config(path, file), _tokenizer(path, file)
    about = _about_tokens(file)

    def fill(made: Path) -> None:
        for name, content in (("config.json", config), ("tokenizer_config.json", about)):
            (made / name).write_text(json.dumps(content, indent=1), "utf-8")
        (made / "tokenizer.json").write_text(tokenizer, "utf-8")
        if isinstance(template := file.fields.get("tokenizer.chat_template"), str):
            (made / "chat_template.jinja").write_text(template, "utf-8")
        try:
            (made / path.name).symlink_to(path.absolute())
        except OSError:  # links aren't allowed here
            shutil.copy(path, made)

    made_whole(folder, fill)


def _config(path: Path, file: Gguf) -> Json:
    readable = {
        family.gguf.architecture: family.gguf.config
        for family in FAMILIES
        if family.gguf is not None and family.gguf.config is not None
    }
    if file.architecture not in readable:
        what = f"a model of the architecture {file.architecture!r}"
        raise _unread(path, what, readable)
    return readable[file.architecture](file)


def _about_tokens(file: Gguf) -> Json:
    """Makes the contents of ``tokenizer_config.json`` of what a GGUF file says."""
    tokens = file.fields[TOKENS]
    ids = {name: file.fields.get(f"tokenizer.ggml.{key}_token_id") for name, key in NAMED_TOKENS.items()}
    named = {f"{name}_token": tokens[index] for name, index in ids.items() if index in range(len(tokens))}
    return {"tokenizer_class": "TokenizersBackend", "clean_up_tokenization_spaces": False, **named}


def _tokenizer(path: Path, file: Gguf) -> str:
    """Makes ``tokenizer.json``: byte-pair encoding that splits words as the file's name for its splits says."""
    kind, words = file.fields.get("tokenizer.ggml.model"), str(file.fields.get("tokenizer.ggml.pre"))
    if kind != "gpt2":
        raise _unread(path, f"a file with a tokenizer of the kind {kind!r}", ["gpt2"])
    if words not in WORDS and words not in DIGITS_APART:
        raise _unread(path, f"a file whose tokenizer splits words as {words!r} does", [*WORDS, *DIGITS_APART])
    try:
        return _built(file, words)
    except Exception as error:  # the tokenizers library raises a bare Exception
        raise damaged(path, f"its tokenizer: {type(error).__name__}: {error}") from None


def _built(file: Gguf, words: str) -> str:
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

    tokens, types = file.fields[TOKENS], file.fields[TYPES]
    merges = [tuple(merge.split(" ", 1)) for merge in file.fields[MERGES]]
    vocabulary = {token: index for index, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, ignore_merges=words == "llama-bpe"))
    split = pre_tokenizers.Split(Regex(WORDS[DIGITS_APART.get(words, words)]), behavior="isolated")
    bytes_ = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    digits = [pre_tokenizers.Digits(individual_digits=True)] if words in DIGITS_APART else []
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*digits, split, bytes_])
    tokenizer.decoder = decoders.ByteLevel()
    added = [(token, kind) for token, kind in zip(tokens, types, strict=True) if kind in (CONTROL, OF_USERS)]
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token, kind in added if kind == CONTROL])
    tokenizer.add_tokens([AddedToken(token, special=False) for token, kind in added if kind == OF_USERS])
    return str(tokenizer.to_str())


def _unread(path: Path, what: str, known: Iterable[str]) -> WeightsFailure:
    return WeightsFailure(
        f"{path.name} is {what}; of files without config.json the engine reads {', '.join(known)}.",
        in_llama_cpp(path),
    )
