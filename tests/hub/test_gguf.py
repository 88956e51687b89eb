"""GGUF repositories: which file is meant, and fetching it."""

from __future__ import annotations

from pathlib import Path

import pytest

from dflash_tui.llamacpp.plan import is_companion
from engine.errors import DeviceFailure, WeightsFailure
from engine.hub.fetching import Fetching
from engine.hub.gguf import GgufFile, choose, companion_of, find_gguf, grouped, is_gguf
from tests.hub.conftest import Computer, noise
from tests.hub.server import FakeHub, Repo, Trouble

GB = 10**9
SIZES = {
    "gemma-4-26B-A4B-it-UD-Q2_K_XL.gguf": 10 * GB,
    "gemma-4-26B-A4B-it-Q4_0.gguf": 15 * GB,
    "gemma-4-26B-A4B-it-Q4_K_M.gguf": 17 * GB,
    "gemma-4-26B-A4B-it-Q8_0.gguf": 27 * GB,
    "BF16/gemma-4-26B-A4B-it-BF16-00001-of-00002.gguf": 49 * GB,
    "BF16/gemma-4-26B-A4B-it-BF16-00002-of-00002.gguf": 2 * GB,
    "mmproj-F16.gguf": 1 * GB,
    "config.json": 1000,
}
FILES = grouped(SIZES)
NAME = "hub/gemma-4-26B-A4B-it-GGUF"


def test_what_a_gguf_is_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("model.gguf", "some/where/MODEL.GGUF", NAME, f"{NAME}:Q4_K_M", "hub/x-qat-q4_0-gguf:file.gguf"):
        assert is_gguf(name)
    for name in (None, "google/gemma-4-26B-A4B-it", "./folder", "http://localhost:8000"):
        assert not is_gguf(name)
    Path("hub/x-GGUF").mkdir(parents=True)
    assert not is_gguf("hub/x-GGUF"), "a folder is a checkpoint of the engine's"


def test_files_are_grouped() -> None:
    assert [file.tag for file in FILES] == ["BF16", "Q4_0", "Q4_K_M", "Q8_0", "UD-Q2_K_XL"]
    whole = FILES[0]
    assert (len(whole.parts), whole.num_bytes, whole.model) == (2, 51 * GB, "gemma-4-26B-A4B-it")


@pytest.mark.parametrize(("memory", "tag"), [(64, "Q4_K_M"), (18, "Q4_0"), (12, "UD-Q2_K_XL")])
def test_the_memory_chooses(memory: int, tag: str) -> None:
    chosen, (remark,) = choose(NAME, FILES, None, memory * GB)
    assert chosen.tag == tag and chosen.name in remark and f"{NAME}:" in remark


def test_weights_that_were_trained_in_four_bits_come_first() -> None:
    files = grouped({"gemma-q4_0.gguf": 15 * GB, "gemma-Q4_K_M.gguf": 17 * GB})
    assert choose("google/gemma-4-26B-A4B-it-qat-q4_0-gguf", files, None, 64 * GB)[0].tag == "q4_0"


def test_none_fits() -> None:
    with pytest.raises(DeviceFailure, match=r"fits into the 8\.0 GB") as caught:
        choose(NAME, FILES, None, 8 * GB)
    assert f"{NAME}:gemma-4-26B-A4B-it-UD-Q2_K_XL.gguf   10.0 GB" in caught.value.hint


def test_one_is_named() -> None:
    for wanted in ("Q8_0", "q8_0", "gemma-4-26B-A4B-it-Q8_0.gguf", "it-q8"):
        assert choose(NAME, FILES, wanted, 1)[0].tag == "Q8_0"
    with pytest.raises(WeightsFailure, match=r"2 files .* could be meant by Q4") as caught:
        choose(NAME, FILES, "Q4", 64 * GB)
    assert caught.value.hint.count(f"{NAME}:") == 2
    with pytest.raises(WeightsFailure, match="no GGUF file Q5_K_M"):
        choose(NAME, FILES, "Q5_K_M", 64 * GB)


def test_several_models_in_one_place_are_ambiguous() -> None:
    files = grouped({"E2B-Q4_0.gguf": 2 * GB, "E4B-Q4_0.gguf": 4 * GB})
    with pytest.raises(WeightsFailure, match="several models") as caught:
        choose("hub/two-GGUF", files, None, 64 * GB)
    assert "E2B-Q4_0.gguf" in caught.value.hint and "E4B-Q4_0.gguf" in caught.value.hint


def test_a_drafter_in_the_same_place_comes_along() -> None:
    target = choose(NAME, FILES, "Q4_0", 64 * GB)[0]
    drafters = grouped({"mtp-x-Q8_0.gguf": GB, "x-DFlash-Q8_0.gguf": GB, "x-DFlash-BF16.gguf": 2 * GB})
    found = companion_of(target, drafters, 64 * GB)
    assert found is not None and found.name == "x-DFlash-Q8_0.gguf"
    assert companion_of(target, drafters, 17 * GB) is None, "there is no room for both"
    assert companion_of(target, [GgufFile("draft.gguf", ("draft.gguf",), 14 * GB)], 64 * GB) is None, "nor a small one"


MODEL, DRAFTER = noise(900_000, 1), noise(200_000, 2)
REPO = {"tiny-Q4_0.gguf": MODEL, "tiny-Q8_0.gguf": noise(1_200_000, 3), "tiny-DFlash.gguf": DRAFTER, "README.md": b"#"}


def test_pulling_goes_on_where_it_broke_off(hub: FakeHub, computer: Computer) -> None:
    hub.repos["hub/tiny-GGUF"] = Repo(REPO)
    hub.troubles["tiny-Q4_0.gguf"] = Trouble(cut_after=[300_000, 200_000])
    done = computer.run("pull", "hub/tiny-GGUF")
    assert done.returncode == 0, done.stderr
    path = Path(done.stdout.strip())
    assert path.read_bytes() == MODEL and path.with_name("tiny-DFlash.gguf").read_bytes() == DRAFTER
    assert "tiny-Q4_0.gguf, 0.0 GB of 2 files" in done.stderr
    assert [sent.start for sent in hub.sent_of("tiny-Q4_0.gguf")] == [0, 300_000, 500_000]
    assert not hub.sent_of("tiny-Q8_0.gguf")


def test_what_is_here_is_not_asked_for_again(hub: FakeHub, computer: Computer, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.repos["hub/tiny-GGUF"] = Repo(REPO)
    assert computer.run("pull", "hub/tiny-GGUF:Q8_0").returncode == 0
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(computer.cache))
    offline = Fetching(offline=True)
    for name in ("hub/tiny-GGUF", "hub/tiny-GGUF:Q8_0"):
        path, remarks = find_gguf(name, 64 * GB, is_companion, offline)
        assert path.name == "tiny-Q8_0.gguf" and path.is_file() and not remarks
    with pytest.raises(WeightsFailure, match="offline mode forbids"):
        find_gguf("hub/tiny-GGUF:Q4_0", 64 * GB, is_companion, offline)


def test_a_name_that_the_hub_does_not_know(computer: Computer) -> None:
    done = computer.run("pull", "hub/nothing-GGUF")
    assert done.returncode == 3 and "The hub has no model hub/nothing-GGUF" in done.stderr
