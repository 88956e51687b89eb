"""Tokenizers read from their files, held against ``transformers``' reading of the same files."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jinja2 import TemplateError
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from engine.commands import Message
from engine.files.word_splits import WORDS
from engine.hub.pairs import BUNDLED_PAIR
from engine.models.registry import FAMILIES
from engine.tokenization.tokenizer import ChatTokenizer, by_transformers
from engine.tokenization.tokenizer_files import FileTokenizer, read_tokenizer
from support.checkpoints import SAMPLE_TEXT, write_tokenizer
from tests.pace import examples

TALK = [
    {"role": "user", "content": "Hi <b> \"you\" & 'me'"},
    {"role": "assistant", "content": "<think>\nhm\n</think>\n\nÜ?"},
]
SYSTEM = {"role": "system", "content": "Be brief.\n"}
GEMMA_PARTS = {
    **{"boa": "<|audio>", "eoa": "<audio|>", "audio": "<|audio|>", "boi": "<|image>", "eoi": "<image|>"},
    **{"image": "<|image|>", "soc": "<|channel>", "eoc": "<channel|>", "sot": "<|turn>", "eot": "<turn|>"},
    **{"std": "<|tool>", "etd": "<tool|>", "stc": "<|tool_call>", "etc": "<tool_call|>", "str": "<|tool_response>"},
    **{"etr": "<tool_response|>", "think": "<|think|>", "escape": '<|"|>'},
}
"""As Gemma 4's ``tokenizer_config.json`` names them."""
GEMMA = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", *GEMMA_PARTS.values(), "<|video|>"]
QWEN = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_pad|>"]
LLAMA = ["<|begin_of_text|>", "<|eot_id|>", "<|start_header_id|>"]


def write(folder: Path, tokenizer: Tokenizer, about: dict[str, Any], listed: bool = False) -> None:
    """``listed``: with all added tokens beside the other fields, as older checkpoints have them."""
    folder.mkdir(exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    if listed:
        added = tokenizer.get_added_tokens_decoder()
        about |= {"added_tokens_decoder": {index: token.__getstate__() for index, token in added.items()}}
    (folder / "tokenizer_config.json").write_text(json.dumps(about), "utf-8")


def specials(tokens: list[str]) -> list[AddedToken]:
    return [AddedToken(token, special=True) for token in tokens]


def as_gemma(folder: Path) -> None:
    """A tokenizer that puts spaces into its words, spells in bytes, and begins every text."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    spelled = [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=700, special_tokens=[*GEMMA, *spelled], show_progress=False)
    tokenizer.train_from_iterator([SAMPLE_TEXT] * 3, trainer)
    described = json.loads(tokenizer.to_str())
    kept = [token for token in described["added_tokens"] if token["content"] in GEMMA]
    tokenizer = Tokenizer.from_str(json.dumps(described | {"added_tokens": kept}))
    tokenizer.add_tokens([AddedToken("\n\n", normalized=False, special=False)])
    begun: Any = {"single": "<bos> $A", "pair": "<bos> $A <bos> $B", "special_tokens": [("<bos>", 2)]}
    tokenizer.post_processor = processors.TemplateProcessing(**begun)
    named = {f"{token.strip('<>')}_token": token for token in GEMMA[:5]}
    models_own = {f"{part}_token": token for part, token in GEMMA_PARTS.items()}
    more = {"extra_special_tokens": ["<|video|>"], "model_specific_special_tokens": models_own, "padding_side": "left"}
    more |= {"processor_class": "Gemma4Processor", "model_max_length": 10**30, "response_schema": {"type": "object"}}
    write(folder, tokenizer, {"tokenizer_class": "GemmaTokenizer", "backend": "tokenizers"} | named | models_own | more)


def as_qwen(folder: Path) -> None:
    """One whose config lists everything, the template too."""
    tokenizer = Tokenizer(models.BPE(continuing_subword_prefix="", end_of_word_suffix=""))
    tokenizer.normalizer = normalizers.NFC()
    bytes_ = pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(WORDS["qwen2"]), "isolated"), bytes_])
    tokenizer.post_processor = processors.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)
    learn_bytes(tokenizer)
    flags = {"add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    described = json.loads(tokenizer.to_str()) | {"decoder": {"type": "ByteLevel", **flags}}
    tokenizer = Tokenizer.from_str(json.dumps(described))
    tokenizer.add_special_tokens(specials(QWEN))
    tokenizer.add_tokens([AddedToken(token, special=False) for token in ("<think>", "</think>")])
    template = next(family for family in FAMILIES if "qwen3" in family.model_types).chat.template
    about = {
        "tokenizer_class": "Qwen2TokenizerFast",
        "add_bos_token": False,
        "add_prefix_space": False,
        "additional_special_tokens": QWEN[1:],
        "bos_token": None,
        "unk_token": None,
        "eos_token": "<|im_end|>",
        "pad_token": {"__type": "AddedToken"} | specials(QWEN[:1])[0].__getstate__(),
        "errors": "replace",
        "chat_template": template.read_text("utf-8"),
    }
    write(folder, tokenizer, about, listed=True)


def as_llama(folder: Path) -> None:
    """One for ``transformers``' general class, with files and flags that are not heeded."""
    tokenizer = Tokenizer(models.BPE(ignore_merges=True))
    split = pre_tokenizers.Split(Regex(WORDS["llama-bpe"]), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    learn_bytes(tokenizer)
    tokenizer.add_special_tokens(specials(LLAMA))
    bos = LLAMA[0]
    begun: Any = {"single": f"{bos} $A", "pair": f"{bos} $A {bos} $B"}
    begun["special_tokens"] = [(bos, tokenizer.token_to_id(bos))]
    tokenizer.post_processor = processors.TemplateProcessing(**begun)
    tokenizer.enable_truncation(5)
    about = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": bos, "eos_token": "<|eot_id|>"}
    write(folder, tokenizer, about | {"clean_up_tokenization_spaces": True, "add_bos_token": False}, listed=True)
    (folder / "special_tokens_map.json").write_text(json.dumps({"bos_token": "<|eot_id|>", "mask_token": "<new>"}))


def learn_bytes(tokenizer: Tokenizer) -> None:
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=330, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator([SAMPLE_TEXT] * 3, trainer)


def as_bundled(folder: Path) -> None:
    folder.mkdir()
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        shutil.copy(BUNDLED_PAIR / "target" / name, folder)


def as_small(folder: Path) -> None:
    folder.mkdir()
    write_tokenizer(folder)


@dataclass(frozen=True)
class Both:
    own: FileTokenizer
    theirs: Any


@pytest.fixture(scope="module", params=[as_bundled, as_small, as_gemma, as_qwen, as_llama])
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Both:
    folder = tmp_path_factory.mktemp("files") / "target"
    request.param(folder)
    own = read_tokenizer(folder)
    assert own is not None
    return Both(own, by_transformers(folder))


# --- tokens


def test_what_is_known_of_tokens(both: Both) -> None:
    own, theirs = both.own, both.theirs
    assert len(own) == len(theirs) and own.mask_token_id == theirs.mask_token_id
    assert own.added_tokens_decoder == theirs.added_tokens_decoder
    assert own.named == theirs.special_tokens_map
    assert own.chat_template == theirs.chat_template


@settings(max_examples=examples(60), deadline=None)
@given(data=st.data())
def test_any_text_and_any_tokens(data: st.DataObject, both: Both) -> None:
    text = data.draw(st.text(max_size=40))
    assert both.own.encode(text) == both.theirs.encode(text)
    ids = data.draw(st.lists(st.integers(0, len(both.own) - 1), max_size=20))
    for skip in (True, False):
        assert both.own.decode(ids, skip_special_tokens=skip) == both.theirs.decode(ids, skip_special_tokens=skip)


# --- chat templates

EVERYTHING = """\
{%- set seen = namespace(count=0, names=dict(a=1)) %}{{ bos_token }}{{ tools is none }}{{ documents is none }}
  {% for message in messages -%}
    {%- if message.role == 'system' %}{% continue %}{% endif %}
    {%- set seen.count = seen.count + 1 %}
    {% generation %}{{ message.content }}{% set inner = 1 %}{% endgeneration %}{{ inner is defined }}
    {{- message | tojson }}{{ message | tojson(indent=2, sort_keys=true) }}{{ '\\u00fc<' | tojson(ensure_ascii=true) }}
  {% endfor %}
{{ seen.count }}{{ seen.names }}{{ dict.fromkeys('ab', 2) }}{{ strftime_now('%Y') }}{{ enable_thinking is defined }}
{%- if messages | length > 2 %}{{ raise_exception('Too long: ' ~ messages | length) }}{% endif %}
"""
PUBLISHED = Path(__file__).parent / "configs" / "gemma-4-chat-template-2026-07-09.jinja"
OF_FAMILIES = sorted({family.chat.template for family in FAMILIES})
TEMPLATES = {path.parent.name: path.read_text("utf-8") for path in [PUBLISHED, *OF_FAMILIES]} | {
    "everything": EVERYTHING,
    "a missing name": "{{ missing.name }}",
    "no template": "{% if %}",
    "a way out": "{{ ''.__class__ }}",
}


def rendered(render: Callable[..., Any], talk: list[dict[str, str]], **said: Any) -> str:
    """Or how it is refused."""
    try:
        return str(render(talk, tokenize=False, **said))
    except TemplateError as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("name", TEMPLATES)
def test_templates(name: str, tmp_path: Path) -> None:
    as_small(tmp_path / "target")
    own, theirs = read_tokenizer(tmp_path / "target"), by_transformers(tmp_path / "target")
    assert own is not None
    own.chat_template = theirs.chat_template = TEMPLATES[name]
    for talk in (TALK[:1], TALK, [SYSTEM, *TALK[:1]], [SYSTEM, *TALK, *TALK]):
        for said in ({"enable_thinking": True}, {"enable_thinking": False, "reasoning_effort": "low"}, {}):
            for answering in (True, False):
                given_ = {"add_generation_prompt": answering, **said}
                expected = rendered(theirs.apply_chat_template, talk, **given_)
                assert rendered(own.apply_chat_template, talk, **given_) == expected


@pytest.mark.parametrize(
    "way_out", ["{% set n = namespace() %}{% set n._x = 1 %}", "{{ namespace(_x=1) }}", "{{ dict.mro() }}"]
)
def test_a_template_stays_in_its_sandbox(way_out: str, tmp_path: Path) -> None:
    as_small(tmp_path / "target")
    own = read_tokenizer(tmp_path / "target")
    assert own is not None
    own.chat_template = way_out
    with pytest.raises(TemplateError):
        own.apply_chat_template(TALK, tokenize=False, add_generation_prompt=True)


# --- what is left to transformers


@pytest.mark.parametrize(
    ("layout", "change"),
    [
        (as_small, {"tokenizer_class": "LlamaTokenizer"}),
        (as_small, {"tokenizer_class": None}),
        (as_small, {"tokenizer_class": "GemmaTokenizer"}),
        (as_small, {"eos_token": "<new>"}),
        (as_small, {"extra_special_tokens": ["<new>"]}),
        (as_small, {"extra_special_tokens": {"image_token": "<new>"}}),
        (as_small, {"bos_token": {"__type": "AddedToken", "content": "<new>"}}),
        (as_small, {"model_specific_special_tokens": {"end_token": "<eos>"}}),
        (as_small, {"added_tokens_decoder": {"2": {"content": "<bos>", "lstrip": True, "special": True}}}),
        (as_small, {"split_special_tokens": True}),
        (as_small, {"chat_template": [{"name": "default", "template": "x"}]}),
        (as_gemma, {"unk_token": "<pad>"}),
        (as_qwen, {"add_prefix_space": True}),
        (as_qwen, {"tokenizer_class": "GemmaTokenizer"}),
    ],
)
def test_anything_else_is_left_to_transformers(
    layout: Callable[[Path], None], change: dict[str, Any], tmp_path: Path
) -> None:
    layout(folder := tmp_path / "target")
    (folder / "chat_template.jinja").unlink(missing_ok=True)
    about = folder / "tokenizer_config.json"
    assert read_tokenizer(folder) is not None
    about.write_text(json.dumps(json.loads(about.read_text("utf-8")) | change), "utf-8")
    assert read_tokenizer(folder) is None


@pytest.mark.parametrize("name", ["special_tokens_map.json", "added_tokens.json", "additional_chat_templates"])
def test_files_that_may_add_to_it_are_left_to_transformers(name: str, tmp_path: Path) -> None:
    as_small(tmp_path / "target")
    (tmp_path / "target" / name).write_text("{}")
    assert read_tokenizer(tmp_path / "target") is None


def test_a_token_that_only_the_config_names(tmp_path: Path) -> None:
    as_small(folder := tmp_path / "target")
    about = folder / "tokenizer_config.json"
    about.write_text(json.dumps(json.loads(about.read_text("utf-8")) | {"eos_token": "<new>"}), "utf-8")
    tokenizer = ChatTokenizer(folder)
    ids = tokenizer.raw_prompt("Hi<new>").ids
    assert ids[-1] == tokenizer.size - 1 and ids[-1] in tokenizer.special_ids
    assert tokenizer.decode(ids) == "Hi" and tokenizer.prompt([Message("user", "Hi")], thinking=False).ids
