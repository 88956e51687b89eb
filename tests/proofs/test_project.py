"""Promises about the source as a whole: style, types, boundaries, and what an import may cost."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
BUNDLED_PAIR = ROOT / "engine" / "demo" / "pair"


def check(*arguments: str) -> None:
    """Run a program of this environment in the repository; its report is the failure's message."""
    result = subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


def imported_by(code: str) -> set[str]:
    """The modules that a fresh interpreter has loaded after ``code``."""
    report = "\nimport sys; sys.stderr.write(' '.join(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code + report], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return set(result.stderr.splitlines()[-1].split())


@pytest.mark.ci  # where its cache is empty it reads all of torch; `make types` is the same
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_types_are_strict_and_correct() -> None:
    check("-m", "mypy")


def test_the_boundaries_between_packages_hold() -> None:
    check("-c", "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports())")


@pytest.mark.parametrize(
    "module",
    ["engine", "engine.events", "engine.commands", "engine.errors", "engine.service", "engine.loading.precompile"],
)
def test_the_engine_s_contracts_load_no_library(module: str) -> None:
    heavy = {"torch", "numpy", "transformers", "textual", "rich", "click"}
    assert imported_by(f"import {module}") & heavy == set()


def test_headless_mode_loads_neither_textual_nor_ahead_of_the_engine_torch() -> None:
    code = (
        "import io, sys; sys.stdin = io.TextIOWrapper(io.BytesIO())\n"
        "from dflash_tui.cli.main import main\n"
        "from support.scripted import SCRIPTS, ScriptPlayer\n"
        "engine = lambda options: lambda emit: ScriptPlayer(SCRIPTS['plain'], options, emit)\n"
        "assert main(['-p', 'hi', '--json'], engine=engine) == 0"
    )
    assert imported_by(code) & {"textual", "rich", "torch", "transformers"} == set()


def test_the_core_loads_neither_textual_nor_torch() -> None:
    paths = sorted((ROOT / "dflash_tui" / "core").rglob("*.py"))
    modules = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths if path.stem != "__init__"]
    code = "; ".join(f"import {module}" for module in modules)
    assert imported_by(code) & {"textual", "torch", "transformers"} == set()


def test_the_first_frame_waits_for_no_markdown_and_no_family() -> None:
    needless = {"markdown_it", "pygments", "torch", "transformers", "engine.models", "dflash_tui.cli.plain"}
    assert imported_by("import dflash_tui.cli.main, dflash_tui.app.main") & needless == set()


def test_opening_a_pair_leaves_the_compiler_of_torch_and_transformers_alone() -> None:
    """Either takes longer to import than the bundled pair to load."""
    code = (
        "import sys, torch\n"
        "from engine.commands import EngineOptions\n"
        "from engine.service import load_runner\n"
        "from engine.loading.checkpoint import read_drafter_config, read_target_config\n"
        "from engine.hub.pairs import BUNDLED_PAIR\n"
        "from engine.loading.memory_plan import plan_of\n"
        "from engine.models.packed import shape_of\n"
        "load_runner(EngineOptions(device='cpu', time_rounds=False), [].append)\n"
        "config, gpu = read_target_config(BUNDLED_PAIR / 'target'), torch.device('cuda')\n"
        "draft_config = read_drafter_config(BUNDLED_PAIR / 'drafter', config)\n"
        "for weights in ('bf16', 'fp8', 'int4'):\n"
        "    target = shape_of(config, torch.bfloat16, weights)\n"
        "    plan_of(target, draft_config, 512, gpu, weights, 10**11, device_rounds=True).roomier().describe()\n"
        "unwanted = {'torch._dynamo', 'torch._inductor', 'sympy', 'transformers'} & sys.modules.keys()\n"
        "sys.exit(' '.join(sorted(unwanted)) or None)"
    )
    check("-c", code)


def test_every_pin_lies_in_the_range_that_pyproject_asks_for() -> None:
    """``make`` installs what both files agree on; a pin that is missing or outside would break every fresh clone."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    named = [text for extra in ("test", "proofs") for text in extras[extra]]
    asked = [Requirement(text) for text in (*project["dependencies"], *named)]
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    versions = {canonicalize_name(name): version for name, version in pins.items()}
    assert [str(each) for each in asked if not each.specifier.contains(versions[canonicalize_name(each.name)])] == []


def test_a_wheel_holds_what_the_program_needs_and_no_training() -> None:
    packed = {file.distribution_path for file in WheelBuilder(str(ROOT)).recurse_included_files()}
    themes = {f"dflash_tui/themes/{path.name}" for path in (ROOT / "themes").glob("*.toml")}
    pair = {str(path.relative_to(ROOT)) for path in BUNDLED_PAIR.rglob("*") if path.is_file()}
    assert themes and pair
    assert themes | {"engine/py.typed", "dflash_tui/py.typed"} <= packed
    assert {name for name in packed if name.startswith("engine/demo/")} == pair
    assert {name for name in packed if name.startswith("engine/drafters/")} == set(), "the extra smollm2 brings them"
    assert [name for name in packed if name.startswith("engine/lab/demo/")] == []
    assert {name.partition("/")[0] for name in packed} == {"engine", "dflash_tui"}


def test_a_package_page_s_links_lead_somewhere() -> None:
    """Beside the page of an index lie neither pictures nor docs."""
    page = WheelBuilder(str(ROOT)).metadata.core.readme
    assert "/raw/main/screenshots/run.svg" in page and "/blob/main/docs/speed.md#the-same-text" in page
    assert re.findall(r"\]\((?!https?:|#)[^)]*\)", page) == []
