"""Drafters that are published for targets that the engine runs, in formats that it reads. Sizes are those of the files;
licences what their cards say, "" where nobody here has seen it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..commands import METHODS, Method


class Reported(NamedTuple):
    """What a drafter's makers say of it."""

    tokens: float
    """Tokens a round, the target's own one included."""
    where: str
    """On which texts."""

    def beside(self, kept: float) -> str:
        """The sentence that compares it with what is kept here."""
        return f"It keeps {kept:.1f} tokens a round here, its makers report {self.tokens:g} ({self.where})."


class PublishedDrafter(NamedTuple):
    """A drafter of the hub."""

    target: str
    """The target's name, without its maker's."""
    name: str
    method: Method
    gigabytes: float | None
    """Of its files; None where that isn't known."""
    licence: str


MIT, APACHE, UNSEEN = "MIT", "Apache-2.0", ""

PUBLISHED: Sequence[PublishedDrafter] = tuple(
    PublishedDrafter(target, *each)
    for target, drafters in {
        "gemma-4-26B-A4B-it": (
            ("z-lab/gemma-4-26B-A4B-it-DFlash", "dflash", 0.86, MIT),
            ("google/gemma-4-26B-A4B-it-assistant", "mtp", 0.84, UNSEEN),
            ("makora-ai/gemma4-26b-a4b-dspark", "dspark", 2.41, APACHE),
            ("systalyze/gemma4-26b-a4b-it-dspark", "dspark", None, UNSEEN),
            ("RedHatAI/gemma-4-26B-A4B-it-speculator.eagle3", "eagle3", 1.86, APACHE),
        ),
        "gemma-4-31B-it": (
            ("z-lab/gemma-4-31B-it-DFlash", "dflash", 3.07, MIT),
            ("RedHatAI/gemma-4-31B-it-speculator.dflash2", "dflash2", None, APACHE),
            ("RedHatAI/gemma-4-31B-it-speculator.dspark", "dspark", 8.39, APACHE),
            ("olka-amd/dspark-gemma-4-31b-it", "dspark", None, UNSEEN),
            ("RedHatAI/gemma-4-31B-it-speculator.dflash", "dflash", None, APACHE),
            ("RedHatAI/gemma-4-31B-it-speculator.eagle3", "eagle3", 4.47, APACHE),
            ("google/gemma-4-31B-it-assistant", "mtp", 0.94, UNSEEN),
        ),
        "gemma-4-12B-it": (
            ("z-lab/gemma4-12B-it-DFlash", "dflash", 1.46, MIT),
            ("google/gemma-4-12B-it-assistant", "mtp", 0.85, UNSEEN),
            ("deepseek-ai/dspark_gemma4_12b_block7", "dspark", None, UNSEEN),
            ("deepseek-ai/dflash_gemma4_12b_block7", "dflash", None, UNSEEN),
            ("deepseek-ai/eagle3_gemma4_12b_ttt7", "eagle3", None, UNSEEN),
            ("BCCard/MoAI-gemma-4-12B-it-speculator.eagle3", "eagle3", None, UNSEEN),
        ),
        "Qwen3-4B": (
            ("z-lab/Qwen3-4B-DFlash-b16", "dflash", 1.07, MIT),
            ("RedHatAI/Qwen3-4B-speculator.dflash2", "dflash2", None, APACHE),
            ("RedHatAI/Qwen3-4B-speculator.dspark", "dspark", None, APACHE),
            ("mgoin/Qwen3-4B-speculator.dflash2", "dflash2", None, UNSEEN),
            ("deepseek-ai/dflash_qwen3_4b_block7", "dflash", None, UNSEEN),
            ("deepseek-ai/dspark_qwen3_4b_block7", "dspark", None, UNSEEN),
            ("deepseek-ai/eagle3_qwen3_4b_ttt7", "eagle3", None, UNSEEN),
            ("AngelSlim/Qwen3-4B_eagle3", "eagle3", None, UNSEEN),
        ),
        "Qwen3-8B": (
            ("z-lab/Qwen3-8B-DFlash-b16", "dflash", 2.10, MIT),
            ("RedHatAI/Qwen3-8B-speculator.dflash2", "dflash2", None, APACHE),
            ("RedHatAI/Qwen3-8B-speculator.dflash", "dflash", None, APACHE),
            ("mgoin/Qwen3-8B-speculator.dspark", "dspark", None, UNSEEN),
            ("deepseek-ai/dflash_qwen3_8b_block7", "dflash", None, UNSEEN),
            ("deepseek-ai/dspark_qwen3_8b_block7", "dspark", 4.74, UNSEEN),
            ("tencent/Qwen3-8B-DSpine-b16", "dspine", None, APACHE),
            ("jiapingW/Qwen3-8b-dspine-SpecForge", "dspine", None, UNSEEN),
            ("deepseek-ai/eagle3_qwen3_8b_ttt7", "eagle3", None, UNSEEN),
            ("RedHatAI/Qwen3-8B-speculator.eagle3", "eagle3", None, APACHE),
            ("AngelSlim/Qwen3-8B_eagle3", "eagle3", None, UNSEEN),
        ),
        "Qwen3-Coder-30B-A3B-Instruct": (
            ("z-lab/Qwen3-Coder-30B-A3B-DFlash", "dflash", 0.94, MIT),
            ("lmsys/SGLang-EAGLE3-Qwen3-Coder-30B-A3B-Instruct-SpecForge", "eagle3", 0.37, UNSEEN),
        ),
        "Qwen3-Coder-Next": (("z-lab/Qwen3-Coder-Next-DFlash", "dflash", 0.94, MIT),),
        "Qwen3.5-4B": (
            ("z-lab/Qwen3.5-4B-DFlash", "dflash", 1.27, MIT),
            ("yuyijiong/Qwen3.5-4B-Eagle3", "eagle3", None, UNSEEN),
            ("shanjiaz/qwen3.5-4b-speculator.dflash", "dflash", None, UNSEEN),
        ),
        "Qwen3.5-9B": (("z-lab/Qwen3.5-9B-DFlash", "dflash", 2.59, MIT),),
        "Qwen3.5-27B": (("z-lab/Qwen3.5-27B-DFlash", "dflash", 4.25, MIT),),
        "Qwen3.5-35B-A3B": (("z-lab/Qwen3.5-35B-A3B-DFlash", "dflash", 0.77, MIT),),
        "Qwen3.5-122B-A10B": (("z-lab/Qwen3.5-122B-A10B-DFlash", "dflash", 1.55, MIT),),
        "Qwen3.6-27B": (
            ("z-lab/Qwen3.6-27B-DFlash", "dflash", 3.46, MIT),
            ("satgeze/Qwen3.6-27B-DSpark", "dspark", 8.80, UNSEEN),
        ),
        "Qwen3.6-35B-A3B": (
            ("z-lab/Qwen3.6-35B-A3B-DFlash", "dflash", 0.77, MIT),
            ("incoai/Qwen3.6-35B-A3B-DFlash2", "dflash2", 1.05, APACHE),
            ("RedHatAI/Qwen3.6-35B-A3B-speculator.dspark", "dspark", 1.90, APACHE),
            ("Koopah/Qwen3.6-35B-A3B-NVFP4-DSPARK", "dspark", None, UNSEEN),
        ),
        "Qwen3.8-27B": (
            ("z-lab/Qwen3.8-27B-DFlash2", "dflash2", 3.85, MIT),
            ("RedHatAI/Qwen3.8-27B-speculator.dspark", "dspark", None, APACHE),
            ("RadixArk/Qwen3.8-27B-DSpark", "dspark", None, UNSEEN),
            ("tencent/Qwen3.8-27B-DSpine-b16", "dspine", None, APACHE),
        ),
        "Llama-3.1-8B-Instruct": (
            ("z-lab/LLaMA3.1-8B-Instruct-DFlash-UltraChat", "dflash", 2.10, MIT),
            ("lmsys/SGLang-EAGLE3-Llama-3.1-8B-Instruct-SpecForge", "eagle3", 0.85, UNSEEN),
            ("RedHatAI/Llama-3.1-8B-Instruct-speculator.eagle3", "eagle3", 0.85, APACHE),
            ("zhuyksir/EAGLE3-Llama-3.1-8B-Instruct", "eagle3", None, UNSEEN),
        ),
        "gpt-oss-20b": (
            ("z-lab/gpt-oss-20b-DFlash", "dflash", 1.57, MIT),
            ("zhuyksir/EAGLE3-gpt-oss-20b-bf16", "eagle3", 0.60, UNSEEN),
            ("RedHatAI/gpt-oss-20b-speculator.eagle3", "eagle3", 0.60, APACHE),
        ),
        "gpt-oss-120b": (
            ("z-lab/gpt-oss-120b-DFlash", "dflash", 1.57, MIT),
            ("lmsys/EAGLE3-gpt-oss-120b-bf16", "eagle3", None, UNSEEN),
            ("nvidia/gpt-oss-120b-Eagle3-v3", "eagle3", 1.57, UNSEEN),
            ("nvidia/gpt-oss-120b-Eagle3", "eagle3", None, UNSEEN),
            ("nvidia/gpt-oss-120b-Eagle3-long-context", "eagle3", None, UNSEEN),
        ),
    }.items()
    for each in drafters
)  # fmt: skip


REPORTED = {
    "z-lab/gemma-4-26B-A4B-it-DFlash": Reported(4.33, "MT-Bench"),
    "RedHatAI/gemma-4-31B-it-speculator.eagle3": Reported(2.83, "MT-Bench, five guesses"),
    "lmsys/SGLang-EAGLE3-Qwen3-Coder-30B-A3B-Instruct-SpecForge": Reported(4.48, "LiveCodeBench, seven guesses"),
    "z-lab/Qwen3.6-35B-A3B-DFlash": Reported(5.1, "the lowest on its card"),
    "z-lab/Qwen3.8-27B-DFlash2": Reported(5.46, "its card"),
    "lmsys/SGLang-EAGLE3-Llama-3.1-8B-Instruct-SpecForge": Reported(3.86, "MT-Bench, seven guesses"),
    "nvidia/gpt-oss-120b-Eagle3-v3": Reported(2.95, "the mean of its sets"),
}
"""By a drafter's name, its card's figure, where somebody here has seen it."""


def drafter_lines() -> list[str]:
    """A table for people: a target, and under it each of its drafters with kind, size and licence."""
    width = max(len(each.name) for each in PUBLISHED)
    lines, target = [], ""
    for each in PUBLISHED:
        if each.target != target:
            target = each.target
            lines.append(target)
        size = "" if each.gigabytes is None else f"{each.gigabytes:.2f} GB"
        lines.append(f"  {each.name:<{width}}  {METHODS[each.method]:<8}  {size:>7}  {each.licence}".rstrip())
    return lines
