"""Names and folders: which drafter belongs to which target, and what is said of names that are neither."""

from __future__ import annotations

import json
import math
import shlex
from contextlib import nullcontext
from pathlib import Path
from threading import Event

import gguf
import pytest
import torch
from filelock import FileLock
from huggingface_hub import constants
from safetensors import safe_open

from dflash_tui.core.advice import as_command
from engine.commands import WeightFormat
from engine.errors import WeightsFailure
from engine.files.shards import missing_weights
from engine.hub import blobs, own_drafters, pairs
from engine.hub.blobs import RemoteFile
from engine.hub.download import Repository
from engine.hub.environment import ENDPOINT, require_settings
from engine.hub.failures import explained
from engine.hub.fetching import Fetching
from engine.hub.own_drafters import OWN_DRAFTERS, PACKED, own_drafter, pack
from engine.hub.pairs import BUNDLED_PAIR, KNOWN_PAIRS, find_pair, is_here, known_drafter
from engine.models.family import KnownPair
from engine.models.registry import drafter_config_of, family_of
from tests.engine.published import published

OFFLINE = Fetching(offline=True)
MIXTURE = "google/gemma-4-26B-A4B-it"


def config_of(name: str) -> dict[str, object]:
    return published(name.rpartition("/")[2])


def write_config(folder: Path, config: object) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def refusal(name: str) -> WeightsFailure:
    with pytest.raises(WeightsFailure) as caught:
        find_pair(name, None, OFFLINE)
    assert caught.value.hint
    return caught.value


NAMED = ("Qwen/Qwen3.8-27B", "Qwen/Qwen3.5-27B", "Qwen/Qwen3.5-35B-A3B")
"""Targets of a shape that others have had since: by their names alone they are found."""


@pytest.mark.parametrize("pair", KNOWN_PAIRS, ids=lambda pair: pair.target)
def test_a_published_target_finds_its_drafter_by_shape(pair: KnownPair, tmp_path: Path) -> None:
    folder = pair.target.replace("/", "--") if pair.target in NAMED else "renamed"
    assert known_drafter(write_config(tmp_path / folder, config_of(pair.target))) == pair.drafter


@pytest.mark.parametrize(
    ("here", "found"),
    [
        ((), "DFlash"),
        (("DFlash",), "DFlash"),
        (("assistant",), "assistant"),
        (("DFlash", "assistant"), "DFlash"),
    ],
)
def test_an_assistant_drafts_where_it_alone_is_on_disk(
    here: tuple[str, ...], found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pairs, "is_here", lambda name: name.endswith(here))
    name = known_drafter(write_config(tmp_path / "renamed", config_of("gemma-4-31B-it")))
    assert name is not None and name.endswith(f"/gemma-4-31B-it-{found}")


@pytest.mark.parametrize("kind", ["mtp", "dflash"])
def test_a_drafter_is_asked_for_by_its_kind(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    named = {"mtp": "google/gemma-4-26B-A4B-it-assistant", "dflash": "z-lab/gemma-4-26B-A4B-it-DFlash"}
    with pytest.raises(WeightsFailure, match=f"{named[kind]} is not on this machine"):
        find_pair(str(write_config(tmp_path / "target", config_of("gemma-4-26B-A4B-it"))), kind, OFFLINE)


@pytest.mark.parametrize("target", [None, "gemma-4-12B-it"])
def test_a_target_without_an_assistant_is_told_of_those_with_one(target: str | None, tmp_path: Path) -> None:
    named = None if target is None else str(write_config(tmp_path / "target", config_of(target)))
    with pytest.raises(WeightsFailure, match=r"No MTP assistant is known.*26B-A4B-it, google/gemma-4-31B-it"):
        find_pair(named, "mtp", OFFLINE)


@pytest.mark.parametrize("pair", KNOWN_PAIRS, ids=lambda pair: pair.target)
def test_the_sizes_of_published_pairs(pair: KnownPair) -> None:
    with torch.device("meta"):
        config = config_of(pair.target)
        target = family_of(config).read_config(config, None).build()
        drafter = drafter_config_of(config_of(pair.drafter)).build()
    total = sum(parameter.numel() for model in (target, drafter) for parameter in model.parameters())
    assert pair.num_parameters == total


@pytest.mark.parametrize("config", [{}, {"text_config": []}, {"text_config": {"hidden_size": 2816}}])
def test_other_targets_have_no_known_drafter(config: object, tmp_path: Path) -> None:
    assert known_drafter(write_config(tmp_path, config)) is None


def test_the_bundled_pair_is_whole() -> None:
    pair = find_pair(None, None, OFFLINE)
    assert (pair.target, pair.drafter) == (BUNDLED_PAIR / "target", BUNDLED_PAIR / "drafter")
    assert pair.banner and pair.drafter is not None
    assert missing_weights(pair.target) is missing_weights(pair.drafter) is None


@pytest.mark.parametrize("name", OWN_DRAFTERS)
def test_a_drafter_that_comes_with_the_program(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is found for its target's shape and by its name, whole, without asking anybody."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    target = str(write_config(tmp_path / "renamed", config_of(name.removesuffix("-DFlash"))))
    folder = own_drafter(name)
    for drafter in (None, "dflash", name):
        found = find_pair(target, drafter, OFFLINE)
        assert (found.drafter, found.drafter_name) == (folder, name)
    assert find_pair(target, "none", OFFLINE).drafter is None
    assert is_here(name) and missing_weights(folder) is None
    assert json.loads((folder / "config.json").read_text()) == config_of(name)
    assert sum(path.stat().st_size for path in OWN_DRAFTERS[name].iterdir()) <= 16_500_000
    with safe_open(folder / "model.safetensors", "pt") as weights:
        shapes = {name: weights.get_slice(name).get_shape() for name in weights.keys()}  # noqa: SIM118 (no mapping)
    assert sum(math.prod(shape) for shape in shapes.values()) > 11_000_000


def test_half_a_model_is_not_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    model, revision = tmp_path / "models--somebody--model", "0123456789abcdef" * 2 + "01234567"
    for name in ("refs", "snapshots"):
        (model / name).mkdir(parents=True)
    folder = write_config(model / "snapshots" / revision, config_of("gemma-4-31B-it"))
    (model / "refs" / "main").write_text(revision)
    assert not is_here("somebody/model")
    (folder / "model.safetensors").touch()
    assert is_here("somebody/model")


@pytest.fixture
def packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A drafter of ours, packed, in a place of its own."""
    name = next(iter(OWN_DRAFTERS))
    kept = tmp_path / name
    kept.mkdir()
    (kept / "config.json").write_text("{}")
    (kept / "model.safetensors").write_bytes(bytes(range(256)) * 40 + b"odd")
    pack(kept)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setitem(own_drafters.OWN_DRAFTERS, name, kept)
    return kept


def test_a_packed_drafter_is_unpacked_once_and_to_the_bit(packed: Path) -> None:
    folder = own_drafter(packed.name)
    assert (folder / "model.safetensors").read_bytes() == bytes(range(256)) * 40 + b"odd"
    changed = folder.stat().st_mtime_ns
    assert own_drafter(packed.name) == folder and folder.stat().st_mtime_ns == changed
    assert not (packed / "model.safetensors").exists()


def test_a_drafter_that_is_missing_or_damaged_is_said(packed: Path, tmp_path: Path) -> None:
    (packed / PACKED).write_bytes((packed / PACKED).read_bytes()[:-20])
    with pytest.raises(WeightsFailure, match="damaged"):
        own_drafter(packed.name)
    (packed / PACKED).unlink()
    assert not is_here(packed.name)
    with pytest.raises(WeightsFailure, match="is not installed"):
        own_drafter(packed.name)
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


def test_going_without_a_drafter(tmp_path: Path) -> None:
    target = write_config(tmp_path / "target", config_of("gemma-4-26B-A4B-it"))
    for name in (None, str(target)):
        pair = find_pair(name, "none", OFFLINE)
        assert (pair.drafter, pair.drafter_name) == (None, None)


def test_a_pair_of_folders(tmp_path: Path) -> None:
    target, drafter = write_config(tmp_path / "target", {}), write_config(tmp_path / "drafter", {})
    alone, both = (find_pair(str(target), name, OFFLINE) for name in (None, str(drafter)))
    assert (alone.target, alone.drafter, alone.banner) == (target, None, "")
    assert (both.target, both.drafter, both.drafter_name) == (target, drafter, str(drafter))


@pytest.mark.parametrize("name", ["a/b/c", "no-slash-and-no-folder", "./missing", "~/missing", "/missing"])
def test_a_path_that_leads_nowhere(name: str) -> None:
    assert f"no folder {name}" in str(refusal(name))


@pytest.mark.parametrize("name", ["bad name/x y", "a/b\n", "a/..", "a/b--c"])
def test_something_that_is_not_a_name(name: str) -> None:
    assert "is not a model's name" in str(refusal(name))


@pytest.mark.parametrize(
    "address", ["hub", "http://[::1", "ftp://x", " ", "http://a\nb", "http://a b", "http://a\udcff"]
)
def test_what_is_no_address_is_told_as_such_and_not_as_a_proxy(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENDPOINT, address)
    with pytest.raises(WeightsFailure, match="no address of a hub"):
        require_settings()


@pytest.mark.parametrize("shard", ["", ".", "..", "../x", "/x", "a/../b", "a\0", 3, None])
def test_an_index_leads_nowhere_else(shard: object, tmp_path: Path) -> None:
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": shard}}))
    with pytest.raises(WeightsFailure, match="which file holds which tensor"):
        missing_weights(tmp_path)


@pytest.mark.parametrize("name", ["google/gemma-4-E2B-it", "google/gemma-4-E4B", "someone/Gemma4-e4b-GGUF"])
def test_models_that_are_known_to_be_refused_are_refused_before_the_network(name: str) -> None:
    with pytest.raises(WeightsFailure, match="per-layer embeddings") as caught:
        find_pair(name, None, OFFLINE)
    assert "google/gemma-4-26B-A4B-it" in caught.value.hint


def test_a_gguf_that_llama_cpp_runs_is_refused_with_the_two_commands(tmp_path: Path) -> None:
    names = {"hub/name-GGUF:Q4_K_M": "-hf hub/name-GGUF:Q4_K_M"}
    for file in ("model.gguf", "a b-00001-of-00002.gguf"):
        writer = gguf.GGUFWriter(tmp_path / file, "mamba")
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.close()
        names[str(tmp_path / file)] = f"-m {shlex.quote(str(tmp_path / file))}"
    for name, words in names.items():
        with pytest.raises(WeightsFailure) as caught:
            find_pair(name, None, OFFLINE)
        hint = caught.value.in_words(as_command)[1]
        assert f"llama-server {words} " in hint and "dflash-chat http://localhost:8080" in hint
    with pytest.raises(WeightsFailure, match=r"There is no file \./gone\.gguf"):
        find_pair("./gone.gguf", None, OFFLINE)


@pytest.mark.parametrize(
    ("here", "weights", "found"),
    [
        ((), "fp8", "RedHatAI/gemma-4-26B-A4B-it-FP8-Dynamic"),
        ((), "int4", "cyankiwi/gemma-4-26B-A4B-it-AWQ-4bit"),
        ((), "bf16", MIXTURE),
        ((), None, MIXTURE),
        ((MIXTURE,), "int4", MIXTURE),
        ((MIXTURE, "cyankiwi/gemma-4-26B-A4B-it-AWQ-4bit"), "int4", "cyankiwi/gemma-4-26B-A4B-it-AWQ-4bit"),
    ],
)
def test_a_format_finds_its_published_copy(
    here: tuple[str, ...], weights: WeightFormat | None, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless what was named is here, and the copy isn't."""
    monkeypatch.setattr(pairs, "is_here", lambda name: name in here)
    with pytest.raises(WeightsFailure, match=f"^{found} is not on this machine"):
        find_pair(MIXTURE, None, OFFLINE, weights)


@pytest.mark.parametrize("left", ["a lock", "a folder"])
def test_what_others_left_in_the_cache_is_named(left: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(blobs, "RETRY_SECONDS", 0.01)
    file = RemoteFile("some/model", "main", "model.safetensors", 8, "ab" * 32)
    lock = tmp_path / ".locks" / "models--some--model" / f"{file.sha256}.lock"
    (lock if left == "a folder" else lock.parent).mkdir(parents=True)
    held = nullcontext() if left == "a folder" else FileLock(lock)
    with held, pytest.raises(WeightsFailure) as refused, explained("some/model"):
        blobs.fetch_file(file, lambda count: None, Event())
    assert str(lock) in str(refused.value.hint)


def test_a_second_file_of_codes_is_fetched_with_its_drafter_alone(tmp_path: Path) -> None:
    """No index names the file in which Tencent's DSpine drafters have the codes of tokens."""
    names = ("config.json", "model.safetensors", "transfer.safetensors", "training/old.safetensors", "README.md")
    for architecture, wanted in (("DSpineDraftModel", 3), ("DFlashDraftModel", 2)):
        folder = write_config(tmp_path, {"architectures": [architecture]})
        files = {name: RemoteFile("tencent/One", "main", name, 1, None) for name in names}
        assert [file.name for file in Repository("tencent/One", files, folder).wanted()] == list(names[:wanted])
