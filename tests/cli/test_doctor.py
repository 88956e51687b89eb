"""``dflash-chat doctor``: facts as a list and as JSON, and an exit code that tells what is broken."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib import metadata
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from dflash_tui.cli.commands import doctor
from dflash_tui.core.exit_codes import ExitCode
from engine.errors import WeightsFailure
from engine.hub.sizes import size_of
from engine.tools import doctor as engine_doctor
from engine.tools.doctor import Finding
from engine.tools.gpus import Gpu
from support.eagle import eagle_config

from .conftest import Program

ROOT = Path(__file__).parents[2]


@pytest.fixture
def report(program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    snapshot = tmp_path / "cache" / "models--some--model" / "snapshots" / "0123"
    for folder in (snapshot, snapshot.parents[1] / "blobs", snapshot.parents[1] / "refs"):
        folder.mkdir(parents=True)
    (snapshot.parents[1] / "refs" / "main").write_text("0123")
    (snapshot / "config.json").write_text("{}")
    (snapshot.parents[1] / "blobs" / "weights.incomplete").write_bytes(b"x" * 1000)
    program.run("doctor", "--json")
    content: dict[str, Any] = json.loads(program.out)
    return {**content, "code": program.code}


def test_the_facts_of_a_machine_that_works(report: dict[str, Any], tmp_path: Path) -> None:
    assert report["code"] == ExitCode.OK
    assert report["versions"]["torch"] == version("torch") and report["versions"]["textual"] == version("textual")
    assert report["attention"]["sdpa"] is True
    assert report["attention"]["triton"] is (report["gpu"]["usable"] and report["versions"]["triton"] is not None)
    assert report["models"]["bundled_pair"] == "dflash-demo"
    assert report["models"]["cache"] == str(tmp_path / "cache") and report["models"]["cache_free_bytes"] > 0
    assert report["machine"]["memory_bytes"] > 1e9
    assert not any(remark["standing"] == "broken" for remark in report["remarks"])


def test_an_unfinished_download_is_named(report: dict[str, Any]) -> None:
    assert report["models"]["some/model"] == {"size_bytes": 1000, "whole": False}
    remark = next(remark for remark in report["remarks"] if remark["about"] == "models.some/model")
    assert remark["hint"] == "Unfinished: dflash-chat pull some/model"


@pytest.mark.parametrize(("kind", "code"), [("weights", ExitCode.WEIGHTS), ("device", ExitCode.DEVICE)])
def test_what_is_broken_decides_the_exit_code(
    kind: Any, code: ExitCode, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    def examine() -> Iterator[Finding]:
        yield Finding("gpu", "usable", False, "note", "No GPU.")
        yield Finding("models", "bundled_pair", "damaged", "broken", "Install again.", kind)

    monkeypatch.setattr(doctor, "examine", examine)
    program.run("doctor")
    assert program.code == code
    lines = program.out.decode().splitlines()
    assert "! usable             no" in lines and "✗ bundled pair       damaged" in lines
    assert lines[lines.index("✗ bundled pair       damaged") + 1].strip() == "Install again."


def test_a_reader_that_has_gone_is_no_failure(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever command writes: ``dflash-chat sessions list words | head -1``."""

    def examine() -> Iterator[Finding]:
        yield Finding("gpu", "usable", True)
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr(doctor, "examine", examine)
    assert program.run("doctor").code == ExitCode.BROKEN_PIPE and not program.err


def test_a_damaged_installation_is_found(program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_doctor, "BUNDLED_PAIR", tmp_path)
    assert program.run("doctor").code == ExitCode.WEIGHTS


@pytest.mark.parametrize("arguments", [("doctor",), ("--version",)])
def test_a_source_tree_that_is_not_installed(
    arguments: tuple[str, ...], program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All packages are there except this one."""
    find = metadata.MetadataPathFinder.find_distributions

    def without_this(context: Any = metadata.DistributionFinder.Context()) -> Iterator[metadata.Distribution]:  # noqa: B008
        return (found for found in find(context) if found.metadata["Name"] != "dflash-chat")

    monkeypatch.setattr(metadata.MetadataPathFinder, "find_distributions", without_this)
    program.run(*arguments)
    said = [line.split(maxsplit=1) for line in program.out.decode().splitlines()]
    assert program.code == ExitCode.OK and ["dflash-chat", "not installed (source tree)"] in said


@pytest.mark.parametrize(("installed", "said"), [("3.6.0", "Known"), ("3.7.1+git1", "Known"), ("4.0", "Nobody")])
def test_it_says_which_triton_is_known_good(installed: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_doctor, "version_of", lambda name: installed)
    (found,) = (each for each in engine_doctor.packages() if each.name == "triton")
    assert str(found.hint).startswith(said) and (found.standing == "ok") == (said == "Known")


def test_the_ceiling_of_a_card_is_told_by_model(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes of a pass over one row, by the pace that was measured: of a mixture those of a few experts."""
    facts = {"name": "A card", "read_per_second_bytes": 4 * 10**12}
    monkeypatch.setattr(doctor, "examine", lambda: iter([Finding("gpu", "cuda:0", facts)]))
    monkeypatch.setattr(doctor, "first_gpu", lambda: Gpu("A card", 10**11, 10**11))
    said = program.run("doctor").out.decode()
    assert "read per second 4.00 TB" in said and "the memory reads 4.00 TB in a second" in said
    row = next(line.split() for line in said.splitlines() if line.split()[:2] == ["gemma-4-26B-A4B-it", "bf16"])
    mixture = size_of("google/gemma-4-26B-A4B-it")
    assert mixture is not None and row[-1] == f"{4e12 / mixture.token['bf16']:.0f}"
    assert mixture.token["bf16"] < mixture.weights["bf16"] / 5


def test_an_attention_that_does_not_run_says_why(program: Program) -> None:
    program.run("doctor")
    lines = program.out.decode().split("attention\n")[1].splitlines()
    without = [place for place, line in enumerate(lines[:8]) if line.split()[-1:] == ["no"]]
    assert all(lines[place + 1].endswith(".") for place in without)


@pytest.mark.parametrize(
    ("card", "format_of_mixture", "drafter"),
    [("24", "int4", 2.1e9), ("5090", "fp8", 2.1e9), ("rtx 3090", "int4", 2.1e9)],
)
def test_what_would_fit_on_another_card(card: str, format_of_mixture: str, drafter: float, program: Program) -> None:
    program.run("doctor", "--memory", card, "--json")
    found = json.loads(program.out)
    rows = {row["weights"]: row for row in found["sizes"] if row["model"] == "google/gemma-4-26B-A4B-it"}
    assert next(weights for weights, row in rows.items() if row["fits"]) == format_of_mixture
    row = rows[format_of_mixture]
    parts = row["weights_bytes"] + row["drafter_bytes"] + row["cache_bytes"]["32768"] + row["work_bytes"]
    assert row["sum_bytes"] == parts < found["card"]["free"]
    assert row["drafter_bytes"] == pytest.approx(drafter, rel=0.05)


def test_a_card_that_nobody_knows_is_refused_by_name(program: Program) -> None:
    program.run("doctor", "--memory", "voodoo")
    assert program.code == ExitCode.USAGE and "voodoo" in program.err and "RTX 4090" in program.err


def test_help_on_models_has_the_table_and_imports_no_torch() -> None:
    says = "from dflash_tui.cli.main import main; main(['help', 'models'])"
    code = f"import sys; {says}; print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert "torch" not in done.stderr.split()
    rows = {tuple(line.split()[:2]): line.split()[2:8] for line in done.stdout.splitlines()}
    assert rows["gemma-4-26B-A4B-it", "int4"] == ["15.3", "2.1", "0.9", "1.5", "3.9", "19.7"]
    assert rows["Qwen3-8B", "int4"] == ["6.4", "3.8", "1.4", "5.5", "-", "16.5"]
    own, _, drafters = done.stdout.rpartition("--draft mtp drafts")[2].partition("Published drafters")
    whose, assistants = " ".join(own.split()).split("; an assistant,")
    kinds = [line.split()[1:] for line in drafters.partition("\ngemma-4-31B-it")[0].splitlines() if "/gemma" in line]
    assert ["DSpark", "2.41", "GB", "Apache-2.0"] in kinds and ["EAGLE-3", "1.86", "GB", "Apache-2.0"] in kinds
    assert "Qwen3.5-4B" in whose and "gemma-4-31B-it" in assistants and "Coder-Next" not in whose + assistants


def test_a_model_fits_with_no_more_tokens_than_it_was_made_for(program: Program) -> None:
    program.run("doctor", "--memory", "80", "--json")
    rows = [row for row in json.loads(program.out)["sizes"] if row["fits"]]
    longest = {row["model"].partition("/")[2]: row["fits"][-1] for row in rows}
    assert (longest["SmolLM2-135M-Instruct"], longest["Qwen3-4B"], longest["gpt-oss-20b"]) == (8192, 32_768, 131_072)


@pytest.mark.parametrize(
    ("switches", "expected"), [({}, "eagle3"), ({"use_aux_hidden_state": False}, "use_aux_hidden_state")]
)
def test_a_drafter_in_the_cache_is_told_by_how_it_guesses(
    switches: dict[str, bool], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = {**eagle_config("NVIDIA", 512, None, [1, 2]), "eagle_config": switches}
    (tmp_path / "config.json").write_text(json.dumps(config))
    monkeypatch.setattr("engine.hub.download.cached_folder", lambda name: tmp_path)
    if not switches:
        assert engine_doctor.method_of("someone/a-drafter") == expected
        config = engine_doctor.drafter_config_in("someone/a-drafter")
        assert config is not None
        whole, odd = replace(config.layers[0], head_dim=128), replace(config.layers[0], head_dim=96)
        assert engine_doctor.rounds_of(replace(config, layers=(whole, odd))).startswith("by the host: ")
        return
    with pytest.raises(WeightsFailure, match=expected):
        engine_doctor.method_of("someone/a-drafter")
