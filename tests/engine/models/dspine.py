"""Tiny DSpine drafters as SpecForge and Tencent write them, and what is done to their files."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from support.checkpoints import FULL, VOCAB_SIZE, drafter_weights, dspine_config
from support.reference_dspine import ReferenceDSpine
from tests.engine.models.dspark import FIELDS, HEADS, Damage, ReferencedPair, damage, referenced_pair, unnamed

LAYOUTS = ("SpecForge", "Tencent")
"""Who writes them so: with all tensors in one file and sizes in the config, or with codes in a second file."""
CODES = {"SpecForge": "transfer_codes", "Tencent": "codes"}
IN_PAIRS = "injection.message.weight", "injection.readouts.1.weight", "injection.writes.0.weight"


def write_dspine(folder: Path, table: Tensor, layout: str = "SpecForge", **changes: Any) -> ReferenceDSpine:
    """Saves a random drafter in this layout, beside a target whose raw embedding and head are ``table`` [vocabulary,
    hidden], and returns what it should draft."""
    config = dspine_config([FULL, FULL], [0, 1], 2, **HEADS, **changes)
    weights = drafter_weights(config, seed=2)
    weights |= {name: 4 * each for name, each in weights.items() if "injection.writes" in name}
    codes = torch.randn(
        VOCAB_SIZE, config["dspine_config"]["transfer_rank"], generator=torch.Generator().manual_seed(3)
    )
    codes /= codes.norm(dim=-1, keepdim=True)
    said, stored = dict(config), dict(weights)
    folder.mkdir(parents=True)
    if layout == "SpecForge":
        stored |= {"transfer_codes": codes, "transfer_ready": torch.tensor(True)}
    else:  # copied from a DFlash's config: neither its block nor its windows count
        del said["dspine_config"]
        said |= {"block_size": 8, "layer_types": ["sliding_attention", FULL]}
        save_file({"codes": codes}, folder / "transfer.safetensors")
    (folder / "config.json").write_text(json.dumps(said))
    save_file(stored, folder / "model.safetensors", metadata={"format": "pt"})
    scale = 8.0  # z-lab's layout scales rows as its target does, Gemma by 64 ** 0.5
    return ReferenceDSpine(config, weights | {"transfer_codes": codes}, table * scale, table)


def dspine_pair(folder: Path, layout: str = "SpecForge", **changes: Any) -> ReferencedPair:
    return referenced_pair(folder, partial(write_dspine, layout=layout, **changes))


def damages(layout: str) -> list[Damage]:
    """What may befall a config's fields and the tensors of this layout."""
    ours = layout == "SpecForge"
    known = {"target_layer_ids" if field == "taps" else field: said for field, said in FIELDS.items()}
    for field in [name for name in known if "markov" in name or "confidence" in name or name == "draft_vocab_size"]:
        del known[field]
    known["num_hidden_layers"] = (known["num_hidden_layers"][0], ("layer", "num_hidden_layers", "injection"))
    known["sample_from_anchor"] = ((True,), ("first row drafts",))
    known["is_causal"] = ((False, 1, "x"), ("is_causal",))
    known["final_logit_softcapping"] = ((30.0,), ("final_logit_softcapping",))
    if ours:
        known["transfer_rank"] = ((-1, 0, 1.5, "x", True, 65, 10**9, 24), ("transfer_rank", "injection", "codes"))
        known["message_size"] = ((-1, 0, 1.5, "x", True, 16), ("message_size", "injection"))
        known["top_k"] = ((0, 1, 8, 32, "x", True, 16.0), ("top_k",))
    else:
        del known["block_size"]
    fields = [Damage(field, value, words) for field, (values, words) in known.items() for value in values]
    names = ("fc.weight", "norm.weight", "injection.bias", "injection.receiver_gate.weight", *IN_PAIRS)
    what = ("lost", "cut", "doubled", "NaN", "other")
    tensors = [Damage(name, each, (name, "codes")) for name in names for each in what]
    of_codes = ("lost", "cut", "NaN", "other", "rows", "longer", "zero", "twice")
    return (
        fields
        + tensors
        + [
            *(Damage(CODES[layout], each, ("codes",)) for each in of_codes),
            *(Damage("transfer_ready", each, ("transfer_ready",)) for each in ("false", "lost", "cut") if ours),
        ]
    )


def damage_dspine(folder: Path, layout: str, wrong: Damage, config: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    """Writes a drafter's files with one thing wrong. ``tensors``: of both files."""
    codes, inner = CODES[layout], config.get("dspine_config", {})
    changed = dict(tensors)
    if wrong.field == "transfer_ready" and wrong.value == "false":
        changed["transfer_ready"] = torch.tensor(False)
    elif wrong.field == codes and wrong.value in ("rows", "longer", "zero", "twice"):
        made = {"rows": tensors[codes][:-1], "longer": tensors[codes] * 40**0.5, "zero": tensors[codes] * 0}
        changed |= {codes: made[wrong.value]} if wrong.value in made else {}
        changed |= {"transfer_codes": tensors[codes], "codes": tensors[codes].clone()} if wrong.value == "twice" else {}
    elif wrong.field in inner:
        config = {**config, "dspine_config": {**inner, wrong.field: wrong.value}}
    else:
        damage(folder, "SpecForge", wrong, config, tensors)
        changed = load_file(folder / "model.safetensors")
        config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config))
    second = {"codes": changed.pop("codes")} if "codes" in changed else {}
    save_file(changed, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "transfer.safetensors").unlink(missing_ok=True)
    if second:
        save_file(second, folder / "transfer.safetensors")


def silent_damages(folder: Path, layout: str, every: int = 1) -> tuple[int, list[str]]:
    """How many damages were tried, and those that were not refused by name."""
    pair, drafter = dspine_pair(folder, layout), folder / "drafter"
    config = json.loads((drafter / "config.json").read_text())
    tensors = {name: each for path in drafter.glob("*.safetensors") for name, each in load_file(path).items()}
    tried = damages(layout)[::every]
    write = partial(damage_dspine, drafter, layout, config=config, tensors=tensors)
    return len(tried), unnamed(drafter, pair.target, tried, write)
